"""Settings that all agents share, and the registry of agents.

Configs are read, checked and printed without torch, which the agents need. `training.config` holds
one; its `make` builds the agent. A package adds an agent through the entry-point group
``stepladder.agents``: the name of the agent, and its config class.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from stepladder.configs.checks import (
    Positive,
    PositiveInteger,
    UnitInterval,
    not_empty,
)
from stepladder.configs.codec import Config, Kinds
from stepladder.errors import ConfigError, shown
from stepladder.registry import Registry

if TYPE_CHECKING:
    import torch
    from gymnasium.spaces import Space

    from stepladder.agents.base import Agent
    from stepladder.agents.observations import Layout
    from stepladder.agents.policy import Policy
    from stepladder.agents.replay.mirror import Mirror

ActionKind = Literal["any", "continuous", "discrete"]

OwnWay = Literal["drawn", "best"]
"""How a policy is meant to act: actions drawn from it, or the best one."""

Precision = Literal["float32", "tf32"]
"""How products are computed on a GPU."""


@dataclass(frozen=True, kw_only=True)
class AgentConfig(Config):
    """Settings that every agent has. A kind of agent derives its own from these."""

    kind: ClassVar[str]
    """What the agent is called in configs and on the command line."""

    action_kind: ClassVar[ActionKind] = "any"
    """Which actions it can learn."""

    own_way: ClassVar[OwnWay] = "best"
    """How the policy is meant to act: the way of headline figures, comparisons and films."""

    gives_advantages: ClassVar[bool] = False
    """Whether the agent calls its `on_rollout` with the advantages of every rollout, which some
    curricula learn from."""

    takes_turns: ClassVar[bool] = False
    """Whether the agent has `take_turns`, for groups of envs that are stepped one after the other
    while it chooses actions for the others on a GPU."""

    agent_class: ClassVar[str] = ""
    """Where the agent is, as ``module:name``; loaded by `make`, because it needs torch."""

    policy_class: ClassVar[str] = ""
    """Where its policy is, likewise."""

    learning_rate: Positive = 3e-4
    """Step size of Adam."""

    gamma: UnitInterval = 0.99
    """Discount per env step, in [0, 1]."""

    hidden_sizes: Annotated[tuple[PositiveInteger, ...], not_empty] = (256, 256)
    """Widths of the hidden layers of every network."""

    normalise_observations: bool = False
    """Whether numbers that are seen are brought to mean 0 and spread 1, as met so far."""

    precision: Precision = "tf32"
    """How updates compute products on a GPU: with all 32 bits, or with factors rounded to 19
    (tf32), which is faster. Weights and sums keep 32 bits, and so does the CPU."""

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

    def layout(self, observation_space: "Space[Any]") -> "Layout":
        """Return how observations are laid out for networks; pictures are separate numbers."""
        # Loaded here: it needs torch.
        from stepladder.agents.observations import Layout

        return Layout(observation_space)

    def largest_encoder_layer(self, layout: "Layout") -> int:
        """Return how many weights the largest layer has of what makes features, to check sizes."""
        return 0

    def layer_widths(self, num_inputs: int, num_outputs: int) -> tuple[int, ...]:
        """Return the widths of the largest network's layers, to check sizes before memory is taken.

        An agent whose networks do not have `hidden_sizes` returns other widths, or none.
        """
        return (num_inputs, *map(int, self.hidden_sizes), num_outputs)


def _require_config(name: str, entry: Any) -> None:
    is_config = isinstance(entry, type) and issubclass(entry, AgentConfig)
    if not is_config or getattr(entry, "kind", None) != name:
        raise ConfigError(
            f"the agent {name!r} must be a class that derives from AgentConfig and has the kind "
            f"{name!r}; got {shown(entry)}."
        )
    if not name:
        raise ConfigError(f'{shown(entry)} has no name. Set kind: ClassVar[str] = "MyAgent" on it.')


AGENTS: Registry[type[AgentConfig]] = Registry(
    "agents",
    _require_config,
    {
        "DDDQN": "stepladder.agents.dddqn.config:DDDQNConfig",
        "SAC": "stepladder.agents.sac.config:SACConfig",
        "PPO": "stepladder.agents.ppo.config:PPOConfig",
    },
)
"""Every agent's config by the agent's name."""


def own_way_of(description: Mapping[str, Any]) -> OwnWay:
    """Return the own way of acting of an agent, by its description (`Agent.description`).

    Raises:
        ConfigError: It describes no agent that is known here.
    """
    return AgentConfig.from_json(description.get("config"), "the agent").own_way


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
