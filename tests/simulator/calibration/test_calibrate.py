"""A known learner is found again from its training, and so is the rank of two curricula."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simulator.calibration.known_learner import KNOWN, NUM_ENVS, known_scenario, make_training
from stepladder.errors import ConfigError
from stepladder.simulator import Calibration, CompiledEngine, calibrate, compare, scenario
from stepladder.simulator.calibration import HeldOut, read_practice


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_training(tmp_path_factory.mktemp("runs") / "known")


@pytest.fixture(scope="module")
def found(training: Path) -> Calibration:
    return calibrate([training], target=("jump", "climb"), name="copy")


def test_success_is_predicted_per_label(found: Calibration):
    assert [label.label for label in found.labels] == ["walk", "jump", "climb"]
    for label in found.labels:
        assert sum(part.plays for part in label.parts) == label.likelihoods.plays > 500
        for part in label.parts:
            assert part.low <= part.seen <= part.high
            assert part.predicted == pytest.approx(part.seen, abs=0.06)
    assert sum(label.likelihoods.plays for label in found.labels) == found.num_plays


def test_the_learner_explains_more_than_rates_that_know_nothing(found: Calibration):
    for likelihoods in (found.likelihoods, found.forecast):
        assert likelihoods is not None
        assert max(likelihoods.constant, likelihoods.last) < likelihoods.learner < 0.0


def test_what_is_measured_is_taken_over(found: Calibration):
    copy = found.scenario.dynamics
    assert (copy.groups, copy.num_tasks) == (KNOWN.groups, KNOWN.num_tasks)
    assert copy.update_steps == KNOWN.update_steps
    assert copy.success_steps == pytest.approx(KNOWN.success_steps, abs=1)
    assert copy.failure_steps == pytest.approx(KNOWN.failure_steps, abs=1)
    assert found.num_envs == NUM_ENVS
    assert copy.target == (0.0, 1.0, 1.0)


def test_what_is_fitted_is_near(found: Calibration):
    copy = found.scenario.dynamics
    assert copy.difficulty == pytest.approx(KNOWN.difficulty, abs=1.5)
    assert 0.4 < copy.eta / KNOWN.eta < 2.5
    assert found.uncertainty["eta"] < 0.3
    assert found.dispersion < 2.0


def test_the_copy_learns_as_the_learner_of_the_training_does(found: Calibration):
    ends = []
    for place in (known_scenario(), found.scenario):
        simulator, curriculum = place.simulator(7, NUM_ENVS), place.curriculum("uniform", 7)
        CompiledEngine(simulator, curriculum, NUM_ENVS).advance(160_000)
        ends.append(simulator.practised())
    assert np.abs(ends[0] - ends[1]).max() < 0.1


def test_evaluations_tell_memory_from_skill(training: Path):
    simulator = known_scenario().simulator(0, NUM_ENVS)
    curriculum = known_scenario().curriculum("uniform", 0)
    engine, evaluations = CompiledEngine(simulator, curriculum, NUM_ENVS), []
    for step in range(20_000, 160_001, 20_000):
        engine.advance(step)
        games = np.full(3, 200.0)
        wins = np.round(games * simulator.held_out())
        evaluations.append(HeldOut(step=step, games=games, successes=wins))
    known = replace(read_practice(training), held_out=tuple(evaluations))
    place = calibrate([known]).scenario
    copy = place.simulator(1, NUM_ENVS)
    CompiledEngine(copy, place.curriculum("uniform", 1), NUM_ENVS).advance(160_000)
    assert np.abs(copy.held_out() - simulator.held_out()).max() < 0.05


def test_two_curricula_have_the_rank_that_they_have_in_truth(found: Calibration):
    names = ("learnability", "staged")
    copy = replace(found.scenario, dynamics=replace(found.scenario.dynamics, goal=0.8))
    truth = replace(known_scenario().dynamics, target=(0.0, 1.0, 1.0))
    places = [replace(known_scenario(), dynamics=truth), copy]
    table = compare(places, names, num_seeds=2, num_envs=NUM_ENVS)
    for rival in names:
        in_truth, in_copy = (
            table.cell(place.name, rival).mean_samples
            / table.cell(place.name, "uniform").mean_samples
            for place in places
        )
        assert (in_truth < 1.0) == (in_copy < 1.0)
        assert in_copy == pytest.approx(in_truth, rel=0.4)


def test_the_goal_is_what_the_training_reached_unless_given(training: Path, found: Calibration):
    assert 0.05 <= found.scenario.dynamics.goal <= 0.95
    assert calibrate([training], goal=0.33).scenario.dynamics.goal == 0.33


def test_the_same_seed_gives_the_same_copy(training: Path, found: Calibration):
    again = calibrate([training], target=("jump", "climb"), name="copy")
    assert again.scenario == found.scenario


def test_the_scenario_goes_into_a_file_and_back(found: Calibration, tmp_path: Path):
    found.scenario.save(tmp_path / "copy.json")
    assert scenario(str(tmp_path / "copy.json")) == found.scenario
    assert "a copy of known" in found.scenario.about
    plain = json.loads(json.dumps(found.to_json()))
    assert plain["scenario"] == found.scenario.to_json()
    assert plain["labels"][0]["parts"][0]["is_inside"] in (True, False)


def test_what_one_uniform_training_cannot_tell_is_said(found: Calibration):
    assert found.uncertainty["reach"] > 0.7
    assert any(
        "not measured, so near the defaults" in text and "far" in text for text in found.warnings
    )


@pytest.mark.slow
def test_two_trainings_are_fitted_together(training: Path, tmp_path: Path):
    other = make_training(tmp_path / "other", curriculum="learnability", seed=1)
    both = calibrate([training, other])
    assert both.runs == ("known", "other")
    assert both.num_plays == sum(read_practice(run).num_plays for run in (training, other))
    for label in both.labels:
        for part in label.parts:
            assert not part.is_far, part


def test_labels_are_put_in_the_order_of_their_difficulty(training: Path):
    practice = read_practice(training)
    mixed = practice.in_order(("climb", "walk", "jump"))
    assert calibrate([mixed]).scenario.dynamics.groups == ("walk", "jump", "climb")


def test_mistakes_are_named(training: Path):
    with pytest.raises(ConfigError, match="there is no run to calibrate on"):
        calibrate([])
    with pytest.raises(ConfigError, match="target names 'fly', which no run has practised"):
        calibrate([training], target=("fly",))
    with pytest.raises(ConfigError, match="goal must lie between 0 and 1; got 1"):
        calibrate([training], goal=1.0)
    with pytest.raises(ConfigError, match="known is named 2 times, so that its episodes would"):
        calibrate([training, training / ".." / training.name])


def test_the_default_goal_leaves_something_to_learn(training: Path):
    # Only the beginning: next to nothing was learned.
    found = calibrate([read_practice(training).until(1)])
    learner = found.scenario.simulator(0, NUM_ENVS)
    assert found.scenario.dynamics.goal > learner.progress + 0.05
    assert learner.done_at is None
    given = calibrate([read_practice(training)], goal=0.01)
    assert any("leaves nothing to compare" in text for text in given.warnings)


def test_trainings_without_a_common_label_are_refused(training: Path):
    one = read_practice(training)
    other = replace(one, name="other", groups=tuple(f"other-{group}" for group in one.groups))
    with pytest.raises(ConfigError, match="no label in common"):
        calibrate([one, other])
