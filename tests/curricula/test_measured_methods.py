"""What the methods that measure single tasks share: the signal, the source's weights, eviction."""

from typing import Any

import pytest

from curricula.fake_learner import live, play_results, record_for
from stepladder.curricula import (
    AncestorProgressConfig,
    Curriculum,
    CurriculumConfig,
    Frontier,
    Learnability,
    LearningProgress,
    LevelReplay,
)
from stepladder.errors import ConfigError
from stepladder.tasks import ListSource, NumberedSource, Task, UnionSource

RANKED = (Learnability, LearningProgress)
METHODS = (*RANKED, LevelReplay)
EASY: dict[type[Curriculum], dict[str, Any]] = {
    Learnability: {"exploration": 0.0, "pooled": False},
    LearningProgress: {"exploration": 0.0, "noise_z": 0.0, "novice_plays": 2},
}
"""What makes a method's numbers easy to compare."""


def make(method: type[Curriculum], tasks: Any = None, **settings: Any) -> Any:
    """Make a curriculum, by default over three tasks."""
    return method(tasks or NumberedSource(3), **{**EASY.get(method, {}), **settings})


@pytest.mark.parametrize("method", METHODS)
def test_a_return_may_take_the_place_of_success(method: type[Curriculum]):
    by_return = make(method, signal="return", return_low=-10.0, return_high=30.0)
    by_success = make(method)
    assert not by_return.needs_success
    for value in (-10.0, 30.0, 10.0, 0.0, 99.0, -99.0):
        share = min(1.0, max(0.0, (value + 10.0) / 40.0))
        by_return.observe(record_for(by_return, 0, float("nan"), episode_return=value))
        by_success.observe(record_for(by_success, 0, share))
    assert by_return.scores()[0] > 0.0
    assert by_return.explain(0).numbers == pytest.approx(by_success.explain(0).numbers)


@pytest.mark.parametrize("config", [*(method.Config for method in METHODS), AncestorProgressConfig])
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"signal": "reward"}, "signal must be 'success' or 'return'; got 'reward'"),
        ({"return_low": 1.0, "return_high": 1.0}, "return_low must lie below return_high"),
        ({"return_low": -1e308, "return_high": 1e308}, "return_low must lie below return_high"),
        ({"return_low": float("nan")}, "return_low must be a finite number; got nan"),
        ({"return_low": -float("inf")}, "return_low must be a finite number; got -inf"),
        ({"return_high": float("inf")}, "return_high must be a finite number; got inf"),
    ],
)
def test_a_signal_that_cannot_be_measured_is_refused(
    config: type[CurriculumConfig], settings: dict[str, Any], words: str
):
    with pytest.raises(ConfigError, match=words):
        config(**settings)


@pytest.mark.parametrize("method", RANKED)
def test_the_sources_weights_scale_the_scores(method: type[Curriculum]):
    union = UnionSource([(ListSource([Task("x")]), 1.0), (ListSource([Task("y")]), 3.0)])
    curriculum = make(method, union)
    assert curriculum.probs().tolist() == pytest.approx([0.25, 0.75])
    for slot in (0, 1):
        play_results(curriculum, slot, "wf")
    assert curriculum.probs().tolist() == pytest.approx([0.25, 0.75])


@pytest.mark.parametrize("method", [*METHODS, Frontier])
def test_results_of_other_tasks_change_no_measurement(method: type[Curriculum]):
    curriculum = make(method)
    play_results(curriculum, 0, "wf")
    before = curriculum.explain(0).numbers
    play_results(curriculum, 1, "wfwfww")
    now = curriculum.explain(0).numbers
    # Of level replay, these compare a task with others.
    for name in before.keys() - {"age", "rank"}:
        assert now[name] == before[name]


@pytest.mark.parametrize("method", RANKED)
def test_a_task_that_teaches_nothing_makes_room_once_it_is_well_known(method: type[Curriculum]):
    settings = {"capacity": 10, "seed": 1, "eviction_plays": 20, "eviction_percentile": 0.3}
    curriculum = make(method, NumberedSource(100), **settings)
    fresh = curriculum.explain(3)
    for slot in range(4):
        play_results(curriculum, slot, "w" * 19)
    assert curriculum.pool.generations.max() == 0
    for slot in range(3):
        play_results(curriculum, slot, "w")
    # 0.3 of three well-known tasks is less than one of them.
    assert curriculum.num_evicted == 0
    old = int(curriculum.pool.task_ids[3])
    play_results(curriculum, 3, "w")
    assert curriculum.num_evicted == 1
    assert curriculum.pool.generations.tolist() == [0, 0, 0, 1] + [0] * 6
    assert not curriculum.pool.contains(old)
    now = curriculum.explain(3)
    assert (now.numbers, now.reason) == (fresh.numbers, fresh.reason)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "settings", [{"capacity": 100, "eviction_percentile": 1.0}, {"eviction_percentile": 0.0}]
)
def test_nothing_is_evicted_without_others_or_by_a_percentile_of_zero(
    method: type[Curriculum], settings: dict[str, Any]
):
    curriculum = method(NumberedSource(100), **{"capacity": 10, "eviction_plays": 2, **settings})
    live(curriculum, 400)
    assert (curriculum.num_evicted, curriculum.pool.generations.max()) == (0, 0)
