"""What a hockey task may say beside its mode: who is played against, and for how long."""

from typing import Any

import numpy as np
import pytest

from games.game_cases import HOCKEY, NEXT_STEP, SAME_STEP, make_batch
from stepladder import make_vec
from stepladder.curricula import Mixed, Phase, Phased
from stepladder.errors import ConfigError
from stepladder.games.hockey.task import CALLER_OPPONENT
from stepladder.tasks import Task

WEAK = {"opponent": "basic_weak"}


def test_opponents_are_told_by_the_names_that_tasks_give_them() -> None:
    vec: Any = make_batch("hockey", 3, players="both", opponent="caller:newest")
    assert vec.opponents() == ["caller:newest"] * 3
    vec.reset(seed=0)
    vec.set_tasks([Task("a", params={"opponent": "caller:a"}), Task("weak", params=WEAK)], [0, 2])
    # They play on against whom they began with.
    assert vec.opponents() == ["caller:newest"] * 3
    vec.reset(options={"reset_mask": np.array([True, False, True])})
    assert vec.opponents() == ["caller:a", "caller:newest", "basic_weak"]
    assert vec.opponents(np.array([2, 0])) == ["basic_weak", "caller:a"]
    with pytest.raises(ConfigError, match="no env 3"):
        vec.opponents([3])


@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
def test_opponents_of_a_curriculum_change_when_an_episode_begins_and_only_then(mode: Any) -> None:
    speeds = {"caller:a": 31.0, "caller:b": 32.0, "weak": 33.0}
    tasks = [
        Task(f"against {name}", params={"opponent": name, "puck_speed": speed})
        for name, speed in speeds.items()
    ]
    # Its name is a setting of the episode, its speed what is really played.
    drawn = {"opponent": Mixed(("none", "strong", "caller:c")), "puck_speed": 40.0}
    phases = (
        Phase(name="by task", episodes=30, settings={"time_limit": Mixed((3, 5, 7))}),
        Phase(name="by setting", settings={**drawn, "time_limit": 4}),
    )
    vec = make_vec(
        HOCKEY,
        6,
        curriculum=Phased(tasks, seed=1, phases=phases),
        autoreset_mode=mode,
        env_kwargs={"players": "both", "num_threads": 1},
    )
    vec.reset(seed=0)
    base: Any = vec.unwrapped
    names, met = base.opponents(), set()
    for _ in range(80):
        vec.step({name: np.zeros((6, 4)) for name in ("player_one", "player_two")})
        for row in np.flatnonzero(base.batch.has_begun).tolist():
            names[row] = base.opponents([row])[0]
        assert base.opponents() == names
        for name, record in zip(names, base.playing.records, strict=True):
            assert record["puck_speed"] == speeds.get(name, 40.0)
            assert (record["opponent"] == CALLER_OPPONENT) == name.startswith("caller:")
        met.update(names)
    assert met == {*speeds, "none", "strong", "caller:c"}
    vec.close()


@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
def test_a_time_limit_truncates_and_never_lengthens(mode: Any) -> None:
    limits = {1: 1, 9: 9, 81: 81, 500: 81, None: 81}
    vec: Any = make_batch("hockey alone", 5, autoreset_mode=mode)
    tasks = [Task(f"at most {limit}", params={"time_limit": limit}) for limit in limits]
    vec.reset(seed=0, options={"tasks": tasks})
    lengths: list[list[int]] = [[], [], [], [], []]
    counted = np.zeros(5, dtype=np.int64)
    for _ in range(260):
        _, _, terminated, truncated, _ = vec.step(np.zeros((5, 4)))
        counted += (mode is SAME_STEP) | ~vec.batch.has_begun
        assert not terminated.any()
        for row in np.flatnonzero(truncated).tolist():
            lengths[row].append(int(counted[row]))
            counted[row] = 0
    assert [set(each) for each in lengths] == [{limit} for limit in limits.values()]


def test_a_goal_in_the_last_step_of_a_time_limit_terminates() -> None:
    free: Any = make_batch("hockey defence", 16)
    free.reset(seed=0)
    goals = [free.step(np.zeros((16, 4)))[2] for _ in range(60)]
    last = next(step for step, scored in enumerate(goals) if scored.any())
    short: Any = make_batch("hockey defence", 16, time_limit=last + 1)
    short.reset(seed=0)
    for _ in range(last + 1):
        _, _, terminated, truncated, _ = short.step(np.zeros((16, 4)))
    np.testing.assert_array_equal(terminated, goals[last])
    np.testing.assert_array_equal(truncated, ~goals[last])
