"""A parallel env as one Gymnasium env: worked out by hand, agents that come and go included."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete, MultiBinary, Text
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit

from envs.scripted_parallel import Crowd, Life, NestedCrowd
from stepladder.curricula import Uniform
from stepladder.envs.curriculum_env import CurriculumEnv
from stepladder.envs.parallel import ParallelAsEnv
from stepladder.errors import ConfigError
from stepladder.tasks import Task

TWO = {"ann": Life(2), "bob": Life(3, "truncated")}
"""Ann ends in the second step, bob in the third."""


def flags(observation: dict[str, Any]) -> dict[str, list[int]]:
    return {key: observation[key].tolist() for key in ("alive", "terminated", "truncated")}


def play(env: ParallelAsEnv, num_steps: int, action: Any = None) -> Any:
    """Step so often; return what the last step gave."""
    result = None
    for _ in range(num_steps):
        result = env.step(np.zeros(env.num_agents, dtype=int) if action is None else action)
    return result


# What an observation is.


def test_the_spaces_are_those_of_all_agents_stacked() -> None:
    env = ParallelAsEnv(Crowd(TWO))
    assert env.observation_space["agents"] == Box(-1.0, 1e6, (2, 4), np.float32)  # type: ignore
    assert env.observation_space["rewards"] == Box(-np.inf, np.inf, (2,), np.float64)  # type: ignore
    for part in ("alive", "terminated", "truncated"):
        assert env.observation_space[part] == MultiBinary((2,))  # type: ignore
    assert env.action_space == gym.spaces.MultiDiscrete([5, 5])
    assert env.agent_observation_space == Box(-1.0, 1e6, (4,), np.float32)
    assert env.agent_action_space == Discrete(5)


def test_three_steps_worked_out_by_hand() -> None:
    env = ParallelAsEnv(Crowd(TWO))
    observation, info = env.reset(seed=7)
    assert observation["agents"].tolist() == [[1, 0, 1, 0], [1, 0, 2, 0]]
    assert flags(observation) == {"alive": [1, 1], "terminated": [0, 0], "truncated": [0, 0]}
    assert observation["rewards"].tolist() == [0, 0]
    assert info == {}

    # Rewards: 1 * step + action for ann, 10 * step + action for bob.
    observation, reward, terminated, truncated, info = env.step(np.array([3, 4]))
    assert observation["agents"].tolist() == [[1, 1, 1, 3], [1, 1, 2, 4]]
    assert observation["rewards"].tolist() == [4, 14]
    assert (reward, terminated, truncated, info) == (18.0, False, False, {})

    # Ann's last step: her observation and reward are real, her flag is set, she is still alive.
    observation, reward, terminated, truncated, info = env.step(np.array([1, 0]))
    assert observation["agents"].tolist() == [[1, 2, 1, 1], [1, 2, 2, 0]]
    assert flags(observation) == {"alive": [1, 1], "terminated": [1, 0], "truncated": [0, 0]}
    assert (reward, terminated, truncated) == (23.0, False, False)

    # Ann is gone: zeros. Bob is cut off, and with him the episode.
    observation, reward, terminated, truncated, info = env.step(np.array([4, 2]))
    assert observation["agents"].tolist() == [[0, 0, 0, 0], [1, 3, 2, 2]]
    assert observation["rewards"].tolist() == [0, 32]
    assert flags(observation) == {"alive": [0, 1], "terminated": [0, 0], "truncated": [0, 1]}
    assert (reward, terminated, truncated) == (32.0, False, True)
    assert env.observation_space.contains(observation)


def test_the_next_episode_knows_nothing_of_the_last() -> None:
    env = ParallelAsEnv(Crowd(TWO))
    env.reset()
    play(env, 3)
    observation, _ = env.reset()
    assert observation["agents"].tolist() == [[2, 0, 1, 0], [2, 0, 2, 0]]
    assert flags(observation) == {"alive": [1, 1], "terminated": [0, 0], "truncated": [0, 0]}


def test_only_the_actions_of_those_who_are_there_are_passed_on() -> None:
    crowd = Crowd({"ann": Life(1), "bob": Life(2), "cid": Life(9, first=1)})
    env = ParallelAsEnv(crowd)
    env.reset()
    play(env, 2, np.array([1, 2, 3]))
    play(env, 1, np.array([4, 4, 4]))
    assert crowd.received == [{"ann": 1, "bob": 2}, {"bob": 2, "cid": 3}, {"cid": 4}]


def test_an_agent_that_enters_later_has_zeros_until_then() -> None:
    env = ParallelAsEnv(Crowd({"ann": Life(3), "bob": Life(3, first=2)}))
    observation, _ = env.reset()
    assert flags(observation)["alive"] == [1, 0]
    assert observation["agents"][1].tolist() == [0, 0, 0, 0]
    observation, *_ = play(env, 1)
    assert flags(observation)["alive"] == [1, 0]
    observation, *_ = play(env, 1)
    assert flags(observation) == {"alive": [1, 1], "terminated": [0, 0], "truncated": [0, 0]}
    assert observation["agents"].tolist() == [[1, 2, 1, 0], [1, 2, 2, 0]]


def test_observations_may_be_kept() -> None:
    env = ParallelAsEnv(Crowd(TWO))
    first, _ = env.reset()
    before = {key: value.copy() for key, value in first.items()}
    play(env, 3)
    for key, value in first.items():
        np.testing.assert_array_equal(value, before[key])


def test_an_env_that_shows_its_live_memory_is_copied() -> None:
    class Live(Crowd):
        memory = np.zeros((2, 4), np.float32)

        def _observe(self, agent: Any, action: int) -> Any:
            row = self.memory[self.possible_agents.index(agent)]
            row[:] = super()._observe(agent, action)
            return row

    env = ParallelAsEnv(Live(TWO))
    first, _ = env.reset()
    play(env, 1)
    assert first["agents"].tolist() == [[1, 0, 1, 0], [1, 0, 2, 0]]


def test_nested_observations_are_stacked_leaf_by_leaf() -> None:
    env = ParallelAsEnv(NestedCrowd({"ann": Life(1), "bob": Life(3)}))
    env.reset()
    action = {"push": np.zeros((2, 2), np.float32), "choose": np.array([2, 4])}
    env.step(action)
    observation, *_ = env.step(action)
    assert env.observation_space.contains(observation)
    agents = observation["agents"]
    assert agents["place"].shape == (2, 2, 3)
    assert agents["place"][:, 0, 0].tolist() == [0, 22]
    assert agents["number"].tolist() == [0, 42]
    assert agents["parts"][0].tolist() == [[0, 0], [2, 4]]
    assert agents["parts"][1].tolist() == [[0, 0], [1, 0]]


@pytest.mark.filterwarnings("ignore:.*infinity:UserWarning")
def test_gymnasiums_own_check_passes() -> None:
    check_env(ParallelAsEnv(NestedCrowd(TWO)), skip_render_check=True)


# How an episode ends.


@pytest.mark.parametrize(
    ("ann", "bob", "whole"),
    [
        (Life(2, "terminated"), Life(2, "terminated"), (True, False)),
        (Life(2, "truncated"), Life(2, "truncated"), (False, True)),
        (Life(2, "terminated"), Life(2, "truncated"), (True, False)),
        (Life(2, "both"), Life(2, "truncated"), (True, False)),
        (Life(1, "terminated"), Life(2, "truncated"), (False, True)),
        (Life(1, "truncated"), Life(2, "terminated"), (True, False)),
        (Life(1, "terminated"), Life(2, "vanishes"), (False, True)),
    ],
)
def test_an_episode_ends_as_those_ended_who_were_there_to_the_last(
    ann: Life, bob: Life, whole: tuple[bool, bool]
) -> None:
    env = ParallelAsEnv(Crowd({"ann": ann, "bob": bob}))
    env.reset()
    assert play(env, 1)[2:4] == (False, False)
    assert play(env, 1)[2:4] == whole


def test_an_agent_that_vanishes_without_a_flag_counts_as_truncated() -> None:
    env = ParallelAsEnv(Crowd({"ann": Life(1, "vanishes"), "bob": Life(2)}))
    env.reset()
    assert flags(play(env, 1)[0]) == {"alive": [1, 1], "terminated": [0, 0], "truncated": [1, 0]}
    assert flags(play(env, 1)[0]) == {"alive": [0, 1], "terminated": [0, 1], "truncated": [0, 0]}


def test_an_agent_may_have_both_flags() -> None:
    env = ParallelAsEnv(Crowd({"ann": Life(1, "both"), "bob": Life(2)}))
    env.reset()
    assert flags(play(env, 1)[0]) == {"alive": [1, 1], "terminated": [1, 0], "truncated": [1, 0]}


def test_an_env_that_speaks_of_the_dead_is_not_listened_to() -> None:
    class Haunted(Crowd):
        def step(self, actions: dict[Any, Any]):
            results = super().step(actions)
            if "ann" not in results[0]:
                for given, value in zip(
                    results, (np.ones(4, np.float32), 5.0, True, True, {"boo": 1}), strict=True
                ):
                    given["ann"] = value
            return results

    env = ParallelAsEnv(Haunted({"ann": Life(1), "bob": Life(3)}))
    env.reset()
    observation, reward, _, _, info = play(env, 2)
    assert observation["agents"][0].tolist() == [0, 0, 0, 0]
    assert flags(observation) == {"alive": [0, 1], "terminated": [0, 0], "truncated": [0, 0]}
    assert (reward, info) == (20.0, {})


def test_an_env_that_keeps_the_dead_on_its_list_does_not_bring_them_back() -> None:
    class Lingering(Crowd):
        def step(self, actions: dict[Any, Any]):
            self.agents = [agent for agent in self.agents if agent in actions]
            results = super().step(actions)
            self.agents = list(self.possible_agents)
            return results

    env = ParallelAsEnv(Lingering({"ann": Life(1), "bob": Life(3)}))
    env.reset()
    assert flags(play(env, 1)[0]) == {"alive": [1, 1], "terminated": [1, 0], "truncated": [0, 0]}
    assert flags(play(env, 1)[0]) == {"alive": [0, 1], "terminated": [0, 0], "truncated": [0, 0]}
    observation, _, terminated, *_ = play(env, 1)
    assert flags(observation) == {"alive": [0, 1], "terminated": [0, 1], "truncated": [0, 0]}
    assert terminated


def test_stepping_when_nobody_is_there_is_an_error() -> None:
    env = ParallelAsEnv(Crowd(TWO))
    with pytest.raises(ResetNeeded, match="Call reset before step"):
        play(env, 1)
    env.reset()
    play(env, 3)
    with pytest.raises(ResetNeeded, match="Call reset before step"):
        play(env, 1)


# Infos.


def test_infos_are_under_the_names_of_the_agents_that_have_some() -> None:
    env = ParallelAsEnv(Crowd({0: Life(1), 1: Life(2)}, talks=True))
    _, info = env.reset()
    assert info == {"0": {"began": 1}, "1": {"began": 1}}
    assert play(env, 1)[4] == {"0": {"word": "bye from 0"}}
    assert play(env, 1)[4] == {
        "1": {"step": 2.5, "odd": {"index": 1}, "word": "bye from 1"},
    }


def test_an_info_of_no_agent_is_passed_on_as_it_is() -> None:
    class Common(Crowd):
        def reset(self, seed: int | None = None, options: dict[str, Any] | None = None):
            observations, infos = super().reset(seed, options)
            return observations, {**infos, "__common__": {"map": 3}}

    assert ParallelAsEnv(Common(TWO)).reset()[1] == {"__common__": {"map": 3}}


# What is reached through it.


def test_seeds_and_options_reach_the_parallel_env() -> None:
    crowd = Crowd(TWO)
    ParallelAsEnv(crowd).reset(seed=5, options={"map": 2})
    assert (crowd.seeds, crowd.options) == ([5], {"map": 2})


def test_rendering_and_closing_reach_the_parallel_env() -> None:
    crowd = Crowd(TWO)
    env = ParallelAsEnv(crowd)
    assert env.render_mode == "rgb_array"
    assert env.metadata == crowd.metadata
    env.reset()
    assert env.render().shape == (2, 2, 3)
    env.close()
    assert crowd.closed


def test_methods_and_attributes_are_found_through_it_and_through_wrappers() -> None:
    crowd = Crowd(TWO)
    env = TimeLimit(ParallelAsEnv(crowd), 10)
    assert env.get_wrapper_attr("get_difficulty")() == 0
    env.set_wrapper_attr("difficulty", 3)
    assert crowd.difficulty == 3
    assert env.get_wrapper_attr("num_agents") == 2
    assert not env.has_wrapper_attr("no_such_thing")
    with pytest.raises(AttributeError, match="no_such_thing"):
        env.get_wrapper_attr("no_such_thing")
    env.set_wrapper_attr("new", 1)
    assert not hasattr(crowd, "new")


def test_a_curriculum_delivers_its_tasks_and_sees_the_sum_of_rewards() -> None:
    crowd = Crowd({"ann": Life(1), "bob": Life(1)})
    curriculum = Uniform([Task("hills")])
    env = CurriculumEnv(ParallelAsEnv(crowd), curriculum, return_threshold=11.0)
    env.reset(seed=1)
    assert crowd.task == Task("hills")
    info = env.step(np.array([0, 0]))[4]
    # 1 * 1 + 10 * 1: just enough, for both together.
    assert info["curriculum_success"]
    assert curriculum.num_observed == 1


# What is refused.


def test_an_env_without_a_fixed_list_of_agents_is_refused() -> None:
    crowd = Crowd(TWO)
    del crowd.possible_agents
    with pytest.raises(ConfigError, match=r"^Crowd has no list possible_agents"):
        ParallelAsEnv(crowd)


@pytest.mark.parametrize("kind", ["observation", "action"])
def test_agents_of_different_kinds_are_refused_with_both_spaces_in_one_line(kind: str) -> None:
    crowd: Any = Crowd(TWO)
    spaces = {"ann": Box(np.zeros(99), np.arange(99.0), dtype=np.float64), "bob": Discrete(3)}
    setattr(crowd, f"{kind}_space", spaces.get)
    with pytest.raises(ConfigError) as error:
        ParallelAsEnv(crowd)
    message = str(error.value)
    assert f"the same {kind} space; 'ann' has Box(0.0, [ 0. 1. 2." in message
    assert "'bob' has Discrete(3)" in message
    assert "\n" not in message


def test_a_space_that_is_no_arrays_is_refused() -> None:
    crowd: Any = Crowd(TWO)
    crowd.observation_space = lambda agent: gym.spaces.Tuple((Discrete(2), Text(5)))
    with pytest.raises(ConfigError, match=r"got Tuple\(Discrete\(2\), Text"):
        ParallelAsEnv(crowd)


def test_a_living_agent_without_an_observation_is_an_error() -> None:
    class Forgetful(Crowd):
        def step(self, actions: dict[Any, Any]):
            results = super().step(actions)
            results[0].pop("ann")
            return results

    env = ParallelAsEnv(Forgetful(TWO))
    env.reset()
    with pytest.raises(ConfigError, match=r"no observation of agent 'ann', .* those of \['bob'\]"):
        play(env, 1)


def test_an_agent_that_ends_without_an_observation_has_zeros() -> None:
    class Curt(Crowd):
        def step(self, actions: dict[Any, Any]):
            results = super().step(actions)
            return ({a: o for a, o in results[0].items() if a in self.agents}, *results[1:])

    env = ParallelAsEnv(Curt(TWO))
    env.reset()
    observation, reward, *_ = play(env, 2)
    assert observation["agents"][0].tolist() == [0, 0, 0, 0]
    assert flags(observation) == {"alive": [1, 1], "terminated": [1, 0], "truncated": [0, 0]}
    assert reward == 22.0
