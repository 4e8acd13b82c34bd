"""Settings of the phased curriculum: what each phase draws, and what ends it.

Read by `phased`. Whatever curriculum a phase holds is given as its config, and built over the same
pool as all the others.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, cast

from stepladder.configs.checks import Name, PositiveInteger, UnitInterval, Window, not_empty
from stepladder.configs.codec import Config
from stepladder.configs.problems import Problems
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.phased.mixture import LabelWeights, MixtureConfig
from stepladder.curricula.phased.settings import Mixed, Ramp
from stepladder.curricula.uniform import UniformConfig


@dataclass(frozen=True, kw_only=True)
class Phase(Config):
    """A time slice of a run. It ends at the first limit that is reached."""

    name: Name
    """How the phase is called."""

    mixture: LabelWeights | None = None
    """Weight per label; or give a `curriculum`; with neither, every task is drawn equally often."""

    curriculum: CurriculumConfig | None = None
    """The curriculum inside the phase."""

    episodes: PositiveInteger | None = None
    """Ends after so many episodes drawn in the phase."""

    steps: PositiveInteger | None = None
    """Ends after so many env steps in such episodes."""

    success: UnitInterval | None = None
    """Ends when the mean success of the latest `window_episodes` reaches this."""

    min_episodes: PositiveInteger = 50
    """Episodes that `success` needs at least."""

    window_episodes: Window = 50
    """Episodes over which success is averaged."""

    settings: dict[str, Mixed | Ramp | Any] = field(default_factory=dict[str, Any])
    """Values that override the task's params by dotted path: plain ones, `Mixed` or `Ramp`."""

    @classmethod
    def expand(cls, value: Any, problems: Problems) -> Any:
        """Leave out an inner curriculum that follows from the mixture; `to_json` writes both."""
        if not isinstance(value, Mapping):
            return value
        given = dict(cast("Mapping[str, Any]", value))
        if given.get("mixture") is not None:
            given.pop("curriculum", None)
        return given

    def derive(self) -> None:
        """Write a uniform phase in one way: without a curriculum."""
        if self.mixture is None and self.curriculum == UniformConfig():
            object.__setattr__(self, "curriculum", None)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield a curriculum next to a mixture, and settings inside other settings."""
        if self.mixture is not None and self.curriculum is not None:
            yield "curriculum", "is given in addition to mixture. Give one of them."
        for path in self.settings:
            for other in self.settings:
                if other.startswith(f"{path}."):
                    text = f"has both {path!r} and {other!r}, which lies inside it. Remove one."
                    yield "settings", text

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON, with the inner curriculum whatever it follows from."""
        return {**super().to_json(), "curriculum": self.inner().to_json()}

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
    """A list of phases, played one after the other; the last one goes on to the end of the run."""

    kind: ClassVar[str] = "phased"
    method_module: ClassVar[str] = "stepladder.curricula.phased.phased"

    phases: Annotated[tuple[Phase, ...], not_empty]
    """The phases in order. A `max_share` or `target` beside them holds for the curriculum of every
    phase that has none of its own."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield phases of the same name, and phases that would never end."""
        names = [phase.name for phase in self.phases]
        if self.target is not None and not any(one.takes_target for one in self.inner()):
            yield "target", "is given, and no phase has a curriculum that takes one. Leave it out."
        for index, phase in enumerate(self.phases):
            if phase.name in names[:index]:
                yield (
                    f"phases[{index}].name",
                    f"is {phase.name!r}, as of an earlier phase. Rename one.",
                )
            if index < len(self.phases) - 1 and not phase.has_limit:
                yield (
                    f"phases[{index}]",
                    f"has no limit, so what follows {phase.name!r} would never come. Give it "
                    "episodes, steps or success.",
                )

    def inner(self) -> list[CurriculumConfig]:
        """Return the config of every phase's curriculum, with what holds for all of them."""
        inner = [phase.inner() for phase in self.phases]
        if self.max_share is not None:
            inner = [replace(one, max_share=one.max_share or self.max_share) for one in inner]
        if self.target is not None:
            inner = [
                replace(one, target=one.target or self.target) if one.takes_target else one
                for one in inner
            ]
        return inner

    @property
    def num_edit_changes(self) -> int:
        """Changes in each edit that the curricula inside the phases make; 0 if they make none."""
        return max(phase.inner().num_edit_changes for phase in self.phases)

    def all_phases(self) -> tuple[Phase, ...]:
        """Return the phases in order."""
        return self.phases

    def about_labels(self, labels: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield what the curricula inside the phases say about the labels."""
        for index, phase in enumerate(self.phases):
            inside = "mixture" if phase.mixture is not None else "curriculum"
            for path, text in phase.inner().about_labels(labels):
                yield f"phases[{index}].{inside}.{path}", text
