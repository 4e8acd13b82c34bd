"""The learner that generalises, as an object: what it learns on one task helps with others.

Between `config` and the engines. A sample is an env step. Its arrays can lie in shared memory, so
that envs in other processes see the current skills.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.errors import ConfigError, SnapshotError
from stepladder.records import Records, saved_arrays, zeros
from stepladder.saving.saved_array import MAX_COUNT, SavedArray, copy_arrays, restore_arrays
from stepladder.saving.snapshot import Snapshot, difference, require_snapshot
from stepladder.simulator.base import (
    LEARNER_PREFIX,
    Kernels,
    PlayResult,
    Simulator,
    Spent,
    by_label,
    performance_metrics,
)
from stepladder.simulator.generalising import course
from stepladder.simulator.generalising import state as kernels
from stepladder.simulator.generalising.config import Generalising
from stepladder.simulator.generalising.state import (
    GeneralClock,
    GeneralPlay,
    GeneralState,
    GroupSkill,
    TaskMemory,
)
from stepladder.simulator.learner_state import SMALLEST_SCALE
from stepladder.simulator.verdict import NOR_ORACLE, Verdict, with_wastes
from stepladder.tasks import ListSource
from stepladder.tasks.plain import checked_integer
from stepladder.tasks.task import MAX_SEED

WASTES = ("tasks already mastered", "tasks out of reach", "groups that teach nothing that counts")


class Changing(NamedTuple):
    """The arrays of a learner that change, and so are saved."""

    clock: Records[GeneralClock]
    skills: Records[GroupSkill]
    memories: Records[TaskMemory]
    pending: Words
    rows: Records[GeneralPlay]
    ends_at: Words
    waiting: Words


def _scratch(num_envs: int) -> Words:
    return np.zeros(num_envs, dtype=np.int64)


class GeneralisingSimulator(Simulator):
    """A learner with a skill per group of tasks and a memory per task.

    Args:
        dynamics: Groups, rates, lengths and target.
        seed: Seed of the draws of an env that is used alone; outcomes depend on the seeds of
            episodes.
        num_envs: Envs that play at the same time.
    """

    kernels = Kernels(course.play_on, course.learn_ended, course.play_endings, _scratch, "time")

    def __init__(self, dynamics: Generalising, *, seed: int = 0, num_envs: int = 1):
        self.dynamics = dynamics
        self.seed = checked_integer(seed, "The seed of a simulator", 0, MAX_SEED, ConfigError)
        self.num_envs = checked_integer(num_envs, "num_envs", 1, 2**31, ConfigError)
        self.samples_per_count = self.num_envs
        self.state = self._make_state()
        self.reset()

    def _make_state(self) -> GeneralState:
        dynamics, count = self.dynamics, len(self.dynamics.groups)
        learner = zeros(
            GeneralState,
            groups=count,
            skills=count,
            coupling=(count, count),
            **dict.fromkeys(("nodes", "memories", "pending"), dynamics.total_tasks),
            **dict.fromkeys(("rows", "ends_at", "waiting"), self.num_envs),
        )
        settings: Any = learner.settings[0]
        for name in ("eta", "eta_memory", "length_spread", "goal"):
            settings[name] = getattr(dynamics, name)
        settings["keep"] = 1.0 - dynamics.lambda_forget
        settings["keep_memory"] = 1.0 - dynamics.lambda_memory
        settings["num_envs"] = self.num_envs
        settings["rollout_steps"] = math.ceil(dynamics.update_steps / self.num_envs)
        for name in ("difficulty", "spread", "success_steps", "failure_steps"):
            learner.groups[name] = getattr(dynamics, name)
        learner.groups["target"] = dynamics.target_weights
        learner.coupling[:] = dynamics.coupling_matrix
        learner.groups["is_hopeless"] = dynamics.target_weights @ learner.coupling <= 0.0
        learner.nodes["group"] = dynamics.task_groups
        learner.nodes["difficulty"] = dynamics.task_difficulties
        return learner

    def reset(self) -> None:
        """Forget everything and begin again."""
        learner = self.state
        for array in self._changing():
            array[:] = np.zeros((), array.dtype)
        learner.clock["scale"], learner.clock["done_at"] = 1.0, -1
        learner.clock["score"] = kernels.score(learner)
        if learner.clock["score"] >= self.dynamics.goal:
            learner.clock["done_at"] = 0
        course.abandon_plays(learner)

    @property
    def clock(self) -> Any:
        """All counts: a record with the fields of `GeneralClock`."""
        return self.state.clock[0]

    # What engines ask.

    @property
    def num_tasks(self) -> int:
        """Number of tasks that can be practised."""
        return self.dynamics.total_tasks

    @property
    def num_plays(self) -> int:
        """Plays that have ended so far."""
        return int(self.clock["num_plays"])

    @property
    def num_samples(self) -> int:
        """Env steps so far, of all envs; those that only reset an env count."""
        return int(self.clock["time"]) * self.num_envs

    @property
    def done_at(self) -> int | None:
        """Env steps until the score first reached the goal; None before."""
        done = int(self.clock["done_at"])
        return None if done < 0 else done

    @property
    def progress(self) -> float:
        """Mean success on held-out tasks of the target, as of the last update."""
        return float(self.clock["score"])

    @property
    def progress_area(self) -> float:
        """Sum of that over all env steps so far."""
        clock = self.clock
        open_steps = (int(clock["time"]) - int(clock["scored_at"])) * self.num_envs
        return float(clock["area"]) + self.progress * open_steps

    @property
    def next_episode(self) -> int:
        """Number of the next episode of the env that has begun most."""
        return int(self.state.rows["episode"].max())

    def prepare(self, next_episode: int, num_slots: int, num_envs: int) -> None:
        """Get ready for an engine; plays that were under way go on, if they still can."""
        if num_envs != self.num_envs:
            raise ConfigError(
                f"this learner was made for {self.num_envs} envs; the engine has {num_envs}. Make "
                f"it with num_envs={num_envs}."
            )
        rows = self.state.rows
        if next_episode > self.next_episode:
            rows["episode"] = next_episode
        if int(rows["slot"].max()) >= num_slots:
            course.abandon_plays(self.state)

    def end_step(self, nodes: Words, levels: Floats, lengths: Words) -> None:
        """Let a vector step of real envs pass, in which these plays ended, in env order."""
        played, steps = nodes.astype(np.int64), lengths.astype(np.int64)
        course.end_vector_step(self.state, played, levels.astype(np.float64), steps)
        # Real envs know themselves what they are playing.
        course.abandon_plays(self.state)

    def learn_play(self, node: int, shown: PlayResult) -> None:
        """Learn from one play of an env that is used alone: its steps, then a reset."""
        nothing, number = np.zeros(0, dtype=np.int64), np.array([node], dtype=np.int64)
        for _ in range(shown.length):
            course.end_vector_step(self.state, nothing, np.zeros(0), nothing)
        level, length = np.array([shown.level]), np.array([shown.length], dtype=np.int64)
        course.end_vector_step(self.state, number, level, length)
        course.abandon_plays(self.state)

    def source(self) -> ListSource:
        """Return all tasks that can be practised."""
        return self.dynamics.source()

    # Looking.

    @property
    def P(self) -> Floats:
        """Probability of success per task at this moment; a fresh array."""
        nodes, skills = self.state.nodes, self.state.skills["skill"]
        ahead = skills[nodes["group"]] + self.memories - nodes["difficulty"]
        return 1.0 / (1.0 + np.exp(-ahead))

    @property
    def memories(self) -> Floats:
        """What was memorised of each task; a fresh array."""
        return self.state.memories["memory"] * self.clock["scale"]

    def held_out(self) -> Floats:
        """Return the mean success on held-out tasks of each group."""
        count = len(self.dynamics.groups)
        return np.array([kernels.held_out(self.state, group) for group in range(count)])

    def judged_success(self) -> Floats:
        """Return the mean success per task on held-out tasks of its group."""
        return self.held_out()[self.state.nodes["group"]]

    def practised(self) -> Floats:
        """Return the mean probability of success on the tasks of each group that are practised."""
        groups = self.state.nodes["group"]
        return np.bincount(groups, self.P) / np.bincount(groups)

    def spent(self, *, until_done: bool = False) -> Spent:
        """Return what env steps were spent on so far, or until the goal was reached."""
        done = self.done_at if until_done else None
        prefix = "" if done is None else "done_"
        names = (f"{prefix}on_{what}" for what in ("mastered", "locked", "hopeless"))
        samples = self.num_samples if done is None else done
        return Spent(samples, *(int(self.clock[name]) for name in names))

    def _reached(self) -> tuple[int, int, int | None]:
        """Return how many groups of the target are at the goal, of how many; the first below."""
        held_out, goal = self.held_out(), self.dynamics.goal
        groups = np.flatnonzero(self.dynamics.target_weights)
        below = groups[held_out[groups] < goal].tolist()
        return len(groups) - len(below), len(groups), below[0] if below else None

    def metrics(self) -> dict[str, float]:
        """Return the learner's state under the names of docs/metrics.md."""
        reached, num_groups, _ = self._reached()
        return {
            **performance_metrics(self.P, kernels.MASTERED_SUCCESS),
            "overview/mastered_fraction": reached / num_groups,
            "overview/held_out_success": self.progress,
            f"{LEARNER_PREFIX}/num_learnable": float(num_groups),
            f"{LEARNER_PREFIX}/total_samples": float(self.num_samples),
            f"{LEARNER_PREFIX}/total_plays": float(self.num_plays),
            f"{LEARNER_PREFIX}/mean_memory": float(self.memories.mean()),
        }

    def label_metrics(self) -> dict[str, float]:
        """Return success on practised and held-out tasks of the first groups; others together."""
        groups = self.dynamics.groups
        return {
            **by_label("per_label_performance", groups, self.practised()),
            **by_label("per_label_held_out_success", groups, self.held_out()),
        }

    def judge(self, could_end: bool = True) -> Verdict:
        """Return the verdict on this learner."""
        reached, num_groups, below = self._reached()
        shares: dict[str, float] = dict(zip(WASTES, self.shares(), strict=True))
        if self.done_at is not None:
            text = (
                f"reached success {self.dynamics.goal:.2f} on held-out tasks in {self.done_at} env "
                f"steps; now {self.progress:.2f}"
            )
        else:
            text = (
                f"success {self.progress:.2f} on held-out tasks after {self.num_samples} env steps "
                f"(goal {self.dynamics.goal:.2f})"
            )
            if not could_end:
                text += f"; {NOR_ORACLE}"
            elif below is not None:
                success = self.held_out()[below]
                text += f"; stalls at {self.dynamics.groups[below]} (success {success:.2f})"
        practised = float(np.average(self.practised(), weights=self.dynamics.target_weights))
        if practised > self.progress + 0.1:
            text += f"; success {practised:.2f} on practised tasks, so these were memorised"
        return Verdict(
            *(self.done_at, reached, num_groups, below),
            *shares.values(),
            text=with_wastes(text, shares),
        )

    # Saving and sharing.

    def describe(self) -> dict[str, Any]:
        """Return all settings of this learner as plain JSON."""
        return {
            "generalising": self.dynamics.to_json(),
            "seed": self.seed,
            "num_envs": self.num_envs,
        }

    def snapshot(self) -> Snapshot:
        """Return everything needed to continue exactly here, the plays under way included."""
        return Snapshot({"simulator": self.describe()}, copy_arrays(self._saved_arrays()))

    def restore(self, snapshot: Snapshot) -> None:
        """Continue exactly where a snapshot of an equal simulator was made.

        Raises:
            SnapshotError: The snapshot is damaged or of another simulator. Then nothing has
                changed.
        """
        require_snapshot(snapshot)
        found = difference(snapshot.state.get("simulator"), self.describe())
        if found:
            raise SnapshotError(
                f"the snapshot was made by another simulator: {found}. Build this one with the "
                "same dynamics, seed and number of envs."
            )
        restore_arrays(self._saved_arrays(), snapshot.arrays, snapshot.place)

    def _changing(self) -> Changing:
        return Changing(*(getattr(self.state, name) for name in Changing._fields))

    def _saved_arrays(self) -> list[SavedArray]:
        """Return the arrays that change, and what may be in them."""
        tasks, envs = self.num_tasks, self.num_envs
        limits: dict[str, tuple[Any, Any]] = {
            "clock.done_at": (-1, MAX_COUNT),
            "clock.num_waiting": (0, envs),
            "clock.num_pending": (0, tasks),
            "clock.scale": (SMALLEST_SCALE / 2.0, 1.0),
            "rows.node": (0, tasks - 1),
            "pending": (0, tasks - 1),
            "waiting": (0, envs - 1),
            "ends_at": (0, MAX_COUNT),
        }
        return saved_arrays(self._changing(), **limits)

    def move_to(self, words: Words) -> None:
        """Move clock, skills and memories into other memory, such as a shared segment."""
        learner = self.state.in_words(words)
        learner.clock[:], learner.skills[:] = self.state.clock, self.state.skills
        learner.memories[:] = self.state.memories
        self.state = learner
