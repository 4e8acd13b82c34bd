"""Settings of the phased curriculum: what each phase draws, and what ends it.

Read by `phased`. Whatever curriculum a phase holds is given as its config, and built over the same
pool as all the others.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

from stepladder.configs.checks import (
    MAX_WINDOW,
    require_kind,
    require_share,
    require_whole,
)
from stepladder.curricula.config import CurriculumConfig, Tasks
from stepladder.curricula.phased.mixture import MixtureConfig
from stepladder.curricula.phased.settings import Mixed, Ramp
from stepladder.curricula.uniform import UniformConfig
from stepladder.errors import ConfigError, TaskError, shown
from stepladder.tasks.plain import to_plain

if TYPE_CHECKING:
    from stepladder.curricula.phased.phased import Phased


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A time slice of a run. It ends at the first limit that is reached."""

    name: str
    """How the phase is called."""

    mixture: dict[str, float] | None = None
    """Weight per label; or give a `curriculum`; with neither, every task is drawn alike."""

    curriculum: CurriculumConfig | None = None
    """The curriculum inside the phase."""

    episodes: int | None = None
    """Ends after so many episodes drawn in the phase."""

    steps: int | None = None
    """Ends after so many env steps in such episodes."""

    success: float | None = None
    """Ends when the mean success of the latest `window_episodes` reaches this."""

    min_episodes: int = 50
    """Episodes that `success` needs at least."""

    window_episodes: int = 50
    """Episodes over which success is averaged."""

    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """Values that override the task's params by dotted path: plain ones, `Mixed` or `Ramp`."""

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.name), str) or not self.name:
            raise ConfigError(f"a phase needs a name; got {shown(self.name)}. Give it a text.")
        where = f"of phase {self.name!r}"
        if self.mixture is not None and self.curriculum is not None:
            raise ConfigError(f"phase {self.name!r} has a mixture and a curriculum; give one.")
        if self.mixture is not None:
            require_kind(f"mixture {where}", self.mixture, dict, fix="Give a weight per label.")
            MixtureConfig(weights=self.mixture)
        if self.curriculum == UniformConfig():
            # What a phase without a curriculum has; so that both are written and read alike.
            object.__setattr__(self, "curriculum", None)
        if self.curriculum is not None:
            require_kind(
                f"curriculum {where}",
                self.curriculum,
                CurriculumConfig,
                fix="Give its config, such as StagedConfig(…); the phase builds it.",
            )
        if self.episodes is not None:
            require_whole(f"episodes {where}", self.episodes, 1)
        if self.steps is not None:
            require_whole(f"steps {where}", self.steps, 1)
        if self.success is not None:
            require_share(f"success {where}", self.success)
        require_whole(f"min_episodes {where}", self.min_episodes, 1)
        require_whole(f"window_episodes {where}", self.window_episodes, 1, MAX_WINDOW)
        self._check_settings()

    def _check_settings(self) -> None:
        for path, setting in self.settings.items():
            if not isinstance(cast("object", path), str):
                raise ConfigError(
                    f"phase {self.name!r} has a setting {shown(path)}; give dotted paths as texts."
                )
            for other in self.settings:
                if other.startswith(f"{path}."):
                    raise ConfigError(
                        f"phase {self.name!r} sets both {path!r} and {other!r}, which lies inside "
                        "it. Remove one."
                    )
            values = setting.values if isinstance(setting, Mixed) else (setting,)
            try:
                for value in () if isinstance(setting, Ramp) else values:
                    to_plain(value, f"setting {path!r} of phase {self.name!r}")
            except TaskError as error:
                raise ConfigError(str(error)) from error

    @property
    def has_limit(self) -> bool:
        """Whether the phase can end."""
        return not (self.episodes is None and self.steps is None and self.success is None)

    def inner(self) -> CurriculumConfig:
        """Return the config of the curriculum inside the phase."""
        if self.curriculum is not None:
            return self.curriculum
        return UniformConfig() if self.mixture is None else MixtureConfig(weights=self.mixture)


@dataclass(frozen=True, kw_only=True)
class PhasedConfig(CurriculumConfig):
    """A list of phases, played one after the other; the last one goes on for ever."""

    kind: ClassVar[str] = "phased"

    phases: tuple[Phase, ...]
    """The phases in order."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.phases, Phase):
            raise ConfigError("phases must be several phases; got one Phase. Give a tuple.")
        object.__setattr__(self, "phases", tuple(self.phases))
        for phase in self.phases:
            require_kind("a phase", phase, Phase, fix="Give Phase(name=…, …).")
        if not self.phases:
            raise ConfigError("phases is empty; expected at least one phase.")
        names = [phase.name for phase in self.phases]
        for index, phase in enumerate(self.phases):
            if names.count(phase.name) > 1:
                raise ConfigError(
                    f"phase {phase.name!r} is named twice; names must differ. Rename one."
                )
            if index < len(self.phases) - 1 and not phase.has_limit:
                raise ConfigError(
                    f"phase {phase.name!r} has no limit, so what follows it would never come. "
                    "Give it episodes, steps or success."
                )

    def make(self, tasks: Tasks, *, seed: int = 0) -> "Phased":
        """Build the curriculum that this config describes."""
        from stepladder.curricula.phased.phased import Phased

        return Phased(tasks, self, seed=seed)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON, inner curricula by their names."""
        plain = super().to_json()
        for entry, phase in zip(plain["phases"], self.phases, strict=True):
            entry["curriculum"] = phase.inner().to_json()
        return plain
