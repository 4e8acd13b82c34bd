"""What a worker vector env promises: Gymnasium's semantics, copies, seeds, calls of single envs."""

import os
import pickle
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import TimeLimit
from gymnasium.wrappers.vector import (
    DictInfoToList,
    FlattenObservation,
    NormalizeObservation,
    NormalizeReward,
    RecordEpisodeStatistics,
)

from stepladder.errors import ChannelError, ConfigError, EnvError
from worker_envs import (
    DISABLED,
    NEXT_STEP,
    SAME_STEP,
    BoomError,
    Parcel,
    RandomEnv,
    TroubleEnv,
    no_actions,
    trouble_envs,
    worker_env,
    worker_pids,
)

pytestmark = [pytest.mark.processes, pytest.mark.timeout(60, method="signal")]

WORKERS = pytest.mark.parametrize("num_workers", [0, 1, 3])
MODES = pytest.mark.parametrize("mode", list(AutoresetMode))


def is_one_line(error: BaseException) -> bool:
    return "\n" not in str(error) and len(str(error)) > 20


# What Gymnasium itself checks.


@pytest.mark.filterwarnings("ignore:.*WARN")
def test_the_envs_of_these_tests_pass_gymnasiums_check() -> None:
    check_env(RandomEnv(0, spaces.Box(-1, 1, (2,)), spaces.Discrete(3), 1e9))


@WORKERS
def test_spaces_metadata_and_render_mode_are_those_of_the_plain_loop(num_workers: int) -> None:
    functions = trouble_envs(4, render_mode="rgb_array")
    theirs = SyncVectorEnv(functions)
    with worker_env(functions, num_workers=num_workers) as ours:
        assert isinstance(ours, VectorEnv)
        assert ours.num_envs == 4
        assert ours.num_workers == num_workers
        assert ours.metadata == theirs.metadata
        assert ours.render_mode == theirs.render_mode == "rgb_array"
        assert ours.observation_space == theirs.observation_space
        assert ours.action_space == theirs.action_space
        assert ours.spec is theirs.spec
        assert ours.unwrapped is ours
        assert "autoreset_mode" not in TroubleEnv.metadata
        np.testing.assert_array_equal(np.array(ours.render()), np.array(theirs.render()))
    theirs.close()


def test_samples_of_the_spaces_are_those_of_the_plain_loop() -> None:
    functions = trouble_envs(3)
    theirs = SyncVectorEnv(functions)
    with worker_env(functions, num_workers=1) as ours:
        ours.action_space.seed(5)
        theirs.action_space.seed(5)
        np.testing.assert_array_equal(ours.action_space.sample(), theirs.action_space.sample())
    theirs.close()


@WORKERS
@pytest.mark.parametrize(
    "wrap",
    [
        RecordEpisodeStatistics,
        NormalizeObservation,
        NormalizeReward,
        FlattenObservation,
        DictInfoToList,
        lambda env: DictInfoToList(RecordEpisodeStatistics(env)),
    ],
)
def test_gymnasiums_wrappers_give_the_same_on_top(
    num_workers: int, wrap: Callable[..., Any]
) -> None:
    functions = trouble_envs(4, quiet=False)
    theirs = wrap(SyncVectorEnv(functions))
    with worker_env(functions, num_workers=num_workers) as inner:
        ours = wrap(inner)
        both = [[env.reset(seed=1)] for env in (ours, theirs)]
        for number in range(9):
            for env, results in zip((ours, theirs), both, strict=True):
                results.append(env.step(np.full(4, number % 4)))
    theirs.close()
    for our, their in zip(*both, strict=True):
        for position, (part, expected) in enumerate(zip(our, their, strict=True)):
            if isinstance(expected, dict | list):
                _assert_infos_alike(part, expected)
            else:
                np.testing.assert_allclose(part, expected, err_msg=str(position))


def _assert_infos_alike(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            _assert_infos_alike(our, their)
        return
    assert ours.keys() == theirs.keys()
    for key in theirs:
        if isinstance(theirs[key], dict):
            _assert_infos_alike(ours[key], theirs[key])
        elif key != "t":
            # A time; all else is alike.
            np.testing.assert_array_equal(ours[key], theirs[key])


@WORKERS
def test_envs_from_the_registry_play_as_in_the_plain_loop(num_workers: int) -> None:
    functions = [partial(gym.make, "CartPole-v1", max_episode_steps=20)] * 5
    theirs = SyncVectorEnv(functions)
    with worker_env(functions, num_workers=num_workers) as ours:
        np.testing.assert_array_equal(ours.reset(seed=3)[0], theirs.reset(seed=3)[0])
        theirs.action_space.seed(0)
        for _ in range(60):
            actions = theirs.action_space.sample()
            for our, their in zip(ours.step(actions)[:4], theirs.step(actions)[:4], strict=True):
                np.testing.assert_array_equal(our, their)
    theirs.close()


# Copies.


@WORKERS
def test_what_was_handed_out_does_not_change_with_the_next_step(num_workers: int) -> None:
    with worker_env(4, num_workers=num_workers, env={"quiet": False}) as vec:
        results = [*vec.reset(seed=0)[:1]]
        for number in range(1, 8):
            results += vec.step(np.full(4, number % 4))
        again = [*vec.reset(seed=0)[:1]]
        for number in range(1, 8):
            again += vec.step(np.full(4, number % 4))
        for before, after in zip(results, again, strict=True):
            if not isinstance(before, dict):
                # All but how often it was reset.
                before, after = np.delete(before, 1, -1), np.delete(after, 1, -1)
                np.testing.assert_array_equal(before, after)


@WORKERS
def test_without_copies_observations_are_the_memory_itself(num_workers: int) -> None:
    with worker_env(4, num_workers=num_workers, copy=False) as vec:
        first, _ = vec.reset(seed=0)
        kept = first.copy()
        second, rewards, terminated, truncated, _ = vec.step(np.full(4, 2))
        assert np.shares_memory(first, second)
        assert np.shares_memory(first, vec.buffers.observations)
        assert (first != kept).any()
        vec.step(np.full(4, 1))
        # Only observations are large enough to be worth it.
        np.testing.assert_array_equal(rewards, 2.0)
        assert not (terminated | truncated).any()


def test_values_without_a_fixed_size_are_copied_too() -> None:
    class Collector(gym.Env[Any, Any]):
        observation_space = Parcel()
        action_space = spaces.Discrete(2)

        def __init__(self) -> None:
            self.seen: list[int] = []

        def reset(self, *, seed: Any = None, options: Any = None):
            self.seen.clear()
            return self.seen, {}

        def step(self, action: Any):
            self.seen.append(int(action))
            return self.seen, 0.0, False, False, {}

    with worker_env([Collector] * 4, num_workers=1) as vec:
        vec.reset()
        first = vec.step(np.ones(4, dtype=np.int64))[0]
        vec.step(np.zeros(4, dtype=np.int64))
        assert first == ([1], [1], [1], [1])


def test_an_env_may_keep_the_action_that_it_was_given() -> None:
    class Keeper(gym.Env[Any, Any]):
        observation_space = spaces.Box(-1, 9, (2,), np.float32)
        action_space = spaces.Box(-1, 9, (2,), np.float32)

        def __init__(self) -> None:
            self.kept: list[Any] = []

        def reset(self, *, seed: Any = None, options: Any = None):
            return np.zeros(2, np.float32), {}

        def step(self, action: Any):
            self.kept.append(action)
            return np.zeros(2, np.float32), 0.0, False, False, {}

    with worker_env([Keeper] * 4, num_workers=1) as vec:
        vec.reset()
        actions = np.zeros((4, 2), np.float32)
        for number in range(3):
            actions[:] = number
            vec.step(actions)
        for kept in vec.get_attr("kept"):
            assert [float(action[0]) for action in kept] == [0, 1, 2]


def test_observations_of_another_structure_or_shape_are_refused_with_the_env_named() -> None:
    class Liar(TroubleEnv):
        def step(self, action: Any):
            return np.zeros(1), 0.0, False, False, {}

    for workers, row in ((0, 0), (1, 1)):
        functions: list[Any] = trouble_envs(2)
        functions[row] = partial(Liar, row)
        with worker_env(functions, num_workers=workers) as vec:
            vec.reset()
            with pytest.raises(EnvError, match=rf"env {row} .*\(1,\).*\(3,\)"):
                vec.step(no_actions(vec))


# Endings.


@WORKERS
@MODES
@pytest.mark.parametrize("length", [1, 3])
def test_no_observation_is_lost(num_workers: int, mode: AutoresetMode, length: int) -> None:
    """Every observation of every episode arrives, in order, its first and last one included."""
    with worker_env(5, num_workers=num_workers, autoreset_mode=mode, env={"length": length}) as vec:
        observations, _ = vec.reset(seed=0)
        seen: list[list[tuple[int, int]]] = [[] for _ in range(5)]

        def note(rows: Any, values: Any) -> None:
            for row in rows:
                assert values[row][0] == row
                seen[row].append((int(values[row][1]), int(values[row][2])))

        note(range(5), observations)
        for _ in range(4 * length):
            observations, _, terminated, truncated, infos = vec.step(no_actions(vec))
            ended = terminated | truncated
            if mode is SAME_STEP and ended.any():
                np.testing.assert_array_equal(infos["_final_obs"], ended)
                np.testing.assert_array_equal(infos["_final_info"], ended)
                assert infos["final_info"]["is_success"].all()
                note(np.flatnonzero(ended), infos["final_obs"])
            note(range(5), observations)
            if mode is DISABLED and ended.any():
                observations, _ = vec.reset(options={"reset_mask": ended})
                note(np.flatnonzero(ended), observations)
        for moments in seen:
            whole = [(reset, step) for reset in range(1, 99) for step in range(length + 1)]
            assert moments == whole[: len(moments)]
            assert len(moments) > 3 * length


def test_a_final_observation_is_not_overwritten_by_an_env_that_reuses_its_memory() -> None:
    class Reuser(TroubleEnv):
        memory = np.zeros(3)

        def _observe(self) -> np.ndarray:
            self.memory[:] = super()._observe()
            return self.memory

    functions = [partial(Reuser, index, 2) for index in range(3)]
    with worker_env(functions, num_workers=1, autoreset_mode=SAME_STEP) as vec:
        vec.reset()
        vec.step(no_actions(vec))
        observations, *_, infos = vec.step(no_actions(vec))
        np.testing.assert_array_equal(np.stack(infos["final_obs"])[:, 2], 2)
        np.testing.assert_array_equal(observations[:, 2], 0)


@WORKERS
def test_stepping_over_an_ending_without_a_reset_is_refused(num_workers: int) -> None:
    with worker_env(3, num_workers=num_workers, autoreset_mode=DISABLED, env={"length": 1}) as vec:
        vec.reset()
        vec.step(no_actions(vec))
        with pytest.raises(ResetNeeded, match="reset_mask") as caught:
            vec.step(no_actions(vec))
        assert is_one_line(caught.value)
        vec.reset()
        assert vec.step(no_actions(vec))[2].all()


def test_a_mask_resets_only_its_envs_in_every_mode() -> None:
    for mode in AutoresetMode:
        with worker_env(4, num_workers=1, autoreset_mode=mode) as vec:
            vec.reset(seed=0)
            vec.step(no_actions(vec))
            mask = np.array([True, False, False, True])
            options = {"reset_mask": mask, "level": 2}
            observations, _ = vec.reset(seed=9, options=options)
            # The user's own, and not ours to change.
            assert set(options) == {"reset_mask", "level"}
            np.testing.assert_array_equal(observations[:, 2], [0, 1, 1, 0])
            assert [seeds[-1] for seeds in vec.get_attr("seeds")] == [9, 1, 2, 12]
            assert [given[-1] for given in vec.get_attr("options")] == [
                {"level": 2} if masked else None for masked in mask
            ]


@pytest.mark.parametrize(
    "mask",
    [
        [True, False, True, False],
        np.array([1, 0, 1, 0]),
        np.array([True, False]),
        np.zeros(4, dtype=bool),
        np.ones((4, 1), dtype=bool),
    ],
)
def test_a_wrong_mask_is_refused_and_nothing_is_reset(mask: Any) -> None:
    with worker_env(4, num_workers=1) as vec:
        vec.reset()
        with pytest.raises(ConfigError, match="reset_mask") as caught:
            vec.reset(options={"reset_mask": mask})
        assert is_one_line(caught.value)
        assert vec.get_attr("resets") == (1, 1, 1, 1)
        vec.step(no_actions(vec))


# Seeds and options.


@WORKERS
def test_seeds_reach_each_env(num_workers: int) -> None:
    with worker_env(4, num_workers=num_workers) as vec:
        vec.reset(seed=7)
        vec.reset(seed=[1, None, 3, 4])
        vec.reset()
        vec.reset(seed=np.int64(20))  # type: ignore[arg-type]
        vec.reset(seed=(5, 6, 7, 8))
        assert vec.get_attr("seeds") == (
            [7, 1, None, 20, 5],
            [8, None, None, 21, 6],
            [9, 3, None, 22, 7],
            [10, 4, None, 23, 8],
        )
        assert vec.np_random_seed == (5, 6, 7, 8)


@pytest.mark.parametrize("seed", [[1, 2, 3], [], range(5)])
def test_a_wrong_number_of_seeds_is_refused_and_nothing_is_reset(seed: Any) -> None:
    with worker_env(4, num_workers=1) as vec:
        with pytest.raises(ConfigError, match=f"{len(seed)} entries.* 4 envs") as caught:
            vec.reset(seed=seed)
        assert is_one_line(caught.value)
        assert vec.get_attr("resets") == (0, 0, 0, 0)


@WORKERS
def test_options_reach_each_env(num_workers: int) -> None:
    with worker_env(4, num_workers=num_workers) as vec:
        options = {"level": 3, "array": np.arange(3)}
        vec.reset(options=options)
        for given in vec.get_attr("options"):
            assert given[-1]["level"] == 3
            np.testing.assert_array_equal(given[-1]["array"], [0, 1, 2])
        vec.reset(seed=3, options={"level": 4})
        assert [given[-1] for given in vec.get_attr("options")] == [{"level": 4}] * 4


# Actions.


@pytest.mark.parametrize(
    "actions",
    [
        np.zeros(3, dtype=np.int64),
        np.zeros((4, 1), dtype=np.int64),
        np.zeros(4),
        np.array(["a", "b", "c", "d"]),
        [0, 1, 2],
        [[0], [1, 2], 3, 4],
        [None] * 4,
        0,
        None,
        {"action": np.zeros(4)},
    ],
)
def test_wrong_actions_are_refused_and_no_env_is_stepped(actions: Any) -> None:
    with worker_env(4, num_workers=1) as vec:
        vec.reset()
        with pytest.raises(ConfigError, match="actions") as caught:
            vec.step(actions)
        assert is_one_line(caught.value)
        assert vec.get_attr("steps") == (0, 0, 0, 0)
        vec.step(no_actions(vec))
        assert vec.get_attr("steps") == (1, 1, 1, 1)


def test_wrong_parts_of_nested_actions_are_named_and_no_env_is_stepped() -> None:
    space = spaces.Dict(
        {
            "move": spaces.Discrete(3),
            "turn": spaces.Tuple((spaces.Box(-1, 1, (2,)), spaces.Text(4))),
        }
    )
    functions = [partial(RandomEnv, index, spaces.Discrete(2), space) for index in range(4)]
    with worker_env(functions, num_workers=1) as vec:
        vec.reset(seed=0)
        right = vec.action_space.sample()
        box, texts = right["turn"]
        wrong: list[tuple[Any, str]] = [
            ({"turn": right["turn"]}, "'move'"),
            ({**right, "turn": (box,)}, "'turn'"),
            ({**right, "turn": (box[:, :1], texts)}, "'turn'"),
            ({**right, "turn": (box, texts[:3])}, "'turn'"),
            ({**right, "turn": (box, 5)}, "'turn'"),
            ({**right, "move": np.zeros(4)}, "'move'"),
            (right["move"], "move"),
            (None, "move"),
        ]
        for actions, named in wrong:
            with pytest.raises(ConfigError, match=named) as caught:
                vec.step(actions)
            assert is_one_line(caught.value)
        rewards = vec.step(right)[1]
        vec.reset(seed=0)
        np.testing.assert_array_equal(vec.step(right)[1], rewards)


@WORKERS
def test_actions_may_be_lists_and_other_types_that_fit(num_workers: int) -> None:
    with worker_env(4, num_workers=num_workers, env={"length": 99}) as vec:
        vec.reset()
        for actions in ([0, 1, 2, 3], (0, 1, 2, 3), np.arange(4, dtype=np.int8)):
            np.testing.assert_array_equal(vec.step(actions)[1], [0, 1, 2, 3])
        assert all(set(given) == {row} for row, given in enumerate(vec.get_attr("actions")))


def test_floats_of_another_width_fit() -> None:
    space = spaces.Box(-1, 1, (2,), np.float32)
    functions = [partial(RandomEnv, index, spaces.Discrete(2), space) for index in range(3)]
    with worker_env(functions, num_workers=1) as vec:
        vec.reset(seed=0)
        vec.step(np.zeros((3, 2), dtype=np.float64))


# EnvCaller single envs.


@WORKERS
def test_call_get_attr_and_set_attr_reach_every_env_in_order(num_workers: int) -> None:
    with worker_env(5, num_workers=num_workers) as vec:
        assert vec.call("try_call", 1, two=2) == tuple((row, (1,), {"two": 2}) for row in range(5))
        assert vec.get_attr("env_index") == (0, 1, 2, 3, 4)
        assert vec.call("env_index") == (0, 1, 2, 3, 4)
        vec.set_attr("length", 9)
        assert vec.get_attr("length") == (9,) * 5
        vec.set_attr("length", [1, 2, 3, 4, 5])
        assert vec.get_attr("length") == (1, 2, 3, 4, 5)
        vec.set_attr("length", (5, 4, 3, 2, 1))
        assert vec.get_attr("length") == (5, 4, 3, 2, 1)
        assert vec.call_on([3, 0], "try_call") == [(3, (), {}), (0, (), {})]
        vec.set_attr_on([4, 1], "length", [40, 10])
        assert vec.get_attr("length") == (5, 10, 3, 2, 40)
        assert vec.call_on([], "try_call") == []


def test_names_are_found_through_wrappers() -> None:
    functions = [partial(lambda row: TimeLimit(TroubleEnv(row), 50), row) for row in range(3)]
    with worker_env(functions, num_workers=1) as vec:
        assert vec.get_attr("env_index") == (0, 1, 2)
        vec.set_attr("length", 7)
        assert vec.get_attr("length") == (7, 7, 7)
        vec.set_attr_on([2], "length", [8])
        assert vec.get_attr("length") == (7, 7, 8)


@WORKERS
def test_calls_of_what_is_not_there_raise_what_the_plain_loop_raises(num_workers: int) -> None:
    with worker_env(4, num_workers=num_workers) as vec:
        with pytest.raises(AttributeError, match="no_such_thing"):
            vec.call("no_such_thing")
        with pytest.raises(ConfigError, match="3 values for 4 envs"):
            vec.set_attr("length", [1, 2, 3])
        for name in ("reset", "step", "close"):
            with pytest.raises(ConfigError, match=name) as caught:
                vec.call(name)
            assert is_one_line(caught.value)
        assert vec.get_attr("resets") == (0, 0, 0, 0)


def test_envs_that_are_not_there_are_refused() -> None:
    with worker_env(4, num_workers=1) as vec:
        for indices in ([4], [-1], [0, 99]):
            with pytest.raises((ConfigError, IndexError)) as caught:
                vec.call_on(indices, "pid")
            assert is_one_line(caught.value)
        with pytest.raises(ConfigError) as caught:
            vec.set_attr_on([0, 3], "length", [1])
        assert is_one_line(caught.value)
        assert vec.get_attr("length") == (3, 3, 3, 3)


def test_what_a_call_returns_may_be_anything_that_cloudpickle_takes() -> None:
    class Generous(TroubleEnv):
        def give(self) -> Any:
            return lambda: self.env_index

    functions = [partial(Generous, index) for index in range(3)]
    with worker_env(functions, num_workers=1) as vec:
        assert [value() for value in vec.call("give")] == [0, 1, 2]


def test_arguments_that_cannot_travel_are_refused_and_nothing_is_left_of_them() -> None:
    with worker_env(4, num_workers=1) as vec:
        for _ in range(2):
            with pytest.raises((TypeError, pickle.PicklingError)):
                vec.set_attr("length", threading.Lock())
            with pytest.raises((TypeError, pickle.PicklingError)):
                vec.call("try_call", threading.Lock())
            assert vec.get_attr("length") == (3, 3, 3, 3)
        np.testing.assert_array_equal(vec.reset(seed=1)[0][:, 2], 0)
        assert vec.get_attr("env_index") == (0, 1, 2, 3)


# Who does it.


def test_parent_and_workers_share_the_envs_evenly() -> None:
    for num_envs, workers in ((4, 1), (8, 3), (7, 2), (5, 3)):
        with worker_env(num_envs, num_workers=workers) as vec:
            pids = vec.call("pid")
            sizes = [pids.count(pid) for pid in set(pids)]
            assert len(sizes) == workers + 1
            assert os.getpid() in pids
            assert max(sizes) - min(sizes) <= 1


def test_a_parent_that_must_not_step_leaves_all_envs_to_workers() -> None:
    with worker_env(4, num_workers=2, parent_steps=False) as vec:
        assert os.getpid() not in vec.call("pid")
        assert len(worker_pids(vec)) == 2
        vec.reset(seed=0)
        assert vec.step(no_actions(vec))[0][:, 2].tolist() == [1, 1, 1, 1]


def test_there_are_no_more_workers_than_envs_beside_the_parents_own() -> None:
    with worker_env(2, num_workers=5) as vec:
        assert vec.num_workers == 1
    with worker_env(1, num_workers=5) as vec:
        assert vec.num_workers == 0


def test_envs_may_differ_in_their_bounds_if_that_is_said() -> None:
    def make(high: float) -> gym.Env[Any, Any]:
        env = TroubleEnv()
        env.observation_space = spaces.Box(-1, high, (3,), np.float64)
        return env

    functions = [partial(make, 1.0), partial(make, 2.0), partial(make, 3.0)]
    with pytest.raises(ConfigError, match=r"env 1 .*observation_mode"):
        worker_env(functions, num_workers=1).__enter__()
    theirs = SyncVectorEnv(functions, observation_mode="different")
    with worker_env(functions, num_workers=1, observation_mode="different") as ours:
        assert ours.observation_space == theirs.observation_space
        assert ours.single_observation_space == theirs.single_observation_space
    theirs.close()


# Halves in turn.


@pytest.mark.parametrize("num_workers", [0, 1, 2])
@MODES
def test_halves_in_turn_equal_whole_steps(num_workers: int, mode: AutoresetMode) -> None:
    functions = [
        partial(RandomEnv, index, spaces.Box(-1, 1, (2,)), spaces.Discrete(5), 1e9)
        for index in range(7)
    ]
    if mode is not DISABLED:
        functions = [partial(make.func, *make.args[:3], 3.0) for make in functions]
    settings: Any = {"num_workers": num_workers, "autoreset_mode": mode}
    with (
        worker_env(functions, **settings) as whole,
        worker_env(functions, num_batches=2, **settings) as halves,
    ):
        first, second = halves.batches
        assert (first.start, second.stop) == (0, 7)
        assert first.stop == second.start
        whole.reset(seed=4)
        halves.reset(seed=4)
        for number in range(15):
            actions = np.arange(number, number + 7) % 5
            expected = whole.step(actions)
            halves.send(actions[first], 0)
            halves.send(actions[second], 1)
            for batch_index in (0, 1) if number % 2 else (1, 0):
                rows = halves.batches[batch_index]
                got = halves.recv(batch_index)
                for our, their in zip(got[:4], expected[:4], strict=True):
                    np.testing.assert_array_equal(our, their[rows])
                _assert_part_of(got[4], expected[4], rows)


def _assert_part_of(part: dict[str, Any], whole: dict[str, Any], rows: slice) -> None:
    """Infos of some rows are those rows of all infos; what no row of them has may be missing."""
    for key, mask in whole.items():
        # The type of a mixed one is that of the first env that has it, here and there another.
        if not key.startswith("_") or key == "_mixed":
            continue
        if not mask[rows].any():
            assert key not in part
            continue
        np.testing.assert_array_equal(part[key], mask[rows])
        value = whole[key[1:]]
        if isinstance(value, dict):
            _assert_part_of(part[key[1:]], value, rows)
        else:
            for our, their in zip(part[key[1:]][mask[rows]], value[rows][mask[rows]], strict=True):
                np.testing.assert_array_equal(our, their)


def test_one_batch_can_be_sent_and_received_too() -> None:
    with worker_env(4, num_workers=1) as vec:
        vec.reset()
        vec.send(np.arange(4))
        observations, rewards, *_ = vec.recv()
        np.testing.assert_array_equal(rewards, [0, 1, 2, 3])
        assert observations.shape == (4, 3)


def test_misuse_of_halves_is_refused_in_one_line() -> None:
    actions = np.zeros(2, dtype=np.int64)
    with worker_env(4, num_workers=1, num_batches=2) as vec:

        def refused(kind: type[Exception], call: Callable[[], Any], match: str) -> None:
            with pytest.raises(kind, match=match) as caught:
                call()
            assert is_one_line(caught.value)

        refused(ResetNeeded, lambda: vec.send(actions, 0), "reset")
        refused(ResetNeeded, lambda: vec.step(np.zeros(4, dtype=np.int64)), "reset")
        vec.reset()
        refused(ChannelError, lambda: vec.recv(0), "send")
        refused(ConfigError, lambda: vec.send(actions, 2), "batch 2")
        refused(ConfigError, lambda: vec.send(actions, -1), "batch.*-1")
        refused(ConfigError, lambda: vec.send(np.zeros(4, dtype=np.int64), 0), "shape")
        vec.send(actions, 0)
        refused(ChannelError, lambda: vec.send(actions, 0), "recv")
        refused(ChannelError, lambda: vec.recv(1), "send")
        refused(ChannelError, lambda: vec.step(np.zeros(4, dtype=np.int64)), "recv")
        refused(ChannelError, lambda: vec.call("pid"), "recv")
        some = {"reset_mask": np.arange(4) < 2}
        refused(ChannelError, lambda: vec.reset(options=some), "recv")
        vec.recv(0)
        assert vec.get_attr("steps") == (1, 1, 0, 0)


def test_a_reset_forgets_what_was_sent() -> None:
    with worker_env(4, num_workers=1, num_batches=2) as vec:
        vec.reset()
        vec.send(np.zeros(2, dtype=np.int64), 0)
        observations, _ = vec.reset(seed=1)
        np.testing.assert_array_equal(observations[:, 2], 0)
        np.testing.assert_array_equal(vec.step(no_actions(vec))[0][:, 2], 1)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_infos_too_large_for_their_room_arrive_with_their_batch(order: tuple[int, int]) -> None:
    class Talker(TroubleEnv):
        def step(self, action: Any):
            observation, reward, terminated, truncated, _ = super().step(action)
            info = {"blob": np.full(1 << 18, self.env_index), "who": self.env_index}
            return observation, reward, terminated, truncated, info

    functions = [partial(Talker, index) for index in range(6)]
    with worker_env(functions, num_workers=2, num_batches=2, autoreset_mode=NEXT_STEP) as vec:
        vec.reset(seed=0)
        for _ in range(3):
            for batch_index in order:
                vec.send(np.zeros(3, dtype=np.int64), batch_index)
            for batch_index in reversed(order):
                rows = vec.batches[batch_index]
                infos = vec.recv(batch_index)[4]
                expected = list(range(rows.start, rows.stop))
                assert infos["_who"].all()
                assert infos["who"].tolist() == expected
                assert infos["blob"][:, -1].tolist() == expected


# What adapters read.


def test_last_infos_are_what_the_envs_returned() -> None:
    with worker_env(4, num_workers=1, autoreset_mode=SAME_STEP, env={"length": 2}) as vec:
        vec.reset()
        assert vec.last_infos == []
        vec.step(no_actions(vec))
        assert vec.last_infos == []
        vec.merges_infos = False
        infos = vec.step(no_actions(vec))[4]
        assert infos == {}
        assert [row for row, _ in vec.last_infos] == [0, 1, 2, 3]
        for row, info in vec.last_infos:
            assert info["final_info"] == {"is_success": True}
            np.testing.assert_array_equal(info["final_obs"], [row, 1, 2])


@WORKERS
def test_buffers_are_the_live_memory(num_workers: int) -> None:
    with worker_env(4, num_workers=num_workers) as vec:
        buffers = vec.buffers
        observations, _ = vec.reset(seed=0)
        np.testing.assert_array_equal(buffers.observations, observations)
        vec.step(np.arange(4))
        np.testing.assert_array_equal(buffers.actions, np.arange(4))
        np.testing.assert_array_equal(buffers.rewards, np.arange(4))
        np.testing.assert_array_equal(buffers.observations[:, 2], 1)
        vec.step(no_actions(vec))
        vec.step(no_actions(vec))
        assert buffers.terminated.all()
        assert not buffers.truncated.any()


# An interrupted step.


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("seed", [None, 5])
def test_an_interrupted_step_can_be_followed_by_a_reset(num_workers: int, seed: int | None) -> None:
    with worker_env(4, num_workers=num_workers) as vec:
        vec.reset(seed=0)
        vec.set_attr_on([1], "trouble", [{"step": "interrupt"}])
        with pytest.raises(KeyboardInterrupt):
            vec.step(no_actions(vec))
        with pytest.raises(ResetNeeded):
            vec.step(no_actions(vec))
        observations, _ = vec.reset(seed=seed)
        np.testing.assert_array_equal(observations[:, 2], 0)
        for number in (1, 2, 3):
            np.testing.assert_array_equal(vec.step(no_actions(vec))[0][:, 2], number)


@pytest.mark.parametrize("num_batches", [1, 2])
def test_an_interrupted_step_while_a_worker_fails_leaves_nothing_behind(num_batches: int) -> None:
    with worker_env(4, num_workers=1, num_batches=num_batches) as vec:
        vec.reset(seed=0)
        vec.set_attr_on([0, 3], "trouble", [{"step": "interrupt"}, {"step": "raise"}])
        with pytest.raises(KeyboardInterrupt):
            vec.step(no_actions(vec))
        vec.reset(seed=3)
        assert vec.get_attr("env_index") == (0, 1, 2, 3)
        np.testing.assert_array_equal(vec.step(no_actions(vec))[0][:, 2], 1)


def test_what_was_raised_after_a_send_does_not_come_up_later() -> None:
    with worker_env(4, num_workers=1) as vec:
        vec.reset(seed=0)
        vec.set_attr_on([3], "trouble", [{"step": "raise"}])
        vec.send(no_actions(vec))
        vec.reset(seed=3)
        assert vec.get_attr("env_index") == (0, 1, 2, 3)


def test_when_both_halves_fail_the_first_is_raised_and_the_other_does_not_come_up_later() -> None:
    with worker_env(4, num_workers=1, num_batches=2) as vec:
        vec.reset(seed=0)
        vec.set_attr_on([1, 3], "trouble", [{"step": "raise"}] * 2)
        with pytest.raises(BoomError, match="env 1"):
            vec.step(no_actions(vec))
        assert vec.get_attr("env_index") == (0, 1, 2, 3)
        vec.reset(seed=1)
        assert vec.get_attr("env_index") == (0, 1, 2, 3)
        np.testing.assert_array_equal(vec.step(no_actions(vec))[0][:, 2], 1)


# Closed.


@WORKERS
def test_a_closed_vector_env_says_so(num_workers: int) -> None:
    with worker_env(4, num_workers=num_workers) as vec:
        vec.reset()
    calls: list[Callable[[], Any]] = [
        lambda: vec.reset(),
        lambda: vec.step(no_actions(vec)),
        lambda: vec.send(no_actions(vec)),
        lambda: vec.recv(),
        lambda: vec.call("pid"),
        lambda: vec.set_attr("length", 3),
        lambda: vec.render(),
    ]
    for call in calls:
        with pytest.raises(ChannelError, match="closed"):
            call()
    vec.close()
