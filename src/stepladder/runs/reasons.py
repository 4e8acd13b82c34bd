"""Why something failed, in one line: what was raised, what it says, then where.

Stored by `RunWriter` as the status of a failed run, and shown by the commands.
"""

LONGEST_REASON = 1_000
"""Characters of a reason that are kept."""

LONGEST_MESSAGE, LONGEST_NOTE = 700, 200
"""Characters of a message and of a note that are kept, so that there is room for both."""

MAX_NOTES, MAX_CAUSES, MAX_MEMBERS = 3, 3, 3
"""Notes of an exception, causes behind it and members of a group that are named."""


def reason_of(error: BaseException) -> str:
    """Return type and message of an exception, its members, its notes and its causes, on one line.

    Example:
        >>> error = ValueError("no such level")
        >>> error.add_note("raised by env 3, in this process")
        >>> reason_of(error)
        'ValueError: no such level (raised by env 3, in this process)'
    """
    text, cause = _with_notes(error), error.__cause__
    for _ in range(MAX_CAUSES):
        if cause is None:
            break
        if _message(cause) not in text:
            text = f"{text}, caused by {_with_notes(cause)}"
        cause = cause.__cause__
    return _short(text, LONGEST_REASON)


def notes_of(error: BaseException) -> list[str]:
    """Return the first line of each note of an exception; tracebacks follow on others."""
    notes: object = getattr(error, "__notes__", ())
    if not isinstance(notes, list | tuple):
        return []
    lines = [text.splitlines()[0] for text in notes if isinstance(text, str) and text.strip()]
    return [_short(line.removesuffix("; there:"), LONGEST_NOTE) for line in lines[:MAX_NOTES]]


def _with_notes(error: BaseException) -> str:
    message = _short(_message(error), LONGEST_MESSAGE)
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if isinstance(error, BaseExceptionGroup):
        members = "; ".join(_with_notes(member) for member in error.exceptions[:MAX_MEMBERS])
        more = ", …" if len(error.exceptions) > MAX_MEMBERS else ""
        text = f"{text}: {members}{more}"
    notes = notes_of(error)
    return f"{text} ({'; '.join(notes)})" if notes else text


def _message(error: BaseException) -> str:
    try:
        return " ".join(str(error).split())
    except Exception as failure:  # a foreign class may raise anything while it is printed
        return f"<its message cannot be read: {type(failure).__name__}>"


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
