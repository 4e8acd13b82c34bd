"""Envs that others have written, in every vector env that we have, against Gymnasium's loop."""

import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from stepladder.envs.agent_rows import AgentRows
from stepladder.envs.make import make_vec
from stepladder.envs.parallel import ParallelAsEnv
from stepladder.errors import ConfigError

MODES = pytest.mark.parametrize("mode", list(AutoresetMode))
pytestmark = [pytest.mark.processes, pytest.mark.timeout(60, method="signal")]


# The envs. Functions of this module, so that workers can be sent them.


def minigrid_raw() -> gym.Env:
    """An image, a direction, and a mission in words, which has no fixed size."""
    import minigrid  # noqa: F401, registers its envs

    return gym.make("MiniGrid-Empty-5x5-v0", max_steps=9)


def minigrid_image() -> gym.Env:
    from minigrid.wrappers import ImgObsWrapper

    return ImgObsWrapper(minigrid_raw())


def knights() -> Any:
    """Two knights and two archers, most of whom do not live to see the end."""
    # It draws nothing, but asks for a screen.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    from pettingzoo.butterfly.knights_archers_zombies.knights_archers_zombies import parallel_env

    return parallel_env(spawn_delay=2, max_zombies=20)


def rock_paper_scissors() -> Any:
    """Two players who see a number each, the other's last move."""
    from pettingzoo.classic.rps.rps import parallel_env

    return parallel_env(max_cycles=7)


@contextmanager
def root_logger_kept() -> Iterator[None]:
    """Undo what mettagrid does to everybody's logging when it is imported."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


def mettagrid() -> Any:
    """Four agents, named by numbers, who walk about in a small room; written in C++."""
    with root_logger_kept():
        from mettagrid.builder.envs import make_navigation
        from mettagrid.envs.pettingzoo_env import MettaGridPettingZooEnv
        from mettagrid.simulator import Simulator

    config: Any = make_navigation(num_agents=4)
    config.game.max_steps = 11
    config.game.map_builder.width = config.game.map_builder.height = 7
    # Its maps follow from this and the number of resets, not from the seed of reset.
    config.game.map_builder.seed = 5
    return MettaGridPettingZooEnv(Simulator(), config)


PARALLEL = {
    "knights": (knights, 145),
    "rock_paper_scissors": (rock_paper_scissors, 20),
    "mettagrid": (mettagrid, 30),
}
"""Envs of several agents, and how many steps are enough to see an episode end."""


def as_env(parallel: Callable[[], Any]) -> gym.Env:
    return ParallelAsEnv(parallel())


SINGLE = {"minigrid_raw": minigrid_raw, "minigrid_image": minigrid_image}

MAKERS: dict[str, Callable[..., Any]] = {
    "gymnasium": SyncVectorEnv,
    "loop": partial(make_vec, num_workers=0),
    "worker": partial(make_vec, num_workers=1),
}
"""Every vector env that must give what Gymnasium's loop gives, element for element."""

VECTORS = pytest.mark.parametrize("vector", MAKERS)


def play_alike(first: Any, second: Any, num_steps: int, mode: AutoresetMode) -> int:
    """Step two vector envs with the same actions; return how many rows ended."""
    num_ended = 0
    both = (first, second)
    results = [each.reset(seed=11) for each in both]
    assert data_equivalence(*results, exact=True)
    first.action_space.seed(5)
    for _ in range(num_steps):
        actions = first.action_space.sample()
        results = [each.step(actions) for each in both]
        assert data_equivalence(*results, exact=True)
        ended = results[0][2] | results[0][3]
        num_ended += int(ended.sum())
        if mode == AutoresetMode.DISABLED:
            over = getattr(first, "ended_envs", ended)
            if over.any():
                begun = [each.reset(options={"reset_mask": over.copy()}) for each in both]
                assert data_equivalence(*begun, exact=True)
    for each in both:
        each.close()
    return num_ended


# Element for element.


@VECTORS
@MODES
@pytest.mark.parametrize("name", SINGLE)
def test_a_foreign_env_plays_as_in_gymnasiums_loop(
    name: str, mode: AutoresetMode, vector: str
) -> None:
    loop = SyncVectorEnv([SINGLE[name]] * 3, autoreset_mode=mode)
    other = MAKERS[vector]([SINGLE[name]] * 3, autoreset_mode=mode)
    assert other.single_observation_space == loop.single_observation_space
    assert play_alike(loop, other, 25, mode) > 0


@VECTORS
@MODES
@pytest.mark.parametrize("name", PARALLEL)
def test_rows_of_foreign_agents_are_those_over_gymnasiums_loop(
    name: str, mode: AutoresetMode, vector: str
) -> None:
    make, num_steps = PARALLEL[name]
    envs = [partial(as_env, make)] * 2
    loop = AgentRows(SyncVectorEnv(envs, autoreset_mode=mode))
    other = AgentRows(MAKERS[vector](envs, autoreset_mode=mode))
    assert play_alike(loop, other, num_steps, mode) > 0


# Against the env itself, stepped by hand.


@VECTORS
@pytest.mark.parametrize("name", PARALLEL)
def test_rows_are_what_the_parallel_env_itself_gives(name: str, vector: str) -> None:
    make, num_steps = PARALLEL[name]
    alone = make()
    rows: Any = AgentRows(MAKERS[vector]([partial(as_env, make)] * 2))
    agents = alone.possible_agents
    observed, _ = rows.reset(seed=[3, 4])
    expected, _ = alone.reset(seed=4)
    for index, agent in enumerate(agents, start=len(agents)):
        np.testing.assert_array_equal(observed[index], expected[agent])
    rows.action_space.seed(2)
    num_left_early = 0
    for _ in range(num_steps):
        actions = rows.action_space.sample()
        mine = dict(zip(agents, actions[len(agents) :], strict=True))
        there = list(alone.agents)
        results = alone.step({agent: mine[agent] for agent in there})
        observed, rewards, terminated, truncated, infos = rows.step(actions)
        alive = infos.get("alive", np.ones(rows.num_envs, dtype=bool))
        for index, agent in enumerate(agents, start=len(agents)):
            assert alive[index] == (agent in there)
            if agent in there:
                np.testing.assert_array_equal(observed[index], results[0][agent])
                given = (rewards[index], terminated[index], truncated[index])
                assert given == (results[1][agent], results[2][agent], results[3][agent])
            else:
                assert not observed[index].any()
                assert (rewards[index], terminated[index], truncated[index]) == (0, False, False)
        num_left_early += 0 < len(alone.agents) < len(there)
        if not alone.agents:
            break
    assert not alone.agents, "more steps are needed to see the end"
    assert rows.ended_envs[1]
    # Only the knights' game loses players on the way; without that this test would see little.
    assert (num_left_early > 0) == (name == "knights")
    rows.close()
    alone.close()


# What each is there for.


@VECTORS
def test_missions_in_words_come_through(vector: str) -> None:
    envs = MAKERS[vector]([minigrid_raw] * 2)
    observations, _ = envs.reset(seed=1)
    assert observations["mission"] == ("get to the green goal square",) * 2
    assert observations["image"].shape == (2, 7, 7, 3)
    envs.close()


@VECTORS
def test_minigrid_is_solved_by_walking_to_the_corner(vector: str) -> None:
    """Two cells on, turn right, two more: the goal of the empty room is at the other corner."""
    envs = MAKERS[vector]([minigrid_image] * 2)
    envs.reset(seed=1)
    forward, right = 2, 1
    for action in (forward, forward, right, forward):
        *_, terminated, truncated, _ = envs.step(np.full(2, action))
        assert not (terminated | truncated).any()
    _, rewards, terminated, truncated, _ = envs.step(np.full(2, forward))
    assert terminated.all()
    # Minigrid's own formula, after 5 of 9 steps.
    assert rewards.tolist() == pytest.approx([1 - 0.9 * 5 / 9] * 2)
    envs.close()


@pytest.mark.filterwarnings("ignore:The old environment creation API:DeprecationWarning")
def test_a_pettingzoo_env_whose_agents_are_not_known_beforehand_is_refused() -> None:
    from pettingzoo.test.example_envs.generated_agents_parallel_v0 import parallel_env

    with pytest.raises(ConfigError, match="has no list possible_agents"):
        ParallelAsEnv(parallel_env())


def test_parallel_wrappers_of_pettingzoo_are_seen_through() -> None:
    from pettingzoo.utils.wrappers import BaseParallelWrapper

    env = ParallelAsEnv(BaseParallelWrapper(rock_paper_scissors()))
    assert env.possible_agents == ("player_0", "player_1")
    assert env.get_wrapper_attr("aec_env") is not None


def test_observations_of_mettagrid_are_copies_of_its_memory() -> None:
    env = ParallelAsEnv(mettagrid())
    first, _ = env.reset(seed=3)
    before = first["agents"].copy()
    for _ in range(5):
        env.step(env.action_space.sample())
    env.reset(seed=4)
    np.testing.assert_array_equal(first["agents"], before)
    env.close()


def test_the_page_about_many_agents_runs() -> None:
    page = (Path(__file__).parents[2] / "docs/many_agents.md").read_text()
    names: dict[str, Any] = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)), names)
    assert names["rows"].num_envs == 8
    assert names["curriculum"].num_observed > 50
