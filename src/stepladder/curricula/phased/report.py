"""What a phased curriculum tells: a change of phase, and where the run stands.

Made by `phased`; read by people and by the logs of `envs`.
"""

from dataclasses import asdict, dataclass
from typing import Any

from stepladder.curricula.explanation import Explanation


@dataclass(frozen=True, kw_only=True)
class PhaseChange:
    """One change of phase, with all numbers that decided it."""

    episode: int
    step: int
    plan_version: int
    from_phase: str
    to_phase: str
    rule: str
    """Which limit was reached: episodes, steps or success."""

    episodes: int
    """Episodes drawn in the old phase."""

    steps: int
    success: float

    @property
    def kind(self) -> str:
        """What happened."""
        return "phase_changed"

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.from_phase} -> {self.to_phase} at episode {self.episode} ({self.rule}: "
            f"{self.episodes} episodes, {self.steps} steps, success {self.success:.2f})"
        )


@dataclass(frozen=True, kw_only=True)
class PhasedExplanation(Explanation):
    """Where a run stands in its phases."""

    phase: str
    phase_index: int
    num_phases: int
    phase_episodes: int
    phase_steps: int
    phase_success: float
    limits: dict[str, float]
    """What ends the phase; empty for the last one without a limit."""

    inner: Explanation
    """What the curriculum inside the phase says."""

    def lines(self) -> list[str]:
        """Return the text, line by line."""
        limits = ", ".join(f"{name} {value:g}" for name, value in self.limits.items())
        return [
            *super().lines(),
            f"Phase {self.phase_index + 1} of {self.num_phases}: {self.phase!r}, "
            f"{self.phase_episodes} episodes, {self.phase_steps} steps, success "
            f"{self.phase_success:.2f}; "
            + (f"ends at {limits}." if limits else "goes on to the end of the run."),
            *(f"  {line}" for line in self.inner.lines()),
        ]
