"""Settings of the curriculum that chooses its method, and the choice itself.

Read by `auto`, which builds what was chosen. The choice depends on the tasks alone, so that a run
that is resumed makes the same one.
"""

from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

from stepladder.configs.checks import Name, each_once
from stepladder.curricula.config import FEW_TASKS, CurriculumConfig, Variant
from stepladder.curricula.frontier.config import FrontierConfig
from stepladder.curricula.learning_progress.config import LearningProgressConfig
from stepladder.curricula.pooled.cells import find_cells
from stepladder.curricula.uniform import UniformConfig
from stepladder.tasks import Pool


@dataclass(frozen=True)
class ChosenMethod:
    """A method, and why it was chosen."""

    config: CurriculumConfig
    reason: str


@dataclass(frozen=True, kw_only=True)
class AutoConfig(CurriculumConfig):
    """The method that fits the tasks; says which, and why.

    Sets what is known about the tasks beyond their labels.
    """

    kind: ClassVar[str] = "auto"
    method_module: ClassVar[str] = "stepladder.curricula.auto.auto"

    features: Annotated[tuple[Name, ...], each_once] = ()
    """Parameters of the tasks, such as a position or a difficulty, by which tasks are similar.
    Dotted paths reach into nested parameters. None by default; needs a pool that holds all tasks of
    its source."""

    @property
    def replaces_tasks(self) -> bool:
        """Whether tasks make room for others; similar features need all tasks in the pool."""
        return not self.features

    @classmethod
    def variants(cls) -> dict[str, Variant]:
        """Return the plain method, and one that looks at the features of the tasks."""
        about = "As auto, and tasks of similar features are judged by each other."
        return {
            cls.kind: Variant(cls.summary(), lambda tasks: cls()),
            f"{cls.kind}-features": Variant(about, lambda tasks: cls(features=tasks.features)),
        }

    def choose(self, pool: Pool) -> tuple[ChosenMethod, ChosenMethod]:
        """Return the method if episodes say how successful they were, and the one if they do not.

        Raises:
            ConfigError: A feature is missing or not a number, or some tasks are not in the pool.
        """
        if pool.num_slots == 1 and not pool.can_replace:
            alone = ChosenMethod(UniformConfig(**self._shared), "there is only one task")
            return alone, alone
        by_return = ChosenMethod(
            LearningProgressConfig(signal="return", **self._shared),
            "episodes do not say whether they succeeded, so tasks are drawn whose return changes",
        )
        return ChosenMethod(
            FrontierConfig(features=self.features, **self._shared), self._why(pool)
        ), by_return

    @property
    def _shared(self) -> dict[str, Any]:
        """Settings that every method has."""
        return {one.name: getattr(self, one.name) for one in fields(CurriculumConfig)}

    def _why(self, pool: Pool) -> str:
        if self.features and pool.num_slots <= FEW_TASKS:
            return f"tasks near a mastered one by {', '.join(self.features)} are probed first"
        cells = find_cells(pool, self.features)
        if not cells.split:
            return (
                "neither labels nor features say which tasks are alike, so every task is probed "
                "and practised by itself"
            )
        kinds = f"{cells.num_cells} kinds by {', '.join(self.features)}"
        known = kinds if self.features else f"{cells.num_cells} labels"
        return f"there are {known}, so tasks of a kind are judged together"
