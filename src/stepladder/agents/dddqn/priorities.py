"""Prioritised replay: transitions with larger errors are drawn more often (Schaul et al. 2016).

Used by `dddqn` beside the replay memory: which places to sample, and their weights in the loss. The
sums lie in a binary tree in one array; a whole batch goes up or down level by level.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from stepladder.agents.room import require_room
from stepladder.agents.saved_values import NumberSpec, TensorSpec, check_state
from stepladder.arrays import Floats
from stepladder.errors import SnapshotError

Places = npt.NDArray[np.int64]

SMALLEST = 1e-6
"""Added to every error, so that every transition can be drawn."""

LARGEST = 1e100
"""Weights stay below this, so that the sum of all is finite."""


class Priorities:
    """How likely each place of a ring is to be drawn.

    Args:
        capacity: Places.
        exponent: How much errors count, in [0, 1].
    """

    def __init__(self, capacity: int, exponent: float):
        self._num_leaves = 1 << max(0, (capacity - 1).bit_length())
        require_room(
            2 * 8 * self._num_leaves, f"priorities of {capacity:,} places", "Lower buffer_size."
        )
        self._sums: Floats = np.zeros(2 * self._num_leaves)
        self._exponent = exponent
        self._highest = 1.0

    @property
    def total(self) -> float:
        """All weights together."""
        return float(self._sums[1])

    def add(self, places: Places) -> None:
        """Give new transitions the highest weight so far, so that each is drawn soon."""
        self._set(places, np.full(len(places), self._highest))

    def update(self, places: Places, errors: npt.NDArray[Any]) -> None:
        """Set the weights of transitions by their errors."""
        weights = (np.abs(errors).astype(np.float64) + SMALLEST) ** self._exponent
        self._highest = max(self._highest, float(weights.max(initial=0.0)))
        self._set(places, weights)

    def _set(self, places: Places, weights: Floats) -> None:
        if not len(places):
            return
        nodes = places + self._num_leaves
        # If a place occurs twice, the last weight counts, as in an assignment.
        self._sums[nodes] = weights
        nodes = np.unique(nodes >> 1)
        while nodes[0] >= 1:
            self._sums[nodes] = self._sums[2 * nodes] + self._sums[2 * nodes + 1]
            if nodes[0] == 1:
                break
            nodes = np.unique(nodes >> 1)

    def draw(self, shares: Floats) -> tuple[Places, Floats]:
        """Return places and their probabilities.

        Args:
            shares: In [0, 1): where in the sum of all weights to look, one per place. Each is used
                within its own equal part of the sum, so that a batch is spread over all of it.
        """
        rest = (np.arange(len(shares)) + shares) / len(shares) * self.total
        nodes = np.ones(len(shares), dtype=np.int64)
        while nodes[0] < self._num_leaves:
            left = self._sums[2 * nodes]
            # Not into an empty half, which rounding could cause.
            goes_right = (rest >= left) & (self._sums[2 * nodes + 1] > 0.0)
            rest = np.where(goes_right, rest - left, rest)
            nodes = 2 * nodes + goes_right
        return nodes - self._num_leaves, self._sums[nodes] / self.total

    def clear(self) -> None:
        """Drop all weights."""
        self._sums.fill(0.0)
        self._highest = 1.0

    def state_dict(self) -> dict[str, Any]:
        """Return all weights."""
        leaves = self._sums[self._num_leaves :]
        return {"leaves": torch.from_numpy(leaves.copy()), "highest": self._highest}

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise unless a state can be restored."""
        shape = (self._num_leaves,)
        leaves = TensorSpec(name="leaves", shape=shape, dtype=torch.float64, low=0.0, high=LARGEST)
        highest = NumberSpec(name="highest", kind=float, low=1.0, high=LARGEST)
        check_state(state, [leaves, highest])

    def check_size(self, state: Mapping[str, Any], size: int) -> None:
        """Raise unless exactly the first `size` places of a checked state have a weight."""
        has_weight = state["leaves"] > 0.0
        wrong = has_weight != (torch.arange(self._num_leaves) < size)
        if wrong.any():
            place = int(wrong.nonzero()[0])
            raise SnapshotError(
                f"leaves[{place}] is {state['leaves'][place].item():g}; expected "
                f"{'a weight above 0' if place < size else '0'}, because {size} transitions are "
                "stored."
            )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        self.check_state(state)
        self._sums[self._num_leaves :] = state["leaves"].cpu().numpy()
        first = self._num_leaves // 2
        while first >= 1:
            below = self._sums[2 * first : 4 * first]
            self._sums[first : 2 * first] = below[::2] + below[1::2]
            first //= 2
        self._highest = float(state["highest"])


def importance(probs: Floats, size: int, correction: float) -> Floats:
    """Return the weight of each drawn transition in the loss, at most 1."""
    weights = (size * probs) ** -correction
    return weights / weights.max()
