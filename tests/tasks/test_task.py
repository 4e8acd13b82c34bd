"""Task: content, identity, immutability, JSON."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stepladder
from stepladder.errors import TaskError
from stepladder.tasks import Task

tasks = st.builds(
    Task,
    name=st.text(min_size=1, max_size=8),
    label=st.text(min_size=1, max_size=8),
    params=st.none() | st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4)),
    seed=st.none() | st.integers(0, 2**63 - 1),
)


def test_a_task_needs_only_a_name():
    task = Task("push")
    assert (task.name, task.label, task.params, task.seed) == ("push", "default", {}, None)


def test_params_are_fresh_at_every_access():
    task = Task("push", params={"puck": {"speed": 1}})
    task.params["puck"]["speed"] = 2
    task.params["note"] = "changed"
    assert task.params == {"puck": {"speed": 1}}
    empty = Task("push")
    empty.params["note"] = "changed"
    assert empty.params == {}


def test_later_changes_of_the_callers_dict_have_no_effect():
    params = {"sizes": [1, 2]}
    task = Task("push", params=params)
    params["sizes"].append(3)
    assert task.params == {"sizes": [1, 2]}


def test_key_is_the_digest_of_the_four_fields():
    # Checked with: printf '["a","b",{"x":1},7]' | b2sum -l 128
    assert Task("a", "b", {"x": 1}, 7).key == "e739319d2958f7b8c5bc38ce7f8958e7"
    assert Task("a", "b", {"x": 1}, np.int16(7)).key == "e739319d2958f7b8c5bc38ce7f8958e7"


def test_order_of_params_and_numpy_types_do_not_matter_for_identity():
    one = Task("a", params={"x": np.int64(1), "y": (1, 2)}, seed=np.uint8(3))
    other = Task("a", params={"y": [1, 2], "x": 1}, seed=3)
    assert one == other
    assert one.key == other.key
    assert len({one, other}) == 1


@pytest.mark.parametrize(
    "other",
    [
        Task("b", "l", {"x": 1}, 7),
        Task("a", "m", {"x": 1}, 7),
        Task("a", "l", {"x": 2}, 7),
        Task("a", "l", {"x": 1.0}, 7),
        Task("a", "l", {"x": 1}, None),
        Task("a", "l", None, 7),
    ],
)
def test_every_field_counts_for_identity(other):
    task = Task("a", "l", {"x": 1}, 7)
    assert task != other
    assert task.key != other.key


def test_fields_that_look_alike_when_joined_have_different_keys():
    assert Task('a","b', "c").key != Task("a", 'b","c').key
    assert Task("a") != "a"


@given(tasks)
@settings(derandomize=True, max_examples=50)
def test_json_and_pickle_give_back_an_equal_task(task):
    for twin in (
        Task.from_json(task.to_json()),
        pickle.loads(pickle.dumps(task)),
        copy.deepcopy(task),
    ):
        assert twin == task
        assert twin.key == task.key
        assert hash(twin) == hash(task)


@pytest.mark.processes
def test_keys_are_equal_in_a_process_with_another_hash_seed():
    code = "from stepladder.tasks import Task; print(Task('é', 'l', {'b': 1, 'a': [0.1]}, 9).key)"
    source_root = str(Path(stepladder.__path__[0]).parent)
    keys = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": source_root},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    assert keys == {Task("é", "l", {"b": 1, "a": [0.1]}, 9).key}


def test_a_task_cannot_be_changed():
    task = Task("a")
    with pytest.raises(AttributeError, match=r"tried to set label = 'b'\. Make a new Task"):
        task.label = "b"  # pyright: ignore
    with pytest.raises(AttributeError, match="tried to set note"):
        task.note = 1  # pyright: ignore
    with pytest.raises(AttributeError, match="tried to delete name"):
        del task.name
    assert not hasattr(task, "__dict__")


def test_repr_shows_all_fields_and_cuts_long_params():
    task = Task("a", "l", {"x": 1}, 7)
    assert repr(task) == "Task('a', label='l', params={'x': 1}, seed=7)"
    assert eval(repr(task)) == task
    assert len(repr(Task("a", params={"level": "#" * 5000}))) < 300


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_name_that_is_empty_or_no_string_is_refused(name):
    with pytest.raises(TaskError, match="A task's name must be a string that is not empty; got"):
        Task(name)


@pytest.mark.parametrize("label", ["", None, 3])
def test_a_label_that_is_empty_or_no_string_is_refused(label):
    with pytest.raises(TaskError, match="A task's label must be a string that is not empty; got"):
        Task("a", label)


@pytest.mark.parametrize("seed", [-1, 2**63, True, 1.0, "1"])
def test_a_seed_that_is_no_integer_from_0_to_2_63_is_refused(seed):
    with pytest.raises(TaskError, match="A task's seed must"):
        Task("a", seed=seed)


def test_nan_in_params_is_refused_by_its_dotted_path():
    with pytest.raises(TaskError, match=r"params\.puck\.speed is nan"):
        Task("a", params={"puck": {"speed": float("nan")}})


@pytest.mark.parametrize("params", [[1], "x", 3])
def test_params_that_are_no_mapping_are_refused(params):
    with pytest.raises(TaskError, match="params must be a mapping; got"):
        Task("a", params=params)


def test_from_json_takes_missing_fields_as_default():
    assert Task.from_json({"name": "a"}) == Task("a")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "a", "difficulty": 3}, "no field 'difficulty'"),
        ({"label": "a"}, "needs a name"),
        (["a"], "must be an object with the fields name, label, params, seed; got list"),
        ({"name": "a", "seed": -1}, "seed must lie between 0"),
    ],
)
def test_from_json_refuses_malformed_fields_by_name(fields, message):
    with pytest.raises(TaskError, match=message):
        Task.from_json(fields)
