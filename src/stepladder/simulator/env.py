"""The simulated tasks as a Gymnasium env: an episode is one play of a task.

Between the learners and `envs`: it can be wrapped in `CurriculumEnv`, vectorised and put into
worker processes like a real env. Success depends only on the learner's skill at the task and on the
seed of the episode, so a run gives the same results with any number of processes.

As in real training, an engine separates playing from learning: its envs, made with
``learns=False``, only play. An env that is used alone also teaches the learner.
"""

import re
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from stepladder.errors import ConfigError, TaskError
from stepladder.simulator.base import PlayResult, Simulator
from stepladder.simulator.graph import LABEL
from stepladder.simulator.learner_state import SEED_MASK
from stepladder.sync.segment import Segment, Ticket
from stepladder.tasks import Task


def node_of(task: Any) -> int:
    """Return the node that a task, a config with a label, or a label stands for.

    Raises:
        TaskError: There is no ``node`` among the parameters, and the label is not ``taskclass7``.
    """
    if isinstance(task, Task) and "node" in task.params:
        node = task.params["node"]
        if isinstance(node, int) and not isinstance(node, bool):
            return node
    label = task if isinstance(task, str) else getattr(task, "label", None)
    found = re.fullmatch(rf"{LABEL}(\d+)", label) if isinstance(label, str) else None
    if found is None:
        raise TaskError(
            f"{task!r} is not a simulated task; expected a parameter 'node' or a label such as "
            f"{LABEL}3. Make the tasks with simulator.source()."
        )
    return int(found[1])


@dataclass(frozen=True)
class SkillView:
    """The learner's skills for envs in other processes; can be pickled."""

    ticket: Ticket
    state: Any
    """The learner's arrays; what changes in them is in the segment."""


class AttachedSkills:
    """The state of a simulator in another process, in shared memory."""

    def __init__(self, view: SkillView):
        self._segment = Segment.attach(view.ticket)
        self.state = view.state.in_words(self._segment.words)


class TaskDependencyEnv(gym.Env[npt.NDArray[np.float32], np.int64]):
    """Plays simulated tasks; an episode has as many steps as the learner says, mostly one.

    Args:
        simulator: The learner, or a `SkillView` of one in another process.
        task: The task of the first episode unless `set_task` changes it: a task, a config with a
            label, or a label.
        learns: Whether a play teaches the learner. Must be False in another process, and where
            something else teaches it.
    """

    metadata = {"render_modes": []}  # noqa: RUF012, as Gymnasium declares it

    def __init__(
        self,
        simulator: Simulator | SkillView,
        task: Any = f"{LABEL}0",
        *,
        learns: bool = True,
    ):
        self.observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(1)
        if isinstance(simulator, SkillView):
            if learns:
                raise ConfigError(
                    "an env in another process can only read the learner's skills, not teach it. "
                    "Pass learns=False and let the host learn."
                )
            self.simulator: Simulator | AttachedSkills = AttachedSkills(simulator)
        else:
            self.simulator = simulator
        self._learns = learns
        self._reward = 0.0
        self._shown: PlayResult | None = None
        self._steps_left = 0
        self.set_task(task)
        self.node = self._next_node
        """The node of the current episode."""

    def set_task(self, task: Any) -> None:
        """Play this task from the next reset on."""
        node, num_tasks = node_of(task), len(self.simulator.state.nodes)
        if not 0 <= node < num_tasks:
            raise TaskError(
                f"task {node} does not exist; expected 0 to {num_tasks - 1}. "
                "Give a task of this simulator."
            )
        self._next_node = node

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begin a play; its outcome depends on the seed and on the skills of this moment."""
        super().reset(seed=seed)
        if options and "task" in options:
            self.set_task(options["task"])
        self.node = self._next_node
        drawn = seed is None
        episode_seed = int(self.np_random.integers(SEED_MASK)) if drawn else seed & SEED_MASK
        self._shown = PlayResult(*self.simulator.state.show(self.node, episode_seed))
        self._steps_left = self._shown.length
        return np.zeros(1, dtype=np.float32), {}

    @property
    def is_playing(self) -> bool:
        """Whether an episode has begun and not ended."""
        return self._shown is not None

    def step(
        self, action: Any
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Play; the action has no effect."""
        shown = self._shown
        if shown is None:
            raise gym.error.ResetNeeded("Call reset before step: the last episode has ended.")
        self._steps_left -= 1
        if self._steps_left > 0:
            return np.zeros(1, dtype=np.float32), 0.0, False, False, {}
        self._shown, self._reward = None, shown.reward
        if self._learns and isinstance(self.simulator, Simulator):
            self.simulator.learn_play(self.node, shown)
        info = {
            "is_success": shown.success > 0.0,
            "task_dependency": {
                "performance": shown.level,
                "reward": shown.reward,
                "success": shown.success,
                "task_class": self.node,
                "length": shown.length,
            },
        }
        return np.zeros(1, dtype=np.float32), self._reward, True, False, info

    # The interface of the ancestor.

    def set_mg_config(self, config: Any) -> None:
        """Play the task that a config's label names, from the next reset on."""
        self.set_task(config)

    def get_episode_rewards(self) -> npt.NDArray[np.float32]:
        """Return the reward of the last play, shape ``(1,)``."""
        return np.array([self._reward], dtype=np.float32)
