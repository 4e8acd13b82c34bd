"""``stepladder explain``: why, in words, of any run at any time."""

import json
import os
from pathlib import Path

import pytest

from cli.command_line import CommandLine, finished, running, wait_until
from stepladder.curricula.registry import curriculum_variants
from stepladder.errors import RunError
from stepladder.runs import Run, RunReader
from stepladder.simulator import simulate
from stepladder.simulator.scenarios import scenario

CHAIN = scenario("chain-4")


def simulated(folder: str, curriculum: str, num_epochs: int = 10) -> None:
    simulate(
        curriculum=curriculum,
        place=CHAIN,
        engine="direct",
        num_epochs=num_epochs,
        run_folder=folder,
    )


def trained(folder: str = "real") -> None:
    """Make a run that no curriculum can be rebuilt from."""
    with Run.create(folder, kind="training", config={"agent": "dqn"}) as run:
        run.log(500, {"overview/reward": 0.5})
        for number in range(12):
            run.event(10 * number, "stage_advanced", f"stage {number}\n is over", {"a": 1})
        run.log_tasks(
            450,
            {
                "task": ["easy", "hard", "new"],
                "label": ["l", "l", "m"],
                "prob": [0.25, 0.75, float("nan")],
                "success": [0.875, 0.125, float("nan")],
            },
        )
        run.event(500, "explanation", "Staged: everything is fine.", None)


def test_a_simulated_run_answers_itself(command: CommandLine) -> None:
    simulated("run", "staged")
    code, out, err = command("explain", "run")
    assert (code, err) == (0, "")
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[0] == "run: simulation, finished, 2,000 steps"
    assert lines[1].startswith("verdict: mastered all 4 learnable tasks in ")
    assert "Stage 4 of 4: 'taskclass3'." in out
    assert "4 of 4 tasks:" in lines
    assert "taskclass3  0.9500  its stage 'taskclass3' is the current one" in lines
    assert "taskclass0  0.0167  its stage 'taskclass0' is passed and mixed in" in lines
    assert "the last 3 of 3 events:" in lines
    assert "stage_advanced: taskclass0 -> taskclass1 at episode" in out
    assert "as of step" not in out


def test_the_most_likely_tasks_come_first_and_as_many_as_asked_for(command: CommandLine) -> None:
    simulated("run", "staged")
    out = command("explain", "run", "--top", 2, "--events", 1).out
    assert "2 of 4 tasks:" in out
    assert out.index("taskclass3  0.9500") < out.index("taskclass0  0.0167")
    assert "taskclass1  " not in out.partition("2 of 4 tasks:")[2]
    assert "the last 1 of 3 events:" in out
    assert "taskclass2 -> taskclass3" in out.partition("events:")[2]
    none = command("explain", "run", "--top", 0, "--events", 0).out
    assert "of 4 tasks:" not in none
    assert "events:" not in none


def test_a_named_task_is_explained_in_full(command: CommandLine) -> None:
    simulated("run", "frontier")
    out = command("explain", "run", "--task", "taskclass2", "taskclass0").out
    assert "  Task 'taskclass2' (label 'taskclass2', slot 2, generation 0) is drawn with" in out
    assert "Measured: success " in out
    assert out.index("'taskclass2'") < out.index("'taskclass0'")
    assert "'taskclass1'" not in out


def test_json_has_all_of_it(command: CommandLine) -> None:
    simulated("run", "learnability")
    code, out, err = command("explain", "run", "--json", "--top", 3)
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert out.count("\n") == 1
    assert (told["kind"], told["status"], told["step"]) == ("simulation", "finished", 2000)
    assert told["as_of"] == 2000
    assert told["overview"].startswith("Learnability: 4 tasks")
    assert [set(task) >= {"name", "prob", "reason", "numbers"} for task in told["tasks"]] == [
        True
    ] * 3


@pytest.mark.parametrize("curriculum", curriculum_variants(can_edit=False))
def test_every_curriculum_can_be_asked(command: CommandLine, curriculum: str) -> None:
    simulated("run", curriculum, num_epochs=2)
    told = json.loads(command("explain", "run", "--json").out)
    assert len(told["tasks"]) == 4
    assert all(task["reason"] for task in told["tasks"])


def test_of_a_real_run_what_it_wrote_is_shown(command: CommandLine) -> None:
    trained()
    code, out, err = command("explain", "real")
    assert (code, err) == (0, "")
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[0] == "real: training, finished, 500 steps"
    assert lines[1] == "the following is as of step 450"
    assert "Staged: everything is fine." in lines
    assert lines.index("hard  0.7500  success 0.125") < lines.index("easy  0.2500  success 0.875")
    assert "new           nothing was measured" in lines
    assert "the last 10 of 12 events:" in lines
    assert "  step 110  stage_advanced: stage 11 is over" in lines
    assert "  step 10  stage_advanced: stage 1 is over" not in lines


def test_a_task_of_a_real_run_is_explained_in_full(command: CommandLine) -> None:
    trained()
    out = command("explain", "real", "--task", "hard").out
    assert "  Task 'hard' (label 'l') is drawn with probability 0.75: success 0.125." in out
    said = command.fails("explain", "real", "--task", "harder")
    assert said == "there is no task 'harder' among the 3 active ones; there is hard, …."


def test_a_run_with_nothing_in_it_says_so(command: CommandLine) -> None:
    with Run.create("young", kind="training"):
        code, out, err = command("explain", "young")
    assert (code, err) == (0, "")
    assert out.startswith("young: training, running, 0 steps\n")
    assert "Nothing has been logged about its tasks yet." in out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "Missing from stepladder explain: RUN"),
        (["nowhere"], "nowhere is not a folder. Give the folder of a run."),
        (["."], "has no run: it has no config.json"),
        (["run", "--top", "-1"], "top must be an integer of at least 0; got -1"),
        (["run", "--task", "taskclass9"], "there is no task 'taskclass9' among the 4 active ones"),
        (["run", "other"], "Unrecognized options: other"),
    ],
)
def test_a_mistake_is_one_line(command: CommandLine, argv: list[str], said: str) -> None:
    simulated("run", "uniform", num_epochs=1)
    assert said in command.fails("explain", *argv)


def test_a_damaged_checkpoint_is_one_line(command: CommandLine) -> None:
    simulated("run", "uniform", num_epochs=1)
    (path,) = Path("run/checkpoints").iterdir()
    path.write_bytes(path.read_bytes()[:100])
    assert "is not a readable snapshot" in command.fails("explain", "run")


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_a_run_can_be_asked_while_it_is_being_written_and_after_a_kill(tmp_path: Path) -> None:
    def has_checkpoint() -> bool:
        try:
            return bool(RunReader(tmp_path / "run").checkpoints())
        except RunError:
            return False

    argv = ("simulate", "frontier", "--num-epochs", "100000", "--out", "run")
    with running(*argv, cwd=tmp_path) as process:
        wait_until(has_checkpoint, process)
        code, out, err = finished("explain", "run", cwd=tmp_path)
        assert (code, err) == (0, "")
        assert out.startswith("run: simulation, running, ")
        assert "Frontier: 10 tasks" in out
        os.kill(process.pid, 9)
        process.wait(40)
    code, out, err = finished("explain", "run", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert out.startswith("run: simulation, killed, ")
    assert "Frontier: 10 tasks" in out


def test_as_many_events_as_there_are_when_fewer_than_asked_for(command: CommandLine) -> None:
    with Run.create("six", kind="training") as run:
        for number in range(6):
            run.event(number, "stage_advanced", f"stage {number} is over", None)
    assert "the last 6 of 6 events:" in command("explain", "six").out
    assert len(json.loads(command("explain", "six", "--events", 4, "--json").out)["events"]) == 4


def test_a_trained_run_says_why_where_its_table_does(command: CommandLine) -> None:
    with Run.create("told", kind="training") as run:
        table = {"task": ["a"], "label": ["l"], "prob": [1.0], "reason": ["it is learnable now"]}
        run.log_tasks(5, table)
    assert "a     1.0000  it is learnable now" in command("explain", "told").out
