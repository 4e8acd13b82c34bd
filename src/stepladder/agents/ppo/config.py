"""Settings of proximal policy optimisation."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from stepladder.agents.config import OwnWay
from stepladder.agents.network_config import NetworkConfig
from stepladder.configs.checks import (
    NotNegative,
    Positive,
    PositiveInteger,
    UnitInterval,
    not_empty,
)


@dataclass(frozen=True, kw_only=True)
class PPOConfig(NetworkConfig):
    """Settings of proximal policy optimisation."""

    kind: ClassVar[str] = "PPO"
    own_way: ClassVar[OwnWay] = "drawn"
    gives_advantages: ClassVar[bool] = True
    takes_turns: ClassVar[bool] = True
    agent_class: ClassVar[str] = "stepladder.agents.ppo.ppo:PPO"
    policy_class: ClassVar[str] = "stepladder.agents.ppo.actor_critic:ActorCritic"

    hidden_sizes: Annotated[tuple[PositiveInteger, ...], not_empty] = (128, 128)

    rollout_steps: PositiveInteger = 8_192
    """Env steps of all envs together between two rounds of updates; a multiple of the number of
    envs is made of it."""

    minibatch_size: PositiveInteger = 1_024
    """Env steps per update."""

    num_epochs: PositiveInteger = 4
    """How often each env step is learnt from."""

    gae_lambda: UnitInterval = 0.95
    """How far advantages look ahead, in [0, 1]."""

    clip: Positive = 0.2
    """How far the policy may move away from the one that played."""

    entropy_coef: NotNegative = 0.01
    """Weight of entropy in the loss."""

    value_coef: NotNegative = 0.5
    """Weight of the value's error in the loss."""

    max_grad_norm: Positive = 0.5
    """Gradients are scaled down to this length."""

    normalise_advantages: bool = True
    """Whether advantages of a minibatch are brought to mean 0 and spread 1."""

    recurrent: bool = False
    """Whether the policy remembers earlier steps of an episode."""

    memory_cell: Literal["gru", "mingru"] = "gru"
    """How it remembers: with a gated recurrent unit (Cho et al. 2014), or with a minimal one (Feng
    et al. 2024), which takes a fraction of the time."""

    share_layers: bool = False
    """Whether policy and value share their hidden layers; a recurrent policy always does."""

    activation: Literal["tanh", "relu"] = "tanh"
    """What follows every hidden layer."""

    anneal_learning_rate: bool = False
    """Whether the learning rate falls evenly to 0 over `anneal_steps`."""

    anneal_steps: PositiveInteger = 1_000_000
    """Env steps over which it does."""
