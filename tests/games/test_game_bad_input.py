"""What makes no sense is refused in one line that names it, and nothing has happened then."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from games.game_cases import (
    DISABLED,
    EASY,
    HOCKEY,
    LEDGE,
    SINGLE_ENVS,
    VECTOR_ENVS,
    assert_same,
    make_batch,
    random_actions,
)
from stepladder import make_vec
from stepladder.errors import ConfigError, EnvError, StepladderError, TaskError
from stepladder.tasks import Task

ZEROS = np.zeros((3, 4), dtype=np.float32)
ALL = np.ones(3, dtype=np.bool_)


def with_one(value: float, place: tuple[int, int] = (1, 2), width: int = 4) -> Any:
    actions = np.zeros((3, width))
    actions[place] = value
    return actions


def pair(one: Any, two: Any) -> dict[str, Any]:
    return {"player_one": one, "player_two": two}


BAD_ACTIONS: dict[str, dict[str, tuple[Any, str]]] = {
    "hockey": {
        "nan": (with_one(np.nan), r"env 1 are \[0.0, 0.0, nan, 0.0\].*-1 to 1"),
        "infinite": (with_one(np.inf), "env 1.*inf.*-1 to 1"),
        "too large": (with_one(1.5, (2, 0)), r"env 2 are \[1.5.*-1 to 1.*No env was stepped"),
        "too small": (with_one(-1.0001, (0, 3)), "env 0.*-1.0001"),
        "too few": (np.zeros((2, 4)), r"\(3, 4\).*\(2, 4\)"),
        "too wide": (np.zeros((3, 8)), r"\(3, 4\).*\(3, 8\)"),
        "flat": (np.zeros(12), r"\(3, 4\).*\(12,\)"),
        "text": (np.full((3, 4), "a"), "numbers.*<U1"),
        "objects": (np.full((3, 4), None), "numbers.*object"),
        "complex": (ZEROS + 1j, "numbers.*complex"),
        "truth values": (ZEROS > 0, "numbers.*bool"),
        "none": (None, r"\(3, 4\)"),
        "ragged": ([[0.0] * 4, [0.0] * 3, [0.0] * 4], "one row per env"),
        "a dict": (pair(ZEROS, ZEROS), r"\(3, 4\)|dict"),
    },
    "hockey joint": {
        "one player's": (ZEROS, r"\(3, 8\).*\(3, 4\)"),
        "nan of the second": (with_one(np.nan, (2, 7), 8), "env 2.*nan"),
    },
    "hockey both": {
        "no dict": (ZEROS, "player_one.*player_two.*ndarray"),
        "one player": ({"player_one": ZEROS}, "player_two"),
        "a third player": ({**pair(ZEROS, ZEROS), "player_three": ZEROS}, "player_three"),
        "nan of the second": (pair(ZEROS, with_one(np.nan)), "player_two of env 1.*nan"),
        "shape of the second": (pair(ZEROS, np.zeros((3, 3))), r"player_two.*\(3, 4\).*\(3, 3\)"),
    },
    "hockey discrete": {
        "too large": (np.array([0, 8, 0]), "8 of env 1.*0 to 7"),
        "negative": (np.array([0, 0, -1]), "-1 of env 2.*0 to 7"),
        "floats": (np.zeros(3), "integers.*float64"),
        "nan": (np.full(3, np.nan), "integers.*float64"),
        "truth values": (np.zeros(3, dtype=bool), "integers.*bool"),
        "shape": (np.zeros((3, 1), dtype=int), r"\(3,\).*\(3, 1\)"),
    },
    "hockey joint discrete": {
        "too large": (np.array([[0, 0], [0, 8], [0, 0]]), "8 of env 1.*0 to 7"),
        "flat": (np.zeros(6, dtype=int), r"\(3, 2\).*\(6,\)"),
    },
    "hockey fine": {
        "too large": (pair(np.zeros(3, int), np.array([0, 14, 0])), "player_two.*14.*0 to 13"),
    },
    "ledge": {
        "too large": (np.array([0, 0, 6]), "action 6 of env 2.*0 to 5"),
        "negative": (np.array([0, -1, 0]), "action -1 of env 1.*0 to 5"),
        "huge": (np.array([0, 2**63, 0], dtype=np.uint64), "9223372036854775808"),
        "floats": (np.zeros(3), "integers.*float64.*env 0.*Convert"),
        "nan": (np.full(3, np.nan), "integers.*float64"),
        "truth values": (np.zeros(3, dtype=bool), "integers.*bool"),
        "too many": (np.zeros(4, dtype=int), r"\(3,\).*\(4,\)"),
        "a number": (0, r"\(3,\).*\(\)"),
        "none": (None, r"\(3,\).*\(\)"),
        "text": ("idle", r"\(3,\).*\(\)"),
        "ragged": ([[1], 2, 3], "one row per env"),
    },
}


def refused(error: type[StepladderError], match: str, call: Callable[[], Any]) -> None:
    """Assert that a call is refused, in one line."""
    with pytest.raises(error, match=match) as caught:
        call()
    assert "\n" not in str(caught.value)


def play_on_alike(vec: Any, twin: Any, num_steps: int = 30) -> None:
    """Assert that two vector envs are in the same state, by playing on."""
    rng = np.random.default_rng(0)
    for _ in range(num_steps):
        actions = random_actions(vec, rng)
        assert_same(vec.step(actions), twin.step(actions))
    assert_same(vec.reset(), twin.reset())
    actions = random_actions(vec, rng)
    assert_same(vec.step(actions), twin.step(actions))


def two_alike(case: str, **settings: Any) -> tuple[Any, Any]:
    """Return two vector envs in mid-game."""
    rng = np.random.default_rng(1)
    both = [make_batch(case, 3, **settings) for _ in range(2)]
    for vec in both:
        vec.reset(seed=2)
    for _ in range(5):
        actions = random_actions(both[0], rng)
        for vec in both:
            vec.step(actions)
    return both[0], both[1]


# Actions.


@pytest.mark.parametrize(
    ("case", "what"), [(case, what) for case, all_of in BAD_ACTIONS.items() for what in all_of]
)
@pytest.mark.parametrize("way", ["step", "send"])
def test_bad_actions_are_refused_and_no_env_is_stepped(case: str, what: str, way: str) -> None:
    actions, match = BAD_ACTIONS[case][what]
    vec, twin = two_alike(case)

    def play() -> None:
        if way == "step":
            vec.step(actions)
        else:
            vec.send(actions)
            vec.recv()

    refused(EnvError, match, play)
    play_on_alike(vec, twin)


@pytest.mark.parametrize(
    ("game", "action"),
    [
        ("hockey", np.full(4, np.nan)),
        ("hockey", np.zeros(3)),
        ("hockey", np.zeros((1, 4))),
        ("hockey", None),
        ("ledge", 6),
        ("ledge", -1),
        ("ledge", 0.0),
        ("ledge", None),
        ("ledge", [0]),
    ],
)
def test_a_single_game_refuses_bad_actions_as_well(game: str, action: Any) -> None:
    env = SINGLE_ENVS[game]()
    env.reset(seed=0)
    refused(EnvError, "expected|must", lambda: env.step(action))
    assert env.vec.batch.episodes["length"][0] == 0


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8, list])
def test_any_kind_of_number_is_taken(kind: Any) -> None:
    actions = np.array([[1, -1, 0, 1]] * 3)
    given = actions.tolist() if kind is list else actions.astype(kind)
    vec, twin = two_alike("hockey")
    assert_same(vec.step(given), twin.step(actions.astype(np.float64)))
    assert_same(vec.step(np.asfortranarray(given)), twin.step(actions.astype(np.float64)))


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.int64, list])
def test_any_kind_of_whole_number_is_taken(kind: Any) -> None:
    given = [1, 5, 3] if kind is list else np.array([1, 5, 3]).astype(kind)
    for case in ("ledge", "hockey discrete"):
        vec, twin = two_alike(case)
        assert_same(vec.step(given), twin.step(np.array([1, 5, 3])))


def test_actions_that_were_sent_can_be_changed_before_they_are_played() -> None:
    vec, twin = two_alike("hockey")
    actions = np.full((3, 4), 0.5)
    vec.send(actions)
    actions[:] = -1.0
    assert_same(vec.recv(), twin.step(np.full((3, 4), 0.5)))


# Resets.

TASK = Task("a task", params={"stage": "simple"}, seed=3)


def ledge_task(**params: Any) -> Task:
    return Task("a task", params=params, seed=3)


BAD_OPTIONS: dict[str, tuple[Any, type[StepladderError], str]] = {
    "unknown": ({"word": 1}, ConfigError, "'word'.*reset_mask.*task"),
    "no dict": (5, ConfigError, "dict.*5"),
    "mask as a list": ({"reset_mask": [True] * 3}, ConfigError, r"3 bools.*\[True"),
    "mask too short": ({"reset_mask": ALL[:2]}, ConfigError, "3 bools"),
    "mask of numbers": ({"reset_mask": np.ones(3)}, ConfigError, "3 bools"),
    "empty mask": ({"reset_mask": ~ALL}, ConfigError, "no True"),
    "no task": ({"task": "simple"}, ConfigError, "Task.*'simple'"),
    "too few tasks": ({"tasks": [TASK] * 2}, ConfigError, "3 tasks"),
    "no tasks": ({"tasks": 5}, ConfigError, "3 tasks.*5"),
    "tasks of text": ({"tasks": "abc"}, ConfigError, "Task|3 tasks"),
    "list too short": ([None], ConfigError, "3.*None"),
    "list of numbers": ([5, None, None], ConfigError, "5"),
    "list of unknowns": ([None, {"word": 1}, None], ConfigError, "'word'"),
    "list with a mask": ([{"reset_mask": ALL}, None, None], ConfigError, "reset_mask"),
    "list with tasks": ([{"tasks": [TASK] * 3}, None, None], ConfigError, "tasks"),
    "no stage": ({"task": ledge_task(stag="simple")}, TaskError, "'a task'.*'stag'"),
    "unknown stage": ({"task": ledge_task(stage="hell")}, TaskError, "'hell'.*simplest"),
    "stage of a kind": ({"task": ledge_task(stage=5)}, TaskError, "5.*simplest"),
    "no text": ({"task": ledge_task(level=5)}, TaskError, "text.*int"),
    "bad level": ({"task": ledge_task(level="##")}, TaskError, "'@'"),
    "no seed": ({"task": Task("x", params={"stage": "simple"})}, TaskError, "seed"),
    "bad limit": ({"task": ledge_task(level=EASY, time_limit="a")}, TaskError, "time_limit.*'a'"),
    "misspelt": ({"task": ledge_task(level=EASY, time_limt=3)}, TaskError, "time_lim"),
    "one bad of three": (
        {"tasks": [TASK, TASK, ledge_task(stage="hell")]},
        TaskError,
        "'hell'.*simplest",
    ),
}


@pytest.mark.parametrize("what", BAD_OPTIONS)
def test_bad_options_of_a_reset_are_refused_and_nothing_is_reset(what: str) -> None:
    options, error, match = BAD_OPTIONS[what]
    vec, twin = two_alike("ledge mines")
    refused(error, match, lambda: vec.reset(seed=5, options=options))
    assert vec.tasks == twin.tasks
    play_on_alike(vec, twin)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"mode": "SHOOT"}, "mode.*TRAIN_SHOOTING.*'SHOOT'"),
        ({"mode": 3}, "mode.*3"),
        ({"mode": True}, "mode.*True"),
        ({"mode": None}, "mode.*None"),
        ({"opponent": "medium"}, "opponent.*'weak'.*'medium'"),
        ({"opponent": 1}, "opponent.*1"),
        ({"opponent": "caller"}, "'caller'.*players='both'"),
        ({"opponent": "caller:newest"}, "'caller:newest'.*players='both'"),
        ({"opponent": "caller:"}, "opponent.*'caller:' and a name.*'caller:'"),
        ({"time_limit": 0}, "time_limit.*at least 1; got 0"),
        ({"time_limit": 80.5}, "time_limit.*integer.*80.5"),
        ({"time_limit": True}, "time_limit.*integer.*True"),
        ({"time_limit": "soon"}, "time_limit.*'soon'"),
        ({"opponent_gain": -1.0}, "opponent_gain.*\\[0, 100\\].*-1.0"),
        ({"opponent_gain": "big"}, "opponent_gain.*'big'"),
        ({"opponent": "none", "opponent_gain": 101.0}, "opponent_gain.*\\[0, 100\\].*101.0"),
        ({"keep_mode": 1}, "keep_mode.*true or false.*1"),
        ({"puck_speed": 61.0}, "puck_speed.*\\[0, 60\\].*61"),
        ({"puck_speed": True}, "puck_speed.*True"),
        ({"starts": "three"}, "starts.*balanced.*'three'"),
        ({"success": "draw"}, "success.*win.*'draw'"),
        ({"touch_weight": "much"}, "touch_weight.*'much'"),
        ({"puck_sped": 3.0}, "'puck_sped'.*'puck_speed'"),
        ({"opponent_s": "weak"}, "'opponent_s'.*'opponent'"),
    ],
)
def test_a_hockey_task_that_makes_no_sense_is_refused_everywhere(
    params: dict[str, Any], match: str
) -> None:
    task = Task("odd", params=params)
    vec, twin = two_alike("hockey")
    refused(TaskError, f"(?s).*odd.*{match}|{match}", lambda: vec.set_tasks([task] * 3))
    refused(TaskError, match, lambda: vec.set_tasks([Task("fine"), task], [0, 1]))
    refused(TaskError, match, lambda: vec.reset(options={"task": task}))
    assert vec.tasks == twin.tasks
    play_on_alike(vec, twin)
    named = next(reversed(params))
    refused(StepladderError, named, lambda: VECTOR_ENVS["hockey"](2, **params))


@pytest.mark.parametrize(
    ("seed", "match"),
    [
        (-1, "-1"),
        (2.5, "2.5"),
        ("a", "'a'"),
        (True, "True"),
        (2**63, "9223372036854775808"),
        (2**63 - 2, "9223372036854775808"),
        ([1, 2], "3 seeds.*2"),
        ([1, 2, -3], "-3"),
        ([1, 2, "a"], "'a'"),
        ([1, 2, 3.0], "3.0"),
    ],
)
def test_bad_seeds_are_refused_and_nothing_is_reset(seed: Any, match: str) -> None:
    vec, twin = two_alike("hockey")
    refused(ConfigError, match, lambda: vec.reset(seed=seed))
    play_on_alike(vec, twin)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([TASK],), ConfigError),
        (([TASK] * 4,), ConfigError),
        (([TASK], [3]), ConfigError),
        (([TASK], [-1]), ConfigError),
        (([TASK], [0.5]), ConfigError),
        (([TASK, TASK], [0]), ConfigError),
        ((["a", "b", "c"],), ConfigError),
        ((None,), ConfigError),
        ((TASK,), ConfigError),
        (([TASK, TASK, ledge_task(stage="hell")],), TaskError),
    ],
)
def test_tasks_that_do_not_fit_are_refused_and_none_is_set(
    arguments: Any, error: type[StepladderError]
) -> None:
    vec, twin = two_alike("ledge mines")
    refused(error, ".", lambda: vec.set_tasks(*arguments))
    assert vec.tasks == twin.tasks
    play_on_alike(vec, twin)


@pytest.mark.parametrize("env_indices", [[3], [-1], [0, 7]])
def test_envs_that_are_not_there_cannot_be_asked(env_indices: list[int]) -> None:
    vec = make_batch("ledge", 3)
    refused(ConfigError, "env", lambda: vec.call_on(env_indices, "task"))


# Out of turn.


def test_stepping_before_the_first_reset_is_refused() -> None:
    for game, kind in VECTOR_ENVS.items():
        vec = kind(3)
        refused(EnvError, "before reset", lambda vec=vec: vec.step(random_actions(vec, RNG)))
        env = SINGLE_ENVS[game]()
        refused(EnvError, "before reset", lambda env=env: env.step(env.action_space.sample()))
        # As long as one of them has not been reset.
        vec.reset(options={"reset_mask": np.array([True, False, True])})
        refused(EnvError, "before reset", lambda vec=vec: vec.step(random_actions(vec, RNG)))
        vec.reset(options={"reset_mask": np.array([False, True, False])})
        vec.step(random_actions(vec, RNG))


RNG = np.random.default_rng(0)


def test_without_autoreset_an_env_that_has_ended_must_be_reset() -> None:
    vec = make_batch("ledge", 3, autoreset_mode=DISABLED, time_limit=4)
    vec.reset(seed=0)
    vec.step(np.zeros(3, dtype=int))
    vec.reset(options={"reset_mask": np.array([False, True, False])})
    for _ in range(3):
        result = vec.step(np.zeros(3, dtype=int))
    assert result[3].tolist() == [True, False, True]
    refused(EnvError, r"envs \[0, 2\].*reset_mask", lambda: vec.step(np.zeros(3, dtype=int)))
    vec.reset(options={"reset_mask": result[3]})
    result = vec.step(np.zeros(3, dtype=int))
    assert result[3].tolist() == [False, True, False]


def test_a_single_game_that_has_ended_must_be_reset() -> None:
    env = SINGLE_ENVS["ledge"](time_limit=1)
    env.reset()
    assert env.step(0)[3]
    refused(EnvError, "ended", lambda: env.step(0))


@pytest.mark.parametrize("game", VECTOR_ENVS)
def test_what_is_closed_stays_closed(game: str) -> None:
    vec, env = VECTOR_ENVS[game](3), SINGLE_ENVS[game]()
    vec.reset()
    env.reset()
    vec.close()
    env.close()
    vec.close()
    env.close()
    refused(EnvError, "closed", lambda: vec.step(random_actions(vec, RNG)))
    refused(EnvError, "closed", vec.reset)
    refused(EnvError, "closed", lambda: env.step(env.action_space.sample()))
    refused(EnvError, "closed", env.reset)


def test_receiving_without_sending_and_other_batches_are_refused() -> None:
    vec, twin = two_alike("ledge")
    refused(EnvError, "without send", vec.recv)
    refused(ConfigError, "index 0.*1", lambda: vec.send(np.zeros(3, dtype=int), 1))
    refused(ConfigError, "index 0.*2", lambda: vec.recv(2))
    play_on_alike(vec, twin)


def test_pictures_need_a_mode() -> None:
    vec = make_batch("ledge", 2)
    vec.reset()
    refused(ConfigError, "render_mode", vec.render)
    env = SINGLE_ENVS["hockey"]()
    env.reset()
    refused(ConfigError, "render_mode", env.render)


def test_the_second_player_is_not_shown_to_who_plays_the_first() -> None:
    vec = make_batch("hockey", 2)
    refused(ConfigError, "players='joint'", vec.obs_agent_two)  # type: ignore[attr-defined]


# Settings.

NOT_A_COUNT = [0, -1, 2.5, "a", True, None]


@pytest.mark.parametrize("game", VECTOR_ENVS)
@pytest.mark.parametrize("value", NOT_A_COUNT)
def test_counts_must_be_counts(game: str, value: Any) -> None:
    make = VECTOR_ENVS[game]
    refused(ConfigError, f"num_envs.*{value}", lambda: make(value))
    refused(ConfigError, f"num_threads.*{value}", lambda: make(2, num_threads=value))


@pytest.mark.parametrize(
    ("game", "settings", "match"),
    [
        ("hockey", {"render_mode": "ansi"}, "render_mode.*rgb_array.*'ansi'"),
        ("ledge", {"render_mode": 5}, "render_mode.*rgb_array.*5"),
        ("hockey", {"autoreset_mode": "Never"}, "autoreset_mode.*'NextStep'.*'Never'"),
        ("hockey", {"players": "two"}, "players.*'both'.*'two'"),
        ("hockey", {"players": None}, "players.*None"),
        ("hockey", {"actions": "keys"}, "actions.*'discrete'.*'keys'"),
        ("hockey", {"fineness": 3}, "fineness.*3.*continuous"),
        ("hockey", {"actions": "discrete", "fineness": 2}, "fineness.*2"),
        ("hockey", {"actions": "discrete", "fineness": 0}, "fineness.*0"),
        ("hockey", {"actions": "discrete", "fineness": 3.5}, "fineness.*3.5"),
        ("hockey", {"actions": "discrete", "fineness": "x"}, "fineness.*x"),
        ("hockey", {"actions": "discrete", "fineness": None}, "fineness.*None"),
        ("hockey", {"opponent": ""}, "opponent"),
        ("hockey", {"weather": "fine"}, "weather"),
        ("hockey", {"max_episode_steps": 5}, "max_episode_steps"),
        ("ledge", {"gamma": 1.5}, "gamma.*1.5"),
        ("ledge", {"gamma": float("nan")}, "gamma.*nan"),
        ("ledge", {"gamma": "x"}, "gamma.*x"),
        ("ledge", {"time_limit": 0}, "time_limit.*0"),
        ("ledge", {"time_limit": 2.5}, "time_limit.*2.5"),
        ("ledge", {"time_limit": "x"}, "time_limit.*x"),
        ("ledge", {"stage": "hell"}, "'hell'.*simplest"),
        ("ledge", {"level": 5}, "text.*int"),
        ("ledge", {"level": EASY, "stage": "simple"}, "both"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    game: str, settings: dict[str, Any], match: str
) -> None:
    refused(StepladderError, match, lambda: VECTOR_ENVS[game](2, **settings))
    if "autoreset_mode" not in settings:
        refused(StepladderError, match, lambda: SINGLE_ENVS[game](**settings))


@pytest.mark.parametrize(
    ("env", "arguments", "match"),
    [
        (LEDGE, {"num_envs": None}, "num_envs"),
        (LEDGE, {"num_envs": 0}, "num_envs"),
        (HOCKEY, {"env_kwargs": 5}, "env_kwargs.*5"),
        (HOCKEY, {"num_workers": -1}, "workers.*-1"),
        (HOCKEY, {"num_workers": "many"}, "workers.*'many'"),
        (LEDGE, {"curriculum": 5}, "curriculum.*5"),
        (LEDGE, {"autoreset_mode": "x"}, "autoreset_mode.*'x'"),
        (LEDGE, {"curriculum_env": {}}, "curriculum_env.*without"),
    ],
)
def test_our_own_maker_refuses_what_makes_no_sense(
    env: str, arguments: dict[str, Any], match: str
) -> None:
    refused(ConfigError, match, lambda: make_vec(env, **{"num_envs": 2, **arguments}))
