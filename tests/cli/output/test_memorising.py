"""What an agent solves in practice and not on held-out tasks."""

import json
from typing import Any

import pytest

from cli.command_line import CommandLine
from stepladder.cli.output.memorising import memorised
from stepladder.runs import Run, RunReader

STATS = "env_curriculum_stats"
TASKS = {"task": ["a1", "a2", "b1"], "label": ["a", "a", "b"], "prob": [0.5, 0.25, 0.25]}


def score(name: str, value: float, low: float, high: float, tasks: tuple[str, ...] = ()) -> Any:
    parts = [{"name": task, "rate": None, "parts": []} for task in tasks]
    return {"name": name, "rate": {"value": value, "low": low, "high": high}, "parts": parts}


def make_run(
    folder: str, *, practised: float, held_out: Any, episodes: float = 300.0, best: bool = False
) -> RunReader:
    """Make a run whose agent got good at label a in its second half, and was then evaluated."""
    with Run.create(folder, kind="training", config={}) as run:
        run.log_tasks(1000, TASKS)
        for step, rate in ((400, 0.1), (800, practised), (1000, practised)):
            metrics = {f"{STATS}/per_label_samples/a": episodes}
            run.log(step, {**metrics, f"{STATS}/per_label_success/a": rate})
        data = {"is_deterministic": best, "total": {"parts": [held_out]}}
        run.event(1000, "evaluation", "so many games", data)
    return RunReader(folder)


def test_a_clear_gap_is_one_line(tmp_path: Any, command: CommandLine) -> None:
    make_run("run", practised=0.81, held_out=score("a", 0.43, 0.35, 0.52))
    line = (
        "practised 0.81 in 300 episodes, held-out 0.43 (0.35 to 0.52): the agent may memorise `a`; "
        "add levels, or let practice spread over more of them (exploration, max_share)"
    )
    assert line in command("explain", "run").out.replace("\n", " ")
    (told,) = json.loads(command("explain", "run", "--json").out)["memorised"]
    assert told["text"] == line
    assert (told["label"], told["step"], told["num_practised"]) == ("a", 1000, 300)


def test_another_way_of_acting_is_said(tmp_path: Any) -> None:
    held_out = score("a", 0.43, 0.35, 0.52)
    reader = make_run(str(tmp_path / "run"), practised=0.81, held_out=held_out, best=True)
    assert memorised(reader)[0]["text"].startswith(
        "practised 0.81 in 300 episodes, held-out 0.43 (0.35 to 0.52) with its best actions, "
        "while practice draws them: the agent may memorise `a`;"
    )


def test_what_was_drawn_counts_where_it_was_measured_beside_best_actions(tmp_path: Any) -> None:
    reader = make_run(
        str(tmp_path / "run"), practised=0.81, held_out=score("a", 0.8, 0.7, 0.9), best=True
    )
    assert memorised(reader) == []
    drawn = {"way": "drawn", "total": {"parts": [score("a", 0.43, 0.35, 0.52)]}}
    with Run.resume(tmp_path / "run") as run:
        last = reader.events("evaluation")[-1].data
        run.event(1000, "evaluation", "both", {**last, "beside": [drawn]})
    (found,) = memorised(RunReader(tmp_path / "run"))
    assert "held-out 0.43 (0.35 to 0.52): the agent may memorise" in found["text"]


@pytest.mark.parametrize(
    ("practised", "held_out", "episodes"),
    [
        pytest.param(0.81, score("a", 0.70, 0.66, 0.74), 3000.0, id="a small gap"),
        pytest.param(0.81, score("a", 0.50, 0.20, 0.80), 300.0, id="too few games"),
        pytest.param(0.81, score("a", 0.43, 0.35, 0.52), 4.0, id="too few episodes"),
        pytest.param(0.30, score("a", 0.43, 0.35, 0.52), 300.0, id="better than practised"),
        pytest.param(0.81, score("c", 0.43, 0.35, 0.52), 300.0, id="another label"),
        pytest.param(0.81, score("b", 0.43, 0.35, 0.52), 300.0, id="never practised"),
        pytest.param(0.81, score("a", 0.43, 0.35, 0.52, ("a1",)), 300.0, id="practised tasks"),
        pytest.param(0.81, {"name": "a", "rate": None}, 300.0, id="no success"),
    ],
)
def test_everything_else_is_no_line(
    tmp_path: Any, practised: float, held_out: Any, episodes: float
) -> None:
    folder = str(tmp_path / "run")
    reader = make_run(folder, practised=practised, held_out=held_out, episodes=episodes)
    assert memorised(reader) == []
