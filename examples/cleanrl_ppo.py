"""PPO in one file, from top to bottom, on a platform game with a staged curriculum.

Written as CleanRL writes its algorithms: everything that happens is on this page, and nothing is
configured elsewhere. The curriculum is two calls, `Staged` and `make_vec`, and the run is three:
`stepladder.run`, `run.step` and `run.report`; the loop below would be the same without them.
``stepladder explain runs/cleanrl`` says why each stage stands where it does, also while it trains.
In the end the policy is examined on held-out levels.

The envs use next-step autoreset: after an ending, the next step only resets the env. That step
belongs to no episode and is not learnt from. What its row shows is the last observation of the
episode before, and so its value is just what an episode that ran out of time has to be bootstrapped
with.

Run it with ``python examples/cleanrl_ppo.py --seconds 60``; every setting is a flag. It needs the
extras ``train`` and ``cli``.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import tyro
from torch import Tensor, nn

import stepladder
from stepladder import Staged, make_vec
from stepladder.games import LedgeVectorEnv
from stepladder.games.ledge.source import LedgeLevels, held_out_source
from stepladder.games.ledge.tiles import MINE, PLATFORM, WALL
from stepladder.runs import ConsoleLogger

STAGES = ("simplest", "simpler", "simple", "medium", "complex")
NUM_ACTIONS = 6
GAMES_PER_LEVEL = 4


@dataclass
class Settings:
    """Everything that can be set."""

    seconds: float = 60.0
    """Stop after so many seconds…"""
    steps: int = 20_000_000
    """…or after so many env steps."""
    seed: int = 0
    """Of levels, envs and policy."""
    run: str = "runs/cleanrl"
    """Folder of the run; an older one is replaced."""
    num_envs: int = 128
    rollout_length: int = 64
    """Steps of each env between two rounds of updates."""
    minibatch_size: int = 1024
    num_epochs: int = 2
    learning_rate: float = 1e-3
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy_coef: float = 0.01
    value_coef: float = 0.5
    max_grad_norm: float = 0.5
    hidden_size: int = 128


class Policy(nn.Module):
    """What to do, and what to expect: two heads on two layers."""

    def __init__(self, num_features: int, hidden_size: int):
        super().__init__()
        self.trunk = nn.Sequential(
            orthogonal(nn.Linear(num_features, hidden_size), 2**0.5),
            nn.ReLU(),
            orthogonal(nn.Linear(hidden_size, hidden_size), 2**0.5),
            nn.ReLU(),
        )
        self.actor = orthogonal(nn.Linear(hidden_size, NUM_ACTIONS), 0.01)
        self.critic = orthogonal(nn.Linear(hidden_size, 1), 1.0)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probabilities, shape ``(rows, NUM_ACTIONS)``, and values, ``(rows,)``."""
        hidden = self.trunk(features)
        return self.actor(hidden).log_softmax(dim=1), self.critic(hidden)[:, 0]


def orthogonal(layer: nn.Linear, gain: float) -> nn.Linear:
    """Start a layer with weights that neither swell nor shrink what passes through."""
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def features_of(seen: dict[str, Any]) -> Tensor:
    """Return one row per env: walls, platforms and mines around the runner, beside the vector."""
    tiles = torch.from_numpy(seen["tiles"]).flatten(1)
    planes = [(tiles == code).float() for code in (WALL, PLATFORM, MINE)]
    return torch.cat([torch.from_numpy(seen["vector"]), *planes], dim=1)


@dataclass
class Rollout:
    """What was seen and done; every tensor begins with (rollout_length, num_envs)."""

    features: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor  # one more row: that of what is seen in the end
    rewards: Tensor
    terminated: Tensor
    ended: Tensor
    is_played: Tensor  # False in the step that only resets

    @classmethod
    def empty(cls, length: int, num_envs: int, num_features: int) -> "Rollout":
        """Make room; it is used again and again."""
        shape = (length, num_envs)
        flags = [torch.zeros(shape, dtype=torch.bool) for _ in range(3)]
        return cls(
            torch.zeros(*shape, num_features),
            torch.zeros(shape, dtype=torch.int64),
            torch.zeros(shape),
            torch.zeros(length + 1, num_envs),
            torch.zeros(shape),
            *flags,
        )


@torch.no_grad()
def play(envs: Any, policy: Policy, rollout: Rollout, seen: Tensor, just_ended: Tensor) -> Tensor:
    """Play one rollout from what is seen; return what is seen after it."""
    for step in range(len(rollout.actions)):
        log_probs, rollout.values[step] = policy(seen)
        actions = log_probs.exp().multinomial(1)
        rollout.features[step], rollout.actions[step] = seen, actions[:, 0]
        rollout.log_probs[step] = log_probs.gather(1, actions)[:, 0]
        rollout.is_played[step] = ~just_ended
        observations, rewards, terminated, truncated, _ = envs.step(actions[:, 0].numpy())
        rollout.rewards[step] = torch.from_numpy(rewards)
        rollout.terminated[step] = torch.from_numpy(terminated)
        rollout.ended[step] = torch.from_numpy(terminated | truncated)
        just_ended.copy_(rollout.ended[step])
        seen = features_of(observations)
    rollout.values[-1] = policy(seen)[1]
    return seen


def advantages_of(rollout: Rollout, gamma: float, gae_lambda: float) -> Tensor:
    """Return generalised advantage estimates, which do not reach over the end of an episode."""
    advantages = torch.zeros_like(rollout.rewards)
    following = torch.zeros_like(rollout.rewards[0])
    for step in reversed(range(len(advantages))):
        # After the last step of an episode, the next row is still its last observation.
        expected = gamma * rollout.values[step + 1] * ~rollout.terminated[step]
        surprise = rollout.rewards[step] + expected - rollout.values[step]
        following = surprise + gamma * gae_lambda * ~rollout.ended[step] * following
        advantages[step] = following
    return advantages


def learn(policy: Policy, optimiser: Any, rollout: Rollout, settings: Settings) -> float:
    """Learn from every played step a few times; return the policy's entropy."""
    advantages = advantages_of(rollout, settings.gamma, settings.gae_lambda)
    returns = (advantages + rollout.values[:-1]).flatten()
    features = rollout.features.flatten(0, 1)
    actions, old_log_probs = rollout.actions.flatten(), rollout.log_probs.flatten()
    advantages, entropy = advantages.flatten(), torch.zeros(())
    played = rollout.is_played.flatten().nonzero()[:, 0]
    num_minibatches = max(len(played) // settings.minibatch_size, 1)
    for _ in range(settings.num_epochs):
        for rows in played[torch.randperm(len(played))].tensor_split(num_minibatches):
            log_probs, values = policy(features.index_select(0, rows))
            chosen = log_probs.gather(1, actions[rows, None])[:, 0]
            ratio = (chosen - old_log_probs[rows]).exp()
            gain = advantages[rows]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            clipped = ratio.clamp(1.0 - settings.clip, 1.0 + settings.clip)
            policy_loss = -torch.min(gain * ratio, gain * clipped).mean()
            value_loss = (values - returns[rows]).square().mean()
            entropy = -(log_probs.exp() * log_probs).sum(dim=1).mean()
            loss = policy_loss + settings.value_coef * value_loss - settings.entropy_coef * entropy
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), settings.max_grad_norm)
            optimiser.step()
    return float(entropy.detach())


@torch.no_grad()
def examine(policy: Policy) -> dict[str, float]:
    """Return the share of games on held-out levels of each stage that the policy wins."""
    source = held_out_source(STAGES)
    tasks = [source.get(index) for index in range(source.num_tasks)] * GAMES_PER_LEVEL
    envs = LedgeVectorEnv(len(tasks))
    envs.set_tasks(tasks)
    seen, _ = envs.reset(seed=0)
    is_playing, succeeded = np.ones(len(tasks), dtype=bool), np.zeros(len(tasks), dtype=bool)
    while is_playing.any():
        log_probs, _ = policy(features_of(seen))
        actions = log_probs.exp().multinomial(1)[:, 0].numpy()
        seen, _, terminated, truncated, infos = envs.step(actions)
        if "is_success" in infos:
            succeeded |= infos["is_success"] & is_playing
        is_playing &= ~(terminated | truncated)
    envs.close()
    labels = np.array([task.label for task in tasks])
    return {stage: float(succeeded[labels == stage].mean()) for stage in STAGES}


def main(settings: Settings) -> None:
    """Learn for a while, then say how it went."""
    torch.manual_seed(settings.seed)
    # Networks this small gain nothing from more, and lose much where the cores are busy.
    torch.set_num_threads(1)
    curriculum = Staged(
        LedgeLevels(STAGES, per_stage=200),
        stages=STAGES,
        threshold=0.75,
        min_episodes=300,
        window_episodes=200,
        seed=settings.seed,
    )
    # Shaping with the agent's own discount does not change what is best.
    shaping = {"shaping": True, "gamma": settings.gamma}
    envs = make_vec(
        "stepladder/Ledge-v0", settings.num_envs, curriculum=curriculum, env_kwargs=shaping
    )
    shown = ConsoleLogger(["overview/reward", "losses/entropy", "overview/steps_per_second"])
    rollout_of = settings.rollout_length, settings.num_envs
    with stepladder.run(settings.run, envs, overwrite=True, loggers=[shown]) as run:
        seen = features_of(run.reset(seed=settings.seed)[0])
        just_ended = torch.zeros(settings.num_envs, dtype=torch.bool)
        policy = Policy(seen.shape[1], settings.hidden_size)
        adam = torch.optim.Adam(policy.parameters(), settings.learning_rate, eps=1e-5, fused=True)
        rollout, ends = (
            Rollout.empty(*rollout_of, seen.shape[1]),
            time.monotonic() + settings.seconds,
        )
        while run.num_steps < settings.steps and time.monotonic() < ends:
            seen = play(run, policy, rollout, seen, just_ended)
            run.report({"entropy": learn(policy, adam, rollout, settings)})
    print(curriculum.explain())
    counts = envs.counts
    print(
        f"Started {counts.started} episodes: {counts.finished} finished and each observed once, "
        f"{counts.aborted} aborted, {counts.in_flight} being played."
    )
    envs.close()
    exam = ", ".join(f"{stage} {share:.2f}" for stage, share in examine(policy).items())
    print(f"Held-out levels solved: {exam}")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=(__doc__ or "").splitlines()[0]))
