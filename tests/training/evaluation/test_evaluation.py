"""Evaluations: fixed games, each counted once, with honest intervals."""

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from stepladder import Task, Uniform, make_vec
from stepladder.errors import ConfigError, DeliveryError, TaskError
from stepladder.games.hockey.actions import InForces, fineness_of
from stepladder.games.ledge.held_out import held_out
from stepladder.games.ledge.planner import solve
from stepladder.games.ledge.source import LedgeLevels
from stepladder.training.config import EvaluationConfig, TrainingConfig
from stepladder.training.evaluation import RandomPlayer, evaluate, spaces_of
from stepladder.training.evaluation.request import EvaluationRequest
from stepladder.training.evaluation.scores import GameResults, rate_interval, score
from stepladder.training.evaluation.stored import evaluation_from_json

HOCKEY, LEDGE = "stepladder/Hockey-v0", "stepladder/Ledge-v0"


class Countdown(gym.Env[Any, Any]):
    """Lasts as many steps as its task or its seed says, and one in all later episodes."""

    observation_space = gym.spaces.Box(0.0, 100.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, says: str = "nothing", lasts: int | None = None):
        self.says, self.lasts = says, lasts

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        if options is not None:
            self.lasts = options["task"].params["lasts"]
        # Only the first reset has a seed.
        self.left = 1 if seed is None else self.lasts or 1 + seed % 5
        return np.array([self.left], dtype=np.float32), {}

    def step(self, action: Any) -> Any:
        self.left -= 1
        info = {"is_success": True} if self.says == "wins" and self.left == 0 else {}
        return np.array([self.left], dtype=np.float32), 1.0, self.left == 0, False, info


class Tasked(Countdown):
    """The same, told by a method."""

    def set_task(self, task: Task) -> None:
        self.lasts = task.params["lasts"]


class ByOption(Countdown):
    """The same, told by the options of a reset."""

    metadata = {"task_option": True, "render_modes": []}  # noqa: RUF012


class Still:
    """Does always the same, and remembers what it was asked."""

    def __init__(self, num_rows: int, action: Any = 0):
        self.actions = np.array([action] * num_rows)
        self.asked: list[tuple[Any, bool]] = []
        self.num_begun = 0

    def act_batch(self, observations: Any, deterministic: bool = True) -> Any:
        self.asked.append((observations, deterministic))
        return self.actions

    def begin(self, rows: Any = None) -> None:
        assert rows is None
        assert not self.asked
        self.num_begun += 1


class Planned(Still):
    """Follows the planner's plans through the held-out levels of a stage."""

    def __init__(self, num_rows: int, stage: str):
        super().__init__(num_rows)
        plans = [solve(level) for level in held_out(stage)]
        self.plans = [plan.actions for plan in plans if plan is not None]
        assert num_rows == len(self.plans) == len(plans)

    def act_batch(self, observations: Any, deterministic: bool = True) -> Any:
        step = len(self.asked)
        self.asked.append((observations, deterministic))
        return np.array([plan[step] if step < len(plan) else 0 for plan in self.plans])


def request_of(env: Any = Countdown, **settings: Any) -> EvaluationRequest:
    return EvaluationRequest(env=env, **settings)


# What is counted.


def test_one_episode_of_each_row_counts_however_short_others_are() -> None:
    evaluation = evaluate(Still, request_of(num_games=10, seed=0))
    total = evaluation.total
    # Lengths 1 to 5, each twice; whoever counted the first ten to end would find the short ones.
    assert (total.num_games, total.num_steps, total.mean_length) == (10, 30, 3.0)
    assert total.mean_return.value == 3.0
    assert (evaluation.num_games, evaluation.num_steps) == (10, 30)
    assert evaluation.groups == ()


def test_an_episode_that_does_not_end_is_cut_off() -> None:
    total = evaluate(Still, request_of(num_games=5, seed=0, max_episode_steps=3)).total
    assert total.num_steps == 1 + 2 + 3 + 3 + 3


def test_a_player_begins_once_and_is_asked_once_a_step() -> None:
    players: list[Still] = []

    def make(num_rows: int) -> Still:
        players.append(Still(num_rows))
        return players[-1]

    evaluate(make, request_of(num_games=5, seed=0))
    evaluate(make, request_of(num_games=5, seed=0, is_deterministic=False))
    assert [player.num_begun for player in players] == [1, 1]
    assert [len(player.asked) for player in players] == [5, 5]
    assert [player.asked[0][1] for player in players] == [True, False]
    assert players[0].asked[0][0].shape == (5, 1)


def test_envs_that_say_nothing_have_no_rate_and_silence_is_failure_where_others_speak() -> None:
    assert evaluate(Still, request_of(num_games=5)).total.rate is None
    won = evaluate(
        Still, request_of(lambda: Countdown("wins"), num_games=5, seed=0, max_episode_steps=3)
    )
    assert won.total.num_successes == 3.0
    assert won.total.rate is not None
    assert won.total.rate.value == pytest.approx(0.6)


@pytest.mark.parametrize("env", [Tasked, ByOption])
def test_tasks_reach_envs_of_others_and_are_reported_by_label(env: Any) -> None:
    tasks = tuple(
        Task(f"{label} {lasts}", label, {"lasts": lasts})
        for label, lasts in (("long", 9), ("short", 1), ("long", 7))
    )
    total = evaluate(Still, request_of(env, tasks=tasks, num_games=3)).total
    # Two tasks share three games, so that each is played twice.
    assert [(group.name, group.num_games, group.mean_length) for group in total.parts] == [
        ("long", 4, 8.0),
        ("short", 3, 1.0),
    ]
    assert [(part.name, part.mean_length) for part in total.parts[0].parts] == [
        ("long 9", 9.0),
        ("long 7", 7.0),
    ]


def test_of_many_tasks_as_many_are_played_as_there_are_games_spread_evenly() -> None:
    tasks = tuple(Task(f"task {number}", params={"lasts": number}) for number in range(1, 101))
    (group,) = evaluate(Still, request_of(Tasked, tasks=tasks, num_games=4)).groups
    assert [part.mean_length for part in group.parts] == [1.0, 26.0, 51.0, 76.0]


def test_an_env_that_takes_no_tasks_is_refused() -> None:
    tasks = (Task("one", params={"lasts": 1}),)
    with pytest.raises(DeliveryError, match="offers no way to receive a task"):
        evaluate(Still, request_of(tasks=tasks, num_games=2))


# Ledge.


def test_the_planner_solves_the_held_out_levels_it_was_made_with() -> None:
    stages = ("simplest", "simpler")
    # A player is made for each stage in turn.
    turns = iter(stages)
    evaluation = evaluate(
        lambda num_rows: Planned(num_rows, next(turns)),
        request_of(LEDGE, env_kwargs={"shaping": True, "stage": "medium"}, labels=stages),
    )
    assert [group.name for group in evaluation.groups] == list(stages)
    for group in evaluation.groups:
        assert (group.num_games, group.num_trials, group.num_successes) == (16, 16, 16.0)
        # Shaping is not part of the game.
        assert group.mean_return == (1.0, 1.0, 1.0)
    logged = evaluation.metrics()
    assert logged["evaluation/success"] == logged["evaluation/success/simpler"] == 1.0
    assert evaluation.total.rate == rate_interval(1.0, 32)
    names = [part.name for part in evaluation.groups[0].parts]
    assert names == [level.name for level in held_out("simplest")]


def test_levels_that_are_played_again_are_no_new_trials() -> None:
    asked = request_of(LEDGE, labels=("simplest",), num_games=20, is_deterministic=False)
    (group,) = evaluate("random", asked).groups
    assert (group.num_games, group.num_trials) == (32, 16)
    assert group.rate is not None
    assert group.rate == rate_interval(group.rate.value, 16)
    assert [part.num_games for part in group.parts] == [2] * 16


def test_no_stage_changes_the_games_of_another() -> None:
    asked = request_of(LEDGE, labels=("simpler", "simplest"), num_games=20)
    together = evaluate("random", asked).groups
    for group in together:
        assert evaluate("random", replace(asked, labels=(group.name,))).groups == (group,)


def test_on_the_way_levels_are_played_once_also_with_drawn_actions() -> None:
    asked = request_of(LEDGE, labels=("simplest",), num_games=40, is_deterministic=False)
    (brief,) = evaluate("random", replace(asked, is_brief=True)).groups
    (full,) = evaluate("random", asked).groups
    assert (brief.num_games, full.num_games) == (16, 48)


def test_final_levels_are_played_if_they_are_asked_for_by_name() -> None:
    asked = request_of(LEDGE, labels=("simplest",), num_games=1, max_episode_steps=1)
    assert evaluate("random", asked).levels == "validation"
    final = evaluate("random", replace(asked, levels="test"))
    assert (final.levels, final.total.num_games) == ("test", 64)
    # A training has no setting for it, and never plays them.
    assert EvaluationRequest.of(TrainingConfig()).held_out_set == "validation"
    assert "levels" not in EvaluationConfig.__dataclass_fields__


# One game that is played several times.


class Lottery(Countdown):
    """Rewards nobody can foresee, although everything that is seen is alike."""

    def step(self, action: Any) -> Any:
        seen, _, *others = super().step(action)
        return seen, float(self.np_random.integers(1_000)), *others


@pytest.mark.parametrize(("env", "num_trials"), [(Countdown, 1), (Lottery, 20)])
def test_repeats_of_one_game_are_one_trial_and_games_of_chance_are_not(
    env: Any, num_trials: int
) -> None:
    asked = request_of(lambda: env("wins", lasts=3), num_games=20)
    total = evaluate(Still, asked).total
    assert (total.num_games, total.num_trials) == (20, num_trials)
    assert total.rate == rate_interval(1.0, num_trials)
    # Who draws actions may do something else next time.
    assert evaluate(Still, replace(asked, is_deterministic=False)).total.num_trials == 20


def test_each_task_that_is_always_the_same_game_is_one_trial() -> None:
    tasks = tuple(Task(f"task {lasts}", params={"lasts": lasts}) for lasts in (2, 3))
    (group,) = evaluate(Still, request_of(lambda: Tasked("wins"), tasks=tasks, num_games=8)).groups
    assert (group.num_games, group.num_trials) == (8, 2)
    assert [part.num_trials for part in group.parts] == [1, 1]


# Hockey.


def test_both_sides_start_equally_often_and_all_games_are_told_apart() -> None:
    evaluation = evaluate("random", request_of(HOCKEY, num_games=20))
    assert [group.name for group in evaluation.groups] == ["weak", "strong"]
    for group in evaluation.groups:
        assert [(part.name, part.num_games) for part in group.parts] == [
            ("starts=one", 10),
            ("starts=two", 10),
        ]
        assert group.num_successes is not None
        assert group.num_draws is not None
        assert group.num_losses is not None
        assert group.num_successes + group.num_draws + group.num_losses == 20
        assert group.num_losses == sum(part.num_losses or 0 for part in group.parts)
    # Who plays at random is safer where the puck starts on the own side.
    one, two = evaluation.groups[0].parts
    assert (one.num_losses or 0) < (two.num_losses or 0)


def test_the_same_request_gives_the_same_result_and_opponents_do_not_change_each_other() -> None:
    def idle(num_rows: int) -> Still:
        return Still(num_rows, np.zeros(4))

    both = evaluate(idle, request_of(HOCKEY, num_games=10))
    assert evaluate(idle, request_of(HOCKEY, num_games=10)) == both
    alone = evaluate(idle, request_of(HOCKEY, num_games=10, opponents=("strong",)))
    assert alone.groups[0] == both.groups[1]
    assert evaluate(idle, request_of(HOCKEY, num_games=10, seed=1)) != both


def test_what_the_envs_of_a_training_have_as_defaults_does_not_count() -> None:
    plain = evaluate("random", request_of(HOCKEY, num_games=6))
    settings = {
        "mode": "TRAIN_SHOOTING",
        "opponent": "caller:newest",
        "players": "both",
        "success": "no_loss",
        "puck_speed": 20.0,
        "time_limit": 3,
        "closeness_weight": 100.0,
    }
    assert evaluate("random", request_of(HOCKEY, num_games=6, env_kwargs=settings)) == plain


def test_another_policy_plays_player_two_in_its_rows_with_one_pass_a_step() -> None:
    seats: dict[str, Still] = {}

    def seat(name: str) -> Any:
        def make(num_rows: int) -> Still:
            seats[name] = Still(num_rows, np.zeros(4))
            return seats[name]

        return make

    asked = request_of(HOCKEY, num_games=4, opponents=("weak", "me", "other"))
    rivals = {"me": seat("me"), "other": seat("other")}
    evaluation = evaluate(seat("subject"), asked, rivals=rivals)
    # The subject has a player for each opponent; the last one is kept.
    assert {name: seats[name].asked[0][0].shape for name in seats} == {
        "subject": (4, 18),
        "me": (4, 18),
        "other": (4, 18),
    }
    assert len(seats["subject"].asked) == len(seats["other"].asked)
    # Player two sees the mirrored rink: the puck lies on the other side.
    seen, seen_by_rival = seats["subject"].asked[0][0], seats["other"].asked[0][0]
    np.testing.assert_allclose(seen_by_rival[:, 12:14], -seen[:, 12:14])
    # Two who do nothing draw; one against the weak opponent may also lose.
    weak, *others = evaluation.groups
    assert [other.num_draws for other in others] == [4, 4]
    assert weak == evaluate(seat("subject"), request_of(HOCKEY, num_games=4)).groups[0]


def test_two_who_play_at_random_do_not_do_the_same() -> None:
    seen: list[Any] = []
    asked = request_of(HOCKEY, num_games=4, opponents=("me",))

    class Watching(RandomPlayer):
        """What `evaluate` calls "random", and remembers what it saw."""

        def __init__(self, num_rows: int):
            super().__init__(spaces_of(asked)[1], num_rows, asked.seed)

        def act_batch(self, observations: Any, deterministic: bool = True) -> Any:
            seen.append(observations)
            return super().act_batch(observations)

    watched = evaluate(Watching, asked, rivals={"me": "random"})
    assert watched.total == evaluate("random", asked, rivals={"me": "random"}).total
    # Would both do the same, they would stay mirror images of each other.
    own, other = seen[20][:, 0:2], seen[20][:, 6:8]
    assert not np.allclose(own, -other, atol=1e-3)


def test_a_rival_can_win() -> None:
    class Forward(Still):
        """Goes to the puck, and shoots at once."""

        def act_batch(self, observations: Any, deterministic: bool = True) -> Any:
            reach = observations[:, 12:14] - observations[:, 0:2]
            shoot = (observations[:, 16:17] > 0).astype(np.float64)
            return np.hstack([np.clip(5 * reach, -1, 1), 0 * shoot, shoot])

    asked = request_of(HOCKEY, num_games=20, opponents=("me",))
    lost = evaluate(lambda n: Still(n, np.zeros(4)), asked, rivals={"me": Forward}).total
    won = evaluate(Forward, asked, rivals={"me": lambda n: Still(n, np.zeros(4))}).total
    # A goal of one's own is possible, and rare.
    assert (lost.num_losses or 0) > 2 + 2 * (lost.num_successes or 0)
    assert (won.num_successes or 0) > 2 + 2 * (won.num_losses or 0)


@pytest.mark.parametrize("fineness", [1, 3])
def test_numbered_actions_are_translated_exactly(fineness: int) -> None:
    discrete = {"actions": "discrete", "fineness": fineness}
    asked = request_of(HOCKEY, num_games=4, env_kwargs=discrete)
    space = spaces_of(asked)[1]
    assert isinstance(space, gym.spaces.Discrete)
    assert fineness_of(int(space.n)) == fineness

    def numbered(num_rows: int) -> RandomPlayer:
        return RandomPlayer(space, num_rows)

    translated = evaluate(
        lambda num_rows: InForces(numbered(num_rows), fineness), request_of(HOCKEY, num_games=4)
    )
    assert translated == evaluate(numbered, asked)


def test_a_number_of_actions_that_hockey_does_not_have_is_refused() -> None:
    for count in (1, 2, 6, 7, 9, 13):
        with pytest.raises(ConfigError, match=f"hockey has no set of {count} actions"):
            fineness_of(count)


# What it leaves alone.


def test_an_evaluation_in_the_middle_changes_nothing_about_a_training() -> None:
    def trained(evaluates: bool) -> Any:
        curriculum = Uniform(LedgeLevels(("simplest", "simpler"), per_stage=5), seed=1)
        envs = make_vec(LEDGE, 4, curriculum=curriculum)
        envs.action_space.seed(3)
        seen = [envs.reset(seed=0)[0]["vector"]]
        for step in range(60):
            if evaluates and step == 30:
                evaluate("random", request_of(LEDGE, labels=("simplest",)))
            seen.append(envs.step(envs.action_space.sample())[0]["vector"])
        envs.close()
        return np.array(seen), curriculum.num_observed

    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    alone, evaluated = trained(False), trained(True)
    np.testing.assert_array_equal(alone[0], evaluated[0])
    assert alone[1] == evaluated[1]
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


# What is asked for.


@pytest.mark.parametrize(
    ("env", "settings", "said"),
    [
        (HOCKEY, {"num_games": 5}, "num_games must be even in hockey.*got 5. Use 6"),
        (HOCKEY, {"labels": ("a",)}, "is evaluated by opponent"),
        (HOCKEY, {"opponents": ("weak", "weak")}, "must differ; got"),
        (LEDGE, {"labels": ("steep",)}, "no stage 'steep'"),
        (LEDGE, {"levels": "final"}, "levels must be validation or test; got 'final'. Correct it"),
        (Countdown, {"levels": "test"}, "levels cannot be chosen; got 'test'. Countdown has no"),
        (Countdown, {"num_games": 0}, "num_games must be an integer of at least 1"),
        (Countdown, {"seed": -1}, "seed must be"),
        (Countdown, {"seed": 2**63}, "seed must be at most"),
        (Countdown, {"max_episode_steps": 0}, "max_episode_steps must be"),
    ],
)
def test_a_request_that_cannot_be_played_is_refused_when_it_is_made(
    env: Any, settings: Mapping[str, Any], said: str
) -> None:
    with pytest.raises((ConfigError, TaskError), match=said):
        request_of(env, **settings)


def test_an_opponent_that_nobody_plays_is_refused_before_any_game() -> None:
    asked = request_of(HOCKEY, opponents=("weak", "me"))
    for rivals in (None, {"other": "random"}):
        with pytest.raises(ConfigError, match="there is no opponent 'me'; expected weak, strong"):
            evaluate("random", asked, rivals=rivals)


def test_a_training_asks_for_the_stages_that_it_practises() -> None:
    config = TrainingConfig(max_episode_steps=50)
    asked = EvaluationRequest.of(config)
    assert asked.practised == tuple(config.task_source().labels())
    assert (asked.num_games, asked.seed, asked.max_episode_steps) == (200, 10_000, None)
    named = TrainingConfig(evaluation=EvaluationConfig(labels=("medium",), num_games=3, seed=4))
    asked = EvaluationRequest.of(named)
    assert (asked.labels, asked.num_games, asked.seed) == (("medium",), 3, 4)


def test_windows_are_not_opened_and_modules_do_not_change_the_name() -> None:
    asked = request_of(f"stepladder.games:{HOCKEY}", env_kwargs={"render_mode": "human"})
    assert asked.name == HOCKEY
    assert "render_mode" not in asked.programme(()).env_kwargs


# What comes of it.


def games(returns: list[float], **others: Any) -> GameResults:
    count = len(returns)
    given: dict[str, Any] = {
        "lengths": [10] * count,
        "successes": [float("nan")] * count,
        "trials": range(count),
        **others,
    }
    arrays = {name: np.array(values) for name, values in given.items()}
    return GameResults(returns=np.array(returns), **{"winners": None, **arrays})


def test_intervals_are_those_of_wilson_and_student() -> None:
    found = score("x", games([1.0, 2.0, 3.0, 4.0], successes=[1.0, 1.0, 1.0, 0.0]))
    assert found.rate is not None
    # Wilson: (0.75 + z²/8 ± z·sqrt(0.1875/4 + z²/64)) / (1 + z²/4) with z = 1.96.
    np.testing.assert_allclose(found.rate, [0.75, 0.30064, 0.95441], atol=1e-5)
    # Student: 3.1824 · 1.29099 / 2 = 2.0543.
    np.testing.assert_allclose(found.mean_return, [2.5, 0.4457, 4.5543], atol=3e-3)


def test_a_draw_is_not_won() -> None:
    found = score("x", games([0.0] * 4, successes=[1.0, 0, 0, 0], winners=[1, 0, 0, -1]))
    assert (found.num_successes, found.num_draws, found.num_losses) == (1.0, 2, 1)
    assert found.metrics() == {
        "win_rate": 0.25,
        "draw_rate": 0.5,
        "loss_rate": 0.25,
        "return": 0.0,
        "length": 10.0,
    }


def test_games_of_one_trial_count_once() -> None:
    found = score("x", games([1.0, 3.0, 5.0, 7.0], successes=[1, 1, 0, 0], trials=[7, 7, 9, 9]))
    assert found.num_trials == 2
    assert found.rate == rate_interval(0.5, 2)
    # Means 2 and 6: 12.706 · 2.8284 / sqrt(2) = 25.41.
    np.testing.assert_allclose(found.mean_return, [4.0, 4.0 - 25.412, 4.0 + 25.412], atol=1e-2)


def test_metrics_have_a_name_per_opponent_and_json_has_everything() -> None:
    evaluation = evaluate("random", request_of(HOCKEY, num_games=4))
    logged = evaluation.metrics()
    assert logged["evaluation/num_games"] == 8.0
    assert logged["evaluation/num_steps"] == evaluation.num_steps
    for name in ("win_rate", "draw_rate", "loss_rate", "return", "length"):
        assert {f"evaluation/{name}", f"evaluation/{name}/weak"} <= logged.keys()
    assert not any("success" in name for name in logged)
    document = json.loads(json.dumps(evaluation.to_json(), allow_nan=False))
    assert document == evaluation.to_json()
    assert [group["name"] for group in document["total"]["parts"]] == ["weak", "strong"]
    assert document["total"]["parts"][1]["parts"][0]["num_games"] == 2
    assert document["way"] == "random"
    assert str(evaluation).startswith("8 games, random play: weak won ")
    # What is measured beside it has its way in the name, and comes back from JSON.
    both = replace(evaluation, way="best", beside=(evaluation,))
    assert both.metrics() == {
        **logged,
        **{
            f"evaluation/random/win_rate{name}": logged[f"evaluation/win_rate{name}"]
            for name in ("", "/weak", "/strong")
        },
    }
    assert evaluation_from_json(both.to_json()).to_json() == both.to_json()
