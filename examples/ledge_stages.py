"""Learn a platform game stage by stage: 1,024 runners at once, on a laptop, in seconds.

A thousand variants of one small policy play Ledge at the same time, each in a level that the
curriculum has drawn for it; the next generation is made from those that came farther (evolution
strategies, as in Salimans and others 2017). All runners are stepped in one compiled call, which
also draws their levels and reports how they went. In the end the policy is examined on held-out
levels.

Run it with ``python examples/ledge_stages.py --seconds 20``.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder import Staged, Task, make_vec
from stepladder.games import LedgeVectorEnv
from stepladder.games.ledge.source import LedgeLevels, held_out_source
from stepladder.games.ledge.tiles import MINE, PLATFORM, WALL
from stepladder.runs import Run

Floats = npt.NDArray[np.floating[Any]]

NUM_ENVS = 1024
NUM_ACTIONS = 6
STAGES = ("simplest", "simpler", "simple", "medium")
NUM_LEVELS = 128
NOISE = 0.5
RATE = 1.5
MOMENTUM = 0.8


def features(seen: dict[str, npt.NDArray[Any]]) -> Floats:
    """Return what the policy looks at: contacts, speed, the way to go, the tiles beside it."""
    vector, tiles = seen["vector"], seen["tiles"]
    is_open = vector[:, 17:18] > 0
    goal = np.where(is_open, vector[:, 15:17], vector[:, 13:15])
    beside = tiles[:, 3:7, 4:7].reshape(len(tiles), -1)
    solid = (beside == WALL) | (beside == PLATFORM)
    columns = [vector[:, 4:13], goal, np.sign(goal), solid, beside == MINE, np.ones_like(is_open)]
    return np.concatenate(columns, axis=1, dtype=np.float32)


def act(weights: Floats, seen: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    """Choose an action in every env, each with weights of its own."""
    return np.matmul(features(seen)[:, None, :], weights)[:, 0].argmax(axis=1)


def play(envs: Any, weights: Floats) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], int]:
    """Play one episode in every env; return returns, successes and env steps."""
    seen, _ = envs.reset()
    returns, is_playing = np.zeros(envs.num_envs), np.ones(envs.num_envs, dtype=bool)
    succeeded, num_steps = np.zeros(envs.num_envs, dtype=bool), 0
    # The last few stragglers are not waited for.
    while is_playing.mean() > 0.05:
        seen, rewards, terminated, truncated, infos = envs.step(act(weights, seen))
        returns += rewards * is_playing
        if "is_success" in infos:
            succeeded |= infos["is_success"] & is_playing
        is_playing &= ~(terminated | truncated)
        num_steps += envs.num_envs
    return returns, succeeded, num_steps


def examine(mean: Floats) -> dict[str, float]:
    """Return the share of held-out levels of each stage that the policy solves."""
    tasks = held_out_source(STAGES)
    envs = LedgeVectorEnv(tasks.num_tasks)
    envs.set_tasks([tasks.get(index) for index in range(envs.num_envs)])
    _, succeeded, _ = play(envs, np.broadcast_to(mean, (envs.num_envs, *mean.shape)))
    envs.close()
    labels = np.array([tasks.label(index) for index in range(len(succeeded))])
    return {stage: float(succeeded[labels == stage].mean()) for stage in STAGES}


def make_tasks() -> list[Task]:
    """List the levels to practise; each is made when it is first played."""
    levels = LedgeLevels(STAGES, per_stage=NUM_LEVELS // len(STAGES))
    return [levels.get(index) for index in range(NUM_LEVELS)]


def keep(folder: Path, curriculum: Staged, envs: Any, num_steps: int) -> None:
    """Keep what the curriculum has come to, so that its tasks can be watched."""
    config = {"env": "stepladder/Ledge-v0", "tasks": [task.to_json() for task in make_tasks()]}
    with Run.create(folder, kind="training", config=config, seed=curriculum.seed) as run:
        run.save_checkpoint("last", envs.snapshot(), step=num_steps)


def main() -> None:
    """Learn for a while, then say how it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15.0, help="how long to learn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", type=Path, help="folder to keep, for `stepladder watch`")
    arguments = parser.parse_args()
    curriculum = Staged(
        make_tasks(),
        stages=STAGES,
        threshold=0.6,
        min_episodes=4000,
        seed=arguments.seed,
    )
    envs = make_vec(
        "stepladder/Ledge-v0",
        NUM_ENVS,
        curriculum=curriculum,
        env_kwargs={"shaping": True, "gamma": 1.0},
    )
    seen, _ = envs.reset(seed=arguments.seed)
    rng = np.random.default_rng(arguments.seed)
    mean: Floats = np.zeros((features(seen).shape[1], NUM_ACTIONS), dtype=np.float32)
    drift: Floats = np.zeros_like(mean)
    began, num_steps, generation = time.perf_counter(), 0, 0
    while time.perf_counter() - began < arguments.seconds:
        half = rng.standard_normal((NUM_ENVS // 2, *mean.shape), dtype=np.float32)
        noise = np.concatenate([half, -half])
        returns, succeeded, played = play(envs, mean + NOISE * noise)
        ranks = (returns.argsort().argsort() / NUM_ENVS - 0.5).astype(np.float32)
        drift = MOMENTUM * drift + np.tensordot(ranks, noise, 1) / (NUM_ENVS * NOISE)
        mean += RATE * drift
        num_steps, generation = num_steps + played, generation + 1
        if generation % 10 == 0:
            seconds = time.perf_counter() - began
            print(
                f"{seconds:5.1f} s  {num_steps / 1e6:5.1f} M steps  "
                f"stage {curriculum.current_stage:<9} variants succeeded {succeeded.mean():.2f}"
            )
    print(curriculum.explain())
    counts = envs.counts
    print(
        f"Started {counts.started} episodes: {counts.finished} finished and each observed once, "
        f"{counts.aborted} aborted: a generation ends with its last one, and envs that have begun "
        "another one by then are reset."
    )
    if arguments.run is not None:
        keep(arguments.run, curriculum, envs, num_steps)
    exam = ", ".join(f"{stage} {share:.2f}" for stage, share in examine(mean).items())
    print(f"Held-out levels solved: {exam}")
    envs.close()


if __name__ == "__main__":
    main()
