"""Settings of the agents, and the registry of agents.

Apart from the agents themselves, which need torch: a config is read, checked and printed without
it. `training.config` holds one of these; its `make` builds the agent that it describes. A package
adds an agent through the entry-point group ``stepladder.agents``: the name of the agent, and its
config class.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from stepladder.configs.checks import (
    Count,
    CountOrZero,
    Integer,
    NotNegative,
    Positive,
    Share,
    Within,
    not_empty,
)
from stepladder.configs.codec import Config, Kinds
from stepladder.errors import ConfigError, shown
from stepladder.registry import Registry

if TYPE_CHECKING:
    import torch
    from gymnasium.spaces import Space

    from stepladder.agents.base import Agent
    from stepladder.agents.mirror import Mirror
    from stepladder.agents.observations import Layout
    from stepladder.agents.policy import Policy

UpdatesPerStep = Annotated[float, Within(0.0, 1_000.0, above=True)]
"""With more, a training would never come to its next step."""

Noise = Literal["normal", "pink"]
Loss = Literal["huber", "mse"]
Activation = Literal["tanh", "relu"]
ActionKind = Literal["any", "continuous", "discrete"]


@dataclass(frozen=True, kw_only=True)
class AgentConfig(Config):
    """Settings that every agent has. A kind of agent derives its own from these."""

    kind: ClassVar[str]
    """What the agent is called in configs and on the command line."""

    action_kind: ClassVar[ActionKind] = "any"
    """Which actions it can learn."""

    agent_class: ClassVar[str] = ""
    """Where the agent is, as ``module:name``; loaded by `make`, because it needs torch."""

    policy_class: ClassVar[str] = ""
    """Where its policy is, likewise."""

    learning_rate: Positive = 3e-4
    """Step size of Adam."""

    gamma: Share = 0.99
    """Discount per env step, in [0, 1]."""

    hidden_sizes: Annotated[tuple[Count, ...], not_empty] = (256, 256)
    """Widths of the hidden layers of every network."""

    normalise_observations: bool = False
    """Whether numbers that are seen are brought to mean 0 and spread 1, as met so far."""

    @classmethod
    def kinds(cls) -> Kinds:
        """Return every agent's config, by the name that JSON has under "type"."""
        return AGENTS

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON, with the name of the agent under "type"."""
        return {self.type_key: self.kind, **super().to_json()}

    def make(
        self,
        observation_space: "Space[Any]",
        action_space: "Space[Any]",
        num_envs: int,
        *,
        device: "str | torch.device" = "cpu",
        seed: int = 0,
        mirror: "Mirror | None" = None,
    ) -> "Agent":
        """Make the agent that these settings describe; `make_agent` explains the arguments."""
        options = {"mirror": mirror} if hasattr(self, "mirror") else {}
        spaces = observation_space, action_space
        agent = self._loaded(self.agent_class)
        return agent(self, *spaces, num_envs, device=device, seed=seed, **options)

    def make_policy(
        self, layout: "Layout", action_space: "Space[Any]", generator: "torch.Generator"
    ) -> "Policy":
        """Make what chooses actions, for players that do not learn; its weights come later."""
        return self._loaded(self.policy_class)(layout, action_space, self, generator)

    def _loaded(self, place: str) -> Any:
        if not place:
            raise ConfigError(f"{type(self).__name__} describes no agent; use one of its kinds.")
        module, name = place.split(":")
        return getattr(import_module(module), name)

    def layer_widths(self, num_inputs: int, num_outputs: int) -> tuple[int, ...]:
        """Return the widths of the largest network's layers, to check sizes before memory is taken.

        An agent whose networks do not have `hidden_sizes` returns other widths, or none.
        """
        return (num_inputs, *map(int, self.hidden_sizes), num_outputs)


@dataclass(frozen=True, kw_only=True)
class ReplayConfig(AgentConfig):
    """Settings of agents that learn from a memory of transitions."""

    batch_size: Count = 256
    """Transitions per update."""

    updates_per_step: UpdatesPerStep = 1.0
    """Updates per env step: the update-to-data ratio, whatever the number of envs."""

    buffer_size: Count = 1_000_000
    """Transitions that are remembered; the oldest make room."""

    warmup_steps: CountOrZero = 1_000
    """Env steps before the first update, and again after the memory was cleared."""

    num_step_returns: Count = 1
    """Rewards that are added up before a value is trusted; 1 is plain temporal difference."""

    mirror: bool = False
    """Whether each remembered transition is also learnt from as in a mirror, where the env has
    such a symmetry. Half of all samples are mirrored."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield a memory that is smaller than a batch."""
        if self.buffer_size < self.batch_size:
            text = f"must be at least batch_size ({self.batch_size}); got {self.buffer_size}."
            yield "buffer_size", f"{text} Raise it."


@dataclass(frozen=True, kw_only=True)
class DDDQNConfig(ReplayConfig):
    """Settings of the dueling double deep Q-network."""

    kind: ClassVar[str] = "DDDQN"
    action_kind: ClassVar[ActionKind] = "discrete"
    agent_class: ClassVar[str] = "stepladder.agents.dddqn:DDDQN"
    policy_class: ClassVar[str] = "stepladder.agents.dddqn:DDDQNPolicy"

    learning_rate: Positive = 1e-4
    updates_per_step: UpdatesPerStep = 0.25

    target_every_updates: Count = 500
    """Updates between two copies of the network to its target."""

    epsilon_start: Share = 1.0
    """Share of random actions at first."""

    epsilon_final: Share = 0.05
    """Share of random actions in the end."""

    epsilon_steps: Count = 50_000
    """Env steps over which it falls, evenly."""

    loss: Loss = "huber"
    """How errors are weighed."""

    max_grad_norm: Positive = 10.0
    """Gradients are scaled down to this length."""

    prioritised: bool = False
    """Whether transitions with larger errors are replayed more often."""

    priority_exponent: Share = 0.6
    """How much more often, in [0, 1]."""

    priority_correction: Share = 0.4
    """How much of that the loss corrects at first, in [0, 1]; all of it in the end."""

    priority_correction_updates: Count = 100_000
    """Updates until it corrects all of it."""


@dataclass(frozen=True, kw_only=True)
class SACConfig(ReplayConfig):
    """Settings of soft actor-critic."""

    kind: ClassVar[str] = "SAC"
    action_kind: ClassVar[ActionKind] = "continuous"
    agent_class: ClassVar[str] = "stepladder.agents.sac:SAC"
    policy_class: ClassVar[str] = "stepladder.agents.sac:SACPolicy"

    tau: Share = 0.005
    """Share of the critics that goes into their targets with every update."""

    initial_temperature: Annotated[float, Within(1e-30, 1e30)] = 1.0
    """Weight of entropy at first; it is learnt unless `learn_temperature` is off."""

    learn_temperature: bool = True
    """Whether the weight of entropy follows `target_entropy`."""

    target_entropy: float | None = None
    """Entropy that is aimed at; None is minus the number of action dimensions."""

    noise: Noise = "normal"
    """Exploration: independent from step to step, or pink (correlated in time), one process per
    env."""

    pink_steps: Annotated[int, Integer(2)] = 1_000
    """Steps after which a pink process begins anew; about the longest episode."""


@dataclass(frozen=True, kw_only=True)
class PPOConfig(AgentConfig):
    """Settings of proximal policy optimisation."""

    kind: ClassVar[str] = "PPO"
    agent_class: ClassVar[str] = "stepladder.agents.ppo:PPO"
    policy_class: ClassVar[str] = "stepladder.agents.actor_critic:ActorCritic"

    hidden_sizes: Annotated[tuple[Count, ...], not_empty] = (128, 128)

    rollout_steps: Count = 8_192
    """Env steps of all envs together between two rounds of updates; a multiple of the number of
    envs is made of it."""

    minibatch_size: Count = 1_024
    """Env steps per update."""

    num_epochs: Count = 4
    """How often each env step is learnt from."""

    gae_lambda: Share = 0.95
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
    """Whether the policy remembers earlier steps of an episode (a GRU)."""

    share_layers: bool = False
    """Whether policy and value share their hidden layers; a recurrent policy always does."""

    activation: Activation = "tanh"
    """What follows every hidden layer."""

    anneal_learning_rate: bool = False
    """Whether the learning rate falls evenly to 0 over `anneal_steps`."""

    anneal_steps: Count = 1_000_000
    """Env steps over which it does."""


def _require_config(name: str, entry: Any) -> None:
    is_config = isinstance(entry, type) and issubclass(entry, AgentConfig)
    if not is_config or getattr(entry, "kind", None) != name:
        raise ConfigError(
            f"the agent {name!r} must be a class that derives from AgentConfig and has the kind "
            f"{name!r}; got {shown(entry)}."
        )


AGENTS: Registry[type[AgentConfig]] = Registry(
    "agents",
    _require_config,
    {
        "DDDQN": "stepladder.agents.config:DDDQNConfig",
        "SAC": "stepladder.agents.config:SACConfig",
        "PPO": "stepladder.agents.config:PPOConfig",
    },
)
"""Every agent's config by the agent's name."""

AgentClass = TypeVar("AgentClass", bound=type[AgentConfig])


def register_agent(config: AgentClass) -> AgentClass:
    """Register an agent for this process: a decorator for its config, under its `kind`.

    Raises:
        ConfigError: The name is taken, or the class is not the config of an agent.
    """
    return AGENTS.register(getattr(config, "kind", ""))(config)


def agent_named(name: str, what: str = "agent") -> type[AgentConfig]:
    """Return the config class of an agent, by its name in upper or lower case.

    Args:
        name: Such as ``"ppo"``.
        what: What to call the setting in a message.

    Raises:
        ConfigError: There is no such agent.
    """
    for known in AGENTS:
        if known.lower() == name.lower():
            return AGENTS[known]
    raise ConfigError(f"{what} must be one of {', '.join(AGENTS).lower()}; got {name!r}.")
