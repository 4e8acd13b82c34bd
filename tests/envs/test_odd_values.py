"""Odd rewards, observations, flags, signals and infos: taken as Gymnasium would, or refused.

A refusal is one line that names the env, the value and what was expected, whichever process the env
lives in and with or without a curriculum.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from stepladder import make_vec
from stepladder.agents.ppo.config import PPOConfig
from stepladder.curricula import Learnability, Uniform
from stepladder.curricula.uniform import UniformConfig
from stepladder.envs import CurriculumEnv
from stepladder.envs.success import SuccessReader
from stepladder.envs.values import number_of
from stepladder.errors import ConfigError, EnvError, RecordError, SignalError, StepladderError
from stepladder.tasks import NumberedSource, Pool, Task
from stepladder.training import train
from stepladder.training.config import EvaluationConfig, TrainingConfig

ACTIONS = np.zeros(2, dtype=np.int64)


class OddEnv(gym.Env[Any, Any]):
    """Plays episodes of two steps in which one thing is odd."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, what: str, value: Any, space: gym.Space[Any] | None = None):
        self.what, self.value, self.clock = what, value, 0
        self.observation_space = space or gym.spaces.Box(-1e9, 1e9, (2,), np.float32)

    def set_task(self, task: Task) -> None:
        """Play whatever comes."""

    def _look(self, what: str) -> Any:
        if self.what == what:
            return self.value
        space = self.observation_space
        return 0 if space.shape == () else np.zeros(2, dtype=space.dtype)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.clock = 0
        return self._look("first"), self.value if self.what == "reset info" else {}

    def step(self, action: Any) -> Any:
        self.clock += 1
        ends = self.clock >= 2
        flags: dict[str, Any] = {"terminated": ends, "truncated": False}
        if self.what in flags and ends:
            flags = {"terminated": False, "truncated": False, self.what: self.value}
        info: Any = {"is_success": self.value if self.what == "success" else 1.0} if ends else {}
        return (
            self._look("observation"),
            self.value if self.what == "reward" else 1.0,
            flags["terminated"],
            flags["truncated"],
            self.value if self.what == "info" and ends else info,
        )


def curriculum() -> Learnability:
    """Return a curriculum that needs to know about success."""
    return Learnability([Task("a"), Task("b")])


def in_vec(function: Callable[[], OddEnv], num_workers: int, taught: bool) -> Any:
    """Step a vector env to the end of its episodes; return the second step and the curriculum."""
    plan = curriculum() if taught else None
    with make_vec(function, 2, num_workers=num_workers, curriculum=plan) as vec:
        vec.reset()
        vec.step(ACTIONS)
        return vec.step(ACTIONS), plan


def alone(function: Callable[[], OddEnv]) -> Any:
    """Do the same in a single env with a curriculum; its values come in arrays of one."""
    env, plan = CurriculumEnv(function(), own := curriculum()), own
    env.reset()
    env.step(0)
    return tuple(np.asarray([part]) for part in env.step(0)[1:4]), plan


Player = Callable[[Callable[[], OddEnv]], Any]

IN_PROCESS: dict[str, Player] = {
    "plain": partial(in_vec, num_workers=0, taught=False),
    "taught": partial(in_vec, num_workers=0, taught=True),
}
ELSEWHERE: dict[str, Player] = {
    "worker": partial(in_vec, num_workers=1, taught=False),
    "worker, taught": partial(in_vec, num_workers=1, taught=True),
}


def refused(play: Player, function: Callable[[], OddEnv]) -> StepladderError:
    """Require that an env is refused with one line of ours, and return it."""
    with pytest.raises(StepladderError) as caught:
        play(function)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 500
    return caught.value


# Rewards.

GOOD_REWARDS: list[tuple[Any, float]] = [
    (True, 1.0), (3, 3.0), (10**300, 1e300), (1e300, 1e300), (Fraction(1, 2), 0.5),
    (Decimal("1.5"), 1.5), (np.array(2.0), 2.0), (np.array([2.0]), 2.0), (np.array([[2]]), 2.0),
    *(
        (np.dtype(name).type(1), 1.0)
        for name in (
            "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
            "float16", "float32", "float64", "longdouble",
        )
    ),
]  # fmt: skip
BAD_REWARDS: list[Any] = [
    None, "1.5", "a", b"1", 1j, np.array([1.0, 2.0]), np.array([]), [1.0, 2.0], {}, 10**400,
    object(), np.array(["1"]), np.array([None]), [[1.0], [2.0, 3.0]],
]  # fmt: skip


@pytest.mark.parametrize(("reward", "expected"), GOOD_REWARDS)
def test_every_kind_of_number_is_a_reward(reward: Any, expected: float):
    function = partial(OddEnv, "reward", reward)
    for play in IN_PROCESS.values():
        assert play(function)[0][1].tolist() == [expected] * 2
    _, plan = alone(function)
    assert plan.num_steps == 2


@pytest.mark.parametrize("reward", BAD_REWARDS, ids=lambda value: type(value).__name__)
def test_what_is_no_number_is_no_reward(reward: Any):
    function = partial(OddEnv, "reward", reward)
    for play in (*IN_PROCESS.values(), alone):
        error = refused(play, function)
        assert isinstance(error, EnvError)
        assert str(error).startswith("env 0 returned the reward ")


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
def test_rewards_that_are_not_finite_reach_the_user_but_no_curriculum(reward: float):
    function = partial(OddEnv, "reward", reward)
    rewards = IN_PROCESS["plain"](function)[0][1]
    np.testing.assert_array_equal(rewards, [reward] * 2)
    for play in (IN_PROCESS["taught"], alone):
        assert isinstance(refused(play, function), RecordError)


def test_returns_are_added_up_in_64_bits_whatever_the_env_returns():
    class Long(OddEnv):
        """Plays until somebody stops it."""

        def step(self, action: Any) -> Any:
            self.clock += 1
            return self._look("x"), np.float16(1.0), self.clock == 4_000, False, {"is_success": 1}

    returns: list[float] = []
    plan = curriculum()
    plan.add_listener(lambda records: returns.extend(records["episode_return"].tolist()))
    env = CurriculumEnv(Long("", None), plan)
    env.reset()
    for _ in range(4_000):
        env.step(0)
    # In 16 bits, 2,048 + 1 is 2,048.
    assert returns == [4_000.0]


# Observations.

NUMBERS = gym.spaces.Box(-1e9, 1e9, (2,), np.float32)
BYTES = gym.spaces.Box(0, 255, (2,), np.uint8)
CODE = gym.spaces.Discrete(5)

GOOD_OBSERVATIONS: list[tuple[gym.Space[Any], Any, list[Any]]] = [
    (NUMBERS, np.array([1.0, 2.0]), [1.0, 2.0]),
    (NUMBERS, np.array([1, 2]), [1.0, 2.0]),
    (NUMBERS, [0.5, 1], [0.5, 1.0]),
    (NUMBERS, (1, 2), [1.0, 2.0]),
    (NUMBERS, np.array([True, False]), [1.0, 0.0]),
    (NUMBERS, np.array([math.inf, 1.0]), [math.inf, 1.0]),
    (BYTES, np.array([1, 2]), [1, 2]),
    (BYTES, [3, 4], [3, 4]),
]
BAD_OBSERVATIONS: list[tuple[gym.Space[Any], Any]] = [
    (NUMBERS, np.zeros(3, dtype=np.float32)), (NUMBERS, 1.0), (NUMBERS, None), (NUMBERS, "ab"),
    (NUMBERS, np.array([1, None], dtype=object)), (NUMBERS, np.array([1, 2.5], dtype=object)),
    (NUMBERS, np.array(["a", "b"])), (NUMBERS, np.zeros(2, dtype=complex)), (NUMBERS, {"a": 1}),
    (NUMBERS, [10**400, 1]), (NUMBERS, [[1.0], [2.0, 3.0]]), (NUMBERS, object()),
    (BYTES, np.array([0.5, 1.0])), (CODE, None), (CODE, 1.5), (CODE, "a"), (CODE, 10**400),
    (CODE, np.array([1, 2])), (CODE, 2**63),
]  # fmt: skip


@pytest.mark.parametrize(("space", "observation", "expected"), GOOD_OBSERVATIONS)
@pytest.mark.parametrize("what", ["observation", "first"])
def test_observations_are_brought_to_the_type_of_their_space(
    what: str, space: gym.Space[Any], observation: Any, expected: list[Any]
):
    function = partial(OddEnv, what, observation, space)
    with make_vec(function, 2, num_workers=0) as vec:
        seen = vec.reset()[0] if what == "first" else (vec.reset(), vec.step(ACTIONS))[1][0]
        assert seen.tolist() == [expected] * 2
        assert seen.dtype == space.dtype


@pytest.mark.parametrize("what", ["observation", "first"])
@pytest.mark.parametrize(("space", "observation"), BAD_OBSERVATIONS, ids=lambda one: str(type(one)))
def test_observations_that_are_none_of_their_space_are_refused(
    space: gym.Space[Any], observation: Any, what: str
):
    function = partial(OddEnv, what, observation, space)
    for play in IN_PROCESS.values():
        error = refused(play, function)
        assert isinstance(error, EnvError)
        assert str(error).startswith(("env 0 returned an observation", "env 0 returned the obs"))
        assert "Fix the env" in str(error)


# Flags.


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        (1, True), (0, False), (2, True), (1.0, True), (None, False), (np.bool_(True), True),
        (np.array([True]), True), (np.array(False), False), ("yes", True), ([], False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("what", ["terminated", "truncated"])
def test_flags_are_true_or_false_as_python_takes_them(what: str, flag: Any, expected: bool):
    function = partial(OddEnv, what, flag)
    for play in IN_PROCESS.values():
        results = play(function)[0]
        flags = results[2] if what == "terminated" else results[3]
        assert flags.tolist() == [expected] * 2
    _, plan = alone(function)
    assert plan.num_steps == (2 if expected else 0)


@pytest.mark.parametrize("what", ["terminated", "truncated"])
def test_a_flag_that_is_neither_is_refused(what: str):
    function = partial(OddEnv, what, np.array([True, False]))
    for play in (*IN_PROCESS.values(), alone):
        text = str(refused(play, function))
        assert text == (
            f"env 0 returned {what} array([ True, False]); expected True or False. Fix the env."
        )


# Success and infos.


@pytest.mark.parametrize(
    "success",
    [True, 1, 0, 0.5, np.bool_(False), np.array([1.0]), np.array([True]), np.float16(0.5),
     Decimal(1), Fraction(1, 2)],
)  # fmt: skip
def test_every_kind_of_number_is_a_success(success: Any):
    function = partial(OddEnv, "success", success)
    for play in (IN_PROCESS["taught"], alone):
        assert play(function)[1].num_steps > 0


@pytest.mark.parametrize(
    "success",
    [None, "yes", "1", np.array([1.0, 0.0]), np.array([True, False]), math.nan, 10**400, 1j, {},
     object()],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_success_that_is_no_number_is_refused_with_its_value(success: Any):
    function = partial(OddEnv, "success", success)
    for play in (IN_PROCESS["taught"], alone):
        error = refused(play, function)
        assert isinstance(error, SignalError)
        assert str(error).startswith("info['is_success'] is ")
    # Without a curriculum it is nobody's business.
    IN_PROCESS["plain"](function)


@pytest.mark.parametrize("success", [2.0, -1, math.inf, 1.0001, np.array([2.0])])
def test_a_success_outside_its_range_is_refused(success: Any):
    function = partial(OddEnv, "success", success)
    for play in (IN_PROCESS["taught"], alone):
        assert isinstance(refused(play, function), RecordError)


@pytest.mark.parametrize("what", ["info", "reset info"])
@pytest.mark.parametrize("info", [None, "text", [], 3])
def test_an_info_that_is_no_dict_is_refused(what: str, info: Any):
    function = partial(OddEnv, what, info)
    for play in (IN_PROCESS["taught"], alone):
        text = str(refused(play, function))
        assert "the info" in text
        assert "expected a dict" in text


def test_an_info_with_a_number_of_any_size_reaches_the_user():
    infos = IN_PROCESS["plain"](partial(OddEnv, "success", 10**400))[0][4]
    assert infos["is_success"].tolist() == [10**400] * 2


@pytest.mark.parametrize("threshold", [math.nan, math.inf, "1", None.__class__, 10**400, True])
def test_a_threshold_that_is_no_finite_number_is_refused(threshold: Any):
    with pytest.raises(ConfigError, match="return_threshold must be a finite number"):
        SuccessReader(return_threshold=threshold)


def test_numbers_are_read_alike_everywhere():
    assert number_of(np.float32(0.5)) == 0.5
    assert number_of([3]) == 3.0
    for value in (None, "1", b"1", 1j, np.complex64(1), [], [1, 2], [None], 10**400, object()):
        assert number_of(value) is None


# In workers.


@pytest.mark.processes
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("what", "value", "kind"),
    [
        ("reward", None, EnvError),
        ("reward", 10**400, EnvError),
        ("observation", np.array([1, None], dtype=object), EnvError),
        ("first", np.zeros(3, dtype=np.float32), EnvError),
        ("terminated", np.array([True, False]), EnvError),
        ("success", 10**400, SignalError),
        ("success", 2.0, RecordError),
    ],
)
def test_a_worker_refuses_the_same_with_the_same_words(
    what: str, value: Any, kind: type[StepladderError]
):
    function = partial(OddEnv, what, value)
    error = refused(ELSEWHERE["worker, taught"], function)
    assert isinstance(error, kind)
    assert str(error) == str(refused(IN_PROCESS["taught"], function))


@pytest.mark.processes
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("what", "value"),
    [("reward", np.array([2.0])), ("reward", Decimal("1.5")), ("terminated", np.array([True]))],
)
def test_a_worker_takes_the_same(what: str, value: Any):
    function = partial(OddEnv, what, value)
    here, there = IN_PROCESS["plain"](function)[0], ELSEWHERE["worker"](function)[0]
    for one, two in zip(here[:4], there[:4], strict=True):
        np.testing.assert_array_equal(one, two)


# In a training.


@pytest.mark.parametrize(
    ("what", "value", "words"),
    [
        ("reward", math.nan, "the reward of env 0 is nan"),
        ("reward", 1e300, "the reward of env 0 is 1e"),
        ("reward", None, "env 0 returned the reward None"),
        ("observation", np.full(2, np.nan, np.float32), "the observation of env 0 is"),
        ("first", np.full(2, np.inf, np.float32), "the observation of env 0 is"),
        ("terminated", np.array([True, False]), "env 0 returned terminated"),
        ("success", 10**400, r"info\['is_success'\] is an integer of 1329 bits"),
        ("info", None, "env 0 returned the info None"),
    ],
)
def test_a_training_says_which_env_and_which_value(what: str, value: Any, words: str):
    make = partial(OddEnv, what, value)
    gym.register("Odd-v0", lambda **_: make(), disable_env_checker=True, order_enforce=False)
    settings = TrainingConfig(
        env="Odd-v0",
        num_envs=2,
        total_steps=64,
        curriculum=UniformConfig(),
        agent=PPOConfig(hidden_sizes=(8,), rollout_steps=16, minibatch_size=8),
        evaluation=EvaluationConfig(every_steps=None, num_games=2),
    )
    try:
        with pytest.raises(StepladderError, match=words) as caught:
            train(settings)
    finally:
        del gym.registry["Odd-v0"]
    assert "\n" not in str(caught.value)


# Sizes: one task, and a million.


@pytest.mark.parametrize("num_tasks", [1, 1_000_000])
@pytest.mark.parametrize("kind", [Uniform, Learnability])
def test_one_task_and_a_million_are_played_alike(num_tasks: int, kind: Any):
    plan = kind(Pool(NumberedSource(num_tasks)))
    with make_vec(partial(OddEnv, "", None), 2, num_workers=0, curriculum=plan) as vec:
        vec.reset(seed=0)
        names: set[str] = set()
        for _ in range(30):
            infos = vec.step(ACTIONS)[4]
            names.update(name for name in infos.get("curriculum_task", ()) if name)
        assert len(names) == (1 if num_tasks == 1 else len(names))
        assert vec.curriculum.num_steps > 0
    assert math.isclose(plan.probs().sum(), 1.0)


def test_a_step_with_four_values_says_what_is_expected_and_the_env_can_be_reset() -> None:
    class OldEnv(OddEnv):
        """Returns from step what the old interface asked for."""

        def step(self, action: Any) -> Any:
            return np.zeros(2, dtype=np.float32), 0.0, True, {}

    env = CurriculumEnv(OldEnv("nothing", None), Uniform([Task("a")]))
    for _ in range(2):
        env.reset()
        with pytest.raises(EnvError, match=r"env 0 returned .* from step; expected observation"):
            env.step(0)
