"""A small learner that generalises, for the tests of this folder."""

from typing import Any

from stepladder.simulator import Generalising, GeneralisingSimulator

SETTINGS: dict[str, Any] = {
    "groups": ("easy", "hard"),
    "num_tasks": (2, 3),
    "difficulty": (0.0, 2.0),
    "spread": (0.0, 0.0),
    "success_steps": (3, 4),
    "failure_steps": (6, 6),
    "length_spread": 0.0,
    "eta": 0.1,
    "eta_memory": 0.2,
    "lambda_forget": 0.0,
    "lambda_memory": 0.0,
    "update_steps": 10,
}


def small(**settings: Any) -> Generalising:
    return Generalising(**{**SETTINGS, **settings})


def learner(num_envs: int = 1, **settings: Any) -> GeneralisingSimulator:
    return GeneralisingSimulator(small(**settings), seed=1, num_envs=num_envs)
