"""The base class of agents, and what a training loop gives to them.

`training` calls `act_batch`, steps the envs, passes the step to `remember` and then calls `learn`.
The number of updates depends on the number of env steps alone, not on the number of envs.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium.spaces import Space

from stepladder.agents.agent_state import LOSSES_PREFIX, WEIGHTS_PREFIX, AgentState, named_below
from stepladder.agents.config import AgentConfig
from stepladder.agents.divergence import Extent, divergence
from stepladder.agents.history import History
from stepladder.agents.networks.optimiser import Adam
from stepladder.agents.observations import Observations, Packed
from stepladder.agents.policy import Policy
from stepladder.agents.replay.mirror import Mirror
from stepladder.agents.room import checked_device, require_room_for_networks
from stepladder.agents.saved_values import (
    NumberSpec,
    TensorSpec,
    check_generator,
    check_numbers,
    check_rng,
    check_state,
    first_not_finite,
    flatten,
    load_module,
    module_specs,
    restore_generator,
    short,
    unflatten,
)
from stepladder.agents.spaces import space_to_json
from stepladder.arrays import Array, Flags
from stepladder.errors import DivergenceError, SnapshotError


@dataclass(frozen=True)
class VectorStep:
    """One step of all envs. Every array has a row per env."""

    observations: Observations
    """Before the step."""

    actions: Array
    rewards: Array
    terminated: Flags
    truncated: Flags

    next_observations: Observations
    """After the step: the last observation of an episode, where one has ended."""

    is_playing: Flags
    """Whether the step belongs to an episode; with next-step autoreset, the step after an ending
    only resets."""

    group: int = 0
    """Which envs it is of, where groups of them take turns."""


class Agent(ABC):
    """Learns from many envs at once.

    Args:
        config: The settings.
        observation_space: Of one env.
        action_space: Of one env.
        num_envs: How many envs it plays.
        device: Where it computes: "cpu", "cuda" or "cuda:1".
        seed: Of everything that it draws; no global generator is touched.
    """

    config: AgentConfig

    counters: ClassVar[tuple[NumberSpec, ...]] = (
        NumberSpec(name="num_steps"),
        NumberSpec(name="num_updates"),
    )
    """Attributes that are saved with the agent, as they are."""

    on_rollout: Callable[[Array], object] | None = None
    """Called with the advantages of a rollout, a row per `remember`, if `gives_advantages`."""

    def __init__(
        self,
        config: AgentConfig,
        observation_space: Space[Any],
        action_space: Space[Any],
        num_envs: int,
        *,
        device: str | torch.device = "cpu",
        seed: int = 0,
    ):
        self.config = config
        self.observation_space, self.action_space = observation_space, action_space
        self.num_envs = num_envs
        self.device = checked_device(device)
        self.layout = config.layout(observation_space)
        self.history = History(self.layout, num_envs)
        """What an observation alone does not say of the episodes under way."""
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.num_steps = 0
        """Env steps so far."""
        self.num_updates = 0
        """Updates so far."""
        self._losses: dict[str, list[torch.Tensor]] = {}

    # Playing.

    @abstractmethod
    def act_batch(self, observations: Observations, deterministic: bool = False) -> Array:
        """Choose an action in every env, in one forward pass.

        Args:
            observations: As a vector env returns them, with a row per env.
            deterministic: Whether to do what seems best; otherwise every row explores by itself.
        """

    # Learning.

    @abstractmethod
    def remember(self, step: VectorStep) -> None:
        """Store one step of all envs."""

    @abstractmethod
    def learn(self) -> int:
        """Do the updates that are due; return how many."""

    @abstractmethod
    def forget(self) -> None:
        """Drop everything that was remembered, and warm up again before the next update."""

    @abstractmethod
    def drop_pending(self) -> None:
        """Drop what belongs to episodes under way, which will not be continued."""

    def _follow_step(self, step: VectorStep, packed: Packed, rows: slice = slice(None)) -> None:
        """Let frames and returns follow a step of some envs; `packed` is what they saw before."""
        self.history.advance(packed, step.is_playing, rows)
        spread = self.policy().rewards
        if spread is not None:
            ended = step.terminated | step.truncated
            returns = self.history.add_rewards(
                step.rewards, ended, step.is_playing, self.config.gamma, rows
            )
            spread.add(returns.to(self.device))

    def take_losses(self) -> dict[str, list[float]]:
        """Return the figures of all updates since the last call, by name."""
        taken = {
            name: torch.stack(values).tolist() for name, values in self._losses.items() if values
        }
        self._losses = {}
        return taken

    def _note(self, **losses: torch.Tensor) -> None:
        """Keep the figures of an update. They stay on the device, which is not waited for."""
        for name, value in losses.items():
            self._losses.setdefault(name, []).append(value.detach())

    # Checks: nothing that is not finite is learnt from, saved or played with.

    @abstractmethod
    def _optimisers(self) -> dict[str, Adam]:
        """Return the optimisers, by the name of their networks."""

    @abstractmethod
    def _extent(self) -> Extent:
        """Return how large the numbers in memory are."""

    def check_finite(self) -> None:
        """Raise if a loss, a gradient or a weight was not finite. Waits for the device.

        Raises:
            DivergenceError: The training cannot go on from here.
        """
        self._require_gradients()
        sums = {name: torch.stack(values).sum() for name, values in self._losses.items() if values}
        self._require_update(sums)

    def _require_gradients(self) -> None:
        for name, adam in self._optimisers().items():
            if adam.has_stopped:
                what = f"the gradient of the {name} is not finite"
                raise self._diverged(what, adam.num_steps + 1)

    def _require_update(self, figures: Mapping[str, torch.Tensor]) -> None:
        """Raise unless an update and its figures are finite. Waits for the device."""
        for name, value in figures.items():
            number = value.item()
            if not math.isfinite(number):
                raise self._diverged(f"losses/{name} is {number}")
        self._require_gradients()

    def _diverged(self, what: str, update: int | None = None) -> DivergenceError:
        optimisers = self._optimisers().values()
        counts = (int(adam.num_steps + adam.has_stopped) for adam in optimisers)
        failed = max(counts, default=self.num_updates) if update is None else update
        return divergence(failed, what, self._extent(), self.config.learning_rate)

    @abstractmethod
    def memory_stats(self) -> dict[str, float]:
        """Return figures about the agent's memory, to log."""

    # Saving.

    @abstractmethod
    def policy(self) -> Policy:
        """Return what chooses actions."""

    def description(self) -> dict[str, Any]:
        """Return what `make_player` needs beside the weights; plain JSON."""
        return {
            "type": self.config.kind,
            "config": self.config.to_json(),
            "observation_space": space_to_json(self.observation_space),
            "action_space": space_to_json(self.action_space),
        }

    def weights(self) -> dict[str, torch.Tensor]:
        """Return copies of all that is needed to act, on the CPU.

        Raises:
            DivergenceError: Something in it is not finite.
        """
        self.check_finite()
        weights = {
            name: tensor.detach().to("cpu", copy=True).contiguous()
            for name, tensor in self.policy().state_dict().items()
        }
        self._require_finite(weights)
        return weights

    def _require_finite(self, tensors: Mapping[str, torch.Tensor]) -> None:
        found = first_not_finite(tensors)
        if found is not None:
            raise self._diverged(found)

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Act with other weights from now on; nothing else changes."""
        load_module(self.policy(), weights)

    @abstractmethod
    def _parts(self) -> dict[str, Any]:
        """Return modules, optimisers and memories by name: whatever has a state_dict."""

    def _all_parts(self) -> dict[str, Any]:
        return {**self._parts(), "history": self.history}

    def _numbers(self) -> dict[str, Any]:
        """Return other numbers of this kind of agent; plain JSON."""
        return {}

    def _set_numbers(self, numbers: Mapping[str, Any]) -> None:  # noqa: B027, most have none
        """Restore what `_numbers` returned."""

    def state(self) -> AgentState:
        """Return everything needed to continue exactly here.

        Tensors may be the agent's own memory rather than copies: write them before its next step.

        Raises:
            DivergenceError: Something in it is not finite.
        """
        tensors = {f"{WEIGHTS_PREFIX}{name}": tensor for name, tensor in self.weights().items()}
        structure: dict[str, Any] = {}
        for name, part in self._all_parts().items():
            structure[name] = flatten(part.state_dict(), f"{name}/", tensors)
        tensors["random/torch"] = self.generator.get_state()
        for name, values in self._losses.items():
            tensors[f"{LOSSES_PREFIX}{name}"] = torch.stack(values)
        numbers = {
            "description": self.description(),
            "num_envs": self.num_envs,
            **{spec.name: getattr(self, spec.name) for spec in self.counters},
            "rng": self.rng.bit_generator.state,
            "structure": structure,
            **self._numbers(),
        }
        self._require_finite(tensors)
        return AgentState(numbers, tensors)

    def restore(self, state: AgentState) -> None:
        """Continue exactly where a state was taken.

        Raises:
            SnapshotError: It belongs to another agent, or is damaged. Nothing has changed.
        """
        numbers, tensors = state.numbers, state.tensors
        self._require_own(numbers)
        weights, losses = named_below(WEIGHTS_PREFIX, tensors), named_below(LOSSES_PREFIX, tensors)
        try:
            structure = numbers["structure"]
            parts = {name: unflatten(structure[name], tensors) for name in self._all_parts()}
            check_state(weights, module_specs(self.policy()))
            check_numbers(numbers, (*self.counters, *self._number_specs()))
            check_generator(tensors.get("random/torch"), self.generator)
            check_rng(numbers.get("rng"))
            for name, tensor in losses.items():
                TensorSpec(name=name, shape=(tensor.numel(),), dtype=torch.float32).check(tensor)
            self._check_parts(parts)
        except (KeyError, TypeError, ValueError) as error:
            reason = str(error) if isinstance(error, SnapshotError) else repr(error)
            raise SnapshotError(
                f"the saved agent is damaged: {reason} Use an older checkpoint."
            ) from error
        self.load_weights(weights)
        for name, part in self._all_parts().items():
            part.load_state_dict(parts[name])
        restore_generator(self.generator, tensors["random/torch"])
        self.rng.bit_generator.state = numbers["rng"]
        for spec in self.counters:
            setattr(self, spec.name, numbers[spec.name])
        self._set_numbers(numbers)
        self._losses = {
            name: list(tensor.to(self.device).unbind()) for name, tensor in losses.items()
        }

    def _number_specs(self) -> list[NumberSpec]:
        """Describe what `_numbers` returns."""
        return []

    def _check_parts(self, states: Mapping[str, Any]) -> None:
        """Raise unless the state of every part can be restored."""
        for name, part in self._all_parts().items():
            try:
                if isinstance(part, torch.nn.Module):
                    check_state(states[name], module_specs(part))
                else:
                    part.check_state(states[name])
            except SnapshotError as error:
                raise SnapshotError(f"{name}/{error}") from error

    def _require_own(self, numbers: Mapping[str, Any]) -> None:
        """Raise unless a state was saved by an agent like this one."""
        if numbers.get("description") != self.description():
            raise SnapshotError(
                f"the saved agent is {_in_words(numbers.get('description'))}; this one is "
                f"{_in_words(self.description())}. Make the agent as it was."
            )
        if numbers.get("num_envs") != self.num_envs:
            raise SnapshotError(
                f"the agent was saved with {numbers.get('num_envs')} envs and now has "
                f"{self.num_envs}. Use the same number."
            )


def make_agent(
    config: AgentConfig,
    observation_space: Space[Any],
    action_space: Space[Any],
    num_envs: int,
    *,
    device: str | torch.device = "cpu",
    seed: int = 0,
    mirror: Mirror | None = None,
) -> Agent:
    """Make an agent.

    Args:
        config: Its settings; their class decides which agent.
        observation_space: Of one env.
        action_space: Of one env.
        num_envs: How many envs it plays.
        device: Where it computes: "cpu", "cuda", "cuda:1", or "auto".
        seed: Of everything that it draws.
        mirror: The symmetry of the env, if it has one.

    Raises:
        ConfigError: The agent cannot play such an env, or there is too little memory.
    """
    chosen = checked_device(device)
    require_room_for_networks(config, config.layout(observation_space), action_space, chosen)
    return config.make(
        observation_space, action_space, num_envs, device=chosen, seed=seed, mirror=mirror
    )


def _in_words(description: Any) -> str:
    config = description.get("config") if isinstance(description, Mapping) else None
    if not isinstance(config, Mapping):
        return short(description)
    settings = ", ".join(f"{key}={short(value)}" for key, value in config.items() if key != "type")
    return f"{description.get('type')}({settings})"
