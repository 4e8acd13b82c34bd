"""Games of two players: both views in one step, and opponents that play in the worker."""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from stepladder.curricula import Uniform
from stepladder.envs.curriculum_env import CurriculumEnv
from stepladder.envs.make import make_vec
from stepladder.envs.two_player import AgainstOpponent, BothPlayers
from stepladder.errors import ConfigError
from stepladder.tasks import Task


class Duel(gym.Env[Any, Any]):
    """Two players pull at a rope; each sees where it is from its own side, and the time.

    Observations are of a wider type than the space says, as in the hockey that this stands for.
    """

    observation_space = Box(-100, 100, (2,), np.float32)
    action_space = Box(-1, 1, (8,), np.float32)

    def __init__(self, length: int = 3):
        self.length = length
        self.joint: list[Any] = []
        self.task: Task | None = None
        self.views_given = 0

    def set_task(self, task: Task) -> None:
        self.task = task

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.options = options
        self.rope, self.time = 0.0, 0
        return np.array([self.rope, self.time]), {}

    def step(self, action: Any):
        self.joint.append(action)
        self.time += 1
        self.rope += float(action[0] - action[4])
        ended = self.time >= self.length
        observation = np.array([self.rope, self.time])
        return observation, self.rope, ended, False, {"winner": 1} if ended else {}

    def obs_agent_two(self) -> Any:
        self.views_given += 1
        return np.array([-self.rope, self.time])


class Counts:
    """Pulls harder each time it acts in an episode; remembers its seeds."""

    made = 0

    def __init__(self, strength: float = 0.1):
        type(self).made += 1
        self.strength = strength
        self.seeds: list[int] = []

    def reset(self, seed: int) -> None:
        self.seeds.append(seed)
        self.acts = 0

    def act(self, observation: Any) -> Any:
        assert observation.dtype == np.float32
        self.acts += 1
        return [self.strength * self.acts, 0, 0, 0]


def pulls(observation: Any) -> Any:
    """Pull with a tenth of the time that is seen, to the other side."""
    return np.array([0.1 * observation[1], 0.0, 0.0, 0.5])


ONE = np.array([0.5, 0, 0, 1], dtype=np.float32)


def play_episode(env: Any) -> dict[str, Any]:
    """Play to the end; return the last info."""
    while True:
        *_, terminated, truncated, info = env.step(ONE)
        if terminated or truncated:
            return info


# Both players outside.


def test_both_observations_come_with_one_step() -> None:
    duel = Duel()
    env = BothPlayers(duel)
    view = duel.observation_space
    half = Box(-1, 1, (4,), np.float32)
    assert env.observation_space == Dict({"player_one": view, "player_two": view})
    assert env.action_space == Dict({"player_one": half, "player_two": half})
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    two = np.array([-0.25, 0, 0, 0])
    observation, reward, terminated, truncated, _ = env.step({"player_one": ONE, "player_two": two})
    # Player one pulls with 0.5, player two with -0.25: the rope is at 0.75.
    assert observation["player_one"].tolist() == [0.75, 1]
    assert observation["player_two"].tolist() == [-0.75, 1]
    assert (reward, terminated, truncated) == (0.75, False, False)
    assert duel.joint[0].tolist() == [0.5, 0, 0, 1, -0.25, 0, 0, 0]
    assert duel.joint[0].dtype == np.float32
    assert duel.views_given == 2


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version:UserWarning")
@pytest.mark.parametrize("wrap", [BothPlayers, partial(AgainstOpponent, opponents={"p": pulls})])
def test_gymnasiums_own_check_passes(wrap: Any) -> None:
    check_env(wrap(Duel()), skip_render_check=True)


def test_both_views_go_through_a_vector_env_in_one_round_trip() -> None:
    envs = SyncVectorEnv([lambda: BothPlayers(Duel())] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    envs.reset(seed=1)
    one, two = np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32)
    one[:, 0], two[:, 0] = [0.5, 0.25, 0], [0, 0.25, 0.5]
    actions = {"player_one": one, "player_two": two}
    observations = envs.step(actions)[0]
    assert observations["player_one"][:, 0].tolist() == [0.5, 0, -0.5]
    assert observations["player_two"][:, 0].tolist() == [-0.5, 0, 0.5]
    envs.step(actions)
    observations, *_, infos = envs.step(actions)
    assert observations["player_two"].tolist() == [[0, 0]] * 3
    assert infos["final_obs"][2]["player_two"].tolist() == [1.5, 3]


def test_whole_numbers_make_no_whole_number_array_of_the_others_action() -> None:
    """The ancestor wrote four numbers of one player into an array made for the other's id."""
    duel = Duel()
    env = BothPlayers(duel)
    env.reset()
    env.step({"player_one": [1, 0, 0, 0], "player_two": [0.5, 0.5, 0.5, 0.5]})
    assert duel.joint[0].tolist() == [1, 0, 0, 0, 0.5, 0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("two", "message"),
    [
        (np.zeros(6), r"player two's action must have shape \(4,\); got \(6,\): \[0\. 0\. 0\. "),
        (3, r"player two's action must have shape \(4,\); got \(\): \[3\]\."),
        (["a"] * 4, r"player two's action must be of type float32; got <U1"),
    ],
)
def test_an_action_of_another_shape_is_refused(two: Any, message: str) -> None:
    env = BothPlayers(Duel())
    env.reset()
    with pytest.raises(ConfigError, match=message) as error:
        env.step({"player_one": ONE, "player_two": two})
    assert "\n" not in str(error.value)


def test_discrete_halves_keep_their_numbers() -> None:
    class Choices(Duel):
        action_space = MultiDiscrete([2, 3, 4, 5], start=[0, 0, 1, 1])

        def step(self, action: Any):
            self.joint.append(action)
            return np.zeros(2), 0.0, False, False, {}

    duel = Choices()
    env = BothPlayers(duel)
    assert env.action_space["player_two"] == MultiDiscrete([4, 5], start=[1, 1])  # type: ignore
    env.reset()
    env.step({"player_one": [1, 2], "player_two": [3, 4]})
    assert duel.joint[0].tolist() == [1, 2, 3, 4]
    with pytest.raises(ConfigError, match="must be of type int64; got float64"):
        env.step({"player_one": [1, 2], "player_two": [0.5, 0.5]})


def test_the_view_is_found_through_wrappers_and_under_another_name() -> None:
    class Renamed(Duel):
        obs_agent_two = None  # type: ignore[assignment]

        def other_side(self) -> Any:
            return np.array([7, 7])

    env = BothPlayers(TimeLimit(Renamed(), 10), player_two_view="other_side")
    assert env.reset()[0]["player_two"].tolist() == [7, 7]
    with pytest.raises(ConfigError, match=r"has no method 'other_sight' .* player_two_view"):
        BothPlayers(Duel(), player_two_view="other_sight")


def test_a_view_of_another_shape_than_the_space_says_is_an_error() -> None:
    class Short(Duel):
        def obs_agent_two(self) -> Any:
            return np.zeros(1)

    env = BothPlayers(Short())
    with pytest.raises(ConfigError, match=r"player two's observation must have shape \(2,\)"):
        env.reset()


@pytest.mark.parametrize("space", [Box(-1, 1, (7,)), Box(-1, 1, (2, 4)), Discrete(4)])
def test_an_action_space_without_two_halves_is_refused(space: Any) -> None:
    duel = Duel()
    duel.action_space = space
    with pytest.raises(ConfigError, match="flat Box or MultiDiscrete of even length"):
        BothPlayers(duel)


# Opponents inside.


def test_the_opponent_acts_by_what_it_sees() -> None:
    duel = Duel()
    env = AgainstOpponent(duel, {"pulls": pulls})
    assert env.action_space == Box(-1, 1, (4,), np.float32)
    assert env.observation_space == duel.observation_space
    observation, _ = env.reset(seed=1)
    assert observation.dtype == np.float32
    # It sees times 0, 1, 2 and pulls with 0, 0.1, 0.2.
    info = play_episode(env)
    assert [joint[4] for joint in duel.joint] == pytest.approx([0, 0.1, 0.2])
    assert duel.joint[2].tolist() == pytest.approx([0.5, 0, 0, 1, 0.2, 0, 0, 0.5])
    assert info == {"winner": 1, "opponent": "pulls"}


def test_the_info_names_the_opponent_at_the_end_only() -> None:
    env = AgainstOpponent(Duel(length=2), {"pulls": pulls})
    assert env.reset()[1] == {}
    assert env.step(ONE)[4] == {}
    assert env.step(ONE)[4]["opponent"] == "pulls"


def test_none_is_built_in_and_does_as_much_as_the_action_is_long() -> None:
    duel = Duel()
    env = AgainstOpponent(duel, {})
    assert env.opponent_names == ("none",)
    env.reset()
    assert play_episode(env)["opponent"] == "none"
    assert duel.joint[0].tolist() == [0.5, 0, 0, 1, 0, 0, 0, 0]
    assert duel.views_given == 0
    with pytest.raises(ConfigError, match="'none' is built in"):
        AgainstOpponent(duel, {"none": pulls})


def test_none_and_others_mix_in_one_vector_env() -> None:
    envs = SyncVectorEnv([lambda: AgainstOpponent(Duel(), {"pulls": pulls})] * 2)
    envs.envs[0].get_wrapper_attr("set_opponent")("none")
    envs.reset(seed=1)
    for _ in range(3):
        *_, terminated, _, infos = envs.step(np.stack([ONE, ONE]))
    assert terminated.all()
    assert infos["opponent"].tolist() == ["none", "pulls"]


def test_the_first_plays_until_another_is_chosen_and_from_the_next_episode_on() -> None:
    env = AgainstOpponent(Duel(), {"pulls": pulls, "counts": Counts})
    env.reset()
    env.set_opponent("counts")
    assert play_episode(env)["opponent"] == "pulls"
    env.reset()
    assert play_episode(env)["opponent"] == "counts"
    env.reset()
    assert play_episode(env)["opponent"] == "counts"


def test_the_task_decides_and_reaches_the_env_below() -> None:
    duel = Duel()
    env = AgainstOpponent(TimeLimit(duel, 99), {"pulls": pulls, "counts": Counts})
    env.set_opponent("none")
    task = Task("hard", params={"opponent": "counts"})
    env.set_task(task)
    assert duel.task == task
    env.reset()
    assert play_episode(env)["opponent"] == "counts"
    # A task that names nobody leaves it to set_opponent.
    env.set_task(Task("plain"))
    env.reset()
    assert play_episode(env)["opponent"] == "none"


def test_set_opponent_after_a_task_overrules_it() -> None:
    env = AgainstOpponent(Duel(), {"pulls": pulls, "counts": Counts})
    env.set_task(Task("hard", params={"opponent": "counts"}))
    env.set_opponent("pulls")
    env.reset()
    assert play_episode(env)["opponent"] == "pulls"


def test_an_env_below_that_takes_tasks_by_options_gets_them_so() -> None:
    class ByOptions(Duel):
        metadata = {"task_option": True}  # noqa: RUF012, gymnasium declares it so
        set_task = None  # type: ignore[assignment]

    duel = ByOptions()
    env = AgainstOpponent(duel, {"pulls": pulls})
    task = Task("wide", params={"opponent": "pulls"})
    env.set_task(task)
    env.reset(options={"map": 1})
    assert duel.options == {"map": 1, "task": task}


def test_a_curriculum_draws_opponents() -> None:
    tasks = [Task(name, params={"opponent": name}) for name in ("pulls", "counts", "none")]
    curriculum = Uniform(tasks)
    env = CurriculumEnv(
        AgainstOpponent(Duel(), {"pulls": pulls, "counts": Counts}),
        curriculum,
        return_threshold=0.0,
    )
    met = set()
    for _ in range(30):
        env.reset()
        info = play_episode(env)
        assert info["opponent"] == info["curriculum_task"]
        met.add(info["opponent"])
    assert met == {"pulls", "counts", "none"}


def test_a_task_with_an_unknown_opponent_is_quarantined_with_the_reason() -> None:
    curriculum = Uniform([Task("good"), Task("bad", params={"opponent": "ghost"})])
    env = CurriculumEnv(AgainstOpponent(Duel(), {"pulls": pulls}), curriculum, return_threshold=0.0)
    for _ in range(10):
        env.reset()
        play_episode(env)
    assert [each.task for each in curriculum.quarantined] == ["bad"]
    assert "unknown opponent 'ghost'; expected one of pulls, none." in str(curriculum.quarantined)


def test_unknown_names_are_refused_with_those_that_are_known() -> None:
    env = AgainstOpponent(Duel(), {"pulls": pulls, "counts": Counts})
    for choose in (
        env.set_opponent,
        lambda name: env.set_task(Task("x", params={"opponent": name})),
    ):
        with pytest.raises(
            ConfigError, match=r"^unknown opponent 'pull'; .* pulls, counts, none\.$"
        ):
            choose("pull")


# In workers.


class Rolls:
    """Pulls by chance, with the seed that it was given."""

    def reset(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def act(self, observation: Any) -> Any:
        return self.rng.uniform(-1, 1, size=4)


def against_rolls() -> gym.Env:
    return AgainstOpponent(Duel(), {"rolls": Rolls, "pulls": pulls})


def both_players() -> gym.Env:
    return BothPlayers(Duel())


@pytest.mark.processes
@pytest.mark.timeout(60, method="signal")
@pytest.mark.parametrize("mode", list(AutoresetMode)[:2])
@pytest.mark.parametrize("make", [against_rolls, both_players])
@pytest.mark.parametrize("num_workers", [0, 1])
def test_workers_play_as_gymnasiums_loop_does(
    make: Any, num_workers: int, mode: AutoresetMode
) -> None:
    loop = SyncVectorEnv([make] * 3, autoreset_mode=mode)
    other: Any = make_vec(make, 3, num_workers=num_workers, autoreset_mode=mode)
    results = [envs.reset(seed=4) for envs in (loop, other)]
    loop.action_space.seed(1)
    for _ in range(12):
        assert data_equivalence(*results, exact=True), results
        actions = loop.action_space.sample()
        results = [envs.step(actions) for envs in (loop, other)]
    other.close()


@pytest.mark.processes
@pytest.mark.timeout(60, method="signal")
@pytest.mark.parametrize("num_workers", [0, 1])
def test_each_worker_plays_the_opponents_of_its_tasks(num_workers: int) -> None:
    names = ("rolls", "pulls", "none")
    curriculum = Uniform([Task(name, params={"opponent": name}) for name in names])
    envs: Any = make_vec(
        against_rolls,
        4,
        curriculum=curriculum,
        curriculum_env={"return_threshold": 0.0},
        num_workers=num_workers,
    )
    envs.reset(seed=2)
    met = set()
    for _ in range(40):
        *_, terminated, _, infos = envs.step(np.zeros((4, 4), np.float32))
        for index in np.flatnonzero(terminated):
            assert infos["opponent"][index] == infos["curriculum_task"][index]
            met.add(infos["opponent"][index])
    assert met == set(names)
    envs.close()


# What an opponent may be.


@pytest.mark.parametrize(
    "opponent", [Counts, Counts(), partial(Counts, strength=0.1), lambda: Counts(0.1)]
)
def test_an_opponent_is_an_object_or_something_that_makes_one(opponent: Any) -> None:
    duel = Duel()
    env = AgainstOpponent(duel, {"counts": opponent})
    for _ in range(2):
        env.reset(seed=1)
        play_episode(env)
    # It counts anew in each episode, so it was reset.
    assert [joint[4] for joint in duel.joint] == pytest.approx([0.1, 0.2, 0.3] * 2)


def test_an_opponent_is_made_once_per_env_and_only_when_it_plays() -> None:
    Counts.made = 0
    envs = [AgainstOpponent(Duel(), {"pulls": pulls, "counts": Counts}) for _ in range(2)]
    for env in envs:
        env.reset()
    assert Counts.made == 0
    for env in envs:
        env.set_opponent("counts")
        env.reset()
        env.reset()
    assert Counts.made == 2


def test_what_takes_any_number_of_arguments_is_no_maker() -> None:
    class Network:
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return pulls(*args)

    duel = Duel()
    env = AgainstOpponent(duel, {"network": Network()})
    env.reset()
    play_episode(env)
    assert duel.joint[2][4] == pytest.approx(0.2)


def test_seeds_of_opponents_follow_from_the_envs_and_nothing_global() -> None:
    def seeds_of(seed: int) -> list[int]:
        opponent = Counts()
        env = AgainstOpponent(Duel(), {"counts": opponent})
        env.reset(seed=seed)
        env.reset()
        env.reset()
        return opponent.seeds

    before = np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    assert seeds_of(1) == seeds_of(1)
    assert len({*seeds_of(1), *seeds_of(2)}) == 6
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]  # noqa: NPY002


def test_what_can_be_no_opponent_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"opponent 'five' must be a function .* got a int\."):
        AgainstOpponent(Duel(), {"five": 5})
    env = AgainstOpponent(Duel(), {"empty": dict})
    with pytest.raises(ConfigError, match="opponent 'empty' made a dict, which has no method act"):
        env.reset()


def test_an_opponent_whose_action_is_too_short_is_named() -> None:
    env = AgainstOpponent(Duel(), {"weak": lambda observation: np.zeros(3)})
    env.reset()
    with pytest.raises(ConfigError, match=r"the action of opponent 'weak' must have shape \(4,\)"):
        env.step(ONE)
