"""PufferLib's view of a vector env: the same as its own backends give, over live memory."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import psutil
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text, Tuple
from gymnasium.vector import SyncVectorEnv

from envs.scripted_parallel import Crowd, Life
from stepladder.curricula import Uniform
from stepladder.envs import make_vec
from stepladder.envs.agent_rows import AgentRows
from stepladder.envs.parallel import ParallelAsEnv
from stepladder.envs.puffer import PufferView
from stepladder.errors import ChannelError, ConfigError
from testing_env import PracticeEnv, staged_tasks

LIMIT = pytest.mark.timeout(60, method="signal")
WORKERS = pytest.mark.parametrize(
    "num_workers", [0, pytest.param(1, marks=[pytest.mark.processes, LIMIT])]
)


class Counting(gym.Env[Any, Any]):
    """Ends after some steps, tells how many there were, and sees things in several parts."""

    observation_space = Dict(
        {"steps": Discrete(100), "both": Tuple((Box(0, 99, (2,), np.float32), Discrete(2)))}
    )
    action_space = Dict({"push": Box(-1, 1, (2,), np.float32), "choose": Discrete(3)})

    def __init__(self, length: int = 3):
        self.length = length

    def _observe(self) -> Any:
        return {"steps": self.steps, "both": (np.full(2, self.steps, np.float32), self.steps % 2)}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.steps = 0
        return self._observe(), {"began": True}

    def step(self, action: Any):
        self.steps += 1
        ended = self.steps == self.length
        reward = float(action["push"].sum()) + int(action["choose"])
        return self._observe(), reward, ended, False, {"steps": self.steps} if ended else {}


@pytest.fixture
def view() -> Iterator[Callable[..., PufferView]]:
    """Makes views that are closed after the test, whatever happens."""
    made: list[Any] = []

    def make(env: Any, num_envs: int, **settings: Any) -> PufferView:
        made.append(make_vec(env, num_envs, **{"num_workers": 0, **settings}))
        return PufferView(made[-1])

    yield make
    for each in made:
        each.close()


def zeros(view: PufferView) -> Any:
    return np.zeros(view.agents_per_batch, dtype=np.int32)


# Beside PufferLib's own backends.


def cart_pole(buf: Any = None, seed: int = 0) -> Any:
    from pufferlib.emulation import GymnasiumPufferEnv

    return GymnasiumPufferEnv(env_creator=gym.make, env_args=["CartPole-v1"], buf=buf, seed=seed)


def play_alike(ours: PufferView, theirs: Any, num_batches: int) -> int:
    """Play the same in both; return how many episodes ended."""
    for name in ("num_agents", "agents_per_batch", "num_envs", "single_observation_space"):
        assert getattr(ours, name) == getattr(theirs, name)
    for name in ("single_action_space", "observation_space", "action_space"):
        assert getattr(ours, name) == getattr(theirs, name)
    rng = np.random.default_rng(0)
    num_ended = 0
    ours.async_reset(3)
    theirs.async_reset(3)
    for _ in range(150 * num_batches):
        got, expected = ours.recv(), theirs.recv()
        assert len(got) == len(expected)
        for index, (each, other) in enumerate(zip(got, expected, strict=True)):
            if not isinstance(each, list):
                np.testing.assert_array_equal(each, other)
                # Rewards are kept as exactly as the env gave them; PufferLib cuts them to 32 bits.
                assert each.dtype == other.dtype or index in (1, 4)
        num_ended += int((got[2] | got[3]).sum())
        actions = rng.integers(2, size=ours.agents_per_batch).astype(np.int32)
        ours.send(actions)
        theirs.send(actions)
    return num_ended


@WORKERS
def test_cart_pole_plays_as_in_pufferlibs_serial_backend(num_workers: int) -> None:
    vector = pytest.importorskip("pufferlib.vector")
    theirs = vector.make(cart_pole, backend=vector.Serial, num_envs=4)
    ours = PufferView(make_vec("CartPole-v1", 4, num_workers=num_workers), teacher_actions=True)
    assert play_alike(ours, theirs, 1) > 20
    ours.close()
    theirs.close()


@pytest.mark.processes
@LIMIT
@pytest.mark.skipif(psutil.cpu_count(logical=False) is None, reason="PufferLib counts cores")
def test_two_batches_play_as_in_pufferlibs_processes() -> None:
    vector = pytest.importorskip("pufferlib.vector")
    theirs = vector.make(
        cart_pole,
        backend=vector.Multiprocessing,
        num_envs=2,
        num_workers=2,
        batch_size=1,
        overwork=True,
    )
    ours = PufferView(
        make_vec("CartPole-v1", 2, num_workers=1, num_batches=2), teacher_actions=True
    )
    try:
        assert play_alike(ours, theirs, 2) > 10
    finally:
        ours.close()
        theirs.close()
        for process in theirs.processes:
            process.join(10.0)


def test_pufferlibs_policies_are_made_from_it(view: Any) -> None:
    models = pytest.importorskip("pufferlib.models")
    torch = pytest.importorskip("torch")
    puffer = view("CartPole-v1", 3)
    policy = models.Default(puffer.driver_env, hidden_size=8)
    observations, _ = puffer.reset(seed=0)
    logits, values = policy(torch.as_tensor(observations))
    assert values.shape == (3, 1)
    puffer.step(logits.argmax(dim=1).numpy())


# By itself.


@WORKERS
def test_arrays_are_the_memory_that_envs_write_to(view: Any, num_workers: int) -> None:
    puffer = view("CartPole-v1", 4, num_workers=num_workers)
    buffers = puffer.vec.buffers
    assert np.shares_memory(puffer.observations, buffers.observations)
    assert puffer.rewards is buffers.rewards
    assert puffer.terminals is buffers.terminated
    assert puffer.truncations is buffers.truncated
    assert np.shares_memory(puffer.actions, buffers.actions)
    puffer.async_reset(0)
    observations, rewards, terminals, truncations, infos, agent_ids, masks = puffer.recv()
    for array, whole in (
        (observations, puffer.observations),
        (rewards, puffer.rewards),
        (terminals, puffer.terminals),
        (truncations, puffer.truncations),
        (masks, puffer.masks),
    ):
        assert np.shares_memory(array, whole)
        assert len(array) == 4
    before = observations.copy()
    # Actions may be written in place.
    puffer.actions[:] = 1
    puffer.send(puffer.actions)
    again, rewards, *_ = puffer.recv()
    assert np.shares_memory(again, observations)
    assert (observations[:, 1] > before[:, 1]).all()
    assert rewards.tolist() == [1.0] * 4
    assert (infos, agent_ids.tolist(), masks.all()) == ([], [0, 1, 2, 3], True)


@WORKERS
def test_nested_observations_and_actions_stay_nested(view: Any, num_workers: int) -> None:
    puffer = view(Counting, 2, num_workers=num_workers, num_batches=2)
    observations, infos = puffer.reset(seed=0)
    assert infos == [{"began": True}]
    assert observations["steps"].tolist() == [0]
    actions = {"push": np.ones((1, 2), np.float32), "choose": np.array([2])}
    puffer.step(actions)
    observations, rewards, *_ = puffer.step(actions)
    assert rewards.tolist() == [4.0]
    assert observations["both"][0].tolist() == [[1, 1]]
    # The other row is in flight.
    assert puffer.observations["steps"].tolist()[0] == 1
    assert puffer.observations["both"][1].shape == (2,)
    assert puffer.actions["choose"].tolist() == [2, 2]


@WORKERS
def test_batches_come_in_turn(view: Any, num_workers: int) -> None:
    puffer = view("CartPole-v1", 4, num_workers=num_workers, num_batches=2)
    plain = make_vec("CartPole-v1", 4, num_workers=0)
    expected = [plain.reset(seed=7)[0]]
    expected += [plain.step(np.ones(4, dtype=np.int64))[0] for _ in range(5)]
    assert (puffer.num_agents, puffer.agents_per_batch) == (4, 2)
    puffer.async_reset(7)
    for observed in expected:
        for ids in ([0, 1], [2, 3]):
            observations, *_, agent_ids, _ = puffer.recv()
            assert agent_ids.tolist() == ids
            np.testing.assert_array_equal(observations, observed[ids])
            puffer.send(zeros(puffer) + 1)
    # In the middle of everything.
    puffer.async_reset(7)
    np.testing.assert_array_equal(puffer.recv()[0], expected[0][:2])
    plain.close()


def test_an_ending_is_followed_by_a_step_that_only_resets(view: Any) -> None:
    puffer = view(partial(Counting, 2), 1)
    actions = puffer.action_space.sample()
    puffer.reset()
    said = [puffer.step(actions) for _ in range(3)]
    # The arrays are the same ones each time, and show the last step.
    assert [each[2] is said[0][2] for each in said] == [True] * 3
    assert puffer.rewards.tolist() == [0.0]
    assert puffer.terminals.tolist() == [False]
    assert [each[4] for each in said] == [[], [{"steps": 2}], [{"began": True}]]


def test_with_same_step_autoreset_both_infos_come_at_once(view: Any) -> None:
    puffer = view(partial(Counting, 2), 1, autoreset_mode="SameStep")
    actions = puffer.action_space.sample()
    puffer.reset()
    puffer.step(actions)
    observations, _, terminals, _, infos = puffer.step(actions)
    assert terminals.tolist() == [True]
    assert observations["steps"].tolist() == [0]
    assert infos == [{"steps": 2}, {"began": True}] == puffer.infos


def test_rewards_and_flags_are_cleared_by_a_reset(view: Any) -> None:
    puffer = view(partial(Counting, 1), 2)
    puffer.reset()
    puffer.step({"push": np.ones((2, 2), np.float32), "choose": np.ones(2, dtype=np.int64)})
    assert puffer.terminals.all()
    puffer.reset()
    assert puffer.rewards.tolist() == [0.0, 0.0]
    assert not (puffer.terminals | puffer.truncations).any()


@WORKERS
@pytest.mark.parametrize("num_batches", [1, 2])
def test_a_curriculum_counts_every_episode_once(
    view: Any, caplog: pytest.LogCaptureFixture, num_workers: int, num_batches: int
) -> None:
    curriculum = Uniform(staged_tasks(length=2, success=1.0), seed=1)
    puffer = view(
        PracticeEnv, 4, num_workers=num_workers, num_batches=num_batches, curriculum=curriculum
    )
    puffer.async_reset(0)
    labels = []
    for _ in range(31 * num_batches):
        infos, *_ = puffer.recv()[4:]
        labels += [info["curriculum_task"] for info in infos if "curriculum_success" in info]
        puffer.send(zeros(puffer))
    # 30 steps: 10 times two to play and one to reset, in each of 4 envs.
    assert len(labels) == 40
    assert puffer.vec.counts.finished == curriculum.num_observed == 40
    assert puffer.vec.counts.aborted == 0
    # Records that come before their batch is received are no reason to complain.
    assert caplog.messages == []
    puffer.async_reset()
    assert puffer.vec.check_agreement() == curriculum.plan.version


# Rows of agents.


LIVES = {"ann": Life(1), "bob": Life(2, "truncated")}
"""Ann ends in the first step, bob and the episode in the second."""


@WORKERS
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("num_batches", [1, 2])
def test_agents_are_rows(num_workers: int, mode: str, num_batches: int) -> None:
    def make(**settings: Any) -> AgentRows:
        settings["autoreset_mode"] = mode
        return AgentRows(make_vec(lambda: ParallelAsEnv(Crowd(LIVES)), 4, **settings))

    rows = make(num_workers=0)
    puffer = PufferView(make(num_workers=num_workers, num_batches=num_batches))
    assert (puffer.num_agents, puffer.agents_per_batch) == (8, 8 // num_batches)
    assert np.shares_memory(
        puffer.observations, puffer.vec.env.unwrapped.buffers.observations["agents"]
    )
    expected: Any = (rows.reset(seed=0)[0], np.zeros(8), np.zeros(8, bool), np.zeros(8, bool), {})
    puffer.async_reset(0)
    for number in range(8):
        alive = expected[4].get("alive", np.ones(8, dtype=bool))
        actions = np.arange(8) % 5
        for part in rows_of_batches(num_batches):
            *arrays, _, agent_ids, masks = puffer.recv()
            for array, whole in zip(arrays, expected[:4], strict=True):
                np.testing.assert_array_equal(array, whole[part])
            np.testing.assert_array_equal(masks, alive[part])
            assert agent_ids.tolist() == list(range(8))[part]
            puffer.send(actions[part])
        assert number == 0 or mode == "SameStep" or alive.all() == (number % 3 != 2)
        expected = rows.step(actions)
    rows.close()
    puffer.close()


def rows_of_batches(num_batches: int) -> list[slice]:
    size = 8 // num_batches
    return [slice(start, start + size) for start in range(0, 8, size)]


# What does not fit.


def test_calls_out_of_turn_are_refused(view: Any) -> None:
    puffer = view("CartPole-v1", 2)
    with pytest.raises(ChannelError, match=r"recv\(\) was called out of turn. Call async_reset"):
        puffer.recv()
    with pytest.raises(ChannelError, match=r"send\(actions\) was called out of turn"):
        puffer.send(zeros(puffer))
    puffer.reset()
    with pytest.raises(ChannelError, match=r"Call send\(actions\) first"):
        puffer.recv()
    with pytest.raises(ConfigError, match="actions have shape"):
        puffer.send(np.zeros(3, dtype=np.int32))
    # Nothing was sent, so it may be sent again.
    puffer.send(zeros(puffer))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_batches": 2}, r"same size; got \[2, 1\] envs"),
        ({"autoreset_mode": "Disabled"}, "'NextStep' or 'SameStep'"),
    ],
    ids=["batches", "autoreset"],
)
def test_settings_that_pufferlib_has_no_place_for_are_refused(
    view: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        view("CartPole-v1", 3, **settings)


def test_observations_without_a_fixed_size_are_refused(view: Any) -> None:
    class Speaking(Counting):
        observation_space = Dict({"word": Text(5)})

    with pytest.raises(ConfigError, match="single_observation_space has parts without"):
        view(Speaking, 1)


def test_only_what_make_vec_returns_is_shown() -> None:
    vec = SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2)
    with pytest.raises(ConfigError, match=r"needs what make_vec returns.* got a SyncVectorEnv"):
        PufferView(vec)
    vec.close()
