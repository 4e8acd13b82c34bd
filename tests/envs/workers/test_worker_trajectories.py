"""Whatever the spaces, endings and infos: element for element what `SyncVectorEnv` gives."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from worker_envs import DISABLED, Parcel, RandomEnv, worker_env

pytestmark = [pytest.mark.processes, pytest.mark.timeout(120, method="signal")]

shapes = st.sampled_from([(), (1,), (3,), (2, 3), (0,)])
kinds = ["float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool"]


def box(shape: tuple[int, ...], dtype: str) -> spaces.Box:
    if dtype == "bool":
        return spaces.Box(0, 1, shape, np.int8)
    low, high = (0, 200) if dtype == "uint8" else (-100, 100)
    return spaces.Box(low, high, shape, np.dtype(dtype).type)


leaves = st.one_of(
    st.builds(box, shapes, st.sampled_from(kinds)),
    st.builds(lambda n, start: spaces.Discrete(n, start=start), st.integers(1, 6), st.just(-2)),
    st.builds(lambda n: spaces.MultiDiscrete(n), st.lists(st.integers(1, 5), min_size=1)),
    st.builds(lambda: spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[1, 1], [0, -3]])),
    st.builds(spaces.MultiBinary, st.sampled_from([1, 4, [2, 2]])),
    st.builds(lambda: spaces.Text(5)),
    st.builds(Parcel),
)


def nest(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(
            lambda some: spaces.Dict({f"key{index}": part for index, part in enumerate(some)}),
            st.lists(parts, min_size=1, max_size=3),
        ),
        st.builds(lambda some: spaces.Tuple(some), st.lists(parts, min_size=1, max_size=3)),
    )


any_space = st.recursive(leaves, nest, max_leaves=4)


def assert_same(ours: Any, theirs: Any, where: str = "") -> None:
    """Compare two nested values: types, structure, and every element."""
    assert type(ours) is type(theirs), f"{where}: {type(ours)} and {type(theirs)}"
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), where
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{where}[{key!r}]")
    elif isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs), where
        for index, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(our, their, f"{where}[{index}]")
    elif isinstance(theirs, np.ndarray) and theirs.dtype == object:
        assert ours.dtype == object
        assert_same(list(ours), list(theirs), where)
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype, where
        # Of the many that are alike to the last bit most of the time went into saying so.
        if ours.shape != theirs.shape or ours.tobytes() != theirs.tobytes():
            np.testing.assert_array_equal(ours, theirs, err_msg=where)
    else:
        assert ours == theirs, where


def play_alike(ours: Any, theirs: Any, rng: np.random.Generator, num_steps: int) -> None:
    """Play two trajectories of both, with the same seeds and actions."""
    num_envs = theirs.num_envs
    listed = [int(seed) if seed % 3 else None for seed in rng.integers(1000, size=num_envs)]
    theirs.action_space.seed(int(rng.integers(1000)))
    for seed, options in ((int(rng.integers(1000)), None), (listed, {"word": "a"}), (None, None)):
        assert_same(
            ours.reset(seed=seed, options=options),
            theirs.reset(seed=seed, options=options),
            f"reset {seed}",
        )
        for number in range(num_steps):
            actions = theirs.action_space.sample()
            result = ours.step(actions)
            assert_same(result, theirs.step(actions), f"step {number}")
            if theirs.metadata["autoreset_mode"] is DISABLED:
                reset_some(ours, theirs, result[2] | result[3], rng)


def reset_some(ours: Any, theirs: Any, ended: np.ndarray, rng: np.random.Generator) -> None:
    """Reset those that have ended, and now and then one that has not."""
    mask = ended | (rng.random(len(ended)) < 0.1)
    if mask.any():
        seed = int(rng.integers(1000)) if rng.random() < 0.3 else None
        extra = {"why": "mask"} if rng.random() < 0.3 else {}
        given_to = [{"reset_mask": mask.copy(), **extra} for _ in range(2)]
        assert_same(
            ours.reset(seed=seed, options=given_to[0]),
            theirs.reset(seed=seed, options=given_to[1]),
            "reset some",
        )


@pytest.mark.parametrize("num_workers", [0, 1, 3])
@pytest.mark.parametrize("mode", list(AutoresetMode))
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    observation_space=any_space,
    action_space=any_space,
    num_envs=st.integers(1, 7),
    num_batches=st.sampled_from([1, 2]),
    parent_steps=st.booleans(),
    mean_length=st.sampled_from([1.0, 1.5, 4.0]),
    info_share=st.sampled_from([0.0, 0.3, 1.0]),
    in_place=st.booleans(),
    odd_keys=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_every_trajectory_is_that_of_the_plain_loop(
    num_workers: int,
    mode: AutoresetMode,
    observation_space: Any,
    action_space: Any,
    num_envs: int,
    num_batches: int,
    parent_steps: bool,
    mean_length: float,
    info_share: float,
    in_place: bool,
    odd_keys: bool,
    seed: int,
) -> None:
    functions: list[Callable[[], RandomEnv]] = [
        partial(
            RandomEnv,
            index,
            observation_space,
            action_space,
            mean_length,
            info_share,
            # Gymnasium itself hands out a final observation that the reset has overwritten.
            in_place and mode != AutoresetMode.SAME_STEP,
            odd_keys,
        )
        for index in range(num_envs)
    ]
    theirs = SyncVectorEnv(functions, autoreset_mode=mode)
    with worker_env(
        functions,
        num_workers=num_workers,
        autoreset_mode=mode,
        num_batches=min(num_batches, num_envs),
        # Without workers there is nobody else to step.
        parent_steps=parent_steps or not num_workers,
    ) as ours:
        assert ours.observation_space == theirs.observation_space
        assert ours.action_space == theirs.action_space
        assert ours.single_observation_space == theirs.single_observation_space
        assert ours.single_action_space == theirs.single_action_space
        play_alike(ours, theirs, np.random.default_rng(seed), num_steps=12)
    theirs.close()
