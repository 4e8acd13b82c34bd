"""Three ways to run the same simulation: through real envs, without envs, in compiled code.

Between the learner, a curriculum and `simulate`. All of them play in rounds: every env draws from
the plan and plays one episode with the skills of that moment; the curriculum observes the records
in the order of the envs; then the learner learns, in the same order. With the same seed they take
the same course.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from functools import partial
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from stepladder.curricula.base import Curriculum, nothing_active
from stepladder.curricula.kernels import Floats, Words
from stepladder.curricula.meter import CurriculumMeter
from stepladder.curricula.record import RECORD_DTYPE, RecordArray
from stepladder.envs import CurriculumEnv
from stepladder.envs.vector import CurriculumVectorEnv
from stepladder.errors import BuildError, ConfigError
from stepladder.simulator import world as kernels
from stepladder.simulator.env import SkillView, TaskDependencyEnv
from stepladder.simulator.learner import TaskDependencySimulator
from stepladder.simulator.loops import LOOPS, NOTHING_TO_DRAW, SOME_TO_REPLACE, has_compiled_form
from stepladder.stats.rollout import accumulate_rollout_stats
from stepladder.sync.segment import Segment

EngineName = Literal["compiled", "direct", "envs"]
ENGINES: tuple[EngineName, ...] = ("compiled", "direct", "envs")

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
        if num_envs < 1:
            raise ConfigError(f"num_envs must be at least 1; got {num_envs}.")
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


class _Rounds(Engine):
    """What the engines without envs share: the arrays of one round."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._records: RecordArray = np.zeros(self.num_envs, dtype=RECORD_DTYPE)
        self._nodes: Words = np.zeros(self.num_envs, dtype=np.int64)
        self._levels: Floats = np.zeros(self.num_envs)


class DirectEngine(_Rounds):
    """Curriculum and statistics as in training, called from Python; no envs in between."""

    CHUNK = 256
    """Rounds after which what was measured is handed on."""

    def advance(self, until: int, *, stops: bool = False) -> None:
        """Play whole rounds until the learner has had `until` plays."""
        simulator, curriculum = self.simulator, self.curriculum
        records, nodes, levels = self._records, self._nodes, self._levels
        shown: list[tuple[RecordArray, Floats]] = []
        while self._goes_on(until, stops):
            block = curriculum.plan.block
            if not kernels.deal(block, simulator.world, simulator.clock, records, nodes, levels):
                raise BuildError(nothing_active())
            curriculum.observe(records)
            kernels.absorb(simulator.world, simulator.clock, nodes, simulator.num_learnable)
            shown.append((records.copy(), levels.copy()))
            if len(shown) == self.CHUNK:
                self._hand_on(shown)
        self._hand_on(shown)

    def _hand_on(self, shown: list[tuple[RecordArray, Floats]]) -> None:
        """Give the stats pipeline what the envs of these rounds would have put into infos."""
        if shown:
            records = np.concatenate([entry[0] for entry in shown])
            info = {
                "performance": np.concatenate([entry[1] for entry in shown]),
                "reward": records["episode_return"],
                "success": records["success"],
            }
            accumulate_rollout_stats({INFO: info}, self._stats)
            shown.clear()


class CompiledEngine(_Rounds):
    """The whole loop in compiled code, for curricula that have such a form."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if not has_compiled_form(self.curriculum):
            names = ", ".join(sorted(kind.__name__ for kind in LOOPS))
            raise ConfigError(
                f"{type(self.curriculum).__name__} has no compiled form; these have: {names}. "
                "Use engine='direct'."
            )
        if self.curriculum._listeners and self.meter is None:
            raise ConfigError(
                "somebody listens to this curriculum, and compiled code tells nobody. "
                "Use engine='direct', or remove the listener."
            )
        self._sums: Floats = np.zeros((self.curriculum.pool.num_slots, 4))
        self._epoch: Floats = np.zeros(4)

    def advance(self, until: int, *, stops: bool = False) -> None:
        """Play whole rounds until the learner has had `until` plays."""
        simulator, curriculum = self.simulator, self.curriculum
        loop = LOOPS[type(curriculum)]
        status = SOME_TO_REPLACE
        while status == SOME_TO_REPLACE:
            status = loop(
                simulator.world,
                simulator.clock,
                self._records,
                self._nodes,
                self._levels,
                self._sums,
                simulator.num_learnable,
                until,
                stops,
                *curriculum.kernel_state(),
            )
            if status == SOME_TO_REPLACE:
                # Counted first: the sums belong to the tasks that are in the slots now.
                self._hand_on()
                curriculum.replace_noted()
        self._hand_on()
        if status == NOTHING_TO_DRAW:
            raise BuildError(nothing_active())

    def _hand_on(self) -> None:
        if self.meter is not None:
            plays, successes, returns, _ = self._sums.T
            self.meter.add_counts(plays, successes, returns, plays)
        self._epoch += self._sums.sum(axis=0)
        self._sums[:] = 0.0

    def take_stats(self) -> dict[str, list[float]]:
        """Return the means since the last call, as single entries."""
        plays, successes, returns, levels = self._epoch.tolist()
        self._epoch[:] = 0.0
        if not plays:
            return {}
        return {
            f"{INFO}/performance": [levels / plays],
            f"{INFO}/reward": [returns / plays],
            f"{INFO}/success": [successes / plays],
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
        if workers:
            self._segment = Segment.create(simulator.num_tasks + 1)
            simulator.move_skills(self._segment.words.view(np.float64))
            statics = simulator.world._replace(skills=np.zeros(0))
            view = SkillView(self._segment.ticket, statics)
        make = [partial(_make_env, view) for _ in range(num_envs)]
        autoreset = AutoresetMode.NEXT_STEP
        vector: Any
        if workers:
            vector = AsyncVectorEnv(make, autoreset_mode=autoreset, context=start_method)
        else:
            vector = SyncVectorEnv(make, autoreset_mode=autoreset)
        self.envs = CurriculumVectorEnv(vector, curriculum)
        """The vector env, tracked."""
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
            self.simulator.clock[kernels.C_ROUNDS] += 1

    def close(self) -> None:
        """Stop the envs and their workers."""
        self.envs.close()
        if self._segment is not None:
            self.simulator.move_skills(np.array(self.simulator.world.skills))
            self._segment.close()
            self._segment = None


def _make_env(simulator: TaskDependencySimulator | SkillView) -> gym.Env[Any, Any]:
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
