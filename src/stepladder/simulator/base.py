"""The contract of the simulator: what a simulated learner is, and what a scenario is.

Below everything else here. Engines, `simulate`, `compare` and sweeps know these two classes only,
so that a further kind of learner needs no change there. There are two kinds: the learner of a graph
of tasks (`learner`) and the learner that generalises (`generalising`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.configs.checks import require_kind
from stepladder.curricula.base import Curriculum
from stepladder.curricula.config import CurriculumConfig, TaskKnowledge
from stepladder.curricula.registry import curriculum_variant
from stepladder.errors import ConfigError, nearest
from stepladder.saving.snapshot import Snapshot
from stepladder.simulator.policies import OraclePolicy, OracleRun, best_run, policy_runs
from stepladder.simulator.verdict import Verdict
from stepladder.stats.names import MAX_PER_FAMILY, OTHER_NAMES
from stepladder.tasks import ListSource, Pool

LEARNER_PREFIX = "env_task_dependency"
"""First part of the names of a simulated learner's metrics."""


class PlayResult(NamedTuple):
    """What one play shows; decided when it begins."""

    level: float
    """The learner's chance of success."""
    success: float
    reward: float
    length: int
    """Env steps."""


class Spent(NamedTuple):
    """What samples were spent on so far."""

    samples: int
    on_mastered: int
    """On tasks that were mastered already."""
    on_locked: int
    """On tasks that were out of reach."""
    on_hopeless: int
    """On tasks from which nothing can be learned that counts."""

    def shares(self) -> tuple[float, float, float]:
        """Return the shares of samples on tasks mastered, out of reach, and hopeless."""
        samples = max(1, self.samples)
        return (
            self.on_mastered / samples,
            self.on_locked / samples,
            self.on_hopeless / samples,
        )


class Kernels(NamedTuple):
    """Compiled functions with which engines play a kind of learner."""

    play: Callable[..., int]
    """Called with block, learner, records, played, levels, until: lets the envs draw and play until
    some of them end. Fills in a record, a level and what `learn` needs for each of these; returns
    their number, or a negative one if there is nothing to draw."""

    learn: Callable[..., None]
    """Called with learner, played and their number: lets the learner learn from them."""

    loop: Any
    """The loop that `loops.loop_of` compiles around the rule of a curriculum."""

    scratch: Callable[[int], Any]
    """Makes the memory that the loop needs for so many envs."""

    counter: str
    """Field of the learner's clock that rises by one for every `samples_per_count` samples."""


class Simulator(ABC):
    """A simulated learner.

    A sample is what budgets count: a play where all plays take one step, else an env step.
    """

    kernels: ClassVar[Kernels]
    state: Any
    """The arrays; kernels change them."""
    seed: int
    num_envs: int
    samples_per_count: int = 1
    """Samples for which the clock's counter rises by one."""

    @property
    @abstractmethod
    def num_tasks(self) -> int:
        """Number of tasks."""

    @property
    @abstractmethod
    def P(self) -> Floats:
        """Probability of success per task at this moment; a fresh array."""

    def judged_success(self) -> Floats:
        """Return the success per task that progress is measured by; a fresh array."""
        return self.P

    def plays_by_task(self) -> Words:
        """Return the plays of each task so far; a fresh array."""
        return self.state.plays.copy()

    @property
    @abstractmethod
    def num_plays(self) -> int:
        """Plays learned from so far."""

    @property
    @abstractmethod
    def num_samples(self) -> int:
        """Samples so far."""

    @property
    @abstractmethod
    def done_at(self) -> int | None:
        """Samples until everything that counts was learned; None before."""

    @property
    @abstractmethod
    def progress(self) -> float:
        """How much of what counts is learned now, in [0, 1]."""

    @property
    @abstractmethod
    def progress_area(self) -> float:
        """Sum of `progress` over all samples so far."""

    @property
    @abstractmethod
    def next_episode(self) -> int:
        """Number of the next episode: that of the env that has begun most episodes."""

    @abstractmethod
    def prepare(self, next_episode: int, num_slots: int, num_envs: int) -> None:
        """Get ready for an engine.

        Args:
            next_episode: Smallest number of an episode that may begin now.
            num_slots: Slots of the curriculum.
            num_envs: Envs of the engine.

        Raises:
            ConfigError: This learner was made for another number of envs.
        """

    @abstractmethod
    def end_step(self, nodes: Words, levels: Floats, lengths: Words) -> None:
        """End a vector step of real envs: learn from the plays that ended in it, in env order."""

    @abstractmethod
    def learn_play(self, node: int, shown: PlayResult) -> None:
        """Learn from one play of an env that is used alone."""

    def end_epoch(self) -> None:  # noqa: B027, most learners know no epochs
        """Note that an epoch of the report has ended."""

    @abstractmethod
    def reset(self) -> None:
        """Forget everything and begin again."""

    @abstractmethod
    def source(self) -> ListSource:
        """Return all tasks, for a curriculum to be built over."""

    @abstractmethod
    def spent(self, *, until_done: bool = False) -> Spent:
        """Return what samples were spent on so far.

        Args:
            until_done: Whether those after everything was learned are left out.
        """

    def shares(self) -> tuple[float, float, float]:
        """Return the shares of samples on tasks mastered, out of reach and hopeless until done."""
        return self.spent(until_done=True).shares()

    @abstractmethod
    def metrics(self) -> dict[str, float]:
        """Return the learner's state under the names of docs/metrics.md."""

    @abstractmethod
    def label_metrics(self) -> dict[str, float]:
        """Return what is known per label, under the names of docs/metrics.md."""

    @abstractmethod
    def judge(self, could_end: bool = True) -> Verdict:
        """Return the verdict on the learner as it is now.

        Args:
            could_end: Whether the oracle would have learned everything in as many samples.
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return all settings of this learner as plain JSON."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """Return everything needed to continue exactly here."""

    @abstractmethod
    def restore(self, snapshot: Snapshot) -> None:
        """Continue exactly where a snapshot of an equal simulator was made."""

    @abstractmethod
    def move_to(self, words: Words) -> None:
        """Move what envs read into other memory, such as a shared segment."""


def performance_metrics(chances: Floats, line: float) -> dict[str, float]:
    """Return what every learner tells about its chances of success, one per task."""
    both = {
        "mean_performance": float(chances.mean()),
        "max_performance": float(chances.max()),
        "tasks_above_threshold": float(np.sum(chances >= line)),
    }
    return {
        **{f"overview/{name}": value for name, value in both.items()},
        **{f"{LEARNER_PREFIX}/{name}": value for name, value in both.items()},
        f"{LEARNER_PREFIX}/min_performance": float(chances.min()),
        f"{LEARNER_PREFIX}/performance_std": float(chances.std(ddof=1))
        if len(chances) > 1
        else 0.0,
    }


def by_label(family: str, labels: Sequence[str], values: Floats) -> dict[str, float]:
    """Return a metric per label for the first labels, and the mean of all others."""
    first = zip(labels[:MAX_PER_FAMILY], values[:MAX_PER_FAMILY].tolist(), strict=True)
    shown = {f"{LEARNER_PREFIX}/{family}/{label}": value for label, value in first}
    if len(labels) > MAX_PER_FAMILY:
        shown[f"{LEARNER_PREFIX}/{family}/{OTHER_NAMES}"] = float(values[MAX_PER_FAMILY:].mean())
    return shown


def require_labels(target: Mapping[str, float], labels: Sequence[str], name: str) -> None:
    """Raise `ConfigError` if a target names a label that a scenario does not have."""
    for label in target:
        if label not in labels:
            some = f"{', '.join(labels[:20])}{', …' if len(labels) > 20 else ''}"
            raise ConfigError(
                f"the scenario {name} has no label {label!r}; it has {some}. Correct the target."
                f"{nearest(label, labels)}"
            )


@dataclass(frozen=True, kw_only=True)
class Scenario(ABC):
    """A situation that curricula are judged in: tasks, a learner, and how long it may take."""

    varied: ClassVar[tuple[str, ...]] = ()
    """Fields that hold configs of the learner; a sweep varies what is in them."""

    playground_share: ClassVar[float]
    """Share of the budget that the playground shows by default: about twice what uniform needs."""

    name: str
    capacity: int | None = None
    """Slots of a curriculum that can replace tasks; other curricula hold all tasks."""
    about: str = ""
    """Purpose, in one line."""

    @property
    @abstractmethod
    def num_tasks(self) -> int:
        """Number of tasks."""

    @property
    @abstractmethod
    def budget(self) -> int:
        """Samples after which a curriculum has failed."""

    @property
    @abstractmethod
    def knowledge(self) -> TaskKnowledge:
        """What a user of a curriculum would know about these tasks."""

    @property
    @abstractmethod
    def measure(self) -> str:
        """What samples are here, and when a curriculum is done, in words."""

    @property
    @abstractmethod
    def aim(self) -> Mapping[str, float]:
        """What counts, as a target of a curriculum: weights by label; empty if all tasks do."""

    @property
    @abstractmethod
    def groups(self) -> tuple[tuple[str, ...], Words]:
        """Names of the groups of tasks, those learned first in front; the group of each task."""

    @abstractmethod
    def aimed_at(self, target: Mapping[str, float]) -> "Scenario":
        """Return the same scenario, judged by the tasks with these labels alone.

        Raises:
            ConfigError: There is no such label.
        """

    @abstractmethod
    def epoch_samples(self, num_envs: int) -> int:
        """Return the samples of each env in one epoch, unless the user says otherwise."""

    @abstractmethod
    def source(self) -> ListSource:
        """Return all tasks."""

    @abstractmethod
    def simulator(self, seed: int = 0, num_envs: int = 1) -> Simulator:
        """Make the learner."""

    @abstractmethod
    def slower(self, factor: int) -> "Scenario":
        """Return the same scenario with a learner that learns and forgets so many times slower."""

    @abstractmethod
    def policies(self, simulator: Simulator) -> list[OraclePolicy]:
        """Return policies that see the hidden skills of a learner of this scenario."""

    def oracle(self, seed: int, num_envs: int, budget: int) -> OracleRun:
        """Return the best of these policies."""
        simulator = self.simulator(seed, num_envs)
        return best_run(policy_runs(simulator, self.policies(simulator), budget))

    def curriculum_config(self, curriculum: "CurriculumChoice") -> CurriculumConfig:
        """Return the config that a name or a function stands for here; a config is returned as is.

        Raises:
            ConfigError: The name is unknown, there is no config, or it needs a trainer.
        """
        if isinstance(curriculum, str):
            config = curriculum_variant(curriculum).make(self.knowledge)
            self._refuse_edits(config, curriculum)
            return config
        config = curriculum(self) if callable(curriculum) else curriculum
        fix = "Give a name, or a config such as FrontierConfig()."
        require_kind("curriculum", config, CurriculumConfig, fix=fix)
        self._refuse_edits(config, config.kind)
        if config.needs_trainer:
            raise ConfigError(
                f"scored_by {getattr(config, 'scored_by', config.trainer_score)!r} needs an agent "
                "that gives advantages; simulated learners have none. Set it to 'deviation'."
            )
        return config

    def _refuse_edits(self, config: CurriculumConfig, name: str) -> None:
        if config.num_edit_changes:
            raise ConfigError(
                f"{name} edits tasks, and simulated tasks cannot be edited. Set editing to 0 "
                "(level-replay does without), or train on a source that can."
            )

    def curriculum(self, curriculum: "CurriculumChoice", seed: int) -> Curriculum:
        """Make a curriculum over the tasks.

        A method that replaces tasks gets a pool of the scenario's capacity.
        """
        config, source = self.curriculum_config(curriculum), self.source()
        if config.replaces_tasks and self.capacity is not None:
            return config.make(Pool(source, self.capacity, seed), seed=seed)
        return config.make(source, seed=seed)


CurriculumChoice = CurriculumConfig | Callable[[Scenario], CurriculumConfig] | str
"""A curriculum: its config, a function that makes the config for a scenario, or its name."""
