"""What several tests of checkpoints need: a checkpoint of every step, and whether two are alike."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from stepladder.agents.base import AgentState
from stepladder.curricula import Snapshot
from stepladder.runs import Run
from stepladder.training.checkpoints import TrainingCheckpoint, save

DESCRIPTION = {"type": "SAC", "config": {"gamma": 0.99}}
CONFIG = {"env": "stepladder/Ledge-v0", "num_envs": 4, "agent": {"type": "SAC"}, "total_steps": 9}


def make_checkpoint(step: int, size: int = 50) -> TrainingCheckpoint:
    """Return a checkpoint in which everything depends on the step."""
    tensors = {
        "weights/actor.0.weight": torch.full((size, 3), float(step)),
        "weights/actor.0.bias": torch.arange(3.0) + step,
        "optimiser/actor/0/step": torch.tensor(step),
        "memory/rewards": torch.full((size,), step, dtype=torch.float64),
        "random/torch": torch.arange(16, dtype=torch.uint8),
    }
    return TrainingCheckpoint(
        step=step,
        agent=AgentState({"num_updates": step, "rng": {"state": 2**100 + step}}, tensors),
        description=DESCRIPTION,
        envs=Snapshot({"step": step}, {"channel/plays": np.full(4, step)}),
        trainer=Snapshot({"history": [step]}, {"ratings/mean": np.array([step / 3])}),
    )


def content(checkpoint: TrainingCheckpoint) -> dict[str, Any]:
    """Return a checkpoint as something that can be compared."""
    agent, envs, trainer = checkpoint.agent, checkpoint.envs, checkpoint.trainer
    arrays = {**envs.arrays, **trainer.arrays}
    return {
        "step": checkpoint.step,
        "numbers": agent.numbers,
        "description": checkpoint.description,
        "states": [envs.state, trainer.state],
        "arrays": {name: (array.dtype, array.tolist()) for name, array in arrays.items()},
        "tensors": {name: (one.dtype, one.tolist()) for name, one in agent.tensors.items()},
    }


def create(folder: Path, **changes: Any) -> Run:
    """Begin a run of a training."""
    return Run.create(folder, kind="training", config={**CONFIG, **changes}, seed=1)


def save_steps(run: Run, *steps: int, keep: int = 2, is_best: bool = False) -> list[Path]:
    """Log at each step, and save there; return the folders."""
    folders: list[Path] = []
    for step in steps:
        run.log(step, {"reward": float(step)})
        run.event(step, "tick", str(step))
        snapshot = Snapshot({"stage": step})
        kept = {"curriculum": snapshot, "keep": keep, "is_best": is_best}
        folders.append(save(run, make_checkpoint(step), **kept))
    return folders


def flip(path: Path, at: int = -1) -> None:
    """Change one bit of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
