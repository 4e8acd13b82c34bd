"""What opponents are called in tasks, and which of them the training loop has to play.

Read by `league`; "weak", "strong" and "none" are played by the env itself and mean nothing here.
"""

from stepladder.errors import ConfigError
from stepladder.games.game import CALLED

NEWEST, POOL, ARCHIVE, NAMED = "newest", "pool", "archive", "named"
"""How opponents are chosen; any name but the first three is that of one agent."""


def called_name(name: str) -> str | None:
    """Return whom the caller is to play, or None if the env plays the opponent itself.

    Example:
        >>> called_name("caller:pool"), called_name("caller"), called_name("weak")
        ('pool', 'newest', None)
    """
    if name == CALLED.removesuffix(":"):
        return NEWEST
    return name.removeprefix(CALLED) if name.startswith(CALLED) else None


def unannounced(called: str) -> ConfigError:
    """Say that somebody is to play whom nobody has heard of."""
    return ConfigError(
        f"opponent {CALLED + called!r} was not announced, so nobody has looked whether it can "
        "play. Name it when the league is made."
    )
