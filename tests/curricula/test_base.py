"""Listeners hear of every record exactly once, and scores are a method's own opinion."""

from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import differences, live, play, record_for
from curricula.test_foreign import in_a_fork
from curricula.three_stages import make as make_stages
from stepladder.curricula import (
    AncestorProgress,
    LearningProgress,
    Mixture,
    Phase,
    Phased,
    Record,
    Staged,
    Uniform,
    record_array,
)
from stepladder.errors import ConfigError, RecordError
from stepladder.plans.record import RECORD_DTYPE
from stepladder.sync.local import LocalHost
from stepladder.tasks import ListSource, Task

TASKS = ListSource(Task(f"{label}{i}", label) for label in "ab" for i in range(6))

MAKERS = {
    "uniform": lambda: Uniform(TASKS),
    "mixture": lambda: Mixture(TASKS, weights={"a": 1.0, "b": 2.0}),
    "staged": lambda: Staged(TASKS, stages=("a", "b"), min_episodes=5, threshold=0.3),
    "progress": lambda: LearningProgress(TASKS, capacity=6, eviction_plays=3),
    "ancestor": lambda: AncestorProgress(TASKS, capacity=6),
    "phased": lambda: Phased(
        TASKS, phases=(Phase(name="x", episodes=20), Phase(name="y", episodes=20))
    ),
}


class Ear:
    """Keeps a copy of all it is told."""

    def __init__(self) -> None:
        self.batches: list[np.ndarray] = []
        self.slots: list[int | None] = []

    def hear(self, records: np.ndarray) -> None:
        assert records.dtype == RECORD_DTYPE
        self.batches.append(records.copy())

    def note(self, slot: int | None) -> None:
        self.slots.append(slot)

    @property
    def records(self) -> list[tuple[Any, ...]]:
        return [record for batch in self.batches for record in batch.tolist()]


every_method = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@every_method
def test_every_way_to_observe_is_told_once_and_in_order(make):
    curriculum, ear = make(), Ear()
    curriculum.add_listener(ear.hear)
    one, two, three = (play(draw) for draw in curriculum.draw(3))
    curriculum.observe(one)
    curriculum.observe([two, three])
    four = curriculum.draw_one()
    curriculum.report(four, 1.0, episode_return=2.5, length=7, truncated=True)
    draws = curriculum.draw_batch(2)
    curriculum.report_batch(draws, [0.0, 1.0], [1.0, 2.0], 3)
    told = [Record(*record) for record in ear.records]
    assert told[:4] == [
        one,
        two,
        three,
        Record.of(four, success=1.0, episode_return=2.5, length=7, truncated=True),
    ]
    assert [record.slot for record in told[4:]] == draws["slot"].tolist()
    assert [(r.success, r.episode_return, r.length) for r in told[4:]] == [(0, 1, 3), (1, 2, 3)]
    assert [len(batch) for batch in ear.batches] == [1, 2, 1, 2]
    assert curriculum.num_observed == len(told) == 6


@every_method
def test_a_curriculum_that_is_listened_to_does_the_same(make):
    curriculum, quiet, ear = make(), make(), Ear()
    curriculum.add_listener(ear.hear, on_replace=ear.note)
    for each in (curriculum, quiet):
        live(each, 60, batch=3)
        for _ in range(60):
            draw = each.draw_one()
            record = play(draw)
            each.report(draw, record.success, record.episode_return, record.length)
    assert differences(curriculum.snapshot(), quiet.snapshot()) == []
    assert len(ear.records) == 120


@every_method
def test_nothing_is_told_of_what_was_refused(make):
    curriculum, ear = make(), Ear()
    curriculum.add_listener(ear.hear)
    good, bad = record_for(curriculum, 0, 1.0), record_for(curriculum, 0, 3.0)
    with pytest.raises(RecordError):
        curriculum.observe([good, bad])
    draw = curriculum.draw_one()
    for success in (2.0, "many"):
        with pytest.raises(RecordError):
            curriculum.report(draw, success)
    with pytest.raises(RecordError):
        curriculum.report_batch(curriculum.draw_batch(2), [0.5, 7.0])
    assert ear.batches == []


def test_an_empty_batch_is_not_told():
    curriculum, ear = Uniform(TASKS), Ear()
    curriculum.add_listener(ear.hear)
    curriculum.observe([])
    curriculum.observe(record_array([]))
    assert ear.batches == []


def test_listeners_hear_after_the_update():
    curriculum, seen = make_stages(min_episodes=2, window_episodes=2), []
    curriculum.add_listener(lambda records: seen.append(curriculum.current_stage))
    curriculum.observe([record_for(curriculum, 0, 1.0), record_for(curriculum, 1, 1.0)])
    assert seen == ["b"]


def test_what_a_channel_collects_is_told_once_and_what_could_not_be_built_is_not():
    curriculum, ear = Uniform(TASKS), Ear()
    curriculum.add_listener(ear.hear)
    host = LocalHost(curriculum, 3)
    clients = host.clients()
    slots = []
    for client in clients:
        slots.append(client.draw().slot)
    for client in clients[:2]:
        client.finish(success=1.0, episode_return=0.0, length=2, truncated=False)
    clients[2].fail("no such map")
    host.collect()
    host.collect()
    assert [record[0] for record in ear.records] == slots[:2]
    clients[0].draw()
    clients[0].finish(success=0.0, episode_return=0.0, length=2, truncated=False)
    host.close()
    assert len(ear.records) == 3 == curriculum.num_observed


def test_a_listener_can_leave_and_others_stay():
    curriculum, one, two = Uniform(TASKS), Ear(), Ear()
    curriculum.add_listener(one.hear)
    curriculum.add_listener(two.hear)
    live(curriculum, 1)
    curriculum.remove_listener(one.hear)
    live(curriculum, 2)
    assert (len(one.records), len(two.records)) == (1, 3)


def test_listening_twice_or_leaving_unheard_is_refused():
    curriculum, ear = Uniform(TASKS), Ear()
    curriculum.add_listener(ear.hear)
    with pytest.raises(ConfigError, match="count everything twice"):
        curriculum.add_listener(ear.hear)
    with pytest.raises(ConfigError, match="does not listen"):
        curriculum.remove_listener(ear.note)


def test_what_a_listener_raises_is_not_hidden_and_the_records_stay_observed():
    curriculum = LearningProgress(TASKS)

    def fail(records: np.ndarray) -> None:
        raise OSError("disk full")

    curriculum.add_listener(fail)
    with pytest.raises(OSError, match="disk full"):
        curriculum.report(curriculum.draw_one(), 1.0)
    assert curriculum.num_observed == 1


def test_listeners_hear_of_replaced_slots_before_the_batch_that_replaced_them():
    curriculum, heard = LearningProgress(TASKS, capacity=6, eviction_plays=2), []
    curriculum.add_listener(lambda records: heard.append("batch"), on_replace=heard.append)
    curriculum.replace(4)
    assert heard == [4]
    while curriculum.num_evicted == 0:
        live(curriculum, 1)
    assert heard[-1] == "batch"
    assert heard.count("batch") == curriculum.num_observed
    assert isinstance(heard[-2], int)


def test_methods_inside_phases_replace_through_the_outermost():
    config = LearningProgress(TASKS, eviction_plays=2).config
    curriculum = Phased(TASKS, capacity=6, phases=(Phase(name="x", curriculum=config),))
    ear = Ear()
    curriculum.add_listener(ear.hear, on_replace=ear.note)
    while not ear.slots:
        live(curriculum, 1)
    assert curriculum.inner[0].num_evicted == 1


def test_listeners_hear_of_a_restore_and_are_not_part_of_it():
    curriculum, ear = Uniform(TASKS, capacity=6), Ear()
    snapshot = curriculum.snapshot()
    curriculum.add_listener(ear.hear, on_replace=ear.note)
    assert differences(curriculum.snapshot(), snapshot) == []
    live(curriculum, 2)
    curriculum.restore(snapshot)
    assert ear.slots == [None]
    live(curriculum, 1)
    assert len(ear.records) == 3
    other = Uniform(TASKS, capacity=6)
    other.restore(curriculum.snapshot())
    live(other, 1)
    assert len(ear.records) == 3


@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_has_no_listeners():
    curriculum, ear = Uniform(TASKS), Ear()
    curriculum.add_listener(ear.hear)
    assert in_a_fork(lambda: "_listeners" in vars(curriculum)) is False
    assert "WrongProcessError" in in_a_fork(lambda: curriculum.add_listener(ear.note))
    live(curriculum, 1)
    assert len(ear.records) == 1


# Scores.


def test_scores_of_a_method_without_an_opinion_are_its_probabilities():
    curriculum = Mixture(TASKS, weights={"a": 1.0, "b": 3.0})
    assert curriculum.scores().tolist() == curriculum.probs().tolist()
    assert curriculum.scores()[0] == pytest.approx(1 / 24)


def test_scores_of_learning_progress_are_its_progress():
    curriculum = LearningProgress(TASKS, noise_z=0.0)
    curriculum.observe([record_for(curriculum, 2, success) for success in (0, 0, 1)])
    assert curriculum.scores()[2] > 0.0
    assert curriculum.scores().tolist() == curriculum.progress().tolist()
