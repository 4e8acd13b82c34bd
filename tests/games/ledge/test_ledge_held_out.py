"""The held-out levels: there, solvable as their headers say, and made by the command."""

import json

import pytest

from stepladder.errors import TaskError
from stepladder.games.ledge import held_out as sets
from stepladder.games.ledge.generators import GENERATORS
from stepladder.games.ledge.held_out import (
    FINGERPRINTS,
    FOLDER,
    fingerprint,
    held_out,
    kept_fingerprints,
    validation_fingerprints,
)
from stepladder.games.ledge.held_out.generated import draw, generated_levels
from stepladder.games.ledge.held_out.make import FIRST_SEED, make, make_test
from stepladder.games.ledge.level import STAGES
from stepladder.games.ledge.physics import SUCCEEDED
from stepladder.games.ledge.planner import replay, solve
from stepladder.games.ledge.source import held_out_source, level_of
from stepladder.tasks import FolderSource
from stepladder.tasks.task import MAX_SEED


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_has_sixteen_levels_that_its_header_says_how_to_solve(stage):
    levels = held_out(stage)
    assert len(levels) == 16
    assert len({"\n".join(level.rows) for level in levels}) == 16
    for level in levels:
        plan = solve(level)
        assert plan is not None
        assert replay(level, plan.actions) == (SUCCEEDED, plan.num_steps)
        assert level.note("plan_steps") == str(plan.num_steps)


@pytest.mark.parametrize("stage", STAGES)
def test_all_generators_of_a_stage_are_there_with_seeds_that_no_task_can_have(stage):
    levels = held_out(stage)
    assert {level.note("generator") for level in levels} == set(GENERATORS[stage])
    seeds = [int(level.note("seed") or 0) for level in levels]
    assert min(seeds) == FIRST_SEED > MAX_SEED


@pytest.mark.slow
def test_the_command_makes_the_same_files_again(tmp_path):
    make(tmp_path)
    written = {file.relative_to(tmp_path): file.read_bytes() for file in tmp_path.rglob("*.txt")}
    kept = {file.relative_to(FOLDER): file.read_bytes() for file in FOLDER.rglob("*.txt")}
    assert written == kept


def test_making_anew_leaves_no_old_level(tmp_path):
    make(tmp_path, per_stage=2)
    make(tmp_path, per_stage=1)
    assert len(list(tmp_path.rglob("*.txt"))) == len(STAGES)


def test_the_folder_is_a_source_of_tasks():
    source = FolderSource(FOLDER)
    assert source.num_tasks == 16 * len(STAGES)
    assert sorted(source.labels()) == sorted(STAGES)
    task = source.get(0)
    assert level_of(task) in held_out(task.label)


def test_held_out_levels_are_tasks_in_the_order_of_stages():
    source = held_out_source(["simple", "simplest"])
    assert source.labels() == ["simple", "simplest"]
    assert source.num_tasks == 32
    assert [level_of(source.get(i)) for i in range(16)] == held_out("simple")


def test_an_unknown_stage_or_set_is_refused():
    with pytest.raises(TaskError, match="no stage 'hard'"):
        held_out("hard")
    with pytest.raises(TaskError, match="levels must be validation or test; got 'final'"):
        held_out("simple", "final")


# The set `test`.


def test_the_test_set_has_64_other_levels_per_stage_from_seeds_of_its_own():
    kept = kept_fingerprints()
    assert list(kept) == list(STAGES)
    every = [mark for marks in kept.values() for mark in marks]
    assert len(every) == len(set(every)) == 64 * len(STAGES)
    assert not validation_fingerprints() & set(every)
    source = held_out_source(["simpler"], "test")
    levels = [level_of(source.get(number)) for number in range(source.num_tasks or 0)]
    assert [fingerprint(level) for level in levels] == kept["simpler"]
    assert {level.note("generator") for level in levels} == set(GENERATORS["simpler"])
    assert min(int(level.note("seed") or 0) for level in levels) > FIRST_SEED + 16


def test_levels_that_are_not_those_of_the_test_set_are_refused(monkeypatch):
    kept = {stage: list(marks) for stage, marks in kept_fingerprints().items()}
    kept["simplest"][3] = kept["simplest"][2]
    monkeypatch.setattr(sets, "kept_fingerprints", lambda: kept)
    monkeypatch.setattr("stepladder.games.ledge.held_out.generated.kept_fingerprints", lambda: kept)
    generated_levels.cache_clear()
    with pytest.raises(TaskError, match=r"the test level 'simplest/flat/\d+' of Ledge is not the"):
        held_out("simplest", "test")


@pytest.mark.slow
def test_the_command_makes_the_same_test_set_again(tmp_path):
    make_test(tmp_path / "test.json")
    assert (tmp_path / "test.json").read_bytes() == FINGERPRINTS.read_bytes()


def test_a_level_that_was_drawn_for_an_earlier_stage_is_not_drawn_again():
    (first,) = draw("simplest", (), 1)
    (other,) = draw("simplest", {fingerprint(first)}, 1)
    assert first.rows != other.rows
    assert len(json.loads(FINGERPRINTS.read_text())) == len(STAGES)
