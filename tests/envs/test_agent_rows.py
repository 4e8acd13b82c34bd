"""Rows of agents, over any vector env: by hand, under every autoreset mode, and at random."""

import os
import signal
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.scripted_parallel import Crowd, Life, NestedCrowd
from stepladder.curricula import Uniform
from stepladder.envs import CurriculumEnv, CurriculumVectorEnv
from stepladder.envs.agent_rows import AgentRows
from stepladder.envs.make import make_vec
from stepladder.envs.parallel import ParallelAsEnv
from stepladder.errors import ConfigError
from stepladder.tasks import Task
from testing_env import info_of

NEXT_STEP, SAME_STEP, DISABLED = (
    AutoresetMode.NEXT_STEP,
    AutoresetMode.SAME_STEP,
    AutoresetMode.DISABLED,
)
MODES = pytest.mark.parametrize("mode", list(AutoresetMode))
TWO = {"ann": Life(1), "bob": Life(2, "truncated")}
"""Ann ends in the first step, bob and the episode in the second."""
LONG = {"ann": Life(9), "bob": Life(9)}


def make(*lives: Any, mode: AutoresetMode = NEXT_STEP, kind: Any = Crowd, **settings: Any) -> Any:
    """Make rows of one env for each of the lives."""

    def env(each: Any) -> ParallelAsEnv:
        return ParallelAsEnv(kind(each, **settings))

    return AgentRows(SyncVectorEnv([partial(env, each) for each in lives], autoreset_mode=mode))


def crowds_of(rows: Any) -> list[Crowd]:
    return list(rows.get_attr("parallel_env"))


def zeros(rows: Any) -> Any:
    return np.zeros(rows.num_envs, dtype=np.int64)


# By hand.


def test_rows_are_agents_env_by_env() -> None:
    rows = make(LONG, LONG, LONG)
    assert (rows.num_envs, rows.num_agents) == (6, 2)
    assert rows.possible_agents == ("ann", "bob")
    assert rows.single_observation_space == Box(-1.0, 1e6, (4,), np.float32)
    assert rows.observation_space == Box(-1.0, 1e6, (6, 4), np.float32)
    assert rows.single_action_space == Discrete(5)
    assert rows.action_space == MultiDiscrete([5] * 6)
    observations, infos = rows.reset(seed=3)
    assert observations.tolist() == [[1, 0, 1, 0], [1, 0, 2, 0]] * 3
    assert infos == {}
    # 1 * step + action for ann, 10 * step + action for bob.
    observations, rewards, terminated, truncated, infos = rows.step(np.array([0, 1, 2, 3, 4, 0]))
    assert observations[:, 3].tolist() == [0, 1, 2, 3, 4, 0]
    assert rewards.tolist() == [1, 11, 3, 13, 5, 10]
    assert not terminated.any()
    assert not truncated.any()
    assert infos == {}


def test_next_step_resets_the_whole_env_after_its_last_agent() -> None:
    rows = make(TWO, LONG)
    rows.reset()
    _, _, terminated, truncated, infos = rows.step(zeros(rows))
    assert terminated.tolist() == [True, False, False, False]
    assert infos == {}
    assert rows.ended_envs.tolist() == [False, False]

    observations, rewards, terminated, truncated, infos = rows.step(zeros(rows))
    assert observations.tolist() == [[0, 0, 0, 0], [1, 2, 2, 0], [1, 2, 1, 0], [1, 2, 2, 0]]
    assert rewards.tolist() == [0, 20, 2, 20]
    assert not terminated.any()
    assert truncated.tolist() == [False, True, False, False]
    assert infos["alive"].tolist() == [False, True, True, True]
    assert infos["_alive"].tolist() == [True] * 4
    assert rows.ended_envs.tolist() == [True, False]

    observations, rewards, terminated, truncated, infos = rows.step(zeros(rows))
    assert observations.tolist() == [[2, 0, 1, 0], [2, 0, 2, 0], [1, 3, 1, 0], [1, 3, 2, 0]]
    assert rewards.tolist() == [0, 0, 3, 30]
    assert not (terminated | truncated).any()
    assert infos == {}


def test_same_step_gives_every_row_that_ends_its_last_observation_and_info() -> None:
    rows = make(TWO, LONG, mode=SAME_STEP, talks=True)
    rows.reset()
    observations, _, terminated, _, infos = rows.step(zeros(rows))
    # Ann leaves; her env goes on, and still her row has what a row that ends has.
    assert terminated.tolist() == [True, False, False, False]
    assert observations[0].tolist() == [1, 1, 1, 0]
    assert infos["_final_obs"].tolist() == [True, False, False, False]
    assert infos["final_obs"][0].tolist() == [1, 1, 1, 0]
    assert info_of(infos, 0)["final_info"] == {"word": "bye from ann"}
    assert info_of(infos, 1) == {}

    observations, rewards, terminated, truncated, infos = rows.step(zeros(rows))
    # The env was reset in this step: observations are new, rewards and flags of the old episode.
    assert observations.tolist() == [[2, 0, 1, 0], [2, 0, 2, 0], [1, 2, 1, 0], [1, 2, 2, 0]]
    assert rewards.tolist() == [0, 20, 2, 20]
    assert not terminated.any()
    assert truncated.tolist() == [False, True, False, False]
    assert infos["alive"].tolist() == [False, True, True, True]
    assert infos["_final_obs"].tolist() == [False, True, False, False]
    assert infos["final_obs"][1].tolist() == [1, 2, 2, 0]
    assert info_of(infos, 0) == {"began": 2, "alive": False}
    bob = {"step": 2.5, "odd": {"index": 1}, "word": "bye from bob"}
    final = info_of(infos, 1)
    assert final["final_info"] == bob
    assert final["began"] == 2
    assert info_of(infos, 2) == {"step": 2, "odd": {"index": 0}, "alive": True}
    assert rows.ended_envs.tolist() == [True, False]


def test_disabled_autoreset_resets_the_envs_that_are_asked_for() -> None:
    rows = make(TWO, LONG, mode=DISABLED)
    rows.reset()
    rows.step(zeros(rows))
    rows.step(zeros(rows))
    assert rows.ended_envs.tolist() == [True, False]
    options = {"reset_mask": rows.ended_envs}
    observations, infos = rows.reset(options=options)
    assert list(options) == ["reset_mask"]
    assert options["reset_mask"].tolist() == [True, False]
    assert observations.tolist() == [[2, 0, 1, 0], [2, 0, 2, 0], [1, 2, 1, 0], [1, 2, 2, 0]]
    assert infos == {}
    assert rows.ended_envs.tolist() == [False, False]
    assert rows.step(zeros(rows))[1].tolist() == [1, 10, 3, 30]


def test_infos_are_on_the_rows_of_their_agents_in_gymnasiums_format() -> None:
    rows = make(LONG, LONG, talks=True)
    _, infos = rows.reset()
    assert infos["began"].tolist() == [1, 1, 1, 1]
    assert infos["_began"].tolist() == [True] * 4
    assert rows.step(zeros(rows))[4] == {}
    infos = rows.step(zeros(rows))[4]
    # Bob's numbers have halves; ann's whole ones must not cut them off.
    assert infos["step"].tolist() == [2, 2.5, 2, 2.5]
    assert infos["odd"]["index"].tolist() == [0, 1, 0, 1]
    assert infos["odd"]["_index"].tolist() == [True] * 4
    assert infos["_odd"].tolist() == [True] * 4
    assert infos["step"].dtype == np.float64
    assert set(infos) == {"step", "_step", "odd", "_odd"}


def test_words_and_missing_entries_are_none() -> None:
    rows = make(TWO, LONG, talks=True)
    rows.reset()
    infos = rows.step(zeros(rows))[4]
    assert infos["word"].tolist() == ["bye from ann", None, None, None]
    assert infos["_word"].tolist() == [True, False, False, False]


def test_a_wrapper_that_cuts_an_env_off_cuts_off_the_agents_that_are_there() -> None:
    def env() -> gym.Env:
        return TimeLimit(ParallelAsEnv(Crowd({"ann": Life(1), "bob": Life(9), "cid": Life(9)})), 2)

    for mode in AutoresetMode:
        rows = AgentRows(SyncVectorEnv([env], autoreset_mode=mode))
        rows.reset()
        _, _, terminated, truncated, _ = rows.step(zeros(rows))
        assert (terminated.tolist(), truncated.tolist()) == ([True, False, False], [False] * 3)
        _, _, terminated, truncated, infos = rows.step(zeros(rows))
        assert (terminated.tolist(), truncated.tolist()) == ([False] * 3, [False, True, True])
        assert ("final_obs" in infos) == (mode == SAME_STEP)
        if mode == SAME_STEP:
            assert infos["_final_obs"].tolist() == [False, True, True]


def test_nested_observations_and_actions_go_leaf_by_leaf() -> None:
    rows = make(LONG, LONG, kind=NestedCrowd)
    rows.reset()
    choices = np.array([1, 2, 3, 4])
    push = np.arange(8, dtype=np.float32).reshape(4, 2) / 8
    observations, *_ = rows.step({"push": push, "choose": choices})
    assert rows.observation_space.contains(observations)
    assert observations["place"][:, 0, 0].tolist() == [11, 21, 11, 21]
    assert observations["parts"][0][:, 1].tolist() == [1, 2, 3, 4]
    assert [crowd.received[0] for crowd in crowds_of(rows)] == [
        {"ann": 1, "bob": 2},
        {"ann": 3, "bob": 4},
    ]


def test_observations_are_the_memory_of_the_vector_env_and_rewards_are_not() -> None:
    inner: Any = SyncVectorEnv([lambda: ParallelAsEnv(Crowd(LONG))] * 2, copy=False)
    rows = AgentRows(inner)
    observations, _ = rows.reset()
    assert np.shares_memory(observations, inner._observations["agents"])
    _, rewards, terminated, truncated, _ = rows.step(zeros(rows))
    before = rewards.copy()
    rows.step(zeros(rows))
    assert rewards.tolist() == before.tolist()
    assert not np.shares_memory(terminated, inner._observations["terminated"])
    assert not np.shares_memory(truncated, inner._observations["truncated"])


def test_what_a_step_says_of_endings_may_be_kept_though_observations_are_not_copied() -> None:
    inner = SyncVectorEnv([lambda: ParallelAsEnv(Crowd(TWO))], copy=False, autoreset_mode=SAME_STEP)
    rows = AgentRows(inner)
    rows.reset()
    infos = rows.step(zeros(rows))[4]
    ended = rows.ended_envs
    rows.step(zeros(rows))
    assert infos["final_obs"][0].tolist() == [1, 1, 1, 0]
    assert (ended.tolist(), rows.ended_envs.tolist()) == ([False], [True])


# At random, against parallel envs stepped by hand.


class ByHand:
    """The same game without any of our code: parallel envs in a list, row by row."""

    def __init__(self, num_envs: int, mode: AutoresetMode, seed: int):
        self.mode = mode
        self.crowds = [Crowd(talks=True) for _ in range(num_envs)]
        self.over = [False] * num_envs
        self.rows: list[dict[str, Any]] = []
        self.resets = [crowd.reset(seed=seed + i) for i, crowd in enumerate(self.crowds)]

    def reset_rows(self, crowd: Crowd, result: Any) -> list[dict[str, Any]]:
        observations, infos = result
        return [
            {
                "observation": observations.get(agent, np.zeros(4, np.float32)),
                "flags": (0.0, False, False),
                "info": dict(infos.get(agent, {})),
                "alive": agent in observations,
            }
            for agent in crowd.possible_agents
        ]

    def play(self, env_index: int, actions: Any) -> list[dict[str, Any]]:
        crowd = self.crowds[env_index]
        if self.mode == NEXT_STEP and self.over[env_index]:
            self.over[env_index] = False
            return self.reset_rows(crowd, crowd.reset())
        who = dict(zip(crowd.possible_agents, actions, strict=True))
        observations, rewards, terminations, truncations, infos = crowd.step(
            {agent: who[agent] for agent in crowd.agents}
        )
        rows = []
        for agent in crowd.possible_agents:
            there = agent in observations
            terminated, truncated = terminations.get(agent, False), truncations.get(agent, False)
            vanished = there and agent not in crowd.agents and not terminated
            row: dict[str, Any] = {
                "observation": observations.get(agent, np.zeros(4, np.float32)),
                "flags": (rewards.get(agent, 0.0), terminated, truncated or vanished),
                "info": dict(infos.get(agent, {})),
                "alive": there,
            }
            if self.mode == SAME_STEP and any(row["flags"][1:]):
                row["final"] = row["observation"], row["info"]
                row["info"] = {}
            rows.append(row)
        self.over[env_index] = not crowd.agents
        if self.mode == SAME_STEP and self.over[env_index]:
            new = self.reset_rows(crowd, crowd.reset())
            for row, begun in zip(rows, new, strict=True):
                row |= {"observation": begun["observation"], "info": begun["info"]}
        return rows

    def step(self, actions: Any) -> list[dict[str, Any]]:
        by_env = np.split(actions, len(self.crowds))
        return [row for i, each in enumerate(by_env) for row in self.play(i, each)]


def check_rows(expected: list[dict[str, Any]], result: Any) -> None:
    observations, rewards, terminated, truncated, infos = result
    someone_left = not all(row["alive"] for row in expected)
    assert ("alive" in infos) == someone_left
    for index, row in enumerate(expected):
        assert observations[index].tolist() == row["observation"].tolist()
        flags = (rewards[index], terminated[index], truncated[index])
        assert flags == row["flags"]
        info = info_of(infos, index)
        if someone_left:
            assert info.pop("alive") == row["alive"]
        if "final" in row:
            assert info.pop("final_obs").tolist() == row["final"][0].tolist()
            assert info.pop("final_info") == row["final"][1]
        assert info == row["info"]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    num_envs=st.integers(1, 4),
    mode=st.sampled_from(list(AutoresetMode)),
)
def test_random_lives_look_the_same_as_parallel_envs_stepped_by_hand(
    seed: int, num_envs: int, mode: AutoresetMode
) -> None:
    rows: Any = make(*[None] * num_envs, mode=mode, talks=True)
    hand = ByHand(num_envs, mode, seed)
    observations, infos = rows.reset(seed=seed)
    begun = [
        row
        for crowd, result in zip(hand.crowds, hand.resets, strict=True)
        for row in hand.reset_rows(crowd, result)
    ]
    nothing = np.zeros(rows.num_envs)
    check_rows(begun, (observations, nothing, nothing > 0, nothing > 0, infos))
    rng = np.random.default_rng(seed)
    for _ in range(30):
        if mode == DISABLED and any(hand.over):
            assert rows.ended_envs.tolist() == hand.over
            rows.reset(options={"reset_mask": np.repeat(hand.over, 3)})
            for crowd, over in zip(hand.crowds, hand.over, strict=True):
                if over:
                    crowd.reset()
        actions = rng.integers(5, size=rows.num_envs)
        check_rows(hand.step(actions), rows.step(actions))


# Over other vector envs.


def random_crowd() -> ParallelAsEnv:
    return ParallelAsEnv(Crowd(talks=True))


OTHERS = {
    "gymnasium-processes": partial(AsyncVectorEnv, context="fork"),
    "loop": partial(make_vec, num_workers=0),
    "worker": partial(make_vec, num_workers=1),
}


@pytest.mark.processes
@pytest.mark.timeout(60, method="signal")
@MODES
@pytest.mark.parametrize("other", OTHERS)
def test_rows_over_other_vector_envs_are_those_over_a_loop(other: str, mode: AutoresetMode) -> None:
    loop: Any = AgentRows(SyncVectorEnv([random_crowd] * 3, autoreset_mode=mode))
    many: Any = AgentRows(OTHERS[other]([random_crowd] * 3, autoreset_mode=mode))
    results = [rows.reset(seed=[4, 9, 1]) for rows in (loop, many)]
    rng = np.random.default_rng(1)
    for _ in range(25):
        assert data_equivalence(*results, exact=True), results
        if mode == DISABLED and loop.ended_envs.any():
            mask = loop.ended_envs
            begun = [rows.reset(options={"reset_mask": mask}) for rows in (loop, many)]
            assert data_equivalence(*begun, exact=True), begun
        actions = rng.integers(5, size=loop.num_envs)
        results = [rows.step(actions) for rows in (loop, many)]
    many.close()


@pytest.mark.processes
@pytest.mark.timeout(60, method="signal")
def test_halves_sent_and_received_are_the_rows_of_whole_steps() -> None:
    whole: Any = AgentRows(SyncVectorEnv([random_crowd] * 4))
    halves: Any = AgentRows(make_vec([random_crowd] * 4, num_workers=1, num_batches=2))
    assert halves.batches == (slice(0, 6), slice(6, 12))
    whole.reset(seed=3)
    halves.reset(seed=3)
    rng = np.random.default_rng(2)
    for _ in range(20):
        actions = rng.integers(5, size=12)
        expected = whole.step(actions)
        for index, batch in enumerate(halves.batches):
            halves.send(actions[batch], index)
        for index, batch in enumerate(halves.batches):
            *arrays, infos = halves.recv(index)
            for got, all_rows in zip(arrays, expected, strict=False):
                np.testing.assert_array_equal(got, all_rows[batch])
            for row in range(6):
                mine, all_infos = info_of(infos, row), info_of(expected[4], batch.start + row)
                # Said only where somebody in the same vector env or batch is not alive.
                assert mine.pop("alive", True) == all_infos.pop("alive", True)
                assert mine == all_infos
    assert halves.ended_envs.tolist() == whole.ended_envs.tolist()
    halves.close()


@pytest.mark.processes
@pytest.mark.timeout(60, method="signal")
@MODES
def test_a_killed_worker_cuts_off_the_agents_that_were_there_and_pays_nobody_twice(
    mode: AutoresetMode,
) -> None:
    def env() -> ParallelAsEnv:
        return ParallelAsEnv(Crowd({"ann": Life(2), "bob": Life(9), "cid": Life(1)}))

    rows: Any = AgentRows(make_vec([env] * 2, num_workers=1, autoreset_mode=mode))
    rows.reset(seed=1)
    rows.step(zeros(rows))
    _, rewards, terminated, _, _ = rows.step(zeros(rows))
    assert rewards.tolist() == [2, 20, 0] * 2
    assert terminated.tolist() == [True, False, False] * 2
    pids = rows.call("get_pid")
    lost = 0 if pids[0] != os.getpid() else 1
    os.kill(pids[lost], signal.SIGKILL)
    _, rewards, terminated, truncated, infos = rows.step(zeros(rows))
    there = slice(3 * lost, 3 * lost + 3)
    assert rewards[there].tolist() == [0, 0, 0]
    assert terminated[there].tolist() == [False, False, False]
    assert truncated[there].tolist() == [False, True, False]
    assert infos["alive"].tolist() == [False, True, False] * 2
    assert rewards.tolist().count(30) == 1
    assert rows.ended_envs[lost]
    assert not rows.ended_envs[1 - lost]
    if mode == SAME_STEP:
        assert infos["_final_obs"][there].tolist() == [False, True, False]
    rows.close()


# What is passed on.


def test_seeds_are_per_env() -> None:
    rows = make(LONG, LONG)
    rows.reset(seed=5)
    rows.reset(seed=[8, None])
    rows.reset(options={"map": 1})
    assert [crowd.seeds for crowd in crowds_of(rows)] == [[5, 8, None], [6, None, None]]
    assert crowds_of(rows)[1].options == {"map": 1}


@pytest.mark.parametrize("mask", [[False, True], [False, False, True, True]])
def test_a_reset_mask_is_per_env_or_per_row(mask: list[bool]) -> None:
    rows = make(LONG, LONG, mode=DISABLED)
    rows.reset()
    rows.step(zeros(rows))
    observations, _ = rows.reset(seed=[1, 2], options={"reset_mask": np.array(mask), "map": 4})
    assert observations[:, :2].tolist() == [[1, 1], [1, 1], [2, 0], [2, 0]]
    assert [crowd.seeds[1:] for crowd in crowds_of(rows)] == [[], [2]]
    assert crowds_of(rows)[1].options == {"map": 4}


def test_a_reset_mask_of_half_an_env_is_refused() -> None:
    rows = make(LONG, LONG, mode=DISABLED)
    rows.reset()
    with pytest.raises(ConfigError, match="some agents of env 1 only"):
        rows.reset(options={"reset_mask": np.array([True, True, False, True])})
    with pytest.raises(ConfigError, match=r"per env \(2\) or per row \(4\); got shape \(3,\)"):
        rows.reset(options={"reset_mask": np.ones(3, dtype=bool)})


def test_calls_and_attributes_are_per_env() -> None:
    rows = make(LONG, LONG)
    rows.set_attr("difficulty", [3, 4])
    assert rows.get_attr("difficulty") == (3, 4)
    assert rows.call("get_difficulty") == (3, 4)
    with pytest.raises(ValueError, match="equal to the number of environments"):
        rows.set_attr("difficulty", [1, 2, 3, 4])


def test_rendering_closing_and_metadata_are_the_vector_envs() -> None:
    rows = make(LONG, LONG, mode=SAME_STEP)
    assert rows.metadata["autoreset_mode"] is SAME_STEP
    assert rows.metadata["name"] == "crowd"
    assert rows.render_mode == "rgb_array"
    rows.reset()
    assert len(rows.render()) == 2
    crowds = crowds_of(rows)
    rows.close()
    rows.close()
    assert rows.closed
    assert all(crowd.closed for crowd in crowds)


class Halves(SyncVectorEnv):
    """Steps the first or the second half of its envs, as vector envs with batches do."""

    batches = (slice(0, 1), slice(1, 3))

    def send(self, actions: Any, batch_index: int = 0) -> None:
        self.sent: Any = actions, batch_index

    def recv(self, batch_index: int = 0) -> Any:
        actions, sent_index = self.sent
        assert sent_index == batch_index
        envs = self.batches[batch_index]
        padded = np.zeros((self.num_envs, 2), dtype=np.int64)
        padded[envs] = actions
        observations, *arrays, _ = self.step(padded)
        cut = {key: value[envs] for key, value in observations.items()}
        return (cut, *(array[envs] for array in arrays), {})


def test_batches_are_sent_and_received_in_rows() -> None:
    rows = AgentRows(Halves([lambda: ParallelAsEnv(Crowd(TWO))] * 3))
    assert rows.batches == (slice(0, 2), slice(2, 6))
    rows.reset()
    rows.send(np.array([1, 2, 3, 4]), 1)
    observations, rewards, terminated, _, infos = rows.recv(1)
    assert observations[:, 3].tolist() == [1, 2, 3, 4]
    assert rewards.tolist() == [2, 12, 4, 14]
    assert terminated.tolist() == [True, False, True, False]
    rows.send(np.array([1, 2]), 0)
    _, rewards, _, truncated, infos = rows.recv(0)
    assert truncated.tolist() == [False, True]
    assert infos["alive"].tolist() == [False, True]
    assert rows.ended_envs.tolist() == [True, False, False]
    with pytest.raises(ConfigError, match=r"each of 4 rows \(2 envs of 2 agents\); got shape"):
        rows.send(np.array([1, 2]), 1)


def test_a_vector_env_without_batches_says_so() -> None:
    rows = make(LONG)
    with pytest.raises(AttributeError, match="batches"):
        rows.send(zeros(rows))


# Above and below.


def test_a_curriculum_below_counts_envs_and_its_infos_are_on_all_rows() -> None:
    curriculum = Uniform([Task("hills"), Task("lakes")])

    def env() -> CurriculumEnv:
        return CurriculumEnv(ParallelAsEnv(Crowd(TWO)), return_threshold=0.0)

    rows: Any = AgentRows(CurriculumVectorEnv(SyncVectorEnv([env] * 2), curriculum))
    _, infos = rows.reset(seed=1)
    names = [crowd.task.name for crowd in crowds_of(rows)]
    assert infos["curriculum_task"].tolist() == [names[0], names[0], names[1], names[1]]
    rows.step(zeros(rows))
    assert curriculum.num_observed == 0
    infos = rows.step(zeros(rows))[4]
    assert infos["curriculum_success"].tolist() == [True] * 4
    assert curriculum.num_observed == 2
    assert rows.call("get_curriculum_stage") == (None, None)
    rows.close()


def test_gymnasiums_wrappers_take_rows_for_envs() -> None:
    rows = make({"ann": Life(2), "bob": Life(2)}, LONG)
    counted = RecordEpisodeStatistics(rows)
    counted.reset()
    counted.step(zeros(rows))
    infos = counted.step(zeros(rows))[4]
    assert infos["episode"]["r"].tolist() == [3, 30, 0, 0]
    assert infos["_episode"].tolist() == [True, True, False, False]

    listed = DictInfoToList(make(TWO, TWO, talks=True))
    _, infos = listed.reset()
    assert infos == [{"began": 1}] * 4


# What is refused.


def test_other_envs_are_refused() -> None:
    envs = SyncVectorEnv([lambda: gym.make("CartPole-v1")])
    with pytest.raises(ConfigError, match=r"are ParallelAsEnv; got one .* Box\. Make each env"):
        AgentRows(envs)


def test_envs_of_differently_named_agents_are_refused() -> None:
    with pytest.raises(ConfigError, match="the same possible_agents; got"):
        make({"ann": Life(1)}, {"bob": Life(1)})


@pytest.mark.parametrize("shape", [(3,), (2, 2), ()])
def test_a_wrong_number_of_actions_is_refused(shape: tuple[int, ...]) -> None:
    rows = make(LONG, LONG)
    rows.reset()
    with pytest.raises(ConfigError, match=r"each of 4 rows \(2 envs of 2 agents\); got shape"):
        rows.step(np.zeros(shape, dtype=np.int64))
