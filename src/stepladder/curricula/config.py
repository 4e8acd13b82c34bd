"""Settings that every curriculum has.

A config is a frozen dataclass beside the class it configures; `configs.codec` checks, reads and
writes it. It can build what it describes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from stepladder.configs.checks import Share
from stepladder.configs.codec import Config, Kinds, make
from stepladder.configs.problems import Problems
from stepladder.errors import ConfigError
from stepladder.tasks import Pool, Source, Task

if TYPE_CHECKING:
    from stepladder.curricula.base import Curriculum

Tasks: TypeAlias = Pool | Source | Sequence[Task]
"""What a curriculum can be built over."""


@dataclass(frozen=True, kw_only=True)
class CurriculumConfig(Config):
    """Settings that every method has."""

    type_key = "config"

    exploration: Share = 0.0
    """Share of draws spread evenly over all tasks, whatever the method thinks, in [0, 1]."""

    @classmethod
    def kinds(cls) -> Kinds:
        """Return every config of a curriculum, by the name that JSON has under `type_key`."""
        # Imported here: the configs of the methods derive from this one.
        from stepladder.curricula.config_registry import CONFIGS

        return CONFIGS

    def make(self, tasks: Tasks, *, seed: int = 0) -> "Curriculum":
        """Build the curriculum that this config describes."""
        raise ConfigError(f"{type(self).__name__} describes no curriculum; use one of its kinds.")

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON, with the name of their class."""
        return {self.type_key: type(self).__name__, **super().to_json()}


Chosen = TypeVar("Chosen", bound=CurriculumConfig)


def settle(kind: type[Chosen], config: Chosen | None, settings: dict[str, Any]) -> Chosen:
    """Return the config that was given, or one made of the settings that were given instead."""
    if config is None:
        problems = Problems()
        made = make(kind, settings, problems)
        problems.raise_if_any()
        return made
    if settings:
        raise ConfigError(
            f"{', '.join(sorted(settings))} was given beside a config, which decides alone. "
            "Set it there, with dataclasses.replace."
        )
    if not isinstance(cast("object", config), kind):
        raise ConfigError(
            f"expected a {kind.__name__}; got a {type(config).__name__}. Give that, or let the "
            "config make what it describes with its own make(tasks)."
        )
    return config
