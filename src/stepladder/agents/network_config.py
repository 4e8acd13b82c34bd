"""Settings of what agents see, and of the network that turns it into features.

Between `config`, which has the settings of every agent, and those of the built-in agents. An agent
of your own whose networks come from `encoders` and that stacks frames derives its config from this.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from stepladder.agents.config import AgentConfig
from stepladder.agents.vision.config import VisionConfig
from stepladder.configs.checks import Integer, Name
from stepladder.named import name_of
from stepladder.trusted import allow

if TYPE_CHECKING:
    from gymnasium.spaces import Space

    from stepladder.agents.base import Agent
    from stepladder.agents.observations import Layout

logger = logging.getLogger("stepladder.agents")

MAX_FRAMES = 64
"""Frames that are seen at once; each is in every row of what networks get."""


@dataclass(frozen=True, kw_only=True)
class NetworkConfig(AgentConfig):
    """Settings of agents with networks that may see pictures."""

    frame_stack: Annotated[int, Integer(1, MAX_FRAMES)] = 1
    """Latest observations of an episode that are seen at once; at its beginning the first one is
    repeated."""

    normalise_rewards: bool = False
    """Whether rewards are divided by the spread of discounted returns, as met so far."""

    vision: VisionConfig = field(default_factory=VisionConfig)
    """How pictures and grids of tiles are read."""

    encoder: Name | None = None
    """A network of your own that turns observations into features, as module:Class: a
    torch.nn.Module that is made with the observation space. By default convolutions read pictures,
    and the rest is joined as it is."""

    encoder_kwargs: dict[str, Any] = field(default_factory=dict[str, Any])
    """More arguments for it, by name."""

    def __post_init__(self) -> None:
        made: Any = self.encoder
        if made is not None and not isinstance(made, str):
            object.__setattr__(
                self, "encoder", name_of(made, "encoder must be a class or its name")
            )
            allow([str(self.encoder)])
        super().__post_init__()

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield settings of a network that is not used."""
        yield from super().contradictions()
        if self.encoder is None and self.encoder_kwargs:
            yield "encoder_kwargs", "has entries, and no encoder is named. Set encoder too."
        if self.encoder is not None and self.vision != VisionConfig():
            yield "vision", "is not used with an encoder of your own. Leave one of them out."
        if self.encoder is not None and ":" not in self.encoder:
            yield "encoder", f"must be module:Class; got {self.encoder!r}. Name the module too."

    def layer_widths(self, num_inputs: int, num_outputs: int) -> tuple[int, ...]:
        """Return the widths of the largest network's layers."""
        # How many features an encoder of a user's own returns is known once it is made.
        return super().layer_widths(1 if self.encoder is not None else num_inputs, num_outputs)

    def largest_encoder_layer(self, layout: "Layout") -> int:
        """Return how many weights the largest layer of the convolutions has."""
        if self.encoder is not None:
            return 0
        return max((part.grid.num_weights for part in layout.grids if part.grid), default=0)

    def make(self, observation_space: "Space[Any]", *arguments: Any, **options: Any) -> "Agent":
        """Make the agent; warn of pictures that the settings may not suit."""
        if self.encoder is not None:
            # Making an agent from a config means trusting what the config names.
            allow([self.encoder])
        else:
            for doubt in self.layout(observation_space).doubts:
                logger.warning(doubt)
        return super().make(observation_space, *arguments, **options)

    def layout(self, observation_space: "Space[Any]") -> "Layout":
        """Return how observations are laid out for networks."""
        # Loaded here: it needs torch.
        from stepladder.agents.observations import Layout

        return Layout(observation_space, self.vision, self.frame_stack)
