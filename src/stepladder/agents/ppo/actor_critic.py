"""Policy and value function in one module: the network of `ppo`.

Choices are drawn from their probabilities, numbers from a normal distribution. A recurrent policy
carries one row of memory per env from step to step.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box, Space
from torch import nn

from stepladder.agents.arithmetic import log_softmax, normal_entropy, normal_log_probs
from stepladder.agents.choices import choices_of
from stepladder.agents.config import Precision
from stepladder.agents.networks.coded import Coded
from stepladder.agents.networks.encoders import make_encoder
from stepladder.agents.networks.layers import Linear, Trunk
from stepladder.agents.networks.normalising import ReturnNormaliser
from stepladder.agents.observations import Layout, Seen
from stepladder.agents.policy import Policy
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.ppo.memory_cells import CELLS
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
        self.precision: Precision = config.precision
        self._shares = config.share_layers or config.recurrent
        self._read_actions(action_space)
        self.encoder = make_encoder(layout, config, generator)
        self.rewards = ReturnNormaliser() if config.normalise_rewards else None
        widths, num_features = config.hidden_sizes, self.encoder.num_features
        options = {"reads_codes": self.encoder.gives_codes}
        self.trunk = Trunk(num_features, widths, config.activation, generator, **options)
        if not self._shares:
            self.value_trunk = Trunk(num_features, widths, config.activation, generator, **options)
        self.num_memory = widths[-1] if self.is_recurrent else 0
        if self.is_recurrent:
            self.cell = CELLS[config.memory_cell](widths[-1], generator)
        self.actions = Linear(widths[-1], self.num_outputs, 0.01, generator)
        self.values = Linear(widths[-1], 1, 1.0, generator)
        if not self.is_choice:
            self.log_std = nn.Parameter(torch.zeros(self.num_outputs))

    def _read_actions(self, space: Space[Any]) -> None:
        self.choices = choices_of(space)
        """What an action consists of; None if actions are numbers."""
        if self.choices is not None:
            self.is_choice, self.num_outputs = True, self.choices.num_options
        elif isinstance(space, Box) and np.issubdtype(np.dtype(space.dtype), np.floating):
            self.is_choice, self.num_outputs = False, int(np.prod(space.shape))
            self._shape, self._low, self._high = space.shape, space.low, space.high
        else:
            raise ConfigError(
                "PPO needs an action space that is Discrete, MultiDiscrete, MultiBinary or a Box "
                f"of floats; got {space}. Wrap the env."
            )

    @property
    def num_action_columns(self) -> int:
        """Numbers per action; 0 for a single choice."""
        if self.choices is None:
            return self.num_outputs
        return 0 if self.choices.is_single else len(self.choices.sizes)

    def first_memory(self, num_rows: int) -> torch.Tensor:
        """Return the memory at the start of an episode."""
        return torch.zeros(num_rows, self.num_memory, device=self.values.bias.device)

    # From features to outputs for actions, and values.

    def forward(self, inputs: torch.Tensor | Coded) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the outputs for actions and the values of a policy without memory."""
        hidden = self.trunk(inputs)
        value_hidden = hidden if self._shares else self.value_trunk(inputs)
        return self.actions(hidden), self.values(value_hidden).squeeze(-1)

    def unroll(
        self, inputs: torch.Tensor | Coded, memory: torch.Tensor, begins: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the outputs for actions, the values and the memories of consecutive steps.

        Args:
            inputs: Of shape ``(steps, envs, …)``.
            memory: Before the first step.
            begins: Whether an episode begins, of shape ``(steps, envs)``.
        """
        return self.recall(self.trunk(inputs), memory, begins)

    def recall(
        self, hidden: torch.Tensor, memory: torch.Tensor, begins: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Do what `unroll` does, given the output of the trunk."""
        goes_on = (~begins).float()[..., None]
        outputs, past = self.cell.unroll(hidden, memory, goes_on)
        return self.actions(outputs), self.values(outputs).squeeze(-1), past

    def evaluate(
        self, outputs: torch.Tensor, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log-probabilities of actions, and entropies.

        For continuous actions the entropy is a single number: their spread does not depend on the
        state.
        """
        if not self.is_choice:
            return normal_log_probs(actions, outputs, self.log_std), normal_entropy(self.log_std)
        log_probs = log_softmax(self._logits(outputs))
        entropies = -(log_probs.exp() * log_probs).sum(-1)
        found = log_probs.gather(-1, actions[..., None]).squeeze(-1)
        # Independent choices: both add up.
        return (found, entropies) if self._is_single else (found.sum(-1), entropies.sum(-1))

    @property
    def _is_single(self) -> bool:
        return self.choices is None or self.choices.is_single

    def _logits(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs, by choice if there are several."""
        if self.choices is None or self.choices.is_single:
            return outputs
        return self.choices.logits(outputs)

    # From outputs to actions.

    def play(
        self, seen: Seen, memory: torch.Tensor, generator: torch.Generator, deterministic: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose an action in every env.

        Returns:
            Choices counted from 0, or numbers that are not clipped to the action space yet; and
            the memory after the step.
        """
        outputs, memory = self._step(seen, memory)
        if self.is_choice:
            logits = self._logits(outputs)
            return logits.argmax(-1) if deterministic else draw_choices(logits, generator), memory
        if deterministic:
            return outputs, memory
        noise = torch.randn(outputs.shape, device=outputs.device, generator=generator)
        return torch.addcmul(outputs, self.log_std.exp(), noise), memory

    def _step(self, seen: Seen, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the outputs for actions, and the memory after the step."""
        hidden = self.trunk(self.encoder.inputs(self.encoder.prepare(seen)))
        if self.is_recurrent:
            hidden, memory = self.cell.step(hidden, memory)
        return self.actions(hidden), memory

    def act(
        self, seen: Seen, memory: torch.Tensor, generator: torch.Generator, deterministic: bool
    ) -> tuple[npt.NDArray[Any], torch.Tensor]:
        """Choose an action in every row, as the env takes it; return the new memory too."""
        raw, memory = self.play(seen, memory, generator, deterministic)
        return self.to_env(raw), memory

    def best_actions(self, seen: Seen, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the best action of every row as the env takes it; return the new memory too."""
        outputs, memory = self._step(seen, memory)
        if self.choices is not None:
            return self.choices.taken(self._logits(outputs).argmax(-1)), memory
        low, high = (
            torch.as_tensor(bound, device=outputs.device) for bound in (self._low, self._high)
        )
        return outputs.reshape(-1, *self._shape).clamp(low, high), memory

    def to_env(self, raw: torch.Tensor) -> npt.NDArray[Any]:
        """Return actions of the env's action space; numbers are clipped to its bounds."""
        actions = raw.cpu().numpy()
        if self.choices is not None:
            return self.choices.to_env(actions)
        shaped = actions.reshape(len(actions), *self._shape)
        return np.clip(shaped, self._low, self._high)


def draw_choices(logits: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Draw one option of every choice by the exponential form of the Gumbel-max trick."""
    noise = torch.empty_like(logits).exponential_(generator=generator)
    return (logits - noise.log_()).argmax(-1)
