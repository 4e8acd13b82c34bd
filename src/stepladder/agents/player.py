"""A policy that plays but does not learn: as an opponent, in an evaluation, in a film.

Made from the description of an agent and its weights, on whichever device, for any number of
rows. `training` and `cli` use it; agents do not.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import flatdim

from stepladder.agents.agent_state import named_below
from stepladder.agents.config import AgentConfig
from stepladder.agents.history import ALL, History
from stepladder.agents.observations import Layout, Observations, on_device
from stepladder.agents.policy import Policy
from stepladder.agents.room import checked_device, require_room_for_networks
from stepladder.agents.saved_values import (
    TensorSpec,
    check_generator,
    load_module,
    restore_generator,
)
from stepladder.agents.spaces import space_from_json
from stepladder.errors import ConfigError, SnapshotError, shown
from stepladder.trusted import is_allowed

HISTORY = "history/"
"""Prefix of past frames in the state of a player."""

ALL_PLAY = np.array(True)
"""Every step that a player is asked about belongs to an episode."""


class Player:
    """Plays with the weights of an agent.

    Args:
        policy: What chooses actions.
        layout: Of what is seen.
        num_rows: Envs that it plays at once.
        seed: Of what it draws where it explores.
    """

    def __init__(self, policy: Policy, layout: Layout, num_rows: int, *, seed: int = 0):
        self.num_rows = num_rows
        self.policy = policy
        self._history = History(layout, num_rows)
        self._device = next(policy.parameters()).device
        self._generator = torch.Generator(self._device).manual_seed(seed)
        self.begin()

    @torch.inference_mode()
    def begin(self, rows: npt.NDArray[np.bool_] | None = None) -> None:
        """Let some rows begin a new episode; None is all."""
        self._history.begin(ALL if rows is None else rows)
        if rows is None:
            self._memory = self.policy.first_memory(self.num_rows)
        else:
            self._memory[torch.from_numpy(rows).to(self._device)] = 0.0

    @torch.inference_mode()
    def act_batch(
        self,
        observations: Observations,
        deterministic: bool = True,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> npt.NDArray[Any]:
        """Choose an action in every row, in one forward pass.

        Args:
            observations: As a vector env returns them.
            deterministic: Whether to do what seems best; otherwise every row explores by itself.
            rows: Which rows are seen, where not all are. Actions are returned for them alone, and
                what the others remember stays.
        """
        those = ALL if rows is None else rows
        packed = self._history.pack(observations, those)
        seen = on_device(packed, self._device)
        places = slice(None) if rows is None else torch.from_numpy(rows).to(self._device)
        actions, memory = self.policy.act(
            seen, self._memory[places], self._generator, deterministic
        )
        self._memory[places] = memory
        self._history.advance(packed, ALL_PLAY, those)
        return actions

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Play with other weights from now on; what the rows remember stays."""
        load_module(self.policy, weights)

    def state(self) -> dict[str, torch.Tensor]:
        """Return copies of all that is needed to play on, beside the weights; on the CPU."""
        return {
            "generator": self._generator.get_state(),
            "memory": self._memory.to("cpu", copy=True),
            **{f"{HISTORY}{name}": one for name, one in self._history.state_dict().items()},
        }

    def restore(self, state: Mapping[str, torch.Tensor]) -> None:
        """Play on exactly where `state` was taken.

        Raises:
            SnapshotError: It belongs to another player.
        """
        try:
            TensorSpec.like("memory", self._memory).check(state.get("memory"))
            check_generator(state.get("generator"), self._generator)
            past = named_below(HISTORY, state)
            self._history.check_state(past)
        except SnapshotError as error:
            raise SnapshotError(
                f"the saved player does not fit: {error} Use an older checkpoint."
            ) from error
        restore_generator(self._generator, state["generator"])
        self._memory = state["memory"].to(self._device, copy=True)
        self._history.load_state_dict(past)


def make_player(
    description: Mapping[str, Any],
    weights: Mapping[str, torch.Tensor],
    num_rows: int,
    *,
    device: str | torch.device = "cpu",
    seed: int = 0,
    trust: bool = False,
) -> Player:
    """Make a player from the description of an agent and its weights.

    Args:
        description: What `Agent.description` returned.
        weights: What `Agent.weights` returned.
        num_rows: Envs that it plays at once.
        device: Where it computes.
        seed: Of what it draws where it explores.
        trust: Whether a network that the description names may be imported, if the user has not
            allowed it before.

    Raises:
        SnapshotError: They do not go together, or are damaged, or it names a network of a user and
            is not trusted.
    """
    if not isinstance(description, Mapping):
        raise SnapshotError(f"a policy is described by an object; got {shown(description)}.")
    chosen = checked_device(device)
    try:
        config = AgentConfig.from_json(description["config"], "the agent")
        _require_trusted(config, trust)
        layout = config.layout(space_from_json(description["observation_space"]))
        action_space = space_from_json(description["action_space"])
        _require_size(config, layout, action_space, weights)
        require_room_for_networks(config, layout, action_space, chosen)
        policy = config.make_policy(layout, action_space, torch.Generator().manual_seed(0))
        load_module(policy, weights)
    except (KeyError, TypeError, RuntimeError, ConfigError, SnapshotError) as error:
        text = " ".join(str(error).split())
        raise SnapshotError(
            f"these weights cannot be played with ({text}). Use another checkpoint."
        ) from error
    policy.to(chosen).eval()
    return Player(policy, layout, num_rows, seed=seed)


def _require_trusted(config: AgentConfig, trust: bool) -> None:
    """Raise before a module is imported that the user has not allowed."""
    name = getattr(config, "encoder", None)
    if name is not None and not trust and not is_allowed(name):
        raise SnapshotError(
            f"its networks contain {name!r}: playing would import {name.partition(':')[0]!r} and "
            "run that code; if you trust where it came from, add --trust, in Python trust=True"
        )


def _require_size(
    config: AgentConfig, layout: Layout, action_space: Any, weights: Mapping[str, torch.Tensor]
) -> None:
    """Raise before memory is taken if networks are described that the weights do not fill."""
    sizes = config.layer_widths(layout.num_features, flatdim(action_space))
    needed = max((num_in * num_out for num_in, num_out in pairwise(sizes)), default=0)
    needed = max(needed, config.largest_encoder_layer(layout))
    present = sum(tensor.numel() for tensor in weights.values())
    if needed > present:
        raise SnapshotError(
            f"layers of sizes {list(sizes)} are described, and there are {present:,} weights"
        )
