"""What an env plays depends on its seed alone: not on batch, threads, chunks or global chance."""

import random
from typing import Any

import numpy as np
import pytest

from games.game_cases import (
    CASES,
    NEXT_STEP,
    SAME_STEP,
    assert_same,
    make_batch,
    random_actions,
    rows_of,
)
from stepladder.tasks import Task

FEW_CASES = ["hockey defence", "hockey both", "hockey fine", "ledge", "ledge mines"]
EACH = pytest.mark.parametrize("case", FEW_CASES)


def play(vec: Any, seed: Any, num_steps: int, actions: Any = None) -> list[Any]:
    """Play with actions that depend on each env's index only; close it; return all results."""
    given = actions or [random_actions_of(vec, number) for number in range(num_steps)]
    results = [vec.reset(seed=seed)]
    results += [vec.step(each) for each in given]
    vec.close()
    return results


def random_actions_of(vec: Any, number: int) -> Any:
    """Return actions of which the first rows do not depend on how many there are."""
    most = make_actions(vec, number)
    return rows_of(most, slice(0, vec.num_envs))


_MADE: dict[Any, Any] = {}


def make_actions(vec: Any, number: int) -> Any:
    key = (str(vec.single_action_space), number)
    if key not in _MADE:
        wide = type(vec)(70, num_threads=1, **_settings_of(vec))
        _MADE[key] = random_actions(wide, np.random.default_rng(number))
    return _MADE[key]


def _settings_of(vec: Any) -> dict[str, Any]:
    if not hasattr(vec, "players"):
        return {}
    kind = "discrete" if vec.fineness else "continuous"
    return {"players": vec.players, "actions": kind, "fineness": vec.fineness or 1}


def without_infos(results: list[Any]) -> list[Any]:
    return [results[0][0], *(result[:4] for result in results[1:])]


@EACH
@pytest.mark.parametrize("num_envs", [1, 15, 16, 17, 33, 70])
def test_an_env_plays_the_same_in_a_batch_of_any_size(case: str, num_envs: int) -> None:
    expected = play(make_batch(case, 5, num_threads=1), 11, 100)
    got = play(make_batch(case, num_envs, num_threads=2), 11, 100)
    rows = slice(0, min(5, num_envs))
    assert_same(
        rows_of(tuple(without_infos(got)), rows), rows_of(tuple(without_infos(expected)), rows)
    )


@EACH
@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
def test_the_number_of_threads_changes_nothing(case: str, mode: Any) -> None:
    one, two, three = (
        play(make_batch(case, 70, num_threads=num_threads, autoreset_mode=mode), 4, 120)
        for num_threads in (1, 2, 3)
    )
    assert_same(two, one)
    assert_same(three, one)


@pytest.mark.parametrize("case", CASES)
def test_two_runs_in_one_process_are_the_same(case: str) -> None:
    assert_same(play(make_batch(case, 6), 3, 80), play(make_batch(case, 6), 3, 80))


@EACH
def test_a_seed_is_honoured_every_time(case: str) -> None:
    vec = make_batch(case, 4, num_threads=1)
    actions = [random_actions_of(vec, number) for number in range(60)]
    first = [vec.reset(seed=8), *(vec.step(each) for each in actions)]
    for _ in range(7):
        vec.step(actions[0])
    assert_same([vec.reset(seed=8), *(vec.step(each) for each in actions)], first)
    assert_same(play(vec, [8, 9, 10, 11], 60, actions), first)


@pytest.mark.parametrize("case", ["hockey", "hockey defence", "hockey shooting"])
def test_resets_without_a_seed_and_other_seeds_give_other_games(case: str) -> None:
    vec = make_batch(case, 6)
    seen = [vec.reset(seed=1)[0], vec.reset()[0], vec.reset()[0], vec.reset(seed=2)[0]]
    others = [make_batch(case, 6).reset()[0] for _ in range(2)]
    rows = np.concatenate([*seen, *others])
    # A seed plus its index: five of the six with seed 2 are those of seed 1.
    assert len(np.unique(rows, axis=0)) == len(rows) - 5
    np.testing.assert_array_equal(seen[3][:5], seen[0][1:])


def test_only_those_that_are_given_a_seed_are_seeded() -> None:
    vec, twin = make_batch("hockey", 4), make_batch("hockey", 4)
    for each in (vec, twin):
        each.reset(seed=5)
    seen = vec.reset(seed=[None, 7, None, 0])[0]
    plain = twin.reset()[0]
    np.testing.assert_array_equal(seen[[0, 2]], plain[[0, 2]])
    assert not (seen[[1, 3]] == plain[[1, 3]]).all(axis=1).any()
    np.testing.assert_array_equal(seen[1], make_batch("hockey", 1).reset(seed=7)[0][0])
    np.testing.assert_array_equal(seen[3], make_batch("hockey", 1).reset(seed=0)[0][0])


def test_a_seed_with_a_mask_seeds_only_those_that_are_reset() -> None:
    vec, twin = make_batch("hockey", 3), make_batch("hockey", 3)
    for each in (vec, twin):
        each.reset(seed=5)
        each.step(np.zeros((3, 4)))
    before = vec.step(np.zeros((3, 4)))[0]
    mask = np.array([False, True, False])
    seen = vec.reset(seed=90, options={"reset_mask": mask})[0]
    np.testing.assert_array_equal(seen[~mask], before[~mask])
    np.testing.assert_array_equal(seen[1], make_batch("hockey", 1).reset(seed=91)[0][0])
    twin.step(np.zeros((3, 4)))
    for _ in range(50):
        ours, theirs = vec.step(np.zeros((3, 4))), twin.step(np.zeros((3, 4)))
        assert_same(rows_of(ours[:4], ~mask), rows_of(theirs[:4], ~mask))


@pytest.mark.parametrize("seeds", [(1, 2, 3), np.array([1, 2, 3]), [np.int32(1), 2, np.uint8(3)]])
def test_seeds_may_come_in_any_sequence(seeds: Any) -> None:
    vec = make_batch("hockey", 3)
    np.testing.assert_array_equal(vec.reset(seed=seeds)[0], vec.reset(seed=1)[0])


def test_neighbouring_seeds_give_unlike_games() -> None:
    seen = make_batch("hockey shooting", 500).reset(seed=0)[0]
    puck = seen[:, 12:14]
    assert len(np.unique(puck, axis=0)) == 500
    for column in puck.T:
        correlation = np.corrcoef(column[:-1], column[1:])[0, 1]
        assert abs(correlation) < 0.15


@EACH
def test_global_chance_is_neither_read_nor_touched(case: str) -> None:
    def run() -> list[Any]:
        return play(make_batch(case, 5), 6, 100)

    random.seed(1)
    np.random.seed(1)  # noqa: NPY002, to see that it is left alone
    before = (random.getstate(), np.random.get_state()[1].tolist())  # noqa: NPY002
    first = run()
    make_batch(case, 3).reset()
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002
    random.seed(2)
    np.random.seed(2)  # noqa: NPY002
    assert_same(run(), first)


@pytest.mark.parametrize("num_envs", [1, 2, 5])
def test_both_players_start_equally_often(num_envs: int) -> None:
    vec = make_batch("hockey", num_envs)
    pucks = [vec.reset(seed=3 if number == 0 else None)[0][:, 12] for number in range(40)]
    sides = np.sign(pucks).astype(int)
    assert (sides.sum(axis=0) == 0).all()
    assert (sides[1:] == -sides[:-1]).all()
    first = make_batch("hockey", 2000).reset(seed=0)[0][:, 12]
    assert abs(np.mean(first > 0) - 0.5) < 0.05


@pytest.mark.parametrize("starts", ["one", "two"])
def test_a_task_can_say_who_starts(starts: str) -> None:
    vec = make_batch("hockey", 20, starts=starts)
    for _ in range(3):
        puck = vec.reset()[0][:, 12]
        assert ((puck < 0) == (starts == "one")).all()


def test_envs_without_a_seed_of_their_own_are_not_alike() -> None:
    task = Task("same")
    vec = make_batch("hockey", 8)
    vec.set_tasks([task] * 8)
    assert len(np.unique(vec.reset()[0], axis=0)) == 8
