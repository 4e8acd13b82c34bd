"""The playground: the same numbers as `simulate`, refusals, and questions that are given up."""

import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stepladder.errors import ConfigError
from stepladder.simulator import scenario, simulate
from stepladder.simulator.playground import CURVES, Playground, Question, Superseded
from stepladder.simulator.playground.controls import controls
from stepladder.simulator.playground.epochs import TimeUp
from stepladder.simulator.playground.playing import play
from stepladder.simulator.playground.seeds import in_words as seeds_in_words
from stepladder.simulator.playground.seeds import spread
from stepladder.simulator.playground.wording import in_words

SMALL = Question(scenario="chain-4", budget=1200, num_envs=2)


@pytest.mark.parametrize(
    "question",
    [
        Question(scenario="chain-4", budget=1600, settings={"probing": 0.2}, seed=3),
        Question(scenario="levels-2x20", curriculum="learning-progress", budget=2_000_000),
        Question(scenario="grid-2x2", curriculum="staged", settings={"demotion.threshold": 0.1}),
        Question(scenario="chain-4", learner={"dynamics.eta": 0.1, "dynamics.mastery": 0.8}),
    ],
    ids=["frontier", "general", "staged", "learner"],
)
def test_a_course_is_that_of_a_simulation(question: Question):
    setup = question.setup()
    course = play(setup, "chosen")
    result = simulate(
        place=setup.place,
        curriculum=setup.config,
        num_envs=question.num_envs,
        num_epochs=len(course.samples) - 1,
        samples_per_epoch=setup.samples_per_epoch,
        engine=course.engine,  # pyright: ignore[reportArgumentType]
        seed=question.seed,
    )
    name = "overview/held_out_success" if "levels" in question.scenario else "mastered_fraction"
    told = result.metric(name if "/" in name else f"overview/{name}")
    assert course.progress[1:] == pytest.approx(told, abs=1e-6)
    assert course.done_at == result.verdict.done_at
    assert course.verdict == result.verdict.text
    assert course.samples[-1] == result.simulator.num_samples


def test_the_oracle_ends_when_it_is_done_as_comparisons_measure_it():
    place = scenario("chain-4")
    course = play(SMALL.setup(), "oracle")
    best = place.oracle(0, 2, place.budget)
    assert (course.done_at, course.name) == (best.samples, best.policy)
    assert course.samples[-1] == best.samples
    assert course.progress[-1] == 1.0


def test_shares_of_plays_sum_to_one_and_many_groups_are_joined_in_the_order_of_learning():
    course = play(Question(scenario="chain-30", budget=400, num_envs=1).setup(), "uniform")
    assert len(course.groups) == 12
    assert course.groups[0] == "taskclass0 to taskclass2"
    sums = [sum(shares) for shares in zip(*course.draws, strict=True)]
    assert sums[0] == 0.0
    assert sums[1:] == pytest.approx([1.0] * 200, abs=1e-4)


def test_all_mistakes_of_a_question_are_reported_at_once():
    wrong = Question(
        settings={"mastery": 2.0, "demotion.x": 1}, learner={"dynamics.eta": -1.0, "eta": 0.1}
    )
    with pytest.raises(ConfigError) as caught:
        wrong.setup()
    paths = {path for path, _ in caught.value.problems}
    assert paths == {
        "settings.mastery",
        "settings.demotion.x",
        "learner.dynamics.eta",
        "learner.eta",
    }


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"scenario": "/etc/passwd.json"}, "files are not read here"),
        ({"scenario": "chain-20000"}, "at most 10000"),
        ({"scenario": "chain-0"}, "expected 1 to"),
        ({"curriculum": "frontir"}, "there is no curriculum"),
        ({"num_envs": 5000}, "at most 4096"),
        ({"budget": 10**10}, "at most 2000000000"),
        ({"seed": -1}, "at least 0"),
        ({"settings": {"features": ["nothing"]}}, "nothing"),
        ({"curriculum": "staged", "settings": {"starting_stage": "x"}}, "starting_stage"),
    ],
)
def test_what_cannot_be_played_is_refused(wrong: dict[str, Any], said: str):
    with pytest.raises(ConfigError, match=said):
        Question.from_json({"scenario": "chain-4", **wrong}).setup()


def test_a_newer_question_gives_up_an_older_one():
    playground, refused = Playground(), list[Exception]()
    large = Question(scenario="levels-5x200", curriculum="staged", budget=2_000_000_000)

    def ask() -> None:
        try:
            playground.course(large, asker="a", turn=1)
        except Superseded as error:
            refused.append(error)

    older = threading.Thread(target=ask)
    older.start()
    time.sleep(0.3)
    assert playground.course(SMALL, asker="b", turn=2).samples[-1] == 1200, "another asker waits"
    playground.course(SMALL, asker="a", turn=2)
    older.join(10.0)
    assert not older.is_alive()
    assert len(refused) == 1


def test_an_answer_that_takes_too_long_is_cut_where_it_is():
    large = Question(scenario="levels-5x200", budget=2_000_000_000)
    course = Playground(limit_s=0.1).course(large)
    assert course.is_cut
    assert course.samples[-1] < 2_000_000_000
    assert Playground(limit_s=0.0).course(large, "oracle").name == "none in time"


def test_what_came_out_is_told_in_words():
    playground, place = Playground(), scenario("chain-4")
    courses = [playground.course(SMALL, curve) for curve in CURVES]
    done, _, oracle = (course.done_at for course in courses)
    assert done is not None
    assert oracle is not None
    text = in_words(place, "frontier", *courses)
    assert text.startswith(f"frontier is done after {done:,} plays: {done / oracle:.1f} times what")
    short = [play(Question(scenario="chain-4", budget=8).setup(), curve) for curve in CURVES]
    assert "not done after 1,600 plays" not in in_words(place, "frontier", *short)


def test_controls_come_from_the_configs_and_follow_the_learner():
    learner = {"dynamics.mastery": 0.7}
    told = controls(Question(scenario="chain-4", curriculum="staged", learner=learner))
    by_name = {one["name"]: one for one in told["settings"]}
    assert by_name["threshold"]["value"] == 0.7, "the curriculum is told what counts as mastered"
    told = controls(Question(scenario="chain-4"))
    by_name = {one["name"]: one for one in told["settings"]}
    assert by_name["probing"]["slider"] == {"low": 0.0, "high": 1.0, "log": False}
    assert "not seen to be learnable" in by_name["probing"]["about"]
    eta = next(one for one in told["learner"] if one["name"] == "dynamics.lambda_forget")
    assert eta["slider"]["log"], "0.00002 cannot be halved on a slider from 0 to 1"
    assert {"frontier", "uniform", "staged"} <= {one["name"] for one in told["curricula"]}
    assert "accel" not in {one["name"] for one in told["curricula"]}, "no task here can be edited"


def test_a_band_is_made_of_the_courses_of_its_seeds():
    question = Question(scenario="chain-4", budget=1200, num_envs=2, seed=3, num_seeds=3)
    found = Playground().spread(question)
    courses = [play(replace(question, seed=seed).setup(), "chosen") for seed in (3, 4, 5)]
    progress = np.array([course.progress for course in courses])
    assert found.num_seeds == 3
    assert found.samples == courses[0].samples
    assert found.done_at == [course.done_at for course in courses]
    for ends, expected in (("low", progress.min(0)), ("mean", progress.mean(0))):
        assert getattr(found, ends) == pytest.approx(expected, abs=1e-5)
    unlike = replace(found, done_at=[None, 400, 900])
    never = replace(found, done_at=[None, None, None])
    assert seeds_in_words("frontier", "plays", unlike, never) == (
        "over 3 seeds: frontier is done with 2 of them (after 400 to 900 plays); "
        "uniform is never done"
    )


def test_a_band_is_cut_when_its_time_is_over():
    question = Question(scenario="chain-4", budget=1200, num_envs=2, num_seeds=8)
    parts = iter(range(1_000))

    def pause():
        # 200 parts a seed: the time is over in the third.
        if next(parts) == 450:
            raise TimeUp("now")

    found = spread(question.setup(), "uniform", pause)
    assert (found.num_seeds, len(found.done_at), found.is_cut) == (2, 2, True)
