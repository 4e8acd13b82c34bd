"""What a checkpoint says of the training itself: numbers and history, checked before use.

`session` saves them with everything else, and reads them here when it is resumed.
"""

from typing import Any

from stepladder.agents.saved_values import NumberSpec, check_numbers
from stepladder.curricula.reporting.events import EventCursor
from stepladder.errors import SnapshotError
from stepladder.training.best import Best

ACCOUNT = (
    *(
        NumberSpec(name=name)
        for name in ("evaluation_steps", "evaluated_at", "num_epochs", "reported_at")
    ),
    NumberSpec(name="elapsed_s", kind=float),
)
"""Numbers in a session's snapshot."""


def checked_account(own: dict[str, Any]) -> tuple[EventCursor, Best | None]:
    """Check what a checkpoint says of the training.

    Returns:
        What was reported of its curriculum, and the best evaluation so far.

    Raises:
        SnapshotError: It is damaged.
    """
    try:
        check_numbers(own, ACCOUNT)
        evaluations = own["evaluations"]
        is_list = isinstance(evaluations, list)
        if not is_list or not all(type(entry["step"]) is int for entry in evaluations):
            raise SnapshotError("evaluations is not a list of objects, each with its step.")
        best = own.get("best")
        return EventCursor.from_json(own["cursor"]), None if best is None else Best.from_json(best)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, SnapshotError) else repr(error)
        raise SnapshotError(
            f"the checkpoint's account of the training is damaged: {reason} Use an older one."
        ) from error
