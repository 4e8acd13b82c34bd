"""Policy and value function in one module: the network of `ppo`.

Discrete actions are drawn from their probabilities, continuous ones from a normal distribution. A
recurrent policy carries one row of memory per env from step to step.
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
from stepladder.agents.networks import Linear, Trace, Trunk
from stepladder.agents.observations import Encoder, Layout, Seen
from stepladder.agents.policy import Policy
from stepladder.errors import ConfigError


class ActionOutput(NamedTuple):
    """The actions of one step; every tensor has a row per env."""

    raw: torch.Tensor
    """Choices counted from 0, or numbers that are not clipped to the action space yet."""

    memory: torch.Tensor


class Evaluation(NamedTuple):
    """What a policy says about actions that were taken; a row per env step."""

    log_probs: torch.Tensor
    entropies: torch.Tensor
    """A single number for continuous actions, whose spread does not depend on the state."""

    values: torch.Tensor


class Slopes(NamedTuple):
    """Derivatives of a loss with respect to an `Evaluation`."""

    log_probs: torch.Tensor
    values: torch.Tensor
    entropy: float
    """With respect to the entropy of each row; the same for all."""


class ActorCritic(Policy):
    """Chooses actions and predicts returns.

    Args:
        layout: How observations are laid out.
        action_space: A Discrete or a Box.
        config: The settings.
        generator: Source of the initial weights.
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
        widths, num_features = config.hidden_sizes, self.encoder.num_features
        self.trunk = Trunk(num_features, widths, config.activation, generator)
        if not self._shares:
            self.value_trunk = Trunk(num_features, widths, config.activation, generator)
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
                f"PPO needs a Discrete action space or a Box of floats; got {space}. Wrap the env."
            )

    @property
    def num_action_columns(self) -> int:
        """Numbers per action; 0 for a discrete action."""
        return 0 if self.is_choice else self.num_outputs

    def first_memory(self, num_rows: int) -> torch.Tensor:
        """Return the memory at the start of an episode."""
        return torch.zeros(num_rows, self.num_memory, device=self.values.bias.device)

    # From observations to heads: columns are the outputs for actions, then the value.

    def forward(self, seen: Seen) -> torch.Tensor:
        """Return the heads of a policy without memory."""
        return self.trace(seen)[0]

    def trace(self, seen: Seen) -> tuple[torch.Tensor, Trace, Trace]:
        """Return the heads, and the traces of both trunks for `write_gradients`."""
        features = self.encoder(seen)
        trace = self.trunk.trace(features)
        value_trace = trace if self._shares else self.value_trunk.trace(features)
        heads = torch.cat([self.actions(trace[-1]), self.values(value_trace[-1])], dim=-1)
        return heads, trace, value_trace

    def write_gradients(
        self,
        trace: Trace,
        value_trace: Trace,
        by_heads: torch.Tensor,
        by_log_std: torch.Tensor | None,
    ) -> None:
        """Write the gradients of all weights, given what `loss_gradients` returns."""
        by_action, by_value = by_heads[:, :-1], by_heads[:, -1:]
        self.actions.write_gradients(trace[-1], by_action)
        self.values.write_gradients(value_trace[-1], by_value)
        by_hidden = self.actions.input_gradient(by_action)
        by_value_hidden = self.values.input_gradient(by_value)
        if self._shares:
            self.trunk.write_gradients(trace, by_hidden + by_value_hidden)
        else:
            self.trunk.write_gradients(trace, by_hidden)
            self.value_trunk.write_gradients(value_trace, by_value_hidden)
        if by_log_std is not None:
            assert self.log_std.grad is not None
            self.log_std.grad.copy_(by_log_std)

    def step_memory(self, seen: Seen, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the heads of a recurrent policy after one step, and its memory."""
        memory = self._next_memory(self.trunk(self.encoder(seen)), memory)
        return torch.cat([self.actions(memory), self.values(memory)], dim=-1), memory

    def _next_memory(self, hidden: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        """Return the memory after one step: a gated recurrent unit (Cho et al. 2014)."""
        keep, take = self.gates(torch.cat([hidden, memory], dim=-1)).sigmoid().chunk(2, dim=-1)
        new = self.candidate(torch.cat([hidden, take * memory], dim=-1)).tanh()
        return keep * memory + (1.0 - keep) * new

    def unroll(
        self, seen: Seen, memory: torch.Tensor, begins: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the heads and the memories of consecutive steps.

        Args:
            seen: Of shape ``(steps, envs, ...)``.
            memory: Before the first step.
            begins: Whether an episode begins, of shape ``(steps, envs)``.
        """
        hidden = self.trunk(self.encoder(seen))
        memories: list[torch.Tensor] = []
        for row, is_new in zip(hidden, begins, strict=True):
            memory = self._next_memory(row, memory * ~is_new[:, None])
            memories.append(memory)
        past = torch.stack(memories)
        return torch.cat([self.actions(past), self.values(past)], dim=-1), past

    # From heads to actions.

    def play(
        self,
        seen: Seen,
        memory: torch.Tensor,
        generator: torch.Generator,
        deterministic: bool,
    ) -> ActionOutput:
        """Choose an action in every env; values are not computed."""
        if self.is_recurrent:
            heads, memory = self.step_memory(seen, memory)
            outputs = heads[..., :-1]
        else:
            outputs = self.actions(self.trunk(self.encoder(seen)))
        if deterministic:
            return ActionOutput(outputs.argmax(-1) if self.is_choice else outputs, memory)
        if self.is_choice:
            return ActionOutput(draw_choices(outputs, generator), memory)
        noise = torch.randn(
            outputs.shape, device=outputs.device, generator=generator, dtype=outputs.dtype
        )
        return ActionOutput(torch.addcmul(outputs, self.log_std.exp(), noise), memory)

    def act(
        self, seen: Seen, memory: torch.Tensor, generator: torch.Generator, deterministic: bool
    ) -> tuple[npt.NDArray[Any], torch.Tensor]:
        """Choose an action in every row, as the env takes it; return what is remembered too."""
        chosen = self.play(seen, memory, generator, deterministic)
        return self.to_env(chosen.raw), chosen.memory

    @torch.no_grad()
    def evaluate(self, heads: torch.Tensor, actions: torch.Tensor) -> Evaluation:
        """Return log-probabilities of actions, entropies and values."""
        outputs, values = heads[..., :-1], heads[..., -1]
        if not self.is_choice:
            log_probs = normal_log_probs(actions, outputs, self.log_std)
            return Evaluation(log_probs, normal_entropy(self.log_std), values)
        log_probs = outputs.log_softmax(-1)
        entropies = -(log_probs.exp() * log_probs).sum(-1)
        return Evaluation(log_probs.gather(-1, actions[..., None])[..., 0], entropies, values)

    @torch.no_grad()
    def loss_gradients(
        self, heads: torch.Tensor, actions: torch.Tensor, slopes: Slopes
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the gradients of a loss with respect to the heads and, if any, `log_std`.

        Args:
            heads: Outputs of the network, of shape ``(rows, columns)``.
            actions: Those that were evaluated.
            slopes: Of the loss with respect to what `evaluate` returned.
        """
        outputs, by_value = heads[:, :-1], slopes.values[:, None]
        if self.is_choice:
            log_probs = outputs.log_softmax(-1)
            by_output = choice_gradient(log_probs, actions, slopes.log_probs, slopes.entropy)
            return torch.cat([by_output, by_value], dim=-1), None
        by_mean, by_log_std = normal_gradient(actions, outputs, self.log_std, slopes.log_probs)
        # The entropy of a normal distribution has slope 1 in each log_std, in every row.
        by_log_std += slopes.entropy * len(heads)
        return torch.cat([by_mean, by_value], dim=-1), by_log_std

    def to_env(self, raw: torch.Tensor) -> npt.NDArray[Any]:
        """Return actions of the env's action space; numbers are clipped to its bounds."""
        actions = raw.cpu().numpy()
        if self.is_choice:
            return actions + self._start
        shaped = actions.reshape(len(actions), *self._shape)
        return np.clip(shaped, self._low, self._high)


def draw_choices(logits: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Draw one choice per row by the exponential form of the Gumbel-max trick."""
    noise = torch.empty_like(logits).exponential_(generator=generator)
    return (logits - noise.log_()).argmax(-1)
