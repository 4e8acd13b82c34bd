"""A batch is, element for element, what Gymnasium's `SyncVectorEnv` makes of single games."""

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from games.game_cases import (
    CASES,
    DISABLED,
    MODES,
    NEXT_STEP,
    SAME_STEP,
    assert_same,
    game_of,
    make_batch,
    random_actions,
    single_functions,
)
from stepladder import make_vec

NUM_ENVS = 3
NUM_STEPS = 240


def reset_some(ours: Any, theirs: Any, must: Any, rng: np.random.Generator) -> None:
    """Reset those that must be, and now and then another, whether it has ended or not."""
    mask = must | (rng.random(len(must)) < 0.005)
    if not mask.any():
        return
    seed = int(rng.integers(1000)) if rng.random() < 0.5 else None
    answers = [vec.reset(seed=seed, options={"reset_mask": mask.copy()}) for vec in (ours, theirs)]
    assert_same(answers[0], answers[1], "reset some")


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
def test_every_trajectory_is_that_of_single_games(case: str, mode: AutoresetMode) -> None:
    rng = np.random.default_rng(len(case))
    ours = make_batch(case, NUM_ENVS, autoreset_mode=mode, num_threads=1)
    theirs = SyncVectorEnv(single_functions(case, NUM_ENVS), autoreset_mode=mode)
    num_ended, num_truncated = 0, 0
    listed = [5, None, 2**40]
    for seed in (int(rng.integers(1000)), listed):
        assert_same(ours.reset(seed=seed), theirs.reset(seed=seed), f"reset {seed}")
        if seed is listed:
            # The one in the middle has not been seeded anew, and goes on with what it had.
            assert ours.batch.seeds[1] not in ours.batch.seeds[[0, 2]]
        for number in range(NUM_STEPS // 2):
            actions = random_actions(ours, rng)
            result = ours.step(actions)
            assert_same(result, theirs.step(actions), f"step {number}")
            ended = result[2] | result[3]
            assert not (result[2] & result[3]).any()
            num_ended += int(ended.sum())
            num_truncated += int(result[3].sum())
            reset_some(ours, theirs, ended & (mode is DISABLED), rng)
    ours.close()
    theirs.close()
    if case not in ("hockey", "hockey shaped"):
        assert num_ended >= 2
    if case == "ledge":
        assert num_truncated >= 2


@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
@pytest.mark.parametrize("case", ["hockey both", "ledge mines"])
def test_worker_processes_play_what_the_batch_plays(case: str, mode: AutoresetMode) -> None:
    ours = make_batch(case, 4, autoreset_mode=mode)
    theirs = make_vec(single_functions(case, 4), num_workers=1, autoreset_mode=mode)
    rng = np.random.default_rng(0)
    try:
        assert_same(ours.reset(seed=3), theirs.reset(seed=3))
        for _ in range(150):
            actions = random_actions(ours, rng)
            assert_same(ours.step(actions), theirs.step(actions))
    finally:
        ours.close()
        theirs.close()


@pytest.mark.parametrize("case", ["ledge deadly", "ledge easy", "hockey defence"])
def test_endings_by_the_rules_are_terminated_and_say_so(case: str) -> None:
    vec = make_batch(case, 8, autoreset_mode=SAME_STEP, num_threads=1)
    rng = np.random.default_rng(3)
    vec.reset(seed=3)
    endings: dict[str, int] = {"terminated": 0, "won": 0, "lost": 0}
    for _ in range(300):
        actions = random_actions(vec, rng)
        if game_of(case) == "ledge":
            actions = np.where(rng.random(8) < 0.8, 2, actions)
        _, _, terminated, _, infos = vec.step(actions)
        if not terminated.any():
            continue
        final = infos["final_info"]
        success = final["is_success"][terminated]
        endings["terminated"] += int(terminated.sum())
        endings["won"] += int(success.sum())
        endings["lost"] += int((~success).sum())
        if game_of(case) == "hockey":
            winner = final["winner"][terminated]
            assert set(winner.tolist()) <= {-1, 1}
            np.testing.assert_array_equal(success, winner > 0)
        else:
            np.testing.assert_array_equal(success, ~final["has_died"][terminated])
            assert final["switch_touched"][terminated][success].all()
    assert endings["terminated"] == endings["won"] + endings["lost"] > 3
    assert endings["lost"] > 0 or case == "ledge easy"
    assert endings["won"] > 0 or case != "ledge easy"
    vec.close()


@pytest.mark.parametrize("case", ["hockey both", "hockey", "ledge mines"])
def test_without_a_copy_the_same_memory_is_shown_again(case: str) -> None:
    ours = make_batch(case, 4, copy=False, num_threads=1)
    theirs = make_batch(case, 4, num_threads=1)
    rng = np.random.default_rng(0)
    first = ours.reset(seed=0)[0]
    kept = theirs.reset(seed=0)[0]
    assert_same(first, kept)
    for _ in range(20):
        actions = random_actions(ours, rng)
        mine = ours.step(actions)
        assert_same(mine, theirs.step(actions))
        assert mine[0] is first
    with pytest.raises(AssertionError):
        assert_same(first, kept)
    ours.close()
    theirs.close()


def test_what_was_returned_stays_as_it_is() -> None:
    vec = make_batch("ledge easy", 4, num_threads=1, autoreset_mode=SAME_STEP)
    vec.reset(seed=0)
    results = [vec.step(np.full(4, 2)) for _ in range(30)]
    again = make_batch("ledge easy", 4, num_threads=1, autoreset_mode=SAME_STEP)
    again.reset(seed=0)
    for result in results:
        assert_same(result, again.step(np.full(4, 2)))
    vec.close()
    again.close()
