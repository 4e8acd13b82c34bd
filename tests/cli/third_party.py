"""A package of somebody else: one game, one agent, and the entry points that make them known."""

from pathlib import Path

GAME, AGENT = "acme/Sprint-v0", "linear"

POINTS = """
[stepladder.games]
acme/Sprint-v0 = acme_sprint:SPRINT

[stepladder.agents]
Linear = acme_sprint:LinearConfig
"""

MODULE = '''
from dataclasses import dataclass
from typing import ClassVar

import torch

from stepladder import Task
from stepladder.agents import Agent, AgentConfig, Policy
from stepladder.agents.divergence import Extent
from stepladder.agents.observations import Encoder
from stepladder.curricula import FrontierConfig
from stepladder.errors import ConfigError
from stepladder.games import Game, LedgeEnv, LedgeVectorEnv
from stepladder.tasks import ListSource


class SprintVectorEnv(LedgeVectorEnv):
    pass


class SprintEnv(LedgeEnv):
    vector_class = SprintVectorEnv


class Sprint(Game):
    is_finite = True
    time_limit_argument = "time_limit"

    def source(self, settings):
        unknown = settings.keys() - {"num_tracks"}
        if unknown:
            raise ConfigError(f"has {sorted(unknown)}; known here is num_tracks.")
        tracks = range(settings.get("num_tracks", 6))
        return ListSource(
            Task(f"track {track}", "flat" if track % 2 else "steep", {"stage": "simplest"}, track)
            for track in tracks
        )

    def curriculum(self, labels):
        return FrontierConfig()

    def training_arguments(self, gamma):
        return {"shaping": True, "gamma": gamma}


SPRINT = Sprint(env=SprintEnv, vector_env=SprintVectorEnv)


@dataclass(frozen=True, kw_only=True)
class LinearConfig(AgentConfig):
    """Settings of a linear policy."""

    kind: ClassVar[str] = "Linear"
    action_kind: ClassVar[str] = "discrete"

    step_size: float = 0.01
    """How far a step moves the policy."""

    def make(self, observation_space, action_space, num_envs, *, device="cpu", seed=0, mirror=None):
        return Linear(self, observation_space, action_space, num_envs, device=device, seed=seed)

    def make_policy(self, layout, action_space, generator):
        return LinearPolicy(layout, int(action_space.n))

    def layer_widths(self, num_inputs, num_outputs):
        return (num_inputs, num_outputs)


class LinearPolicy(Policy):
    def __init__(self, layout, num_actions):
        super().__init__()
        self.encoder = Encoder(layout)
        self.weights = torch.nn.Parameter(torch.zeros(layout.num_features, num_actions))

    def forward(self, seen):
        return (self.encoder(seen) @ self.weights).log_softmax(-1)

    def act(self, seen, memory, generator, deterministic):
        log_probs = self(seen)
        if deterministic:
            return log_probs.argmax(-1).cpu().numpy(), memory
        drawn = torch.multinomial(log_probs.exp(), 1, generator=generator)
        return drawn[:, 0].cpu().numpy(), memory


class Linear(Agent):
    """Makes what was rewarded more likely, step by step."""

    def __init__(self, config, observation_space, action_space, num_envs, **settings):
        super().__init__(config, observation_space, action_space, num_envs, **settings)
        self._policy = LinearPolicy(self.layout, int(action_space.n)).to(self.device)
        self._step = None
        self._largest = 0.0

    @torch.no_grad()
    def act_batch(self, observations, deterministic=False):
        seen = self.layout.to_seen(observations, self.device)
        memory = self._policy.first_memory(self.num_envs)
        return self._policy.act(seen, memory, self.generator, deterministic)[0]

    def remember(self, step):
        self._step = step
        self.num_steps += int(step.is_playing.sum())

    def learn(self):
        step, weights = self._step, self._policy.weights
        rewards = torch.as_tensor(step.rewards * step.is_playing, dtype=torch.float32)
        self._largest = max(self._largest, float(rewards.abs().max()))
        log_probs = self._policy(self.layout.to_seen(step.observations, self.device))
        chosen = log_probs[torch.arange(self.num_envs), torch.as_tensor(step.actions)]
        loss = -(chosen * rewards).mean()
        (gradient,) = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            weights -= self.config.step_size * gradient
        self._note(policy=loss)
        self.num_updates += 1
        return 1

    def forget(self):
        pass

    def drop_pending(self):
        pass

    def memory_stats(self):
        return {}

    def policy(self):
        return self._policy

    def _optimisers(self):
        return {}

    def _extent(self):
        return Extent(self._largest, 0.0)

    def _parts(self):
        return {}

    def _numbers(self):
        return {"largest": self._largest}

    def _set_numbers(self, numbers):
        self._largest = numbers["largest"]
'''


def install(folder: Path) -> Path:
    """Put the package into a folder, as an installer would; return the folder."""
    info = folder / "acme_sprint-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-sprint\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    (folder / "acme_sprint.py").write_text(MODULE)
    return folder
