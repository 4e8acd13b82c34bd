"""The learner that generalises as an object: score, cost, snapshots, verdict."""

from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import differences
from simulator.generalising.small_learner import learner
from stepladder.curricula import FrontierConfig, UniformConfig
from stepladder.errors import ConfigError, SnapshotError
from stepladder.saving.snapshot import Snapshot
from stepladder.simulator import make_engine
from stepladder.simulator.base import PlayResult
from stepladder.stats.metrics import find


def test_samples_are_env_steps_of_all_envs():
    simulator = learner(num_envs=4)
    curriculum = UniformConfig().make(simulator.source())
    make_engine("direct", simulator, curriculum, num_envs=4).advance(1000)
    assert simulator.num_samples == 1000
    # Between a play of 3 and one of 6 steps, and one more for the reset.
    assert 1000 / 7 - 4 <= simulator.num_plays <= 1000 / 4
    assert curriculum.num_steps + curriculum.num_observed <= 1000


def test_done_at_is_the_first_update_with_the_goal_reached():
    simulator = learner(goal=0.6, target=(1.0, 0.0), eta=0.5)
    assert simulator.done_at is None
    # Held-out success 0.5, then sigmoid(0.5) = 0.62.
    simulator.learn_play(0, PlayResult(0.5, 1.0, 1.0, 9))
    assert simulator.done_at == 10
    assert simulator.progress == pytest.approx(0.622, abs=1e-3)


def test_a_goal_that_is_reached_already_is_done_at_once():
    assert learner(goal=0.4, target=(1.0, 0.0)).done_at == 0


def test_the_area_sums_the_score_over_env_steps():
    simulator = learner(target=(1.0, 0.0), eta=0.5)
    simulator.learn_play(0, PlayResult(0.5, 1.0, 1.0, 9))
    assert simulator.progress_area == pytest.approx(10 * 0.5)
    after = simulator.progress
    simulator.learn_play(0, PlayResult(0.5, 1.0, 1.0, 4))
    assert simulator.progress_area == pytest.approx(10 * 0.5 + 5 * after)


def test_steps_are_counted_by_what_they_were_spent_on():
    simulator = learner(coupling=((1.0, 0.0), (0.0, 1.0)), target=(1.0, 0.0), update_steps=1000)
    simulator.learn_play(0, PlayResult(0.95, 1.0, 1.0, 4))
    simulator.learn_play(0, PlayResult(0.05, 1.0, 1.0, 9))
    simulator.learn_play(0, PlayResult(0.5, 1.0, 1.0, 4))
    # Group 1 gives nothing to the target.
    simulator.learn_play(2, PlayResult(0.5, 1.0, 1.0, 19))
    assert tuple(simulator.spent()) == (40, 5, 10, 20)
    assert simulator.shares() == (0.125, 0.25, 0.5)


def test_memorised_tasks_show_in_the_verdict():
    simulator = learner(eta=1e-6, eta_memory=5.0)
    for node in range(5):
        simulator.learn_play(node, PlayResult(0.5, 1.0, 1.0, 9))
    verdict = simulator.judge()
    assert (verdict.done_at, verdict.num_mastered, verdict.num_learnable) == (None, 0, 2)
    assert "success 0.31 on held-out tasks after 50 env steps" in verdict.text
    assert "stalls at easy (success 0.50)" in verdict.text
    assert "on practised tasks, so these were memorised" in verdict.text


def test_every_metric_is_on_the_page():
    simulator = learner()
    logged = {**simulator.metrics(), **simulator.label_metrics()}
    assert all(find(name) is not None for name in logged)
    assert logged["overview/held_out_success"] == simulator.progress
    assert logged["env_task_dependency/per_label_held_out_success/easy"] == 0.5


@pytest.mark.parametrize("name", ["direct", "compiled"])
@pytest.mark.parametrize("num_envs", [1, 5])
def test_a_restored_learner_has_the_same_future(name: Any, num_envs: int):
    def play(engine: Any, until: int) -> Any:
        engine.advance(until)
        return engine.simulator.snapshot(), engine.curriculum.snapshot()

    first, other = learner(num_envs, length_spread=0.3), learner(num_envs, length_spread=0.3)
    curricula = [FrontierConfig().make(one.source(), seed=3) for one in (first, other)]
    engine = make_engine(name, first, curricula[0], num_envs=num_envs)
    saved = play(engine, 333)
    expected = play(engine, 2000)
    other.restore(saved[0])
    curricula[1].restore(saved[1])
    found = play(make_engine(name, other, curricula[1], num_envs=num_envs), 2000)
    assert differences(found[0], expected[0]) == []
    assert differences(found[1], expected[1]) == []


def test_a_snapshot_of_another_learner_is_refused():
    with pytest.raises(SnapshotError, match=r"another simulator: .*eta"):
        learner().restore(learner(eta=0.2).snapshot())


@pytest.mark.parametrize(
    ("array", "place", "value"),
    [
        ("pending", 0, 99),
        ("waiting", 0, -1),
        ("rows", "node", 77),
        ("clock", "num_waiting", 9),
        ("clock", "scale", 0.0),
        ("memories", "memory", np.nan),
        ("skills", "skill", np.inf),
    ],
)
def test_impossible_numbers_are_refused_and_change_nothing(array: str, place: Any, value: Any):
    simulator = learner()
    before = simulator.snapshot()
    arrays = {name: saved.copy() for name, saved in before.arrays.items()}
    arrays[array][place] = value
    with pytest.raises(SnapshotError):
        simulator.restore(Snapshot(before.state, arrays))
    assert differences(simulator.snapshot(), before) == []


def test_an_engine_needs_the_envs_that_the_learner_was_made_for():
    simulator = learner(num_envs=2)
    with pytest.raises(ConfigError, match="made for 2 envs; the engine has 3"):
        make_engine("direct", simulator, UniformConfig().make(simulator.source()), num_envs=3)


def test_reset_forgets_everything():
    simulator = learner(num_envs=2)
    before = simulator.snapshot()
    make_engine("direct", simulator, UniformConfig().make(simulator.source()), num_envs=2).advance(
        500
    )
    simulator.reset()
    assert differences(simulator.snapshot(), before) == []
