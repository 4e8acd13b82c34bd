"""The simulated learner: a skill per task, which rises with plays and is slowly forgotten.

Between `graph`, `dynamics` and the engines: an env (`env`) or an engine plays tasks with it and
reports what was played. Its arrays can lie in shared memory, so that envs in other processes see
the current skills.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Floats, Words
from stepladder.configs.checks import is_number
from stepladder.errors import ConfigError, SnapshotError
from stepladder.saving.saved_array import MAX_COUNT, Part, SavedArray, copy_arrays, restore_arrays
from stepladder.saving.snapshot import Snapshot, difference, require_snapshot
from stepladder.simulator import learner_state as kernels
from stepladder.simulator.base import (
    LEARNER_PREFIX,
    Kernels,
    PlayResult,
    Simulator,
    Spent,
    by_label,
    performance_metrics,
)
from stepladder.simulator.dynamics import Dynamics, Epochwise, Noise, Prerequisite, learnable_nodes
from stepladder.simulator.graph import LABEL, TaskGraph
from stepladder.simulator.learner_state import IMPOSSIBLE, LEARNABLE, NOISE, LearnerState
from stepladder.simulator.loops import play_rounds
from stepladder.simulator.rounds import Dealt, deal
from stepladder.simulator.verdict import Verdict, judge_graph
from stepladder.stats import inequality
from stepladder.tasks import ListSource, Task
from stepladder.tasks.plain import checked_integer
from stepladder.tasks.task import MAX_SEED


@dataclass(frozen=True)
class Play:
    """What one play of a task showed."""

    success: float
    reward: float


class TaskDependencySimulator(Simulator):
    """A learner whose skill at a task grows with practice, as far as its prerequisites allow.

    Args:
        graph: The tasks and their prerequisites, or the number of tasks of a chain.
        dynamics: How practice turns into skill; `Prerequisite` by default.
        noise: What a play shows of the skill.
        seed: Seed of all random numbers.
        start: Skills at the start by node, where they differ from the dynamics' own.
        impossible: Nodes that never succeed.
        noisy: Nodes whose success is always a coin toss.
        num_envs: Envs that play at the same time; the epochwise equations divide by it.
        target: Nodes that count; all of them if there are none.
    """

    kernels = Kernels(deal, kernels.learn_round, play_rounds, Dealt.zeros, "num_plays")

    def __init__(
        self,
        graph: TaskGraph | int = 10,
        dynamics: Dynamics | None = None,
        noise: Noise | None = None,
        *,
        seed: int = 0,
        start: Mapping[int, float] | None = None,
        impossible: Sequence[int] = (),
        noisy: Sequence[int] = (),
        num_envs: int = 1,
        target: Sequence[int] = (),
    ):
        self.graph = graph if isinstance(graph, TaskGraph) else TaskGraph.chain(graph)
        self.dynamics = dynamics or Prerequisite()
        self.noise = noise or Noise()
        self.seed = checked_integer(seed, "The seed of a simulator", 0, MAX_SEED, ConfigError)
        self.num_envs = checked_integer(num_envs, "num_envs", 1, 2**31, ConfigError)
        num_tasks = self.graph.num_tasks
        self._start = np.full(num_tasks, self.dynamics.start)
        for node, value in (start or {}).items():
            self._start[self._node(node, "start")] = _share(value, f"the start of node {node}")
        kinds = np.full(num_tasks, LEARNABLE, dtype=np.int64)
        for name, nodes, kind in (
            ("impossible", impossible, IMPOSSIBLE),
            ("noisy", noisy, NOISE),
        ):
            for node in nodes:
                kinds[self._node(node, name)] = kind
        self.state = self._make_state(kinds)
        """The arrays; kernels change them."""
        self.target = tuple(sorted({self._node(node, "target") for node in target}))
        """Nodes that count; all of them if there are none."""
        if self.target:
            self.state.nodes["counts"][~np.isin(np.arange(num_tasks), self.target)] = 0
        self.num_learnable = int(self.state.nodes["counts"].sum())
        """Tasks that count and can be learned, as can all of their prerequisites."""
        self.reset()

    @property
    def clock(self) -> Any:
        """All counts: a record with the fields of `LearnerClock`."""
        return self.state.clock[0]

    def _node(self, node: int, name: str) -> int:
        return checked_integer(node, f"A node in {name}", 0, self.graph.num_tasks - 1, ConfigError)

    def _make_state(self, kinds: Words) -> LearnerState:
        graph, dynamics, noise = self.graph, self.dynamics, self.noise
        rng = np.random.default_rng([self.seed, 1])
        rate = dynamics.eta if isinstance(dynamics, Prerequisite) else 0.0
        learner = LearnerState.of(
            kinds,
            learnable_nodes(graph, dynamics, kinds),
            graph.latest_first(),
            graph.children(),
            rates=np.full(graph.num_tasks, rate),
            biases=rng.standard_normal(graph.num_tasks) * noise.task_noise_std,
        )
        settings: Any = learner.settings[0]
        settings["gamma"], settings["mastery"] = dynamics.gamma, dynamics.mastery
        if isinstance(dynamics, Epochwise):
            settings["is_epochwise"], settings["keep"] = 1, 1.0
            settings["forgetting"], settings["step"] = dynamics.lambda_forget, dynamics.dt
        else:
            settings["keep"] = 1.0 - dynamics.lambda_forget
        settings["reward_is_skill"] = noise.reward == "skill"
        settings["sample_std"], settings["reward_base"] = noise.sample_noise_std, noise.reward_base
        settings["saturates"] = noise.saturate
        return learner

    def reset(self) -> None:
        """Forget everything and begin again; a task's fixed error stays."""
        clock, nodes = self.state.clock, self.state.nodes
        nodes["skill"] = self._start
        nodes["num_plays"] = nodes["num_epoch_plays"] = 0
        clock[:] = np.zeros((), clock.dtype)
        clock["num_learnable"], clock["scale"] = self.num_learnable, 1.0
        clock["done_at"] = -1
        if isinstance(self.dynamics, Epochwise):
            clock["epoch_plays"] = self.dynamics.samples_per_epoch * self.num_envs
        kernels.recount(self.state)

    # Playing.

    @property
    def num_tasks(self) -> int:
        """Number of tasks in the graph."""
        return self.graph.num_tasks

    @property
    def P(self) -> Floats:
        """Probability of success per task at this moment; a fresh array."""
        nodes = self.state.nodes
        skills: Floats = nodes["skill"] * self.clock["scale"]
        skills[nodes["kind"] == IMPOSSIBLE] = 0.0
        skills[nodes["kind"] == NOISE] = 0.5
        return skills

    def gates(self) -> Floats:
        """Return the product of the squared skills of each task's parents, in [0, 1]."""
        return np.array([kernels.gate(self.state, node) for node in range(self.num_tasks)])

    def play(self, node: int, seed: int | None = None) -> Play:
        """Return what a play of a task shows; nothing is learned yet.

        Args:
            node: The task.
            seed: Decides the outcome; by default derived from the simulator's seed and the
                number of plays so far.
        """
        node = self._node(node, "play")
        if seed is None:
            number = int(self.state.nodes["num_plays"].sum())
            seed = int(np.random.SeedSequence([self.seed, 2, number]).generate_state(1)[0])
        success, reward = kernels.play(self.state, node, seed)
        return Play(success, reward)

    def learn(self, nodes: Sequence[int] | npt.NDArray[np.int64]) -> None:
        """Learn from plays, in the order given."""
        given = np.asarray(nodes)
        played = given.astype(np.int64).reshape(-1)
        is_integer = given.size == 0 or given.dtype.kind in "iu"
        if not is_integer or np.any((played < 0) | (played >= self.num_tasks)):
            raise ConfigError(
                f"nodes {given.tolist()!r:.60} must be integers from 0 to {self.num_tasks - 1}. "
                "Give the tasks that were played."
            )
        kernels.learn_round(self.state, played, len(played))

    def learn_play(self, node: int, shown: PlayResult) -> None:
        """Learn from one play of an env that is used alone."""
        self.learn([node])

    def end_step(self, nodes: Words, levels: Floats, lengths: Words) -> None:
        """Learn from a round of real envs; a step in which they are only reset is none."""
        if len(nodes):
            self.learn(nodes)
            self.clock["num_rounds"] += 1

    def end_epoch(self) -> None:
        """End an epoch, unless the dynamics end their epochs by themselves."""
        if not isinstance(self.dynamics, Epochwise):
            self.complete_epoch()

    @property
    def next_episode(self) -> int:
        """Number of the next episode of every env."""
        return int(self.clock["num_rounds"])

    def prepare(self, next_episode: int, num_slots: int, num_envs: int) -> None:
        """Begin the next round with episodes of this number."""
        self.clock["num_rounds"] = next_episode

    def sample_task(self, node: int, seed: int | None = None) -> float:
        """Play a task and learn from it at once; return the reward."""
        shown = self.play(node, seed)
        self.learn([node])
        return shown.reward

    def complete_epoch(self) -> dict[str, float]:
        """End an epoch; with epochwise dynamics, the learner learns now.

        Epochwise dynamics end an epoch by themselves with its last play; a call directly after
        that, as in the ancestor's driver, does nothing.

        Returns:
            The metrics of the epoch.
        """
        if not self.clock["just_ended"]:
            kernels.complete_epoch(self.state)
        self.clock["just_ended"] = 0
        return self.metrics()

    # Looking.

    @property
    def current_epoch(self) -> int:
        """Epochs completed so far."""
        return int(self.clock["num_epochs"])

    @property
    def num_plays(self) -> int:
        """Plays learned from so far."""
        return int(self.clock["num_plays"])

    @property
    def num_samples(self) -> int:
        """Plays so far: each of them is one env step."""
        return self.num_plays

    @property
    def progress(self) -> float:
        """Share of the learnable tasks that count which are mastered now."""
        return self.num_mastered / max(1, self.num_learnable)

    @property
    def progress_area(self) -> float:
        """Sum of that share over all plays so far."""
        return self.area_so_far / max(1, self.num_learnable)

    @property
    def num_mastered(self) -> int:
        """Learnable tasks that are mastered now."""
        return kernels.count_mastered(self.state)

    @property
    def area_so_far(self) -> int:
        """Sum over all plays so far of the number of mastered tasks."""
        return int(self.clock["area"])

    def spent(self, *, until_done: bool = False) -> Spent:
        """Return what plays were spent on so far, or until everything was mastered."""
        is_done = until_done and self.done_at is not None and self.num_learnable > 0
        first, prefix = ("done_at", "done_") if is_done else ("num_plays", "")
        names = (first, *(f"{prefix}on_{what}" for what in ("mastered", "locked", "hopeless")))
        return Spent(*(int(self.clock[name]) for name in names))

    @property
    def done_at(self) -> int | None:
        """Play at which all learnable tasks were first mastered at once; None before."""
        done = int(self.clock["done_at"])
        return None if done < 0 else done

    def task(self, node: int) -> Task:
        """Return the task of a node."""
        return self.graph.task(self._node(node, "task"))

    def source(self) -> ListSource:
        """Return all tasks, for a curriculum to be built over."""
        return self.graph.source()

    def metrics(self) -> dict[str, float]:
        """Return the learner's state under the names of docs/metrics.md."""
        return {
            **performance_metrics(self.P, self.dynamics.mastery),
            "overview/mastered_fraction": self.progress,
            f"{LEARNER_PREFIX}/num_learnable": float(self.num_learnable),
            f"{LEARNER_PREFIX}/total_samples": float(self.num_samples),
        }

    def label_metrics(self) -> dict[str, float]:
        """Return the skills of the first tasks by name, and the mean of all others."""
        labels = [f"{LABEL}{node}" for node in range(self.num_tasks)]
        return by_label("per_label_performance", labels, self.P)

    def judge(self, could_end: bool = True) -> Verdict:
        """Return the verdict on this learner."""
        return judge_graph(self, could_end)

    def get_summary(self) -> dict[str, Any]:
        """Return the final state in the format of the ancestor's driver."""
        skills, counts = self.P, self.state.nodes["num_plays"]
        return {
            "final_performances": skills.tolist(),
            "final_mean_performance": float(skills.mean()),
            "tasks_above_threshold": int(np.sum(skills >= self.dynamics.mastery)),
            "total_samples": self.num_plays,
            "sample_counts": counts.tolist(),
            "sampling_gini": inequality.gini(counts),
            "num_epochs_completed": self.current_epoch,
            "done_at": self.done_at,
        }

    def describe(self) -> dict[str, Any]:
        """Return all settings of this learner as plain JSON."""
        return {
            "graph": self.graph.to_json(),
            "dynamics": {"kind": type(self.dynamics).__name__, **asdict(self.dynamics)},
            "noise": asdict(self.noise),
            "seed": self.seed,
            "start": self._start.tolist(),
            "impossible": np.flatnonzero(self.state.nodes["kind"] == IMPOSSIBLE).tolist(),
            "noisy": np.flatnonzero(self.state.nodes["kind"] == NOISE).tolist(),
            "num_envs": self.num_envs,
            "target": list(self.target),
        }

    # Saving and sharing.

    def snapshot(self) -> Snapshot:
        """Return everything needed to continue exactly here."""
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
                "same graph, dynamics, noise and seed."
            )
        described, place = self._saved_arrays(), snapshot.place
        clock, skills = (one.read(snapshot.arrays, place) for one in described[:2])
        problem = Part("skill", ..., 0.0, 1.0 + 1e-9).problem(skills * clock["scale"][0])
        if problem is not None:
            raise SnapshotError(f"array 'skills' of {place}: {problem}. Use an older one.")
        restore_arrays(described, snapshot.arrays, place)

    def _saved_arrays(self) -> list[SavedArray]:
        """Return the arrays that change, by the names they are saved under."""
        nodes, clock = self.state.nodes, self.state.clock
        limits: dict[str, tuple[Any, Any]] = {
            name: (clock[name], clock[name]) for name in ("num_learnable", "epoch_plays")
        }
        limits["scale"] = (kernels.SMALLEST_SCALE / 2.0, 1.0)
        limits["num_mastered"], limits["done_at"] = (0, len(nodes)), (-1, MAX_COUNT)
        # Divided by the scale, so that a skill itself is at most 1.
        skill = Part("skill", ..., 0.0, 2.0 / kernels.SMALLEST_SCALE)
        return [
            SavedArray("clock", cast("Any", clock), kernels.LearnerClock.parts(limits)),
            SavedArray("skills", nodes["skill"], (skill,)),
            SavedArray("counts", nodes["num_plays"], (Part.count("plays"),)),
            SavedArray("epoch_counts", nodes["num_epoch_plays"], (Part.count("plays"),)),
        ]

    def move_to(self, words: Words) -> None:
        """Move clock and nodes into other memory, such as a shared segment."""
        learner = self.state.in_words(words)
        learner.clock[:], learner.nodes[:] = self.state.clock, self.state.nodes
        self.state = learner


def _share(value: float, name: str) -> float:
    if not is_number(value) or not 0.0 <= value <= 1.0:
        raise ConfigError(f"{name} must lie in [0, 1]; got {value!r}.")
    return float(value)
