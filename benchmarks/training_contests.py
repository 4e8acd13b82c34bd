"""What `training` compares: algorithms with their settings, and our side of them.

On the CPU, beside the peer, all play `stepladder/Hockey-v0` against the weak opponent: SAC and PPO
with continuous actions, DDDQN and the peer's DQN with discrete ones. On a GPU there is no peer, and
PPO plays `stepladder/Ledge-v0`, with and without memory; on the CPU so does the preset.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import torch

from stepladder.agents.config import AgentConfig
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.replay.config import ReplayConfig
from stepladder.agents.sac.config import SACConfig
from stepladder.training.config import TrainingConfig
from stepladder.training.loop import Clockwork, Trainer
from stepladder.training.presets import LEDGE_AGENT
from stepladder.training.world import TrainingWorld, make_envs

HOCKEY, LEDGE = "stepladder/Hockey-v0", "stepladder/Ledge-v0"

NUM_ACTIONS = 16
"""Batches of random actions, drawn beforehand and used in turn."""


@dataclass(frozen=True, kw_only=True)
class Contest:
    """One algorithm with its settings."""

    name: str
    agent: AgentConfig
    """Ours; the peer's settings are translated from it."""

    quick_steps: int
    """Env steps of a turn; of PPO, a turn is one rollout."""

    full_steps: int

    env: str = HOCKEY

    steps_per_env: int = 1
    """Env steps of each env in a turn, at least."""

    bar: float | None = None
    """Env steps/s of training that are asked for, where there is no peer."""

    def turn_steps(self, num_envs: int, *, is_quick: bool) -> int:
        """Return the env steps of a turn of all envs together."""
        steps = self.quick_steps if is_quick else self.full_steps
        return max(steps, num_envs * self.steps_per_env)

    def config(self, num_envs: int, turn_steps: int, device: str) -> TrainingConfig:
        """Return the training of our side."""
        agent = self.agent
        is_choice = isinstance(agent, DDDQNConfig)
        return TrainingConfig(
            env=self.env,
            env_kwargs={"actions": "discrete"} if is_choice else {},
            num_envs=num_envs,
            device=device,
            agent=replace(agent, rollout_steps=turn_steps)
            if isinstance(agent, PPOConfig)
            else agent,
        )


BUFFER_SIZE, WARMUP_STEPS = 100_000, 512

SAC_16 = Contest(
    name="SAC, an update per 16 steps",
    agent=SACConfig(
        batch_size=256, updates_per_step=1 / 16,
        buffer_size=BUFFER_SIZE, warmup_steps=WARMUP_STEPS,
    ),
    quick_steps=256,
    full_steps=2_048,
)  # fmt: skip
SAC_4 = Contest(
    name="SAC, an update per 4 steps",
    agent=replace(SAC_16.agent, updates_per_step=1 / 4),
    quick_steps=128,
    full_steps=1_024,
)
DQN_4 = Contest(
    name="DQN, an update per 4 steps",
    agent=DDDQNConfig(
        hidden_sizes=(64, 64), batch_size=32, updates_per_step=1 / 4,
        epsilon_start=0.05, epsilon_final=0.05,
        buffer_size=BUFFER_SIZE, warmup_steps=WARMUP_STEPS,
    ),
    quick_steps=512,
    full_steps=4_096,
)  # fmt: skip
DQN_DEFAULT = Contest(
    name="DQN, default sizes",
    agent=DDDQNConfig(buffer_size=BUFFER_SIZE, warmup_steps=WARMUP_STEPS),
    quick_steps=512,
    full_steps=4_096,
)
PPO_64 = Contest(
    name="PPO, 10 epochs of 64",
    agent=PPOConfig(hidden_sizes=(64, 64), minibatch_size=64, num_epochs=10),
    quick_steps=512,
    full_steps=2_048,
)
PPO_1024 = Contest(
    name="PPO, 4 epochs of 1,024",
    agent=PPOConfig(hidden_sizes=(64, 64), minibatch_size=1_024, num_epochs=4),
    quick_steps=1_024,
    full_steps=8_192,
)

PPO_DEFAULT = Contest(
    name="PPO, default sizes", agent=PPOConfig(), quick_steps=8_192, full_steps=8_192
)

PPO_LEDGE = Contest(
    name="PPO on Ledge",
    agent=replace(LEDGE_AGENT, hidden_sizes=(512, 512), gamma=0.997, minibatch_size=32_768),
    quick_steps=65_536,
    full_steps=262_144,
    env=LEDGE,
    steps_per_env=64,
    bar=2e6,
)
PPO_LEDGE_GRU = replace(
    PPO_LEDGE,
    name="PPO with a GRU on Ledge",
    agent=replace(PPO_LEDGE.agent, recurrent=True),
    bar=1e6,
)
PPO_LEDGE_MINGRU = replace(
    PPO_LEDGE_GRU,
    name="PPO with a minimal unit on Ledge",
    agent=replace(PPO_LEDGE_GRU.agent, memory_cell="mingru"),
)
PPO_LEDGE_PRESET = replace(
    PPO_LEDGE,
    name="PPO on Ledge, the preset",
    agent=LEDGE_AGENT,
    quick_steps=LEDGE_AGENT.rollout_steps,
    full_steps=LEDGE_AGENT.rollout_steps,
    bar=60_000.0,
)

Contests = dict[str, tuple[Sequence[Contest], Sequence[int]]]
"""By algorithm, with the numbers of envs; env only and act + env are measured with the first."""

CPU_ENVS = (1, 4, 8, 128)
CONTESTS: Contests = {
    "SAC": ((SAC_16, SAC_4), CPU_ENVS),
    "DQN": ((DQN_4,), CPU_ENVS),
    "PPO": ((PPO_64, PPO_1024), CPU_ENVS),
    "Ledge": ((PPO_LEDGE_PRESET,), (128,)),
}

GPU_CONTESTS: Contests = {
    "SAC": ((replace(SAC_16, bar=40_000.0),), (64, 256, 1024)),
    "PPO": ((PPO_LEDGE, PPO_LEDGE_GRU, PPO_LEDGE_MINGRU), (4096, 8192, 16384)),
}
"""The same for a GPU."""


def fresh_envs(config: TrainingConfig) -> Any:
    """Return the vector env of a training, with a curriculum of its own."""
    return make_envs(config, config.curriculum.make(config.task_source(), seed=config.seed))


class Ours:
    """Our side, warmed up: it has learnt at least once, if it learns from a memory.

    Args:
        config: Of the training.
    """

    def __init__(self, config: TrainingConfig):
        self.num_envs = config.num_envs
        self.trainer = trainer = Trainer(config)
        trainer.begin()
        while isinstance(config.agent, ReplayConfig) and trainer.num_updates == 0:
            trainer.advance()
        # Envs beside those of the training, which go on where they are.
        self._world = TrainingWorld(config, config.curriculum.make(config.task_source(), seed=1))
        self._seen = self._world.reset(seed=1)
        space = self._world.envs.action_space
        space.seed(0)
        self._actions = cycle([space.sample() for _ in range(NUM_ACTIONS)])

    def step(self) -> None:
        """Step the envs with fixed actions."""
        self._world.step(next(self._actions))

    def act(self) -> None:
        """Choose actions and step the envs."""
        self._seen = self._world.step(self.trainer.agent.act_batch(self._seen))[0]

    def train(self, num_steps: int) -> None:
        """Train for about so many env steps; wait for what a GPU still has to do."""
        for _ in range(num_steps // self.num_envs):
            self.trainer.advance()
        if self.trainer.device.type == "cuda":
            torch.cuda.synchronize(self.trainer.device)

    def counts(self) -> tuple[int, int]:
        """Return env steps and updates so far."""
        return self.trainer.num_steps, self.trainer.num_updates

    def forget_seconds(self) -> None:
        """Count from here on where seconds go."""
        self.trainer.seconds = Clockwork()

    def close(self) -> None:
        """Close all envs."""
        self.trainer.close()
        self._world.envs.close()
