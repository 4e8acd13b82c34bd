"""Infos about tasks can be left out; nothing else changes."""

from typing import Any

import numpy as np
import pytest

from stepladder import LearningProgress, Task, make_vec

TASKS = {
    "stepladder/Hockey-v0": [
        Task(mode, mode, {"mode": mode}) for mode in ("TRAIN_SHOOTING", "TRAIN_DEFENSE")
    ],
    "stepladder/Ledge-v0": [
        Task(f"level {seed}", "easy", {"stage": "simplest", "time_limit": 30}, seed)
        for seed in range(4)
    ],
}


def play(env_id: str, mode: str, **settings: Any) -> tuple[list[Any], dict[str, Any], set[str]]:
    """Play for a while; return what was seen, the curriculum's state and the keys of all infos."""
    curriculum = LearningProgress(TASKS[env_id], seed=3)
    envs = make_vec(env_id, 6, curriculum=curriculum, autoreset_mode=mode, env_kwargs=settings)
    envs.action_space.seed(0)
    observations, infos = envs.reset(seed=1)
    seen, keys = [observations], set(infos)
    for _ in range(200):
        observations, rewards, *ends, infos = envs.step(envs.action_space.sample())
        seen += [observations, rewards, *ends]
        keys |= set(infos) | set(infos.get("final_info", {}))
    assert envs.counts.finished > 12
    state = envs.snapshot().arrays
    envs.close()
    return seen, state, {key for key in keys if not key.startswith("_")}


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("env_id", TASKS)
def test_without_infos_about_tasks_everything_else_is_the_same(env_id: str, mode: str) -> None:
    seen, state, keys = play(env_id, mode)
    silent_seen, silent_state, silent_keys = play(env_id, mode, task_infos=False)
    left_out = keys - silent_keys
    assert silent_keys < keys
    assert left_out == {key for key in keys if key.startswith("curriculum_")}
    assert len(left_out) == 8
    np.testing.assert_equal(silent_seen, seen)
    np.testing.assert_equal(silent_state, state)
