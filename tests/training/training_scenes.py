"""Trainings so small that a test can run several, and what they leave behind, to be compared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.sac.config import SACConfig
from stepladder.curricula.advantage_bandit.config import AdvantageBanditConfig
from stepladder.curricula.config import TaskKnowledge
from stepladder.curricula.level_replay.config import LevelReplayConfig
from stepladder.curricula.phased.config import Phase, PhasedConfig
from stepladder.curricula.phased.settings import Mixed, Ramp
from stepladder.curricula.registry import curriculum_variant
from stepladder.runs import RunReader
from stepladder.saving.snapshot import Snapshot
from stepladder.tasks import Task
from stepladder.training import checkpoints
from stepladder.training.checkpoints import TrainingCheckpoint
from stepladder.training.config import (
    CheckpointConfig,
    EvaluationConfig,
    OpponentsConfig,
    TrainingConfig,
)

HOCKEY = "stepladder/Hockey-v0"

ONCE = EvaluationConfig(every_steps=None, num_games=2, opponents=("weak",))
"""As little examination as there can be."""

REPLAY: dict[str, Any] = {
    "hidden_sizes": (8,),
    "batch_size": 8,
    "buffer_size": 200,
    "warmup_steps": 16,
    "updates_per_step": 0.125,
}

LEDGE_PPO = TrainingConfig(
    num_envs=4,
    total_steps=384,
    source={"stages": ["simplest"], "per_stage": 4},
    agent=PPOConfig(
        hidden_sizes=(8,), rollout_steps=48, minibatch_size=24, recurrent=True,
        normalise_observations=True,
    ),
    max_episode_steps=20,
    epoch_steps=64,
    evaluation=ONCE,
    checkpoints=CheckpointConfig(every_steps=64),
)  # fmt: skip
"""A recurrent policy in games that are cut off, so that everything that PPO carries counts."""

SELF_PLAY = TrainingConfig(
    env=HOCKEY,
    env_kwargs={"players": "both"},
    num_envs=4,
    total_steps=384,
    tasks=(Task("hockey", params={"direction_weight": 1.0}),),
    curriculum=PhasedConfig(
        phases=(
            Phase(
                name="first",
                episodes=8,
                settings={
                    "mode": "TRAIN_SHOOTING",
                    "opponent": "none",
                    "touch_weight": Ramp(start=1.0, end=0.0, ramp_episodes=6),
                },
            ),
            Phase(
                name="second",
                settings={"opponent": Mixed(("weak", "caller:newest", "caller:pool"))},
            ),
        )
    ),
    agent=SACConfig(
        **REPLAY, noise="pink", pink_steps=30, normalise_observations=True, mirror=True
    ),
    reward_scale=0.1,
    max_episode_steps=20,
    epoch_steps=64,
    evaluation=ONCE,
    opponents=OpponentsConfig(snapshot_every_steps=64, pool_size=2),
    checkpoints=CheckpointConfig(every_steps=64),
)

DISCRETE = TrainingConfig(
    env=HOCKEY,
    env_kwargs={"actions": "discrete", "fineness": 3},
    num_envs=4,
    total_steps=960,
    agent=DDDQNConfig(
        **REPLAY, prioritised=True, num_step_returns=3, epsilon_steps=400, target_every_updates=8
    ),
    max_episode_steps=20,
    epoch_steps=64,
    evaluation=replace(ONCE, every_steps=128),
    checkpoints=CheckpointConfig(every_steps=64),
)

VALUE_LOSS = replace(
    LEDGE_PPO,
    source={"stages": ["simplest"], "per_stage": 8},
    curriculum=LevelReplayConfig(scored_by="value_loss", transform="softmax"),
)
"""Episodes that are scored by the agent's advantages; most span several rollouts of 12 steps."""

ACCEL = replace(
    VALUE_LOSS,
    source={"stages": ["simplest"], "per_stage": 4},
    curriculum=replace(curriculum_variant("accel").make(TaskKnowledge()), eviction_percentile=0.9),
)
"""Levels that are edited; the pool holds all that are not."""

BANDIT = replace(
    VALUE_LOSS,
    source={"stages": ["simplest", "simple"], "per_stage": 4},
    curriculum=AdvantageBanditConfig(window_episodes=5),
)

FOREIGN = TrainingConfig(
    env="CartPole-v1",
    num_envs=3,
    total_steps=400,
    agent=DDDQNConfig(**REPLAY, num_step_returns=3),
    max_episode_steps=30,
    epoch_steps=48,
    evaluation=EvaluationConfig(every_steps=None, num_games=2),
)
"""An env of somebody else."""

TRAININGS = {
    "ppo": LEDGE_PPO,
    "value loss": VALUE_LOSS,
    "accel": ACCEL,
    "bandit": BANDIT,
    "sac": SELF_PLAY,
    "dddqn": DISCRETE,
}

SECONDS = ("second", "time")
"""What is in the names of metrics that a clock decides."""


def left_behind(folder: Path) -> dict[str, Any]:
    """Return everything that a run holds and no clock decides, as something to compare."""
    checkpoint, refused = checkpoints.load_newest(folder)
    assert refused == []
    events = [
        f"{event.step} {event.kind} {event.text} {event.data}"
        for event in RunReader(folder).events()
        # Logged whenever a training is resumed.
        if event.kind != "resumed"
    ]
    return {"checkpoint": of_checkpoint(checkpoint), "metrics": metrics(folder), "events": events}


def of_checkpoint(checkpoint: TrainingCheckpoint) -> dict[str, Any]:
    """Return what a checkpoint holds: agent, games, curriculum, counters."""
    agent = checkpoint.agent
    return {
        "step": checkpoint.step,
        "numbers": agent.numbers,
        "tensors": {name: bits(tensor) for name, tensor in sorted(agent.tensors.items())},
        "envs": of_snapshot(checkpoint.envs),
        "trainer": of_snapshot(checkpoint.trainer),
    }


def of_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot without what a clock says."""
    arrays = {name: (array.dtype, array.shape, array.tobytes())
              for name, array in sorted(snapshot.arrays.items())}  # fmt: skip
    return {"state": timeless(snapshot.state), "arrays": arrays}


def timeless(value: Any) -> Any:
    """Return plain JSON without seconds."""
    if isinstance(value, dict):
        return {
            name: timeless(entry)
            for name, entry in value.items()
            if name not in ("seconds", "elapsed_s")
        }
    return [timeless(entry) for entry in value] if isinstance(value, list) else value


def bits(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Return a tensor as bytes: NaN equals NaN, and 0 is not minus 0."""
    array = tensor.detach().cpu().contiguous().numpy()
    return array.dtype, array.shape, array.tobytes()


def metrics(folder: Path) -> dict[str, Any]:
    """Return all that was logged and no clock decides, by name."""
    reader = RunReader(folder)
    found: dict[str, Any] = {}
    for name in reader.metric_names():
        if not any(word in name for word in SECONDS):
            steps, values = reader.metric(name)
            found[name] = (np.asarray(steps).tolist(), np.asarray(values).tobytes())
    return found


def differences(one: Any, two: Any, path: str = "") -> list[str]:
    """Return where two things differ, so that a failure says more than that they do."""
    if isinstance(one, dict) and isinstance(two, dict):
        found = [f"{path}/{name}: only in one" for name in one.keys() ^ two.keys()]
        for name in one.keys() & two.keys():
            found += differences(one[name], two[name], f"{path}/{name}")
        return found
    return [] if one == two else [path]
