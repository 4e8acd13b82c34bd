"""Policy and value function in one module: the network of `ppo`.

Discrete actions are drawn from their probabilities, continuous ones from a normal distribution. A
recurrent policy carries one row of memory per env from step to step.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box, Discrete, Space
from torch import nn

from stepladder.agents.arithmetic import normal_entropy, normal_log_probs
from stepladder.agents.networks import Linear, Trunk
from stepladder.agents.observations import Encoder, Layout, Seen
from stepladder.agents.policy import Policy
from stepladder.agents.ppo.config import PPOConfig
from stepladder.errors import ConfigError


class ActorCritic(Policy):
    """Chooses actions and predicts returns; see `Policy` for the arguments."""

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

    # From features to outputs for actions, and values.

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the outputs for actions and the values of a policy without memory."""
        hidden = self.trunk(features)
        value_hidden = hidden if self._shares else self.value_trunk(features)
        return self.actions(hidden), self.values(value_hidden).squeeze(-1)

    def unroll(
        self, features: torch.Tensor, memory: torch.Tensor, begins: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the outputs for actions, the values and the memories of consecutive steps.

        Args:
            features: Of shape ``(steps, envs, num_features)``.
            memory: Before the first step.
            begins: Whether an episode begins, of shape ``(steps, envs)``.
        """
        memories: list[torch.Tensor] = []
        for row, is_new in zip(self.trunk(features), begins, strict=True):
            memory = self._next_memory(row, memory * ~is_new[:, None])
            memories.append(memory)
        past = torch.stack(memories)
        return self.actions(past), self.values(past).squeeze(-1), past

    def _next_memory(self, hidden: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        """Return the memory after one step: a gated recurrent unit (Cho et al. 2014)."""
        keep, take = self.gates(torch.cat([hidden, memory], dim=-1)).sigmoid().chunk(2, dim=-1)
        new = self.candidate(torch.cat([hidden, take * memory], dim=-1)).tanh()
        return keep * memory + (1.0 - keep) * new

    def evaluate(
        self, outputs: torch.Tensor, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log-probabilities of actions, and entropies.

        For continuous actions the entropy is a single number: their spread does not depend on the
        state.
        """
        if not self.is_choice:
            return normal_log_probs(actions, outputs, self.log_std), normal_entropy(self.log_std)
        log_probs = outputs.log_softmax(-1)
        entropies = -(log_probs.exp() * log_probs).sum(-1)
        return log_probs.gather(-1, actions[..., None]).squeeze(-1), entropies

    # From outputs to actions.

    def play(
        self, seen: Seen, memory: torch.Tensor, generator: torch.Generator, deterministic: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose an action in every env.

        Returns:
            Choices counted from 0, or numbers that are not clipped to the action space yet; and
            the memory after the step.
        """
        hidden = self.trunk(self.encoder(seen))
        if self.is_recurrent:
            hidden = memory = self._next_memory(hidden, memory)
        outputs = self.actions(hidden)
        if deterministic:
            return outputs.argmax(-1) if self.is_choice else outputs, memory
        if self.is_choice:
            return draw_choices(outputs, generator), memory
        noise = torch.randn(outputs.shape, device=outputs.device, generator=generator)
        return torch.addcmul(outputs, self.log_std.exp(), noise), memory

    def act(
        self, seen: Seen, memory: torch.Tensor, generator: torch.Generator, deterministic: bool
    ) -> tuple[npt.NDArray[Any], torch.Tensor]:
        """Choose an action in every row, as the env takes it; return the new memory too."""
        raw, memory = self.play(seen, memory, generator, deterministic)
        return self.to_env(raw), memory

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
