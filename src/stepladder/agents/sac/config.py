"""Settings of soft actor-critic."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from stepladder.agents.config import ActionKind
from stepladder.agents.replay.config import ReplayConfig
from stepladder.configs.checks import Integer, UnitInterval, Within


@dataclass(frozen=True, kw_only=True)
class SACConfig(ReplayConfig):
    """Settings of soft actor-critic."""

    kind: ClassVar[str] = "SAC"
    action_kind: ClassVar[ActionKind] = "continuous"
    agent_class: ClassVar[str] = "stepladder.agents.sac.sac:SAC"
    policy_class: ClassVar[str] = "stepladder.agents.sac.sac:SACPolicy"

    tau: UnitInterval = 0.005
    """Share of the critics that goes into their targets with every update."""

    initial_temperature: Annotated[float, Within(1e-30, 1e30)] = 1.0
    """Weight of entropy at first; it is learnt unless `learn_temperature` is off."""

    learn_temperature: bool = True
    """Whether the weight of entropy follows `target_entropy`."""

    target_entropy: float | None = None
    """Entropy that is aimed at; None is minus the number of action dimensions."""

    noise: Literal["normal", "pink"] = "normal"
    """Exploration: independent from step to step, or pink (correlated in time), one process per
    env."""

    pink_steps: Annotated[int, Integer(2)] = 1_000
    """Steps after which a pink process restarts; about the longest episode."""
