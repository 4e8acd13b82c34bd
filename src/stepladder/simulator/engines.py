"""Three ways to run the same simulation: through real envs, without envs, in compiled code.

Between a learner, a curriculum and `simulate`. Every env draws from the plan and plays an episode
with the skills of its beginning; the curriculum observes the records of those that end at the same
time, in the order of the envs; then the learner learns. Which episodes end together is up to the
kind of learner (`base.Kernels`). The same seed gives the same results in all three.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from contextlib import ExitStack
from functools import partial
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import direct
from stepladder.configs.checks import require_integer
from stepladder.curricula.base import Curriculum, nothing_active
from stepladder.curricula.batch_rule import CompiledRule
from stepladder.curricula.reporting.meter import CurriculumMeter
from stepladder.envs import CurriculumEnv
from stepladder.envs.vector import CurriculumVectorEnv
from stepladder.envs.workers.arguments import StartMethod
from stepladder.envs.workers.vector_env import WorkerVectorEnv
from stepladder.errors import BuildError, ConfigError, TaskError
from stepladder.plans.plan import aligned_words
from stepladder.plans.record import RECORD_DTYPE, RecordArray
from stepladder.plans.status import NOTHING_ACTIVE, TO_REPLACE
from stepladder.simulator.base import Simulator
from stepladder.simulator.env import SkillView, TaskDependencyEnv, node_of
from stepladder.simulator.loops import loop_of
from stepladder.simulator.rounds import SlotSums
from stepladder.stats.rollout import accumulate_rollout_stats
from stepladder.sync.segment import Segment

EngineName = Literal["compiled", "direct", "envs"]
ENGINES: tuple[EngineName, ...] = ("compiled", "direct", "envs")

MAX_LOOKED_AT = 100_000
"""Of a larger source, only the tasks in the pool are checked before a simulation."""

INFO = "task_dependency"
"""Key of the measurements of a play in the infos of the envs."""


class Engine(ABC):
    """Plays a curriculum on a simulated learner.

    Args:
        simulator: The learner.
        curriculum: The curriculum; nothing else may draw from it meanwhile.
        num_envs: Envs that play at the same time.
        meter: Counts the plays; None for no counts.
    """

    def __init__(
        self,
        simulator: Simulator,
        curriculum: Curriculum,
        num_envs: int = 1,
        meter: CurriculumMeter | None = None,
    ):
        require_integer("num_envs", num_envs, 1)
        _require_same_tasks(simulator, curriculum)
        # Draws are numbered by episode: no engine repeats those of an earlier one.
        begun = max(simulator.next_episode, curriculum.next_episode)
        simulator.prepare(begun, curriculum.pool.num_slots, num_envs)
        curriculum.next_episode = begun
        self.simulator = simulator
        self.curriculum = curriculum
        self.num_envs = num_envs
        self.meter = meter
        self._stats: defaultdict[str, list[float]] = defaultdict(list)

    @abstractmethod
    def advance(self, until: int, *, stops: bool = False) -> None:
        """Play until the learner has had `until` samples; rounds are played to their end.

        Args:
            until: Samples since the beginning.
            stops: Whether to return as soon as everything that counts is learned.
        """

    def take_stats(self) -> dict[str, list[float]]:
        """Return the stats from infos since the last call, for `process_training_stats`."""
        taken, self._stats = dict(self._stats), defaultdict(list)
        return taken

    def close(self) -> None:  # noqa: B027, most engines hold nothing
        """Free what the engine holds; the learner and the curriculum can still be read."""

    def _goes_on(self, until: int, stops: bool) -> bool:
        done = stops and self.simulator.done_at is not None
        return self.simulator.num_samples < until and not done


class _Carrier(Engine):
    """Base of the engines without envs, which claim the curriculum themselves."""

    def advance(self, until: int, *, stops: bool = False) -> None:
        """Play until the learner has had `until` samples."""
        # As a channel does: this sets the number of envs and keeps other channels away.
        self.curriculum.claim(self)
        try:
            self._advance(until, stops)
        finally:
            self.curriculum.release(self)
            self.curriculum.next_episode = self.simulator.next_episode

    @abstractmethod
    def _advance(self, until: int, stops: bool) -> None:
        """Play."""


class DirectEngine(_Carrier):
    """Curriculum and statistics as in training, called from Python; no envs in between."""

    CHUNK = 256
    """Batches of records after which the stats are collected."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        shape = (self.CHUNK, self.num_envs)
        self._records: RecordArray = np.zeros(shape, dtype=RECORD_DTYPE)
        self._levels: Floats = np.zeros(shape)
        self._batches = list(zip(self._records, self._levels, strict=True))
        """The same, batch by batch: a view takes longer to make than to fill."""
        self._played: Words = np.zeros(self.num_envs, dtype=np.int64)
        learner = self.simulator.state
        records, levels = self._batches[0]
        play, learn = self.simulator.kernels.play, self.simulator.kernels.learn
        # Called once per batch: looking at the types of all arguments would take longer.
        self._play = direct(play, aligned_words(1), learner, records, self._played, levels, 0)
        self._learn = direct(learn, learner, self._played, 0)

    def _advance(self, until: int, stops: bool) -> None:
        while self._goes_on(until, stops):
            self._hand_on(self._play_batches(until, stops))

    def _play_batches(self, until: int, stops: bool) -> list[int]:
        """Play until the chunk is full or `until` is reached; return the size of each batch."""
        learner, curriculum, played = self.simulator.state, self.curriculum, self._played
        # Views of the clock: to ask the simulator before every batch would take longer.
        counter, done_at = learner.clock[self.simulator.kernels.counter], learner.clock["done_at"]
        last = -(-until // self.simulator.samples_per_count)
        counts: list[int] = []
        for records, levels in self._batches:
            count = self._play(curriculum.plan.block, learner, records, played, levels, until)
            if count < 0:
                raise BuildError(nothing_active())
            if count:
                curriculum.observe(records if count == self.num_envs else records[:count])
            self._learn(learner, played, count)
            counts.append(count)
            if counter.item(0) >= last or (stops and done_at.item(0) >= 0):
                break
        return counts

    def _hand_on(self, counts: list[int]) -> None:
        """Give the stats pipeline what the envs of these batches would have put into infos."""
        records, levels = self._records[: len(counts)], self._levels[: len(counts)]
        has_ended = np.arange(self.num_envs) < np.array(counts)[:, None]
        if has_ended.all():
            records, levels = records.reshape(-1), levels.reshape(-1)
        else:
            records, levels = records[has_ended], levels[has_ended]
        info = {
            "performance": levels,
            "reward": records["episode_return"],
            "success": records["success"],
        }
        accumulate_rollout_stats({INFO: info}, self._stats)


class CompiledEngine(_Carrier):
    """The whole loop in compiled code, for curricula that have such a form."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        kernels = self.simulator.kernels
        self._loop = loop_of(require_compiled_form(self.curriculum), kernels.loop)
        # The meter is one of them; it gets sums instead.
        if len(self.curriculum._listeners) > (self.meter is not None):
            raise ConfigError(
                "this curriculum has a listener, and compiled code cannot call listeners. "
                "Use engine='direct', or remove the listener."
            )
        self._scratch = kernels.scratch(self.num_envs)
        # The last one is for tasks that were replaced while they were played.
        self._sums = SlotSums.zeros(self.curriculum.pool.num_slots + 1)
        self._epoch = dict.fromkeys(SlotSums.dtype.names or (), 0.0)

    def _advance(self, until: int, stops: bool) -> None:
        learner, curriculum = self.simulator.state, self.curriculum
        curriculum.finish()
        status = TO_REPLACE
        while status == TO_REPLACE:
            status = self._loop(
                *(learner, self._scratch, self._sums, until, stops), *curriculum.kernel_state()
            )
            if status == TO_REPLACE:
                # Counted first: the sums belong to the tasks that are in the slots now.
                self._hand_on()
                curriculum.replace_noted()
        self._hand_on()
        if status == NOTHING_ACTIVE:
            raise BuildError(nothing_active())

    def _hand_on(self) -> None:
        if self.meter is not None:
            names = ("num_plays", "successes", "returns", "steps", "success_steps")
            self.meter.add_counts(*(self._sums[name][:-1] for name in names))
        for name in self._epoch:
            self._epoch[name] += float(self._sums[name].sum())
            self._sums[name] = 0.0

    def take_stats(self) -> dict[str, list[float]]:
        """Return the means since the last call, as single entries."""
        sums, self._epoch = self._epoch, dict.fromkeys(self._epoch, 0.0)
        plays = sums["num_plays"]
        if not plays:
            return {}
        return {
            f"{INFO}/performance": [sums["levels"] / plays],
            f"{INFO}/reward": [sums["returns"] / plays],
            f"{INFO}/success": [sums["successes"] / plays],
        }


class EnvsEngine(Engine):
    """Real envs, each in a `CurriculumEnv`, in a vector env with any number of workers."""

    def __init__(
        self,
        simulator: Simulator,
        curriculum: Curriculum,
        num_envs: int = 1,
        meter: CurriculumMeter | None = None,
        *,
        num_workers: int = 0,
        start_method: StartMethod | None = None,
    ):
        super().__init__(simulator, curriculum, num_envs, meter)
        self._segment: Segment | None = None
        view: Simulator | SkillView = simulator
        with ExitStack() as undo:
            if num_workers:
                self._segment = Segment.create(simulator.state.shared_words)
                simulator.move_to(self._segment.words)
                undo.callback(self._take_back)
                view = SkillView(self._segment.ticket, simulator.state)
            vector = WorkerVectorEnv(
                [partial(_make_env, view)] * num_envs,
                num_workers=num_workers,
                start_method=start_method,
                # A restarted worker would begin other episodes.
                on_worker_death="raise",
            )
            undo.callback(vector.close)
            self.envs = CurriculumVectorEnv(vector, curriculum)
            """The vector env, tracked."""
            undo.pop_all()
        self._actions = np.zeros(num_envs, dtype=np.int64)
        self._is_fresh = False

    def advance(self, until: int, *, stops: bool = False) -> None:
        """Play until the learner has had `until` samples."""
        while self._goes_on(until, stops):
            if not self._is_fresh:
                self.envs.reset()
                self._is_fresh = True
            *_, infos = self.envs.step(self._actions)
            shown = infos.get(INFO, {})
            # An env that is reset in this step, or still plays, has no result.
            ended = np.flatnonzero(infos.get(f"_{INFO}", ()))
            if len(ended):
                names = ("performance", "reward", "success")
                seen = {INFO: {name: shown[name][ended] for name in names}}
                accumulate_rollout_stats(seen, self._stats)
            nodes, levels, lengths = (
                shown[name][ended] if len(ended) else np.zeros(0, dtype=kind)
                for name, kind in (("task_class", int), ("performance", float), ("length", int))
            )
            self.simulator.end_step(nodes, levels, lengths)

    def close(self) -> None:
        """Stop the envs and their workers."""
        try:
            self.envs.close()
        finally:
            self._take_back()

    def _take_back(self) -> None:
        """Move the learner's state back into its own memory."""
        if self._segment is not None:
            words = np.zeros(self.simulator.state.shared_words, dtype=np.int64)
            self.simulator.move_to(words)
            self._segment.close()
            self._segment = None


def require_compiled_form(curriculum: Curriculum) -> CompiledRule:
    """Return the kernels with which a curriculum runs inside a compiled loop.

    Raises:
        ConfigError: The curriculum has none.
    """
    rule = curriculum.rule_in_force()
    if rule is None:
        raise ConfigError(f"{type(curriculum).__name__} has no compiled form. Use engine='direct'.")
    return rule


def _require_same_tasks(simulator: Simulator, curriculum: Curriculum) -> None:
    """Raise if the curriculum's tasks are not those of the simulator, with the same numbers."""
    source, num_tasks = curriculum.pool.source, simulator.num_tasks
    if source is simulator.source():
        return
    few = source.num_tasks is not None and source.num_tasks <= MAX_LOOKED_AT
    ids = range(source.num_tasks or 0) if few else curriculum.pool.task_ids.tolist()
    for task_id in ids:
        try:
            node = node_of(source.get(task_id))
        except TaskError as error:
            raise ConfigError(
                f"task {task_id} of the curriculum is not a task of the simulator ({error}). Build "
                "the curriculum over simulator.source()."
            ) from error
        if node != task_id % num_tasks:
            raise ConfigError(
                f"task {task_id} of the curriculum stands for node {node}; expected node "
                f"{task_id % num_tasks}. Build the curriculum over simulator.source()."
            )


def _make_env(simulator: Simulator | SkillView) -> gym.Env[Any, Any]:
    env = TaskDependencyEnv(simulator, learns=False)
    return CurriculumEnv(env, enable_local_tracking=False, seed_episodes=True)


def make_engine(
    name: EngineName,
    simulator: Simulator,
    curriculum: Curriculum,
    *,
    num_envs: int = 1,
    meter: CurriculumMeter | None = None,
    num_workers: int = 0,
) -> Engine:
    """Make an engine by name; only ``"envs"`` can have workers."""
    if name == "envs":
        return EnvsEngine(simulator, curriculum, num_envs, meter, num_workers=num_workers)
    if num_workers:
        raise ConfigError(f"engine {name!r} has no envs to put into workers; use engine='envs'.")
    if name == "direct":
        return DirectEngine(simulator, curriculum, num_envs, meter)
    if name == "compiled":
        return CompiledEngine(simulator, curriculum, num_envs, meter)
    raise ConfigError(f"there is no engine {name!r}; there are {', '.join(ENGINES)}.")
