"""The planner: plans that succeed, and none where there is no way."""

import numpy as np
import pytest

from stepladder.errors import ConfigError
from stepladder.games.ledge.level import Level
from stepladder.games.ledge.physics import DIED, NOTHING, SUCCEEDED
from stepladder.games.ledge.planner import replay, solve

LEVELS = {
    "walk": "########\n#......#\n#@..S.D#\n########",
    "back": "########\n#......#\n#D.@..S#\n########",
    "mine": "##########\n#........#\n#........#\n#@..*S.*D#\n##########",
    "high wall": "#########\n#.......#\n#..##...#\n#..##...#\n#..##...#\n#@.##.SD#\n#########",
    "climb": "####\n#.D#\n#..#\n#..#\n#..#\n#..#\n#..#\n#..#\n#@S#\n####",
    "platforms": "#######\n#...S.#\n#..---#\n#.....#\n#---..#\n#.....#\n#@...D#\n#######",
    "low way": "#######\n#######\n#@...S#\n#####.#\n#D....#\n#######",
}


@pytest.mark.parametrize("name", list(LEVELS))
def test_a_plan_succeeds_with_its_last_action_and_not_before(name):
    level = Level.parse(LEVELS[name], name)
    plan = solve(level)
    assert plan is not None
    assert replay(level, plan.actions) == (SUCCEEDED, plan.num_steps)
    assert replay(level, plan.actions[:-1]) == (NOTHING, plan.num_steps - 1)
    assert plan.actions.dtype == np.uint8
    assert plan.num_states > 0


@pytest.mark.parametrize(
    "text",
    [
        "#####\n#@#S#\n#.#D#\n#####",  # no way to the switch
        "#####\n#@S##\n###D#\n#####",  # no way to the door
        "#######\n#@.*SD#\n#######",  # a mine where nobody can jump
    ],
)
def test_there_is_no_plan_where_there_is_no_way(text):
    assert solve(Level.parse(text), max_states=20_000) is None


def test_a_plan_keeps_to_the_time_limit():
    level = Level.parse(LEVELS["walk"])
    plan = solve(level)
    assert plan is not None
    assert solve(level.with_time_limit(plan.num_steps)) is not None
    assert solve(level.with_time_limit(5)) is None


@pytest.mark.parametrize("max_states", [0, -1, 10**8, 1.5])
def test_a_search_of_an_impossible_size_is_refused(max_states):
    with pytest.raises(ConfigError, match="max_states must"):
        solve(Level.parse(LEVELS["walk"]), max_states)


def test_the_smallest_search_finds_nothing_and_harms_nothing():
    assert solve(Level.parse(LEVELS["walk"]), max_states=1) is None
    assert solve(Level.parse(LEVELS["walk"]), max_states=2) is None


def test_the_same_level_gives_the_same_plan():
    level = Level.parse(LEVELS["platforms"])
    one, other = solve(level), solve(level)
    assert one is not None
    assert other is not None
    assert one.actions.tobytes() == other.actions.tobytes()


def test_a_replay_ends_with_death_or_time():
    level = Level.parse(LEVELS["mine"])
    event, num_steps = replay(level, np.full(100, 2, dtype=np.uint8))
    assert event == DIED
    assert num_steps < 20
    assert replay(level.with_time_limit(3), np.full(100, 2, dtype=np.uint8)) == (NOTHING, 3)
    assert replay(level, np.empty(0, dtype=np.uint8)) == (NOTHING, 0)
