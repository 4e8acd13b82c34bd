"""How to read a plan's dials: what a client is given once, with the plan itself.

Made by `Curriculum.legend`, carried by `sync` to each client. It is small, never changes, and
holds no state: whatever can change is a dial in the plan, read together with the weights.
"""

from dataclasses import dataclass, field
from typing import Any

from stepladder.arrays import Floats
from stepladder.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Legend:
    """A plan without stages or phases: every label is its own stage."""

    needs_success: bool = True
    """Whether a record must say how successful the episode was."""

    stage_of_label: dict[str, str] = field(default_factory=dict[str, str])
    """Stage of each label that belongs to one."""

    @property
    def has_settings(self) -> bool:
        """Whether episodes have settings in addition to their task."""
        return False

    def stage_of(self, label: str, dials: Floats) -> str:
        """Return the stage that a task with this label belongs to, or the label itself."""
        return self.stage_of_label.get(label, label)

    def current_stage(self, dials: Floats) -> str | None:
        """Return the stage in force, if the curriculum has stages."""
        return None

    def current_phase(self, dials: Floats) -> str | None:
        """Return the phase in force, if the curriculum has phases."""
        return None

    def mixing_ratio(self, stage: str, dials: Floats) -> float:
        """Return the ratio at which a stage is mixed with earlier ones."""
        raise ConfigError(
            f"there is no mixing ratio for stage {stage!r}: this curriculum has no stages. "
            "Ask a Staged curriculum."
        )

    def settings(self, dials: Floats, seed: int, env_index: int, episode: int) -> dict[str, Any]:
        """Return the settings of one episode; they override the task's params by dotted path."""
        return {}


@dataclass(frozen=True, kw_only=True)
class StagedLegend(Legend):
    """A plan with stages: the first dial is the stage, then one mixing ratio per stage."""

    stages: tuple[str, ...]
    first_dial: int

    def current_stage(self, dials: Floats) -> str | None:
        """Return the stage in force."""
        return self.stages[int(dials[self.first_dial])]

    def mixing_ratio(self, stage: str, dials: Floats) -> float:
        """Return the ratio at which a stage is, or was last, mixed with earlier ones."""
        if stage not in self.stages:
            raise ConfigError(
                f"unknown stage {stage!r}; the stages are {list(self.stages)}. Correct the name."
            )
        return float(dials[self.first_dial + 1 + self.stages.index(stage)])
