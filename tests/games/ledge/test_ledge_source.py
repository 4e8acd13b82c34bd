"""Levels as tasks, and tasks as levels."""

import pickle

import numpy as np
import pytest

from stepladder.curricula import Staged, Uniform
from stepladder.errors import TaskError
from stepladder.games.ledge.generators import GENERATORS, generate
from stepladder.games.ledge.level import STAGES
from stepladder.games.ledge.source import LedgeLevels, level_of
from stepladder.tasks import FolderSource, ParameterSource, Task

TEXT = "#####\n#@SD#\n#####\n"


def test_a_task_names_stage_and_generator_and_its_seed_makes_the_level():
    source = LedgeLevels()
    task = source.get(9)
    assert (task.label, task.params) == ("simple", {"stage": "simple", "generator": "mines"})
    assert task.name == "simple/mines/1"
    assert task.seed is not None
    assert level_of(task).rows == generate("simple", task.seed, "mines").rows


def test_stages_and_generators_take_turns():
    source = LedgeLevels(per_stage=12)
    tasks = [source.get(i) for i in range(source.num_tasks or 0)]
    assert len(tasks) == 12 * 7
    assert len({task.name for task in tasks}) == len(tasks)
    assert len({task.seed for task in tasks}) == len(tasks)
    for stage in STAGES:
        generators = [task.params["generator"] for task in tasks if task.label == stage]
        assert set(generators) == set(GENERATORS[stage])
        assert len(generators) == 12


def test_names_labels_and_indices_are_had_without_making_tasks():
    source = LedgeLevels(["medium", "simple"], seed=3)
    ids = np.array([0, 1, 2, 10**15 + 1, 2**63 - 1])
    assert source.labels() == ["medium", "simple"]
    assert source.label_indices(ids).tolist() == [0, 1, 0, 1, 1]
    for task_id in ids:
        task = source.get(task_id)
        assert (source.name(task_id), source.label(task_id)) == (task.name, task.label)


def test_another_seed_gives_other_levels_and_another_description():
    one, other = LedgeLevels(seed=1), LedgeLevels(seed=2)
    assert one.get(0).seed != other.get(0).seed
    assert one.fingerprint() != other.fingerprint()
    assert one.fingerprint() == pickle.loads(pickle.dumps(one)).fingerprint()
    assert LedgeLevels(per_stage=3).fingerprint() != LedgeLevels().fingerprint()


def test_a_staged_curriculum_starts_with_the_first_stage_and_balances_its_generators():
    source = LedgeLevels(per_stage=9)
    curriculum = Staged(source, stages=STAGES, balance_by="generator")
    probs = curriculum.probs()
    first = source.label_indices(np.arange(len(probs))) == 0
    assert probs[first].sum() == pytest.approx(1.0)
    assert probs[first].tolist() == pytest.approx([1 / 9] * 9)


def test_an_endless_source_fills_a_pool_with_all_stages():
    curriculum = Uniform(LedgeLevels(), capacity=64)
    assert curriculum.pool.num_slots == 64
    assert set(curriculum.pool.label_indices.tolist()) == set(range(7))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"stages": []}, "at least one stage, each once; got"),
        ({"stages": ["simple", "simple"]}, "at least one stage, each once; got"),
        ({"stages": ["hard"]}, "no stage 'hard'"),
        ({"stages": "simple"}, "got the string 'simple'"),
        ({"per_stage": 0}, "per_stage must lie between 1 and"),
        ({"per_stage": 2**62}, "per_stage must lie between 1 and"),
        ({"seed": -1}, "seed of LedgeLevels must lie between"),
    ],
)
def test_a_malformed_source_is_refused(arguments, words):
    with pytest.raises(TaskError, match=words):
        LedgeLevels(**arguments)


def test_an_id_out_of_range_is_refused():
    with pytest.raises(TaskError, match="task id of LedgeLevels"):
        LedgeLevels(per_stage=1).get(7)


def test_a_folder_of_level_files_works(tmp_path):
    (tmp_path / "mine" / "by hand").mkdir(parents=True)
    (tmp_path / "mine" / "a.txt").write_text(TEXT)
    (tmp_path / "mine" / "by hand" / "b.txt").write_text("; time_limit: 9\n" + TEXT)
    source = FolderSource(tmp_path)
    one, other = (level_of(source.get(i)) for i in range(2))
    assert one.name == "mine/a.txt"
    assert one.rows == other.rows == TEXT.split()
    assert other.time_limit == 9


def test_a_bad_level_file_is_named(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.txt").write_text("#@SX#")
    with pytest.raises(TaskError, match=r"Level 'mine/a.txt', line 1, column 4: 'X' is not a tile"):
        level_of(FolderSource(tmp_path).get(0))


def test_drawn_parameters_work_too():
    source = ParameterSource({"stage": ["simplest", "simpler"]}, label_from="stage")
    task = source.get(0)
    assert level_of(task).note("stage") == task.label


def test_a_task_without_a_seed_takes_the_one_given():
    task = Task("any", params={"stage": "simple"})
    assert level_of(task, seed=4) == generate("simple", 4)
    assert level_of(Task("any", params={"stage": "simple"}, seed=5), seed=4).note("seed") == "5"


def test_a_task_may_set_the_time_limit():
    assert level_of(Task("a", params={"level": TEXT, "time_limit": 77})).time_limit == 77
    task = Task("b", params={"stage": "simplest", "time_limit": 78}, seed=1)
    assert level_of(task).time_limit == 78


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (Task("a"), r"'a' names no level; expected a parameter 'level'.*got \[\]"),
        (Task("a", params={"size": 3}), r"got \['size'\]"),
        (Task("a", params={"level": "#"}), "Level 'a' has no '@'"),
        (Task("a", params={"level": 3}), "Level 'a' must be text"),
        (Task("a", params={"stage": "simple"}), "names a stage but has no seed"),
        (Task("a", params={"stage": "hard"}, seed=0), "no stage 'hard'"),
        (Task("a", params={"stage": "simple", "generator": "x"}, seed=0), "no generator 'x'"),
        (Task("a", params={"level": TEXT, "time_limit": 0}), "time_limit of task 'a' must lie"),
        (Task("a", params={"level": TEXT, "time_limit": "9"}), "must be an integer"),
    ],
)
def test_a_task_that_names_no_level_is_refused_in_one_line(task, words):
    with pytest.raises(TaskError, match=words) as caught:
        level_of(task)
    assert "\n" not in str(caught.value)
