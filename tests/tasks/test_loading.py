"""Tasks from a file, and tasks that a module has."""

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from stepladder.errors import ConfigError
from stepladder.tasks import ListSource, ParameterSource, Task
from stepladder.tasks.loading import find_tasks, known_tasks, load_tasks
from stepladder.tasks.ranges import IntRange

YAML = """
# Two corridors.
- {name: two, label: short, params: {length: 2}}
- name: five
  label: long
  params: {length: 5, walls: [[1, 2]]}
  seed: 7
"""
TASKS = (
    Task("two", "short", {"length": 2}),
    Task("five", "long", {"length": 5, "walls": [[1, 2]]}, 7),
)


@pytest.mark.parametrize("name", ["tasks.yaml", "tasks.YML", "tasks.json", "tasks"])
def test_a_file_holds_a_list_of_tasks_or_an_object_with_one(tmp_path: Path, name: str) -> None:
    if "y" in name.lower():
        pytest.importorskip("yaml")
    path = tmp_path / name
    listed = [task.to_json() for task in TASKS]
    for document in (listed, {"tasks": listed}):
        # JSON is YAML too.
        path.write_text(json.dumps(document))
        assert load_tasks(path) == TASKS
    if "y" in name.lower():
        path.write_text(YAML)
        assert load_tasks(path) == TASKS


@pytest.mark.parametrize(
    ("document", "problems"),
    [
        ([], {"": "must be a list of tasks, at least one"}),
        ({"tasks": {}}, {"tasks": "must be a list of tasks"}),
        ({"task": []}, {"": "must be a list of tasks"}),
        ([{"name": "a"}, {"name": "a"}], {"[1].name": "is 'a', as of an earlier task"}),
        (
            {"tasks": [{"name": ""}, {"name": "b", "size": 1}, 3]},
            {
                "tasks[0]": "name must be a string that is not empty",
                "tasks[1]": "no field 'size'",
                "tasks[2]": "A task in JSON must be an object",
            },
        ),
    ],
)
def test_all_that_is_wrong_is_listed_with_its_place(
    tmp_path: Path, document: object, problems: dict[str, str]
) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ConfigError, match=r"tasks\.json") as caught:
        load_tasks(path)
    assert [place for place, _ in caught.value.problems] == list(problems)
    for text, (_, said) in zip(problems.values(), caught.value.problems, strict=True):
        assert text in said


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType("worlds_of_this_test")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def test_a_module_has_a_list_a_source_or_a_function(module: ModuleType) -> None:
    source = ParameterSource({"x": IntRange(1, 3)})
    vars(module).update(listed=list(TASKS), source=source, make=lambda: TASKS)
    for name in ("listed", "make"):
        found = find_tasks(f"{module.__name__}:{name}")
        assert isinstance(found, ListSource)
        assert [found.get(number) for number in range(2)] == list(TASKS)
    assert find_tasks(f"{module.__name__}:source") is source
    # The same each time, so that a run and its evaluations have the same; until it changes.
    name = f"{module.__name__}:make"
    assert find_tasks(name) is find_tasks(name) is known_tasks(name)
    vars(module)["make"] = lambda: TASKS[:1]
    assert find_tasks(name).num_tasks == 1
    assert known_tasks(f"{module.__name__}:never_asked_for") is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("worlds_of_this_test:nothing", "worlds_of_this_test has no 'nothing'. Name a list of ta"),
        ("worlds_of_this_test:number", "has no tasks: it is int. Name a list of tasks"),
        ("worlds_of_this_test:empty", "has no tasks: .* empty list"),
        ("no_such_module:tasks", "the module 'no_such_module' cannot be imported"),
        ("tasks", "'tasks' has no module. Write module:name"),
    ],
)
def test_what_has_no_tasks_is_refused(module: ModuleType, name: str, said: str) -> None:
    vars(module).update(number=3, empty=[])
    with pytest.raises(ConfigError, match=said):
        find_tasks(name)
