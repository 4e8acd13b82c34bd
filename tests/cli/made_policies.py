"""Runs with policies that nobody has trained, for the commands that let them play."""

from pathlib import Path
from typing import Any

from stepladder.agents import make_agent
from stepladder.agents.config import AgentConfig
from stepladder.curricula import UniformConfig
from stepladder.envs import make_vec
from stepladder.runs import Run
from stepladder.saving.snapshot import Snapshot
from stepladder.training.checkpoints import TrainingCheckpoint, save
from stepladder.training.config import TrainingConfig

HOCKEY, LEDGE = "stepladder/Hockey-v0", "stepladder/Ledge-v0"
STEP = 100


def make_run(
    folder: Path, env: str, agent: AgentConfig, *, later: tuple[int, ...] = (), **settings: Any
) -> TrainingConfig:
    """Make the run of a training that was saved before it learnt anything.

    With `later` steps, other policies were saved at these, and the first one is the best.
    """
    config = TrainingConfig(
        env=env, agent=agent, num_envs=1, curriculum=UniformConfig(), **settings
    )
    envs = make_vec(env, 1, num_workers=0, env_kwargs=config.env_kwargs)
    seen, done = envs.single_observation_space, envs.single_action_space
    envs.close()
    if config.env_kwargs.get("players") == "both":
        seen, done = seen["player_one"], done["player_one"]
    curriculum = config.curriculum.make(config.task_source())
    with Run.create(folder, kind="training", config=config.to_json(), seed=0) as run:
        for step in (STEP, *later):
            learner = make_agent(config.agent, seen, done, 1, seed=step - STEP)
            checkpoint = TrainingCheckpoint(
                step=step,
                agent=learner.state(),
                description=learner.description(),
                envs=Snapshot({}),
                trainer=Snapshot({}),
            )
            is_best = bool(later) and step == STEP
            save(run, checkpoint, curriculum=curriculum.snapshot(), is_best=is_best)
    return config
