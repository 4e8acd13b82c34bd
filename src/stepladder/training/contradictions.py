"""Settings of a training that are right by themselves and do not go together.

Asked by `config` after all else was checked. What an env or a curriculum would refuse later is
found here first, before anything is started.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stepladder.agents.config import DDDQNConfig, SACConfig
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.phased.config import Phase, PhasedConfig
from stepladder.curricula.phased.mixture import MixtureConfig
from stepladder.curricula.phased.settings import Mixed
from stepladder.curricula.staged.config import StagedConfig
from stepladder.games.hockey.task import CALLED
from stepladder.training.hockey_settings import about_hockey

if TYPE_CHECKING:
    from stepladder.training.config import TrainingConfig

HOCKEY, LEDGE = "stepladder/Hockey-v0", "stepladder/Ledge-v0"


def contradictions(config: "TrainingConfig") -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each."""
    yield from _about_actions(config)
    yield from _about_mirror(config)
    yield from _about_labels(config.curriculum, labels_of(config), "curriculum")
    yield from _about_phases(config)
    yield from _about_opponents(config)
    if config.env == HOCKEY:
        yield from about_hockey(config)


def neural_opponents(config: "TrainingConfig") -> tuple[str, ...]:
    """Return the opponents that the training plays itself, each once, "caller:" included."""
    found = (name for _, name in _opponents(config) if str(name).startswith(CALLED))
    return tuple(dict.fromkeys(found))


def phases_of(curriculum: CurriculumConfig) -> tuple[Phase, ...]:
    """Return the phases of a curriculum; none if it has none."""
    return curriculum.phases if isinstance(curriculum, PhasedConfig) else ()


def _about_actions(config: "TrainingConfig") -> Iterator[tuple[str, str]]:
    """Say where an agent cannot act in a built-in game."""
    if config.env not in (HOCKEY, LEDGE):
        return
    is_discrete = config.env == LEDGE or config.env_kwargs.get("actions") == "discrete"
    if isinstance(config.agent, SACConfig) and is_discrete:
        fix = "use DDDQN or PPO" if config.env == LEDGE else "leave env_kwargs.actions out"
        yield "agent", f"SAC needs continuous actions and {config.env} has discrete ones; {fix}."
    if isinstance(config.agent, DDDQNConfig) and not is_discrete:
        yield (
            "agent",
            f"DDDQN needs discrete actions and {config.env} has continuous ones; set "
            'env_kwargs.actions to "discrete".',
        )


def _about_mirror(config: "TrainingConfig") -> Iterator[tuple[str, str]]:
    if getattr(config.agent, "mirror", False) and config.env != HOCKEY:
        yield "agent.mirror", f"only {HOCKEY} has a mirror; env is {config.env!r}. Leave it out."


def labels_of(config: "TrainingConfig") -> tuple[str, ...]:
    """Return the labels of the tasks that a training practises, in order."""
    if config.tasks:
        return tuple(dict.fromkeys(task.label for task in config.tasks))
    return config.levels.stages if config.env == LEDGE else ("default",)


def _about_labels(
    curriculum: CurriculumConfig, labels: tuple[str, ...], path: str
) -> Iterator[tuple[str, str]]:
    """Say which labels a curriculum names that no task has, and which tasks it leaves out."""
    there = f"the tasks have {', '.join(labels)}"
    if isinstance(curriculum, StagedConfig):
        staged = {label for stage in curriculum.stages for label in stage.task_labels}
        for index, stage in enumerate(curriculum.stages):
            if not set(stage.task_labels) & set(labels):
                yield f"{path}.stages[{index}]", f"no task belongs to {stage.name!r}; {there}."
        for label in labels:
            if label not in staged:
                yield f"{path}.stages", f"tasks labelled {label!r} are in no stage; add it."
    if isinstance(curriculum, MixtureConfig):
        for label in curriculum.weights.keys() - set(labels):
            yield f"{path}.weights.{label}", f"no task has this label; {there}."
    for index, phase in enumerate(phases_of(curriculum)):
        inside = "mixture" if phase.mixture is not None else "curriculum"
        yield from _about_labels(phase.inner(), labels, f"{path}.phases[{index}].{inside}")


def _about_phases(config: "TrainingConfig") -> Iterator[tuple[str, str]]:
    names = [phase.name for phase in phases_of(config.curriculum)]
    for name in config.clear_buffer_on:
        if name not in names:
            known = f"the phases are {', '.join(names)}" if names else "the curriculum has none"
            yield f"clear_buffer_on.{name}", f"there is no such phase; {known}."


def _about_opponents(config: "TrainingConfig") -> Iterator[tuple[str, str]]:
    needs_both = False
    for path, name in _opponents(config):
        if name == "caller":
            yield path, 'says "caller" and not who; write "caller:newest" or "caller:pool".'
        elif isinstance(name, str) and name.startswith(CALLED):
            needs_both = True
            if config.env != HOCKEY:
                yield path, f"{name!r} can be played in {HOCKEY} only; env is {config.env!r}."
    archive = f"{CALLED}archive"
    if archive in neural_opponents(config) and config.opponents.archive is None:
        yield "opponents.archive", f"is missing, and {archive!r} is an opponent. Name its folder."
    if config.opponents.archive is not None and config.env != HOCKEY:
        yield (
            "opponents.archive",
            f"opponents are for {HOCKEY}; env is {config.env!r}. Leave it out.",
        )
    if needs_both and config.env_kwargs.get("players") != "both":
        yield "env_kwargs.players", 'must be "both", because there are neural opponents.'


def _opponents(config: "TrainingConfig") -> Iterator[tuple[str, Any]]:
    """Yield the path and the name of every opponent that is mentioned."""
    if "opponent" in config.env_kwargs:
        yield "env_kwargs.opponent", config.env_kwargs["opponent"]
    for index, task in enumerate(config.tasks):
        if "opponent" in task.params:
            yield f"tasks[{index}].params.opponent", task.params["opponent"]
    yield from _in_phases(config.curriculum, "curriculum")


def _in_phases(curriculum: CurriculumConfig, path: str) -> Iterator[tuple[str, Any]]:
    for index, phase in enumerate(phases_of(curriculum)):
        where = f"{path}.phases[{index}]"
        setting = phase.settings.get("opponent")
        names = setting.values if isinstance(setting, Mixed) else (setting,)
        for name in names:
            if name is not None:
                yield f"{where}.settings.opponent", name
        yield from _in_phases(phase.inner(), f"{where}.curriculum")
