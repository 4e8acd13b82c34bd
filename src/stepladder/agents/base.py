"""What every agent can do, and what a training loop hands it.

`training` calls `act_batch`, steps the envs, hands what happened to `remember` and then lets the
agent `learn`. How much an agent learns depends on the env steps it was handed, never on how many
envs they came from.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Space

from stepladder.agents.config import AgentConfig
from stepladder.agents.observations import Layout, Observations
from stepladder.agents.spaces import space_to_json
from stepladder.errors import ConfigError, SnapshotError
from stepladder.tasks.plain import whole_number

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
MOST_COUNTED = 2**63 - 1
"""Steps or updates; more are a damaged file."""

WEIGHTS = "weights/"
"""Prefix of the tensors of a state that are needed to act."""

LOSSES = "losses/"
"""Prefix of figures that were not asked for yet."""


@dataclass(frozen=True)
class VectorStep:
    """One step of all envs. Every array has a row per env."""

    observations: Observations
    """What was acted upon."""

    actions: Array
    rewards: Array
    terminated: Mask
    truncated: Mask

    next_observations: Observations
    """What came of it: the last observation of an episode, where one has ended."""

    is_playing: Mask
    """Whether the step belongs to an episode; with next-step autoreset, the step after an ending
    only resets."""


@dataclass
class AgentState:
    """Everything that an agent needs to go on exactly."""

    numbers: dict[str, Any]
    """Plain JSON."""

    tensors: dict[str, torch.Tensor] = field(default_factory=dict[str, torch.Tensor])
    """By name; those that are needed to act begin with "weights/"."""


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
        self.layout = Layout(observation_space)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.num_steps = 0
        """Env steps that were handed in."""
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
        """Take in what happened in one step of all envs."""

    @abstractmethod
    def learn(self) -> int:
        """Do the updates that are due; return how many."""

    @abstractmethod
    def forget(self) -> None:
        """Drop everything that was remembered, and warm up again before the next update."""

    @abstractmethod
    def drop_pending(self) -> None:
        """Forget episodes that are under way, which will not go on; keep what is whole."""

    def take_losses(self) -> dict[str, list[float]]:
        """Return what the updates since the last call came to, by name; begin anew."""
        taken = {
            name: torch.stack(values).tolist() for name, values in self._losses.items() if values
        }
        self._losses = {}
        return taken

    def _note(self, **losses: torch.Tensor) -> None:
        """Keep the figures of an update. They stay on the device, which is not waited for."""
        for name, value in losses.items():
            self._losses.setdefault(name, []).append(value.detach())

    @abstractmethod
    def memory_stats(self) -> dict[str, float]:
        """Return what the agent's memory says about itself."""

    # Saving.

    @abstractmethod
    def policy(self) -> torch.nn.Module:
        """Return what chooses actions."""

    def description(self) -> dict[str, Any]:
        """Return what somebody needs to know to play with these weights; plain JSON."""
        return {
            "type": self.config.kind,
            "config": self.config.to_json(),
            "observation_space": space_to_json(self.observation_space),
            "action_space": space_to_json(self.action_space),
        }

    def weights(self) -> dict[str, torch.Tensor]:
        """Return copies of all that is needed to act, on the CPU."""
        return {
            name: tensor.detach().to("cpu", copy=True).contiguous()
            for name, tensor in self.policy().state_dict().items()
        }

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Play with other weights from now on; nothing else changes."""
        load_module(self.policy(), weights)

    @abstractmethod
    def _parts(self) -> dict[str, Any]:
        """Return modules, optimisers and memories by name: whatever has a state_dict."""

    @abstractmethod
    def _numbers(self) -> dict[str, Any]:
        """Return the counters of this kind of agent; plain JSON."""

    @abstractmethod
    def _set_numbers(self, numbers: Mapping[str, Any]) -> None:
        """Take the counters back."""

    def state(self) -> AgentState:
        """Return everything needed to go on exactly here.

        Tensors may be the agent's own memory rather than copies: write them before it goes on.
        """
        tensors = {f"{WEIGHTS}{name}": tensor for name, tensor in self.weights().items()}
        structure: dict[str, Any] = {}
        for name, part in self._parts().items():
            structure[name] = flatten(part.state_dict(), f"{name}/", tensors)
        tensors["random/torch"] = self.generator.get_state()
        for name, values in self._losses.items():
            tensors[f"{LOSSES}{name}"] = torch.stack(values)
        numbers = {
            "description": self.description(),
            "num_envs": self.num_envs,
            "num_steps": self.num_steps,
            "num_updates": self.num_updates,
            "rng": self.rng.bit_generator.state,
            "structure": structure,
            **self._numbers(),
        }
        return AgentState(numbers, tensors)

    def restore(self, state: AgentState) -> None:
        """Go on exactly where a state was taken.

        Raises:
            SnapshotError: It belongs to another agent, or is damaged.
        """
        numbers, tensors = state.numbers, state.tensors
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
        try:
            weights = {
                name.removeprefix(WEIGHTS): tensor
                for name, tensor in tensors.items()
                if name.startswith(WEIGHTS)
            }
            self.load_weights(weights)
            for name, part in self._parts().items():
                part.load_state_dict(unflatten(numbers["structure"][name], tensors))
            restore_generator(self.generator, tensors["random/torch"])
            self.rng.bit_generator.state = numbers["rng"]
            self.num_steps, self.num_updates = (
                whole_number(numbers[name], name, 0, MOST_COUNTED, SnapshotError)
                for name in ("num_steps", "num_updates")
            )
            self._set_numbers(numbers)
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise SnapshotError(
                f"the saved agent is damaged ({error}). Use an older checkpoint."
            ) from error
        self._losses = {
            name.removeprefix(LOSSES): list(tensor.to(self.device).unbind())
            for name, tensor in tensors.items()
            if name.startswith(LOSSES)
        }


def load_module(module: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """Copy weights into a module, in place."""
    module.load_state_dict({name: tensor.detach() for name, tensor in weights.items()})


def restore_generator(generator: torch.Generator, state: torch.Tensor) -> None:
    """Let a generator go on where a state was taken.

    One on another kind of device cannot: it begins anew, each time at another place.
    """
    state = state.cpu()
    if state.shape == generator.get_state().shape:
        generator.set_state(state)
    else:
        generator.manual_seed(generator.initial_seed() + int(state.sum()))


def flatten(value: Any, prefix: str, tensors: dict[str, torch.Tensor]) -> Any:
    """Return a nested state as plain JSON, with its tensors put aside under names.

    Args:
        value: Dicts, lists, numbers, texts and tensors.
        prefix: Of the names.
        tensors: Where tensors are put; changed in place.
    """
    if isinstance(value, torch.Tensor):
        tensors[prefix] = value.detach()
        return {"tensor": prefix}
    if isinstance(value, Mapping):
        # JSON has no keys but texts, and optimisers number their parameters.
        pairs = [[key, flatten(entry, f"{prefix}{key}.", tensors)] for key, entry in value.items()]
        return {"pairs": pairs}
    if isinstance(value, list | tuple):
        entries = [
            flatten(entry, f"{prefix}{index}.", tensors) for index, entry in enumerate(value)
        ]
        return {"entries": entries, "is_tuple": isinstance(value, tuple)}
    return value


def unflatten(value: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    """Return what `flatten` was given."""
    if not isinstance(value, Mapping):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    if "pairs" in value:
        return {key: unflatten(entry, tensors) for key, entry in value["pairs"]}
    entries = [unflatten(entry, tensors) for entry in value["entries"]]
    return tuple(entries) if value["is_tuple"] else entries


def checked_device(device: str | torch.device) -> torch.device:
    """Return a device that is there; "auto" is CUDA where there is one."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ConfigError(
            f"device must be 'cpu', 'cuda', 'cuda:1' or 'auto'; got {device!r}."
        ) from error
    if chosen.type not in ("cpu", "cuda"):
        raise ConfigError(f"device must be 'cpu', 'cuda', 'cuda:1' or 'auto'; got {device!r}.")
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"device is {str(device)!r}, and torch sees {torch.cuda.device_count()} CUDA devices. "
            "Use 'cpu' or 'auto'."
        )
    return chosen


def _in_words(description: Any) -> str:
    if not isinstance(description, Mapping):
        return repr(description)
    config = dict(description.get("config", {}))
    settings = ", ".join(f"{key}={value}" for key, value in config.items() if key != "type")
    return f"{description.get('type')}({settings})"
