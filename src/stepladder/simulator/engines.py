"""Three ways to run the same simulation: through real envs, without envs, in compiled code.

Between the learner, a curriculum and `simulate`. All of them play in rounds: every env draws from
the plan and plays one episode with the skills of that moment; the curriculum observes the records
in the order of the envs; then the learner learns, in the same order. With the same seed they take
the same course.
"""

import os
import signal
from abc import ABC, abstractmethod
from collections import defaultdict
from contextlib import ExitStack
from functools import partial
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from stepladder.compiled import direct
from stepladder.configs.checks import require_integer
from stepladder.curricula.base import Curriculum, nothing_active
from stepladder.curricula.meter import CurriculumMeter
from stepladder.curricula.observation import CompiledRule
from stepladder.envs import CurriculumEnv
from stepladder.envs.vector import CurriculumVectorEnv
from stepladder.errors import BuildError, ConfigError, TaskError
from stepladder.plans.plan import aligned_words
from stepladder.plans.record import RECORD_DTYPE, RecordArray
from stepladder.plans.status import NOTHING_ACTIVE, TO_REPLACE
from stepladder.records import Floats, Words
from stepladder.simulator import world as kernels
from stepladder.simulator.env import SkillView, TaskDependencyEnv, node_of
from stepladder.simulator.learner import TaskDependencySimulator
from stepladder.simulator.loops import loop_of
from stepladder.simulator.rounds import Dealt, SlotSums, deal
from stepladder.stats.rollout import accumulate_rollout_stats
from stepladder.sync.segment import Segment

EngineName = Literal["compiled", "direct", "envs"]
ENGINES: tuple[EngineName, ...] = ("compiled", "direct", "envs")

MAX_LOOKED_AT = 100_000
"""Of a source with more tasks than this, only those in the pool are looked at beforehand."""

INFO = "task_dependency"
"""Key of what a play measured, in the infos of the envs."""


class Engine(ABC):
    """Plays a curriculum on a simulated learner.

    Args:
        simulator: The learner.
        curriculum: The curriculum; nobody else may draw from it meanwhile.
        num_envs: Envs that play at the same time.
        meter: Counts what is played; None to do without.
    """

    def __init__(
        self,
        simulator: TaskDependencySimulator,
        curriculum: Curriculum,
        num_envs: int = 1,
        meter: CurriculumMeter | None = None,
    ):
        require_integer("num_envs", num_envs, 1)
        _require_same_tasks(simulator, curriculum)
        # Draws are numbered by episode: no engine repeats those of an earlier one.
        begun = max(int(simulator.clock["num_rounds"]), curriculum.next_episode)
        simulator.clock["num_rounds"] = curriculum.next_episode = begun
        self.simulator = simulator
        self.curriculum = curriculum
        self.num_envs = num_envs
        self.meter = meter
        self._stats: defaultdict[str, list[float]] = defaultdict(list)

    @abstractmethod
    def advance(self, until: int, *, stops: bool = False) -> None:
        """Play whole rounds until the learner has had `until` plays.

        Args:
            until: Plays since the beginning.
            stops: Whether to come back as soon as all learnable tasks are mastered.
        """

    def take_stats(self) -> dict[str, list[float]]:
        """Return what the infos since the last call contained, for `process_training_stats`."""
        taken, self._stats = dict(self._stats), defaultdict(list)
        return taken

    def close(self) -> None:  # noqa: B027, most engines hold nothing
        """Free what the engine holds; the learner and the curriculum can still be read."""

    def _goes_on(self, until: int, stops: bool) -> bool:
        done = stops and self.simulator.done_at is not None
        return self.simulator.num_plays < until and not done


class _Carrier(Engine):
    """What the engines without envs share: they carry the curriculum themselves."""

    def advance(self, until: int, *, stops: bool = False) -> None:
        """Play whole rounds until the learner has had `until` plays."""
        # As a channel does: it says how many envs there are, and keeps everybody else away.
        self.curriculum.claim(self)
        try:
            self._advance(until, stops)
        finally:
            self.curriculum.release(self)
            self.curriculum.next_episode = int(self.simulator.clock["num_rounds"])

    @abstractmethod
    def _advance(self, until: int, stops: bool) -> None:
        """Play the rounds."""


class DirectEngine(_Carrier):
    """Curriculum and statistics as in training, called from Python; no envs in between."""

    CHUNK = 256
    """Rounds after which what was measured is handed on."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        shape = (self.CHUNK, self.num_envs)
        self._records: RecordArray = np.zeros(shape, dtype=RECORD_DTYPE)
        self._levels: Floats = np.zeros(shape)
        self._rounds = list(zip(self._records, self._levels, strict=True))
        """The same, round by round: a view takes longer to make than to fill."""
        self._nodes: Words = np.zeros(self.num_envs, dtype=np.int64)
        world = self.simulator.world
        # Called once per round: looking at the types of all arguments would take longer.
        self._deal = direct(
            deal, aligned_words(1), world, self._records[0], self._nodes, self._levels[0]
        )
        self._learn = direct(kernels.learn_round, world, self._nodes)

    def _advance(self, until: int, stops: bool) -> None:
        while self._goes_on(until, stops):
            left = -(-(until - self.simulator.num_plays) // self.num_envs)
            self._hand_on(self._play_rounds(min(left, self.CHUNK), stops))

    def _play_rounds(self, most: int, stops: bool) -> int:
        """Play rounds, at most so many; return how many."""
        world, curriculum = self.simulator.world, self.curriculum
        nodes, done_at = self._nodes, world.clock["done_at"]
        num_rounds = 0
        for records, levels in self._rounds[:most]:
            if not self._deal(curriculum.plan.block, world, records, nodes, levels):
                raise BuildError(nothing_active())
            curriculum.observe(records)
            self._learn(world, nodes)
            num_rounds += 1
            if stops and done_at.item(0) >= 0:
                break
        return num_rounds

    def _hand_on(self, num_rounds: int) -> None:
        """Give the stats pipeline what the envs of these rounds would have put into infos."""
        records = self._records[:num_rounds].reshape(-1)
        info = {
            "performance": self._levels[:num_rounds].reshape(-1),
            "reward": records["episode_return"],
            "success": records["success"],
        }
        accumulate_rollout_stats({INFO: info}, self._stats)


class CompiledEngine(_Carrier):
    """The whole loop in compiled code, for curricula that have such a form."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._loop = loop_of(require_compiled_form(self.curriculum))
        # The meter is one of them, and is told of sums instead.
        if len(self.curriculum._listeners) > (self.meter is not None):
            raise ConfigError(
                "somebody listens to this curriculum, and compiled code tells nobody. "
                "Use engine='direct', or remove the listener."
            )
        self._dealt = Dealt.zeros(self.num_envs)
        self._sums = SlotSums.zeros(self.curriculum.pool.num_slots)
        self._epoch = dict.fromkeys(SlotSums.dtype.names or (), 0.0)

    def _advance(self, until: int, stops: bool) -> None:
        world, curriculum = self.simulator.world, self.curriculum
        curriculum.finish()
        status = TO_REPLACE
        while status == TO_REPLACE:
            status = self._loop(
                *(world, self._dealt, self._sums, until, stops), *curriculum.kernel_state()
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
            plays = self._sums["num_plays"]
            self.meter.add_counts(plays, self._sums["successes"], self._sums["returns"], plays)
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
    """Real envs, each in a `CurriculumEnv`, vectorised, in this process or one worker each."""

    def __init__(
        self,
        simulator: TaskDependencySimulator,
        curriculum: Curriculum,
        num_envs: int = 1,
        meter: CurriculumMeter | None = None,
        *,
        workers: bool = False,
        start_method: str | None = None,
    ):
        super().__init__(simulator, curriculum, num_envs, meter)
        self._segment: Segment | None = None
        view: TaskDependencySimulator | SkillView = simulator
        with ExitStack() as undo:
            if workers:
                self._segment = Segment.create(simulator.world.shared_words)
                simulator.move_to(self._segment.words)
                undo.callback(self._take_back)
                view = SkillView(self._segment.ticket, simulator.world)
            make = [partial(_make_env, view, os.getpid()) for _ in range(num_envs)]
            autoreset = AutoresetMode.NEXT_STEP
            vector: Any
            if workers:
                vector = AsyncVectorEnv(make, autoreset_mode=autoreset, context=start_method)
            else:
                vector = SyncVectorEnv(make, autoreset_mode=autoreset)
            undo.callback(vector.close)
            self.envs = CurriculumVectorEnv(vector, curriculum)
            """The vector env, tracked."""
            undo.pop_all()
        self._actions = np.zeros(num_envs, dtype=np.int64)
        self._is_fresh = False

    def advance(self, until: int, *, stops: bool = False) -> None:
        """Play whole rounds until the learner has had `until` plays."""
        while self._goes_on(until, stops):
            if not self._is_fresh:
                self.envs.reset()
                self._is_fresh = True
            else:
                # Every episode has one step, so all envs reset in this one.
                self.envs.step(self._actions)
            _, _, _, _, infos = self.envs.step(self._actions)
            accumulate_rollout_stats(
                {INFO: {name: infos[INFO][name] for name in ("performance", "reward", "success")}},
                self._stats,
            )
            self.simulator.learn(infos[INFO]["task_class"])
            self.simulator.clock["num_rounds"] += 1

    def close(self) -> None:
        """Stop the envs and their workers."""
        # Workers are not asked: after an interruption they may wait for a word that never comes.
        how = {} if self._segment is None else {"terminate": True}
        try:
            self.envs.close(**how)
        finally:
            self._take_back()

    def _take_back(self) -> None:
        """Let the learner keep its skills in memory of its own again."""
        if self._segment is not None:
            words = np.zeros(self.simulator.world.shared_words, dtype=np.int64)
            self.simulator.move_to(words)
            self._segment.close()
            self._segment = None


def require_compiled_form(curriculum: Curriculum) -> CompiledRule:
    """Return the kernels with which a curriculum runs inside a compiled loop.

    Raises:
        ConfigError: The curriculum has none.
    """
    rule = curriculum.compiled_rule()
    if rule is None:
        raise ConfigError(f"{type(curriculum).__name__} has no compiled form. Use engine='direct'.")
    return rule


def _require_same_tasks(simulator: TaskDependencySimulator, curriculum: Curriculum) -> None:
    """Raise if a play would be credited to another task than the one that was played."""
    source, num_tasks = curriculum.pool.source, simulator.num_tasks
    few = source.num_tasks is not None and source.num_tasks <= MAX_LOOKED_AT
    ids = range(source.num_tasks or 0) if few else curriculum.pool.task_ids.tolist()
    for task_id in ids:
        try:
            node = node_of(source.get(task_id))
        except TaskError as error:
            raise ConfigError(
                f"task {task_id} of the curriculum is none of the simulator ({error}). Build the "
                "curriculum over simulator.source()."
            ) from error
        if node != task_id % num_tasks:
            raise ConfigError(
                f"task {task_id} of the curriculum stands for node {node}; expected node "
                f"{task_id % num_tasks}. Build the curriculum over simulator.source()."
            )


def _make_env(simulator: TaskDependencySimulator | SkillView, host_pid: int) -> gym.Env[Any, Any]:
    if os.getpid() != host_pid:
        # Ctrl-C reaches every process of a terminal; it is for the host to stop its workers.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    env = TaskDependencyEnv(simulator, learns=False)
    return CurriculumEnv(env, enable_local_tracking=False, seed_episodes=True)


def make_engine(
    name: EngineName,
    simulator: TaskDependencySimulator,
    curriculum: Curriculum,
    *,
    num_envs: int = 1,
    meter: CurriculumMeter | None = None,
    workers: bool = False,
) -> Engine:
    """Make an engine by name."""
    if name == "envs":
        return EnvsEngine(simulator, curriculum, num_envs, meter, workers=workers)
    if workers:
        raise ConfigError(f"engine {name!r} has no envs to put into workers; use engine='envs'.")
    if name == "direct":
        return DirectEngine(simulator, curriculum, num_envs, meter)
    if name == "compiled":
        return CompiledEngine(simulator, curriculum, num_envs, meter)
    raise ConfigError(f"there is no engine {name!r}; there are {', '.join(ENGINES)}.")
