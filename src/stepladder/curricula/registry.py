"""Every curriculum by name: the one table that commands, JSON, `compare`, training and resume read.

Above the configs of all methods, below everything that chooses a method by name. An entry is the
config class of a method; its `kind` is the name. A package adds its own through the entry-point
group ``stepladder.curricula``, a script or notebook with the decorator `register_curriculum`.
"""

from typing import Any, TypeVar, cast

from stepladder.curricula.base import Curriculum
from stepladder.curricula.config import CurriculumConfig, Variant
from stepladder.errors import ConfigError, SnapshotError, nearest, shown
from stepladder.registry import Registry
from stepladder.saving.snapshot import Snapshot
from stepladder.tasks import Pool, Source
from stepladder.tasks.plain import checked_integer
from stepladder.tasks.task import MAX_SEED

ConfigClass = TypeVar("ConfigClass", bound=type[CurriculumConfig])


def _check(name: str, entry: Any) -> None:
    if not isinstance(entry, type) or not issubclass(entry, CurriculumConfig):
        raise ConfigError(
            f"the curriculum {name!r} must be a class derived from CurriculumConfig; "
            f"got {shown(cast('object', entry))}."
        )
    if getattr(entry, "kind", None) != name:
        raise ConfigError(
            f"{entry.__name__}.kind must be {name!r}, the name of its entry; "
            f"got {shown(getattr(entry, 'kind', None))}. Make the two equal."
        )


CURRICULA: Registry[type[CurriculumConfig]] = Registry(
    "curricula",
    _check,
    {
        "uniform": "stepladder.curricula.uniform:UniformConfig",
        "frontier": "stepladder.curricula.frontier.config:FrontierConfig",
        "learning-progress": "stepladder.curricula.learning_progress.config:LearningProgressConfig",
        "ancestor-progress": "stepladder.curricula.learning_progress.config:AncestorProgressConfig",
        "learnability": "stepladder.curricula.learnability.config:LearnabilityConfig",
        "level-replay": "stepladder.curricula.level_replay.config:LevelReplayConfig",
        "advantage-bandit": ("stepladder.curricula.advantage_bandit.config:AdvantageBanditConfig"),
        "staged": "stepladder.curricula.staged.config:StagedConfig",
        "phased": "stepladder.curricula.phased.config:PhasedConfig",
        "mixture": "stepladder.curricula.phased.mixture:MixtureConfig",
        "auto": "stepladder.curricula.auto.config:AutoConfig",
    },
)
"""The config class of every curriculum, by name."""


def register_curriculum(config_class: ConfigClass) -> ConfigClass:
    """Add a config class to the registry under its `kind`, for this process; use as a decorator.

    docs/own_curriculum.md has a whole example.

    Raises:
        ConfigError: The class has no `kind`, or another method has the same one.
    """
    name: Any = getattr(config_class, "kind", None)
    if not isinstance(name, str) or not name:
        raise ConfigError(
            f'{shown(config_class)} has no name. Set kind: ClassVar[str] = "my-method" on it.'
        )
    return CURRICULA.register(name)(config_class)


def curriculum_variants(*, can_edit: bool = True) -> dict[str, Variant]:
    """Return the ready-made settings of every curriculum, by the names that commands accept.

    Args:
        can_edit: Whether tasks can be edited; settings that need it are left out otherwise.

    Raises:
        ConfigError: Two methods use the same name, or an installed package cannot be imported.
    """
    found: dict[str, Variant] = {}
    for kind in CURRICULA:
        for name, variant in CURRICULA[kind].variants().items():
            if name in found:
                raise ConfigError(
                    f"two curricula offer settings named {name!r}; {CURRICULA[kind].__name__} is "
                    "the second. Rename its variant."
                )
            found[name] = variant
    return {name: variant for name, variant in found.items() if can_edit or not variant.edits}


def curriculum_variant(name: str) -> Variant:
    """Return the ready-made settings of a name.

    Raises:
        ConfigError: There is no such name.
    """
    variants = curriculum_variants()
    if name not in variants:
        raise ConfigError(
            f"there is no curriculum {name!r}; there are {', '.join(variants)}. Choose one of "
            f"these, or install the package that brings it.{nearest(name, variants)}"
        )
    return variants[name]


def rebuilt(snapshot: Snapshot, source: Source) -> Curriculum:
    """Return the curriculum that a snapshot was made of, to explain a run or to resume it.

    Its settings, its seed and the size of its pool are in the snapshot; its tasks are not.

    Raises:
        SnapshotError: The snapshot is damaged, or was made with other tasks.
        ConfigError: Its settings cannot be read; all problems are listed.
    """
    given = snapshot.state.get("config")
    config = CurriculumConfig.from_json(given, "the curriculum of the checkpoint")
    pool = snapshot.part("pool")
    saved_numbers = {"seed": snapshot.state.get("seed"), "num_slots": pool.state.get("num_slots")}
    seed, capacity = (
        checked_integer(value, f"The checkpoint's {name}", 0, MAX_SEED, SnapshotError)
        for name, value in saved_numbers.items()
    )
    # A pool takes memory for every slot; the file must have had as many.
    saved = pool.arrays.get("task_ids")
    if saved is None or saved.shape != (capacity,):
        found = "missing" if saved is None else f"of shape {list(saved.shape)}"
        raise SnapshotError(
            f"the checkpoint's pool has {capacity} slots, and its array 'task_ids' is {found}. Use "
            "an older checkpoint."
        )
    tasks = cast("Source", config.editable(source))
    curriculum = config.make(Pool(tasks, capacity, seed), seed=seed)
    curriculum.restore(snapshot)
    return curriculum
