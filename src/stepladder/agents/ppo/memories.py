"""What a recurrent policy remembers of every env: now, after its next action, when a rollout began.

Kept by `ppo`; `acting` moves it on, `learner` begins with the first ones.
"""

from collections.abc import Mapping
from typing import Any

import torch

from stepladder.agents.saved_values import TensorSpec, check_state


class Memories:
    """A row of numbers per env, none if the policy is not recurrent.

    Args:
        empty: Those at the beginning of an episode, of shape ``(num_envs, width)``.
    """

    def __init__(self, empty: torch.Tensor):
        self.now = empty.clone()
        """Before the next action."""
        self.after = empty.clone()
        """After it."""
        self.first = empty.clone()
        """Before the first action of the rollout."""

    def begin_rollout(self) -> None:
        """Note what is remembered now."""
        self.first.copy_(self.now)

    def clear(self) -> None:
        """Begin an episode everywhere."""
        self.now.zero_()
        self.first.zero_()

    def state_dict(self) -> dict[str, Any]:
        """Return copies."""
        return {"now": self.now.clone(), "first": self.first.clone()}

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise unless a state can be restored."""
        kept = {"now": self.now, "first": self.first}
        check_state(state, [TensorSpec.like(name, own) for name, own in kept.items()])

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        self.check_state(state)
        self.now.copy_(state["now"])
        self.first.copy_(state["first"])
