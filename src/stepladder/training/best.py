"""Which evaluation of a training was the best so far, and which checkpoint holds its policy.

`session` asks here after every evaluation, and before each checkpoint that it saves.
"""

import sys
from dataclasses import dataclass
from typing import Any

from stepladder.agents.saved_values import NumberSpec, check_state

LARGEST = sys.float_info.max


@dataclass(frozen=True)
class Best:
    """The best evaluation so far."""

    step: int
    """Env steps of training when it was made. Its checkpoint is of the same step."""

    judged: tuple[float, float]
    """As `Evaluation.judged`."""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"step": self.step, "rate": self.judged[0], "mean_return": self.judged[1]}

    @classmethod
    def from_json(cls, saved: Any) -> "Best":
        """Return what `to_json` gave.

        Raises:
            SnapshotError: It is damaged; the message is the reason alone.
        """
        check_state(saved, _SAVED)
        return cls(saved["step"], (float(saved["rate"]), float(saved["mean_return"])))


_SAVED = (
    NumberSpec(name="step"),
    NumberSpec(name="rate", kind=float, high=1.0),
    NumberSpec(name="mean_return", kind=float, low=-LARGEST, high=LARGEST),
)


def better(best: Best | None, step: int, judged: tuple[float, float]) -> Best:
    """Return the better one of the best so far and a new evaluation; if equal, the earlier one."""
    return Best(step, judged) if best is None or judged > best.judged else best
