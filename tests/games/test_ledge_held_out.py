"""The held-out levels: there, solvable as their headers say, and made by the command."""

import pytest

from stepladder.errors import TaskError
from stepladder.games.ledge.generators import GENERATORS
from stepladder.games.ledge.held_out import FOLDER, held_out
from stepladder.games.ledge.held_out.make import FIRST_SEED, make
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


def test_an_unknown_stage_is_refused():
    with pytest.raises(TaskError, match="no stage 'hard'"):
        held_out("hard")
