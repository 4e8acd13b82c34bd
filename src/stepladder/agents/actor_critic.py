"""Policy and value in one module: what `ppo` plays and learns with.

Choices are drawn from their probabilities, numbers from a normal distribution around what the
network says. A recurrent one carries a row of memory per env from step to step.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box, Discrete, Space
from torch import nn

from stepladder.agents.arithmetic import normal_entropy, normal_log_probs
from stepladder.agents.config import PPOConfig
from stepladder.agents.gradients import choice_gradient, normal_gradient
from stepladder.agents.networks import Kept, Linear, trunk
from stepladder.agents.observations import Encoder, Layout, Seen
from stepladder.agents.policy import Policy
from stepladder.errors import ConfigError

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


class Said(NamedTuple):
    """What was chosen in one step; every tensor has a row per env."""

    raw: torch.Tensor
    """Actions as the network says them: choices from 0, or numbers that may leave the bounds."""

    memory: torch.Tensor


class Slopes(NamedTuple):
    """How a loss changes with what `ActorCritic.judge` returns; a row per env step."""

    log_probs: torch.Tensor
    values: torch.Tensor
    entropy: float
    """With the entropy of each row, the same for all."""


class ActorCritic(Policy):
    """Says what to do and what it will bring.

    Args:
        layout: Of what is seen.
        action_space: A Discrete or a Box.
        config: The settings.
        generator: What weights are drawn from.
    """

    def __init__(
        self,
        layout: Layout,
        action_space: Space[Any],
        config: PPOConfig,
        generator: torch.Generator,
    ):
        super().__init__()
        self.is_recurrent = config.recurrent
        self._shares = config.share_layers or config.recurrent
        self._read_actions(action_space)
        self.encoder = Encoder(layout, config.normalise_observations)
        widths, activation = config.hidden_sizes, ACTIVATIONS[config.activation]
        features = self.encoder.num_features
        self.trunk = trunk(features, widths, activation, generator)
        if not self._shares:
            self.value_trunk = trunk(features, widths, activation, generator)
        self.num_memory = widths[-1] if self.is_recurrent else 0
        if self.is_recurrent:
            self.gates = Linear(2 * widths[-1], 2 * widths[-1], 1.0, generator)
            self.candidate = Linear(2 * widths[-1], widths[-1], 1.0, generator)
        self.actions = Linear(widths[-1], self.num_outputs, 0.01, generator)
        self.values = Linear(widths[-1], 1, 1.0, generator)
        if not self.is_choice:
            self.log_std = nn.Parameter(torch.zeros(self.num_outputs))

    def _read_actions(self, space: Space[Any]) -> None:
        if isinstance(space, Discrete):
            self.is_choice, self.num_outputs = True, int(space.n)
            self._start = int(space.start)
        elif isinstance(space, Box) and np.issubdtype(np.dtype(space.dtype), np.floating):
            self.is_choice, self.num_outputs = False, int(np.prod(space.shape))
            self._shape, self._low, self._high = space.shape, space.low, space.high
        else:
            raise ConfigError(
                f"PPO needs actions that are choices (Discrete) or numbers (Box); got {space}. "
                "Wrap the env."
            )

    @property
    def num_action_columns(self) -> int:
        """Numbers per action; 0 for a single whole number."""
        return 0 if self.is_choice else self.num_outputs

    def first_memory(self, num_rows: int) -> torch.Tensor:
        """Return the memory of envs that have just begun."""
        return torch.zeros(num_rows, self.num_memory, device=self.values.bias.device)

    # From what is seen to what is said: columns are the actions' outputs, then the value.

    def forward(self, seen: Seen) -> torch.Tensor:
        """Return the heads of a policy without memory."""
        features = self.encoder(seen)
        hidden = self.trunk(features)
        beside = hidden if self._shares else self.value_trunk(features)
        return torch.cat([self.actions(hidden), self.values(beside)], dim=-1)

    def keep(self, seen: Seen) -> tuple[torch.Tensor, list[Kept]]:
        """Return the same, and what `back` needs."""
        features = self.encoder(seen)
        kept = [self.trunk.keep(features)]
        kept.append(kept[0] if self._shares else self.value_trunk.keep(features))
        heads = torch.cat([self.actions(kept[0][-1]), self.values(kept[1][-1])], dim=-1)
        return heads, kept

    def back(
        self, kept: list[Kept], gradient: torch.Tensor, by_spread: torch.Tensor | None
    ) -> None:
        """Write the gradients of all weights, given those that `gradients` returns."""
        by_action, by_value = gradient[:, :-1], gradient[:, -1:]
        self.actions.back(kept[0][-1], by_action)
        self.values.back(kept[1][-1], by_value)
        hidden, beside = self.actions.to_inputs(by_action), self.values.to_inputs(by_value)
        self.trunk.back(kept[0], hidden + beside if self._shares else hidden)
        if not self._shares:
            self.value_trunk.back(kept[1], beside)
        if by_spread is not None:
            assert self.log_std.grad is not None
            self.log_std.grad.copy_(by_spread)

    def remembering(self, seen: Seen, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the heads of a recurrent policy after one step, and its memory."""
        memory = self._next(self.trunk(self.encoder(seen)), memory)
        return torch.cat([self.actions(memory), self.values(memory)], dim=-1), memory

    def _next(self, hidden: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        """Return the memory after one step: a gated recurrent unit (Cho et al. 2014)."""
        keep, take = self.gates(torch.cat([hidden, memory], dim=-1)).sigmoid().chunk(2, dim=-1)
        new = self.candidate(torch.cat([hidden, take * memory], dim=-1)).tanh()
        return keep * memory + (1.0 - keep) * new

    def unroll(
        self, seen: Seen, memory: torch.Tensor, begins: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the heads and the memories of several steps, one after the other.

        Args:
            seen: Of shape ``(steps, envs, ...)``.
            memory: Before the first step.
            begins: Where an episode begins, of shape ``(steps, envs)``.
        """
        hidden = self.trunk(self.encoder(seen))
        memories: list[torch.Tensor] = []
        for row, is_new in zip(hidden, begins, strict=True):
            memory = self._next(row, memory * ~is_new[:, None])
            memories.append(memory)
        past = torch.stack(memories)
        return torch.cat([self.actions(past), self.values(past)], dim=-1), past

    # From what is said to actions.

    def play(
        self,
        seen: Seen,
        memory: torch.Tensor,
        generator: torch.Generator,
        deterministic: bool,
    ) -> Said:
        """Choose an action in every env; what it is worth is left for when that matters."""
        if self.is_recurrent:
            heads, memory = self.remembering(seen, memory)
            outputs = heads[..., :-1]
        else:
            outputs = self.actions(self.trunk(self.encoder(seen)))
        if deterministic:
            return Said(outputs.argmax(-1) if self.is_choice else outputs, memory)
        if self.is_choice:
            return Said(drawn(outputs, generator), memory)
        noise = torch.randn(
            outputs.shape, device=outputs.device, generator=generator, dtype=outputs.dtype
        )
        return Said(torch.addcmul(outputs, self.log_std.exp(), noise), memory)

    def act(
        self, seen: Seen, memory: torch.Tensor, generator: torch.Generator, deterministic: bool
    ) -> tuple[npt.NDArray[Any], torch.Tensor]:
        """Choose an action in every row, as the env takes it; return what is remembered too."""
        chosen = self.play(seen, memory, generator, deterministic)
        return self.to_env(chosen.raw), chosen.memory

    @torch.no_grad()
    def judge(
        self, heads: torch.Tensor, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return logarithms of actions' probabilities, entropies and values."""
        outputs, values = heads[..., :-1], heads[..., -1]
        if not self.is_choice:
            log_probs = normal_log_probs(actions, outputs, self.log_std)
            return log_probs, normal_entropy(self.log_std), values
        log_probs = outputs.log_softmax(-1)
        entropies = -(log_probs.exp() * log_probs).sum(-1)
        return log_probs.gather(-1, actions[..., None])[..., 0], entropies, values

    @torch.no_grad()
    def gradients(
        self, heads: torch.Tensor, actions: torch.Tensor, slopes: Slopes
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the gradients of a loss with respect to the heads and to `log_std`.

        Args:
            heads: As the network has said them, of shape ``(rows, columns)``.
            actions: That were judged.
            slopes: Of the loss with respect to what `judge` has returned.
        """
        outputs, by_value = heads[:, :-1], slopes.values[:, None]
        if self.is_choice:
            log_probs = outputs.log_softmax(-1)
            by_output = choice_gradient(log_probs, actions, slopes.log_probs, slopes.entropy)
            return torch.cat([by_output, by_value], dim=-1), None
        by_mean, by_spread = normal_gradient(actions, outputs, self.log_std, slopes.log_probs)
        # The entropy of normal numbers grows with the logarithms of their spreads, in every row.
        by_spread += slopes.entropy * len(heads)
        return torch.cat([by_mean, by_value], dim=-1), by_spread

    def to_env(self, raw: torch.Tensor) -> npt.NDArray[Any]:
        """Return actions as the env wants them; numbers are cut off at its bounds."""
        actions = raw.cpu().numpy()
        if self.is_choice:
            return actions + self._start
        shaped = actions.reshape(len(actions), *self._shape)
        return np.clip(shaped, self._low, self._high)


def drawn(logits: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Draw one choice per row: the first of exponential clocks, each as quick as it is likely."""
    clocks = torch.empty_like(logits).exponential_(generator=generator)
    return (logits - clocks.log_()).argmax(-1)
