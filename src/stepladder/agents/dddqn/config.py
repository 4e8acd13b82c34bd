"""Settings of the dueling double deep Q-network."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from stepladder.agents.config import ActionKind
from stepladder.agents.replay.config import ReplayConfig, UpdatesPerStep
from stepladder.configs.checks import Positive, PositiveInteger, UnitInterval


@dataclass(frozen=True, kw_only=True)
class DDDQNConfig(ReplayConfig):
    """Settings of the dueling double deep Q-network."""

    kind: ClassVar[str] = "DDDQN"
    action_kind: ClassVar[ActionKind] = "discrete"
    agent_class: ClassVar[str] = "stepladder.agents.dddqn.dddqn:DDDQN"
    policy_class: ClassVar[str] = "stepladder.agents.dddqn.dddqn:DDDQNPolicy"

    learning_rate: Positive = 1e-4
    updates_per_step: UpdatesPerStep = 0.25

    target_every_updates: PositiveInteger = 500
    """Updates between two copies of the network to its target."""

    epsilon_start: UnitInterval = 1.0
    """Share of random actions at first."""

    epsilon_final: UnitInterval = 0.05
    """Share of random actions in the end."""

    epsilon_steps: PositiveInteger = 50_000
    """Env steps over which it falls, evenly."""

    loss: Literal["huber", "mse"] = "huber"
    """How errors are weighed."""

    max_grad_norm: Positive = 10.0
    """Gradients are scaled down to this length."""

    prioritised: bool = False
    """Whether transitions with larger errors are replayed more often."""

    priority_exponent: UnitInterval = 0.6
    """How much more often, in [0, 1]."""

    priority_correction: UnitInterval = 0.4
    """How much of that the loss corrects at first, in [0, 1]; all of it in the end."""

    priority_correction_updates: PositiveInteger = 100_000
    """Updates until it corrects all of it."""
