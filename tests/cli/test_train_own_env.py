"""An env of the user's own by every verb: its tasks, where its success is read, what goes wrong."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from cli.command_line import CommandLine
from cli.test_env_of_a_module import MODULE, SMALL
from stepladder.runs import RunReader, trust
from stepladder.training.starting import train

pytest.importorskip("torch")

TASKS = """
tasks:
- {name: near, label: near, params: {length: 2}}
- {name: far, label: far, params: {length: 8}}
"""
SHORT = (*SMALL, "--total-steps", "128", "--json")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Put a module of envs and a file of tasks into the working directory; return its name."""
    name = f"corridors_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(MODULE.replace('"corridors:', f'"{name}:'))
    (tmp_path / "tasks.yaml").write_text(TASKS)
    monkeypatch.setattr(sys, "path", list(sys.path))
    # As far as any command knows, another process has made every run.
    monkeypatch.setattr(trust, "note_own", lambda *given: None)
    monkeypatch.setattr("stepladder.runs.run_writer.note_own", lambda *given: None)
    yield name
    gym.registry.pop("Corridor-v0", None)


def told(command: CommandLine, *argv: Any) -> dict[str, Any]:
    code, out, err = command(*argv, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def groups(evaluation: dict[str, Any]) -> dict[str, Any]:
    return {part["name"]: part["mean_length"] for part in evaluation["parts"]}


@pytest.mark.slow
def test_a_run_keeps_its_tasks_for_every_verb_and_for_the_env_under_another_name(
    command: CommandLine, here: str
) -> None:
    argv = ("--env", f"{here}:Corridor", "--tasks", "tasks.yaml", "--curriculum", "staged")
    run = told(command, "train", *argv, *SHORT[:-1])["run"]
    assert RunReader(run).config["curriculum"]["stages"][1]["name"] == "far"
    Path("tasks.yaml").unlink()
    own = told(command, "eval", run, "--trust")["total"]
    assert own["num_games"] == 4
    assert set(groups(own)) == {"near", "far"}
    # Not without its tasks, which was so once; and what is named here needs no trust.
    for other in (f"{here}:Also", f"{here}:Corridor-v0"):
        shown = told(command, "eval", run, "--env-id", other)["total"]
        assert groups(shown) == groups(own)
    film = command("watch", run, "--env-id", f"{here}:Also", "--out", "a.gif", "--max-steps", 2)
    assert film.code == 0
    again = told(command, "train", "--resume", run, "--env", f"{here}:Also", "--total-steps", 200)
    assert again["total_steps"] >= 200
    said = command.fails("eval", run, "--env-id", "CartPole-v1")
    assert "offers no way to receive a task: it has no method set_task(task)" in said


@pytest.mark.slow
def test_tasks_may_be_a_list_in_a_module(command: CommandLine, here: str) -> None:
    argv = ("--env", f"{here}:Corridor", "--tasks", f"{here}:TASKS")
    said = command.fails("train", *argv, *SHORT)
    assert "has no tasks: A ListSource takes tasks; position 0 holds a dict" in said
    module = Path(f"{here}.py")
    module.write_text(f"{module.read_text()}\nfrom stepladder import Task\n"
                      "def tasks(): return [Task.from_json(task) for task in TASKS]\n")  # fmt: skip
    del sys.modules[here], gym.registry["Corridor-v0"]
    run = told(command, "train", *argv[:2], "--tasks", f"{here}:tasks", *SHORT[:-1])["run"]
    # They are kept themselves, so that nothing is imported to explain them.
    assert [task["name"] for task in RunReader(run).config["tasks"]] == ["near", "far"]
    assert "near" in command("explain", run).out


@pytest.mark.slow
def test_a_source_without_end_is_kept_by_name_and_imported_only_with_trust(
    command: CommandLine, here: str
) -> None:
    Path(f"{here}_levels.py").write_text(
        "from stepladder import ParameterSource\n"
        "def levels(): return ParameterSource({'length': (2, 3, 4)})\n"
    )
    argv = ("--env", f"{here}:Corridor", "--tasks", f"{here}_levels:levels", *SHORT)
    assert "got no capacity" in command.fails("train", *argv)
    run = told(command, "train", *argv, "--capacity", 10)["run"]
    assert RunReader(run).config["tasks"] == f"{here}_levels:levels"
    assert told(command, "eval", run, "--trust")["total"]["rate"] is not None
    said = command.fails("explain", run)
    assert f"names '{here}_levels:levels': playing it would import" in said
    assert command("explain", run, "--trust").code == 0


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--tasks", "no.yaml"], "no.yaml cannot be read: No such file"),
        (["--tasks", "twice.yaml"], "1 problem in twice.yaml; nothing was started: [1].name: is"),
        (["--tasks", "MODULE:nothing"], "MODULE has no 'nothing'. Name a list of tasks"),
        (["--wrappers", "Timed"], "--wrappers must be module:name, such as my_worlds:make; got"),
        (["--wrappers", "MODULE:Nope"], "MODULE has no 'Nope'. Name a wrapper, which takes an env"),
        (["--wrappers", "MODULE_broken:X"], "the module 'MODULE_broken' cannot be imported: Zero"),
        (["--deliver", "somehow"], "deliver must be auto, method, options, or a function as modu"),
        (["--deliver", "method"], "deliver: 'method' is for tasks, and there are none. Give tas"),
        (["--success-key", "won"], "ended without info['won'], the named success_key (it has ['s"),
        (
            ["--success-key", "a", "--return-threshold", "1"],
            "--return-threshold is given beside suc",
        ),
        (
            ["--env", "MODULE:Lost"],
            "MODULE:Lost raised AttributeError: 'Lost' object has no attrib",
        ),
    ],
)
def test_a_mistake_is_one_line(command: CommandLine, here: str, argv: list[str], said: str) -> None:
    Path(f"{here}_broken.py").write_text("1 / 0")
    Path("twice.yaml").write_text("- name: a\n- name: a\n")
    words = [word.replace("MODULE", here) for word in argv]
    env = [] if "--env" in argv else ["--env", f"{here}:Corridor"]
    shown = command.fails("train", *env, *words, *SHORT).replace(here, "MODULE")
    assert said in shown
    if "--env" in argv:
        # Nobody was told what to do with a task that is not there.
        assert (
            "the env has set_task, and no tasks are given: name them with tasks (--tasks)" in shown
        )


def test_no_tasks_at_all_are_not_taken_for_none_given() -> None:
    with pytest.raises(Exception, match=r"tasks must hold at least one task; got \[\]"):
        train(env="CartPole-v1", tasks=[])
