"""The base class of agents that learn from replay: when they update, and how often.

Base of `dddqn` and `sac`. The number of updates follows the env steps, so that eight envs learn
exactly as much per step as one. There are none before enough is stored, also after `forget`.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Space

from stepladder.agents.base import Agent, VectorStep
from stepladder.agents.divergence import Extent
from stepladder.agents.replay.config import ReplayConfig
from stepladder.agents.replay.memory import Replay, Sample
from stepladder.agents.replay.mirror import Mirror
from stepladder.agents.replay.returns import Transitions
from stepladder.agents.saved_values import NumberSpec


class ReplayAgent(Agent):
    """Learns from stored transitions.

    `Agent` explains the other arguments.

    Args:
        num_action_columns: Numbers per stored action.
        num_choices: Number of discrete actions; 0 for continuous ones.
        mirror: The symmetry of the env, if it has one.
    """

    config: ReplayConfig  # pyright: ignore[reportIncompatibleVariableOverride]

    counters = (
        *Agent.counters,
        NumberSpec(name="num_steps_since_clear"),
        NumberSpec(name="updates_due", kind=float),
        NumberSpec(name="was_given_weights", kind=bool),
    )

    _do_update: Callable[[], dict[str, torch.Tensor]]
    """Does one update and returns its figures."""

    def __init__(
        self,
        config: ReplayConfig,
        observation_space: Space[Any],
        action_space: Space[Any],
        num_envs: int,
        *,
        num_action_columns: int,
        num_choices: int = 0,
        device: str | torch.device = "cpu",
        seed: int = 0,
        mirror: Mirror | None = None,
    ):
        super().__init__(
            config, observation_space, action_space, num_envs, device=device, seed=seed
        )
        self.memory = Replay(
            self.layout,
            num_action_columns,
            config.capacity,
            self.device,
            mirror if config.mirror else None,
            num_choices,
            config.num_step_returns == 1,
        )
        self._transitions = Transitions(
            self.layout, num_envs, num_action_columns, config.num_step_returns, config.gamma,
            num_choices,
        )  # fmt: skip
        self.num_steps_since_clear = 0
        """Env steps since the memory was last empty."""
        self.updates_due = 0.0
        """Updates that are due, fractions included."""
        self.was_given_weights = False
        """Whether it was given the weights of another agent."""

    @property
    def is_warming_up(self) -> bool:
        """Whether it is too early for updates, at the start or after `forget`."""
        return (
            self.num_steps_since_clear < self.config.warmup_steps
            or self.memory.size < self.config.batch_size
        )

    @property
    def acts_at_random(self) -> bool:
        """Whether actions are uniformly random, because nothing was learnt yet."""
        is_untaught = self.num_updates == 0 and not self.was_given_weights
        return is_untaught and self.config.warmup_steps > 0

    @abstractmethod
    def _remembered_actions(self, actions: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Return actions as they are stored, of shape ``(num_envs, columns)``."""

    @abstractmethod
    def _update_normaliser(self, numbers: torch.Tensor) -> None:
        """Include observations in the mean and spread that they are normalised by."""

    def remember(self, step: VectorStep) -> None:
        """Store one step of all envs."""
        before = self.history.pack(step.observations)
        self._follow_step(step, before)
        after = self.history.pack(step.next_observations)
        actions = self._remembered_actions(step.actions)
        for rows in self._transitions.take(step, actions, before, after):
            if len(rows.rewards):
                self._added(self.memory.add(rows))
                if self.config.normalise_observations:
                    self._update_normaliser(torch.from_numpy(rows.numbers).to(self.device))
        num_played = int(np.count_nonzero(step.is_playing))
        self.num_steps += num_played
        self.num_steps_since_clear += num_played
        if self.is_warming_up:
            self.updates_due = 0.0
            return
        # Many envs overshoot the end of the warm-up: only steps after it count.
        config = self.config
        num_beyond = self.num_steps_since_clear - max(config.warmup_steps, config.batch_size)
        self.updates_due += min(num_played, num_beyond) * config.updates_per_step

    def _at(self, places: torch.Tensor) -> Sample:
        """Return the transitions at some places, with rewards as they are learnt from."""
        sample = self.memory.at(places, self.generator)
        spread = self.policy().rewards
        return sample if spread is None else sample._replace(rewards=spread.scaled(sample.rewards))

    def _added(self, places: npt.NDArray[np.int64]) -> None:
        """Handle new transitions, given their places in memory."""

    def learn(self) -> int:
        """Do the updates that are due; return how many."""
        count = int(self.updates_due)
        if count == 0:
            return 0
        self.updates_due -= count
        figures: dict[str, torch.Tensor] = {}
        for _ in range(count):
            figures = self._do_update()
            self.num_updates += 1
            if self.device.type == "cpu":
                # On a GPU this would wait after every update: `check_finite` looks later.
                self._require_update(figures)
            self._after_update()
        # Only those of the last update: reading each would wait for the device.
        self._note(**{name: value.clone() for name, value in figures.items()})
        return count

    def _after_update(self) -> None:
        """Do what follows each update."""

    def _extent(self) -> Extent:
        return self.memory.extent()

    def forget(self) -> None:
        """Drop all stored transitions, and warm up again before the next update."""
        self.memory.clear()
        self._transitions.clear()
        self.history.begin()
        self.num_steps_since_clear = 0
        self.updates_due = 0.0

    def drop_pending(self) -> None:
        """Drop transitions that are not complete: their episodes will not be continued."""
        self._transitions.clear()
        self.history.begin()

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Act with other weights from now on, also during warm-up."""
        super().load_weights(weights)
        self.was_given_weights = True

    def memory_stats(self) -> dict[str, float]:
        """Return how full the memory is."""
        return {"size": float(self.memory.size), "share": self.memory.size / self.memory.capacity}

    def _parts(self) -> dict[str, Any]:
        return {"memory": self.memory, "transitions": self._transitions}
