"""Curricula over both games, whose tasks can be told by what is played, and ways to play them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from games.game_cases import DISABLED, EASY, IDS, MODES, SINGLE_ENVS, level_task, random_actions
from stepladder import CurriculumEnv, CurriculumVectorEnv, make_vec
from stepladder.curricula import (
    Curriculum,
    Frontier,
    Learnability,
    LearningProgress,
    LevelReplay,
    Mixed,
    Mixing,
    Phase,
    Phased,
    Ramp,
    Staged,
    Uniform,
)
from stepladder.tasks import Task

EACH_MODE = pytest.mark.parametrize("mode", MODES)
EACH_GAME = pytest.mark.parametrize("game", IDS)
STAGES = ("near", "far", "farther")
ROOM = "\n".join(["#" * 12, *["#" + "." * 10 + "#"] * 3, "#@SD.......#", "#" * 12])


def tasks_of(game: str, count: int = 12) -> list[Task]:
    """Return tasks of which each can be told by what is played: puck speed, or time limit.

    Those of hockey have a seed, so that single games in a `CurriculumEnv` play the same.
    """
    return [one_task(game, index, STAGES[index * len(STAGES) // count]) for index in range(count)]


def one_task(game: str, index: int, label: str = "default") -> Task:
    name = f"{game} {index}"
    if game == "ledge":
        return level_task(name, ROOM, label, time_limit=4 + index)
    params = {"mode": ("TRAIN_SHOOTING", "TRAIN_DEFENSE")[index % 2], "puck_speed": 30.0 + index}
    return Task(name, label, params, seed=index)


def which(vec: Any, game: str, env_index: int) -> int:
    """Return the index of the task that an env really plays."""
    if game == "ledge":
        return int(vec.unwrapped.playing.records["time_limit"][env_index]) - 4
    return int(vec.unwrapped.playing.records["puck_speed"][env_index]) - 30


def quick_stages(game: str, seed: int = 5, **settings: Any) -> Staged:
    return Staged(
        tasks_of(game),
        seed=seed,
        stages=STAGES,
        check_interval_episodes=4,
        **{
            "mixing": Mixing(min_results=2),
            "demotion": None,
            "min_episodes": 8,
            "threshold": 0.1,
            "window_episodes": 12,
            **settings,
        },
    )


def phases(game: str, seed: int = 5) -> Phased:
    """Return phases with settings of each episode."""
    if game == "ledge":
        settings: list[dict[str, Any]] = [
            {"time_limit": Mixed((5, 6, 7))},
            {"time_limit": Mixed((8, 9)), "level": EASY},
        ]
    else:
        settings = [
            {"opponent": Mixed(("weak", "strong")), "puck_speed": 30.0},
            {"opponent": "none", "puck_speed": Ramp(start=31.0, end=41.0, ramp_episodes=20)},
        ]
    return Phased(
        tasks_of(game),
        seed=seed,
        phases=(
            Phase(name="first", episodes=15, settings=settings[0]),
            Phase(name="second", settings=settings[1], mixture={"near": 1.0, "far": 2.0}),
        ),
    )


def evicting(game: str, seed: int = 5) -> LearningProgress:
    return LearningProgress(
        [one_task(game, index % 20) for index in range(20)]
        + [
            Task(f"again {index}", params=one_task(game, index % 20).params, seed=index % 20)
            for index in range(180)
        ],
        seed=seed,
        capacity=5,
        eviction_plays=3,
        novice_plays=2,
        eviction_percentile=1.0,
    )


CURRICULA: dict[str, Callable[[str], Curriculum]] = {
    "uniform": lambda game: Uniform(tasks_of(game), seed=5),
    "staged": quick_stages,
    "phased": phases,
    "evicting": evicting,
    "progress": lambda game: LearningProgress(tasks_of(game), seed=5),
    "frontier": lambda game: Frontier(tasks_of(game), seed=5, eviction_plays=4),
    "replay": lambda game: LevelReplay(tasks_of(game), seed=5),
    "learnability": lambda game: Learnability(tasks_of(game), seed=5),
}
EACH_CURRICULUM = pytest.mark.parametrize("kind", CURRICULA)


def batch(game: str, curriculum: Any, num_envs: int = 5, **settings: Any) -> CurriculumVectorEnv:
    kwargs = {"num_threads": settings.pop("num_threads", 1), **settings.pop("env_kwargs", {})}
    return make_vec(IDS[game], num_envs, curriculum=curriculum, env_kwargs=kwargs, **settings)


def singles(
    game: str, curriculum: Any, num_envs: int = 5, *, mode: Any, **settings: Any
) -> CurriculumVectorEnv:
    """Return the same over single games."""

    def make() -> CurriculumEnv:
        return CurriculumEnv(SINGLE_ENVS[game](**settings), enable_local_tracking=False)

    return CurriculumVectorEnv(SyncVectorEnv([make] * num_envs, autoreset_mode=mode), curriculum)


def play(vec: Any, num_steps: int, seed: int = 0, *, is_idle: bool = False) -> list[Any]:
    """Play on with random actions; reset what has ended if nobody else does."""
    rng = np.random.default_rng(seed)
    results = []
    for _ in range(num_steps):
        actions = random_actions(vec, rng)
        if actions.ndim == 1:
            # Mostly to the right, where the door is.
            actions = np.where(rng.random(len(actions)) < 0.6, 2, actions)
        results.append(vec.step(actions * 0 if is_idle else actions))
        ended = results[-1][2] | results[-1][3]
        if vec.metadata["autoreset_mode"] is DISABLED and ended.any():
            results.append(vec.reset(options={"reset_mask": ended}))
    return results


def state_of(curriculum: Curriculum) -> tuple[Any, ...]:
    snapshot = curriculum.snapshot()
    return snapshot.state, {key: np.asarray(array) for key, array in snapshot.arrays.items()}
