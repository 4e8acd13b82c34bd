"""Names of opponents in tasks, and which of them the training loop has to play.

Used by `league`; "weak", "strong" and "none" are played by the env itself.
"""

from stepladder.errors import ConfigError
from stepladder.games.game import CALLED

NEWEST, POOL, ARCHIVE, NAMED = "newest", "pool", "archive", "named"
"""How opponents are chosen; any name but the first three is that of one agent."""

KINDS = (NEWEST, POOL, ARCHIVE, NAMED)


def called_name(name: str) -> str | None:
    """Return the opponent that the caller plays, or None if the env plays it itself.

    Example:
        >>> called_name("caller:pool"), called_name("caller"), called_name("weak")
        ('pool', 'newest', None)
    """
    if name == CALLED.removesuffix(":"):
        return NEWEST
    return name.removeprefix(CALLED) if name.startswith(CALLED) else None


def unannounced(called: str) -> ConfigError:
    """Return the error about an opponent that is not in the league."""
    return ConfigError(
        f"opponent {CALLED + called!r} was not announced, so it was not checked whether it can "
        "play. Name it when the league is made."
    )
