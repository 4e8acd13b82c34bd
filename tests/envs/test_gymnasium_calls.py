"""What users of Gymnasium's own vector envs call and catch: two-part calls, `.envs`, errors, specs.

`docs/vector_env.md` lists what is the same and what is not.
"""

import multiprocessing
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import (
    AlreadyPendingCallError,
    ClosedEnvironmentError,
    NoAsyncCallError,
    ResetNeeded,
)
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from envs.workers.test_worker_trajectories import assert_same
from stepladder.envs import make_vec
from stepladder.errors import ChannelError, ConfigError, EnvTimeoutError
from worker_envs import BoomError, RandomEnv, TroubleEnv, no_actions, trouble_envs

pytestmark = [pytest.mark.processes, pytest.mark.timeout(60, method="signal")]

WORKERS = pytest.mark.parametrize("num_workers", [0, 1, 2])


@pytest.fixture
def make() -> Iterator[Callable[..., Any]]:
    """Make vector envs that are closed after the test."""
    made: list[Any] = []

    def make_one(envs: Any = 4, num_workers: int = 1, **settings: Any) -> Any:
        functions = trouble_envs(envs) if isinstance(envs, int) else envs
        settings.setdefault("start_method", "fork")
        made.append(make_vec(functions, num_workers=num_workers, **settings))
        return made[-1]

    yield make_one
    for vec in made:
        vec.close(timeout_s=1.0)


# Calls in two parts.


@WORKERS
@pytest.mark.parametrize("num_batches", [1, 2])
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_two_parts_give_what_one_call_gives(
    make: Any, num_workers: int, num_batches: int, mode: str
) -> None:
    space = spaces.Dict({"a": spaces.Box(-1, 1, (2,)), "b": spaces.Text(4)})
    functions = [partial(RandomEnv, row, space, spaces.Discrete(3)) for row in range(4)]
    parts = make(functions, num_workers, num_batches=num_batches, autoreset_mode=mode)
    whole = SyncVectorEnv(functions, autoreset_mode=mode)
    for seed in (3, None):
        parts.reset_async(seed=seed)
        assert_same(parts.reset_wait(), whole.reset(seed=seed))
        for number in range(8):
            actions = np.full(4, number % 3)
            parts.step_async(actions)
            assert_same(parts.step_wait(timeout=30.0), whole.step(actions))
    parts.call_async("get_wrapper_attr", "env_index")
    assert parts.call_wait(timeout=30.0) == (0, 1, 2, 3)
    whole.close()


def test_workers_step_between_the_two_parts(make: Any, tmp_path: Any) -> None:
    functions = trouble_envs(2, length=1, diary=tmp_path / "diary")
    vec = make(functions, 1)
    vec.reset()
    vec.step_async(no_actions(vec))
    assert vec._coordinator.is_done_within(30.0)
    # The worker's env has ended its episode; that of this process has not been stepped yet.
    assert (tmp_path / "diary").read_bytes() == b"."
    vec.step_wait()
    assert (tmp_path / "diary").read_bytes() == b".."


@pytest.mark.parametrize("pending", ["step", "reset", "call"])
def test_one_call_is_under_way_at_a_time(make: Any, pending: str) -> None:
    vec = make()
    vec.reset(seed=0)
    arguments = {"step": (no_actions(vec),), "reset": (), "call": ("pid",)}
    getattr(vec, f"{pending}_async")(*arguments[pending])
    others: list[tuple[str, tuple[Any, ...]]] = [
        *((f"{name}_async", given) for name, given in arguments.items()),
        *arguments.items(),
        ("send", (no_actions(vec),)),
        ("recv", ()),
        ("get_attr", ("steps",)),
        ("set_attr", ("steps", 3)),
        ("render", ()),
    ]
    for method, given in others:
        said = f"while waiting for a pending call to `{pending}` to complete"
        with pytest.raises(AlreadyPendingCallError, match=said) as caught:
            getattr(vec, method)(*given)
        assert isinstance(caught.value, ChannelError)
        assert caught.value.name == pending
    for name in {"step", "reset", "call"} - {pending}:
        with pytest.raises(NoAsyncCallError, match=f"Calling `{name}_wait` without"):
            getattr(vec, f"{name}_wait")()
    getattr(vec, f"{pending}_wait")()
    vec.step(no_actions(vec))


def test_waiting_for_nothing_is_refused(make: Any) -> None:
    vec = make()
    for name in ("step", "reset", "call"):
        with pytest.raises(NoAsyncCallError, match=f"`{name}_wait` without any prior") as caught:
            getattr(vec, f"{name}_wait")()
        assert caught.value.name == name
    with pytest.raises(ResetNeeded):
        vec.step_async(no_actions(vec))
    vec.reset()
    with pytest.raises(ConfigError):
        vec.step_async(np.zeros(3))
    vec.step(no_actions(vec))


@pytest.mark.parametrize("name", ["step", "reset", "call"])
def test_a_call_that_takes_too_long_is_given_up_and_a_reset_goes_on(make: Any, name: str) -> None:
    vec = make(trouble_envs(2), 1)
    vec.reset()
    vec.set_attr("pause_s", 0.5)
    arguments = {"step": (no_actions(vec),), "reset": (), "call": ("reset_slowly",)}[name]
    if name == "call":
        vec.apply_on([0, 1], add_slow_method)
    getattr(vec, f"{name}_async")(*arguments)
    with pytest.raises(
        multiprocessing.TimeoutError, match=f"`{name}_wait` has timed out"
    ) as caught:
        getattr(vec, f"{name}_wait")(timeout=0.05)
    assert isinstance(caught.value, EnvTimeoutError)
    with pytest.raises(ResetNeeded, match=f"its last {name} did not come to an end"):
        vec.step(no_actions(vec))
    vec.reset()
    vec.set_attr("pause_s", 0.0)
    vec.step(no_actions(vec))


def add_slow_method(env: Any) -> None:
    env.unwrapped.reset_slowly = partial(env.reset)


def test_an_error_of_an_env_comes_with_the_second_part(make: Any) -> None:
    vec = make(trouble_envs(2), 1)
    vec.reset()
    vec.set_attr("trouble", [{}, {"step": "raise"}])
    vec.step_async(no_actions(vec))
    with pytest.raises(BoomError, match="boom in step of env 1"):
        vec.step_wait()
    vec.reset()
    vec.step(no_actions(vec))


def test_a_worker_that_dies_between_the_parts_is_replaced(make: Any) -> None:
    vec = make(trouble_envs(2), 1)
    vec.reset()
    vec.set_attr("trouble", [{}, {"step": "kill"}])
    vec.step_async(no_actions(vec))
    truncated = vec.step_wait(timeout=30.0)[3]
    assert truncated.tolist() == [False, True]
    vec.reset_async(seed=1)
    vec.reset_wait()
    vec.step(no_actions(vec))


# Closing.


@WORKERS
def test_who_closes_with_a_call_under_way_is_warned(make: Any, num_workers: int) -> None:
    vec = make(4, num_workers)
    vec.reset()
    vec.step_async(no_actions(vec))
    with pytest.warns(UserWarning, match="Calling `close` while waiting for a pending call to"):
        vec.close(terminate=True)
    assert vec.closed


@pytest.mark.parametrize("how", [{}, {"timeout": 5.0}, {"terminate": True}])
@pytest.mark.parametrize("method", ["close", "close_extras"])
def test_closing_takes_gymnasiums_arguments(make: Any, method: str, how: dict[str, Any]) -> None:
    vec = make()
    vec.reset()
    getattr(vec, method)(**how)
    assert multiprocessing.active_children() == []
    vec.close()
    with pytest.raises(TypeError, match="unexpected keyword"):
        vec.close(nonsense=True)


@WORKERS
def test_a_closed_one_refuses_everything_as_gymnasiums_does(make: Any, num_workers: int) -> None:
    vec = make(4, num_workers)
    vec.close()
    calls: list[Callable[[], Any]] = [
        vec.reset,
        lambda: vec.step(no_actions(vec)),
        vec.reset_async,
        vec.reset_wait,
        lambda: vec.step_async(no_actions(vec)),
        vec.step_wait,
        lambda: vec.call("pid"),
        lambda: vec.call_async("pid"),
        vec.call_wait,
        lambda: vec.set_attr("steps", 1),
    ]
    for call in calls:
        with pytest.raises(ClosedEnvironmentError, match="closed") as caught:
            call()
        assert isinstance(caught.value, ChannelError)


# Envs, spaces, specs.


def test_the_envs_can_be_had_where_they_are_in_this_process(make: Any) -> None:
    vec = make(3, 0, wrappers=[partial(TimeLimit, max_episode_steps=2)])
    assert [env.unwrapped.env_index for env in vec.envs] == [0, 1, 2]
    assert all(isinstance(env, TimeLimit) for env in vec.envs)
    vec.envs[1].unwrapped.length = 7
    assert vec.get_attr("length") == (3, 7, 3)


def test_the_envs_of_workers_cannot_be_had_and_it_says_how_to_reach_them(make: Any) -> None:
    vec = make(3, 1)
    assert not hasattr(vec, "envs")
    with pytest.raises(AttributeError, match="Reach them with call, get_attr, set_attr"):
        _ = vec.envs


@WORKERS
@pytest.mark.parametrize("observation_mode", ["same", "different"])
def test_spaces_that_do_not_fit_are_gymnasiums_error_too(
    make: Any, num_workers: int, observation_mode: Any
) -> None:
    functions = [
        partial(RandomEnv, row, spaces.Box(-1, 1, (2 + row,)), spaces.Discrete(2))
        for row in range(3)
    ]
    with pytest.raises(RuntimeError, match="env 1 has the observation space") as caught:
        make(functions, num_workers, observation_mode=observation_mode)
    assert isinstance(caught.value, ConfigError)


@WORKERS
def test_observation_spaces_may_be_given(make: Any, num_workers: int) -> None:
    single = spaces.Box(-4, 4, (2,))
    batched = spaces.Box(-4, 4, (3, 2))
    functions = [
        partial(RandomEnv, row, spaces.Box(-1 - row, 1 + row, (2,)), spaces.Discrete(2))
        for row in range(3)
    ]
    ours = make(functions, num_workers, observation_mode=(batched, single))
    theirs = SyncVectorEnv(functions, observation_mode=(batched, single))
    assert ours.single_observation_space is single
    assert ours.observation_space is batched
    assert_same(ours.reset(seed=1), theirs.reset(seed=1))
    theirs.close()
    with pytest.raises(ConfigError, match="a tuple of the batched and the single"):
        make(functions, num_workers, observation_mode=(single,))


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        (np.array([True]), ValueError),
        (np.array([[True] * 4]), ValueError),
        (np.zeros(4, dtype=np.bool_), ValueError),
        (np.array([1, 1, 0, 0]), TypeError),
        (np.array([1.0, 1.0, 0.0, 0.0]), TypeError),
        ([True, True, False, False], TypeError),
    ],
)
def test_a_wrong_mask_is_refused_with_gymnasiums_class(make: Any, mask: Any, error: Any) -> None:
    ours, theirs = make(4, 0), SyncVectorEnv(trouble_envs(4))
    for vec in (ours, theirs):
        vec.reset()
        with pytest.raises(error):
            vec.reset(options={"reset_mask": mask})
    theirs.close()


@WORKERS
def test_metadata_mode_and_spec_are_there_and_not_the_envs_own(num_workers: int) -> None:
    vec = make_vec(
        "CartPole-v1",
        2,
        num_workers=num_workers,
        autoreset_mode="SameStep",
        env_kwargs={"render_mode": "rgb_array"},
    )
    assert vec.metadata["autoreset_mode"].value == "SameStep"
    assert vec.metadata["render_fps"] == 50
    assert "autoreset_mode" not in gym.make("CartPole-v1").metadata
    assert vec.render_mode == "rgb_array"
    assert vec.spec is not None
    assert (vec.spec.id, vec.spec.kwargs["render_mode"]) == ("CartPole-v1", "rgb_array")
    assert "render_mode" not in gym.spec("CartPole-v1").kwargs
    assert repr(vec) == "WorkerVectorEnv(CartPole-v1, num_envs=2)"
    vec.close()
    functions = make_vec(TroubleEnv, 2, num_workers=0)
    assert functions.spec is None
    functions.close()


def test_everything_public_of_gymnasiums_vector_envs_is_here(make: Any) -> None:
    """What is left out is named here and in the documentation, with the reason."""
    left_out = {
        # Arguments that Gymnasium keeps as attributes, and the inside of its processes.
        *("env_fns", "shared_memory", "context", "daemon", "worker", "observation_mode"),
        *("max_concurrency", "observations", "parent_pipes", "processes", "error_queue"),
    }
    ours = make(2, 0)
    ours.reset()
    for peer in (SyncVectorEnv(trouble_envs(2)), AsyncVectorEnv(trouble_envs(2))):
        names = {name for name in dir(peer) if not name.startswith("_")} - left_out
        assert [name for name in sorted(names) if not hasattr(ours, name)] == []
        peer.close()
