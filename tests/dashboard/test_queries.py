"""Answers about runs, with numbers worked out by hand."""

import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepladder.dashboard.answers import answer
from stepladder.dashboard.queries.standing import standing
from stepladder.dashboard.run_index import RunIndex
from stepladder.errors import ConfigError, RunError
from stepladder.runs import Run, RunReader

STATS = "env_curriculum_stats"
STAGES = {"type": "staged", "stages": [{"name": "hard"}, {"name": "easy", "labels": ["b", "a"]}]}


def asked(folder: Path, question: str, **words: Any) -> Any:
    given = {name: str(value) for name, value in words.items()}
    return answer(RunIndex([folder]), question, {"run": folder.name, **given})


def test_a_curve_is_bucketed_and_keeps_its_extremes_and_gaps(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="simulation", config={}) as run:
        for step in range(1_000):
            value = 50.0 if step == 123 else math.nan if 200 <= step < 300 else float(step % 2)
            run.log(step, {"x": value})
    found = asked(tmp_path / "a", "series", name="x", points=100)
    assert len(found["x"]) == 100
    assert found["y"][12] == pytest.approx((5 * 0 + 4 * 1 + 50) / 10)
    assert (found["low"][12], found["high"][12]) == (0.0, 50.0)
    assert found["y"][20:30] == [None] * 10
    near = asked(tmp_path / "a", "series", name="x", points=100, first=120, last=126)
    assert near["x"] == list(range(120, 128))
    assert near["y"][3] == 50.0
    assert near["high"] is None, "nothing is left out between so few steps"


def test_constant_metrics_are_told_from_those_that_vary(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="simulation", config={}) as run:
        for step in range(5):
            run.log(step, {"still": 2.0, "late": float(step == 4), "nan": math.nan})
    found = {metric["name"]: metric for metric in asked(tmp_path / "a", "metrics")}
    assert [found[name]["varies"] for name in ("still", "late", "nan")] == [False, True, False]
    assert found["late"]["last"] == 1.0


def test_labels_stand_in_the_order_of_stages_then_of_the_source(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="training", config={"curriculum": STAGES}) as run:
        labels = ("z", "a", "b", "hard")
        run.log(1, {f"{STATS}/per_label_probs/{label}": 0.25 for label in labels})
    assert asked(tmp_path / "a", "labels")["labels"] == ["hard", "b", "a", "z"]
    curves = asked(tmp_path / "a", "family", of="probs")["curves"]
    assert [curve["name"] for curve in curves] == ["hard", "b", "a", "z"]


def test_draws_are_shares_of_what_was_played_since_the_column_before(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="simulation", config={}) as run:
        for step, (first, second) in ((100, (1, 3)), (200, (0, 0)), (400, (2, 2))):
            samples = f"{STATS}/per_label_samples"
            run.log(step, {f"{samples}/x": first, f"{samples}/y": second})
    found = asked(tmp_path / "a", "draws")
    assert found["rows"] == ["x", "y"]
    assert found["grid"] == [[0.25, 0.5], [0.75, 0.5]], "an epoch without episodes has no column"
    assert found["x"][0] == 0
    assert 100 <= found["x"][1] < 300
    assert found["end"] == 400


def test_draws_by_task_follow_the_likeliest_through_all_tables(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="simulation", config={}) as run:
        for step, probs in ((10, [0.9, 0.1]), (20, [0.2, 0.8])):
            run.log(step, {"x": 1.0})
            run.log_tasks(step, {"task": ["p", "q"], "label": ["l", "l"], "prob": probs})
    found = asked(tmp_path / "a", "draws", by="task")
    assert (found["rows"], found["x"], found["end"]) == (["p", "q"], [0, 10], 20)
    assert found["grid"] == [[0.9, 0.2], [0.1, 0.8]]


def test_practice_sums_labels_and_gives_the_reason_of_the_likeliest_task(tmp_path: Path) -> None:
    columns = {
        "task": ["p", "q", "r"],
        "label": ["l", "m", "l"],
        "prob": [0.2, 0.3, 0.5],
        "samples": [10, 5, 30],
        "success": [1.0, math.nan, 0.0],
        "reason": ["why p", "why q", "why r"],
    }
    with Run.create(tmp_path / "a", kind="simulation", config={}) as run:
        run.log_tasks(7, columns)
    found = asked(tmp_path / "a", "practice")
    first, second = found["labels"]
    assert (first["label"], first["reason"], first["num_tasks"]) == ("l", "why r", 2)
    assert (first["share"], first["success"]) == (pytest.approx(0.7), pytest.approx(0.25))
    assert second["success"] is None
    assert [task["task"] for task in found["tasks"]] == ["r", "q", "p"]
    wanted = asked(tmp_path / "a", "practice", find="Q")
    assert [task["task"] for task in wanted["tasks"]] == ["q"]


def change(origin: str, to: str, kind: str = "stage_advanced", **more: Any) -> dict[str, Any]:
    rule = "demotion" if kind == "stage_demoted" else "standard"
    numbers = {"success": 0.8, "episodes": 120, "rules": [rule], "needs": {rule: [0.75, 100]}}
    return {"from_stage": origin, "to_stage": to, **numbers, **more}


def test_the_timeline_has_every_stage_with_the_reason_of_each_change(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="training", config={"curriculum": STAGES}) as run:
        run.event(100, "stage_advanced", "words", change("hard", "easy"))
        run.event(150, "stage_demoted", "words", change("easy", "hard", "stage_demoted"))
        run.log(200, {"x": 1.0})
    (track,) = asked(tmp_path / "a", "timeline")
    spans = [(part["name"], part["start"], part["end"]) for part in track["segments"]]
    assert spans == [("hard", 0, 100), ("easy", 100, 150), ("hard", 150, 200)]
    assert track["changes"][0]["why"] == (
        "success 0.80 after 120 episodes (standard rule: at least 0.75)"
    )
    assert "demotion rule: below 0.75" in track["changes"][1]["why"]


def evaluation(value: float, **others: float) -> dict[str, Any]:
    def score(name: str, rate: float) -> dict[str, Any]:
        return {"name": name, "rate": {"value": rate, "low": rate - 0.1, "high": rate + 0.1}}

    parts = [score(name, rate) for name, rate in {"easy": value, **others}.items()]
    return {"way": "drawn", "total": {**score("all", value), "parts": parts}}


def test_held_out_success_comes_with_intervals_and_random_play(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="training", config={}) as run:
        run.event(10, "evaluation", "", evaluation(0.25, hard=0.0))
        run.event(20, "evaluation", "", evaluation(0.75, hard=0.5))
        run.event(20, "baseline", "", {**evaluation(0.125, hard=0.0), "way": "random"})
    found = asked(tmp_path / "a", "held-out")
    whole = found["curves"][0]
    assert (whole["name"], whole["x"], whole["y"]) == ("all", [10, 20], [0.25, 0.75])
    assert whole["low"] == pytest.approx([0.15, 0.65])
    assert (found["own"], found["random"]["all"]) == ("drawn", 0.125)
    headline = asked(tmp_path / "a", "story")["headline"]
    assert "held-out 0.75 (0.65 to 0.85), up 0.50 since the first evaluation; random play 0.12" in (
        headline
    )


def test_the_headline_says_when_a_stage_will_be_left(tmp_path: Path) -> None:
    """Success of `a` rises by 0.1 in ten steps; two more tenths are missing."""
    settings = {"curriculum": STAGES, "total_steps": 1_000}
    run = Run.create(tmp_path / "a", kind="training", config=settings)
    with run:
        for place in range(8):
            samples, success = f"{STATS}/per_label_samples/hard", f"{STATS}/per_label_success/hard"
            values = {samples: 10.0, success: 0.1 * place, f"{STATS}/stage": 0.0}
            run.log(10 * place, {**values, f"{STATS}/total_completions": 10.0 * (place + 1)})
        stages = [
            {"stage": "hard", "judged_success": 0.7, "advancement_threshold": 0.9}
            | {"min_episodes": 100, "episodes": 80},
            {"stage": "easy"},
        ]
        said = {"stage_index": 0, "is_last": False, "stages": stages, "text": "in full"}
        run.keep_standing(70, said)
        run.flush()
        # One second between two epochs, the last of them now.
        now = time.time()
        with RunReader(run.folder).database() as database:
            path = database.execute("PRAGMA database_list").fetchone()[2]
        _set_times(Path(path), now)
        story = asked(tmp_path / "a", "story")
    assert (
        story["headline"][0]
        == "Stage 1 of 2: \N{LEFT SINGLE QUOTATION MARK}hard\N{RIGHT SINGLE QUOTATION MARK}"
    )
    # 0.2 at 0.1 a second; 20 episodes at 80 in 7 seconds.
    (sentence,) = [one for one in story["headline"] if "advances" in one]
    assert sentence.endswith(
        "advances at 0.90, now 0.70 and 20 more episodes to play, about 2 s at this pace"
    )
    assert (story["said"], story["needed"]) == ("in full", {"stage": "hard", "at_least": 0.9})


def _set_times(path: Path, now: float) -> None:
    import sqlite3

    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE steps SET time = ? + (step - 70) / 10.0", (now,))
    connection.close()


def test_a_silent_run_is_stale_and_one_without_its_process_has_crashed(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "a", kind="training", config={"total_steps": 100})
    run.log(10, {"x": 1.0})
    run.flush()
    reader, now = RunReader(tmp_path / "a"), time.time()
    assert standing(reader, now).status == "running"
    assert standing(reader, now + 119).status == "running"
    assert standing(reader, now + 130).status == "stale"
    run.close("failed: ValueError: no such level")
    ended = standing(reader)
    assert (ended.status, ended.detail) == ("crashed", "ValueError: no such level")
    assert ended.seconds_left is None


def test_films_of_a_run_are_its_own_files(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    with Run.create(folder, kind="training", config={}) as run:
        run.log(50, {"x": 1.0})
    (folder / "films").mkdir()
    (folder / "films" / "step-30.mp4").write_bytes(b"film")
    (folder / "late.gif").write_bytes(b"film")
    (folder / "secret.gif").symlink_to("/etc/hostname")
    os.mkfifo(folder / "pipe.gif")
    found = asked(folder, "films")
    assert [(film["name"], film["step"]) for film in found] == [
        ("films/step-30.mp4", 30),
        ("late.gif", 50),
    ]


def test_events_are_found_by_kind_word_and_place(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="training", config={}) as run:
        for step in range(300):
            run.event(step, "odd" if step % 2 else "even", f"number {step}")
    latest = asked(tmp_path / "a", "events")
    assert latest["events"][0]["text"] == "number 299"
    assert len(latest["events"]) == 100
    assert latest["kinds"] == {"even": 150, "odd": 150}
    older = asked(tmp_path / "a", "events", before=latest["events"][-1]["id"], kind="odd")
    assert older["events"][0]["text"] == "number 199"
    assert len(asked(tmp_path / "a", "events", find="NUMBER 12")["events"]) == 11


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"points": "x"}, "points must be an integer from 2 to 2000; got 'x'"),
        ({"points": "1e9"}, "points must be an integer"),
        ({"points": "9" * 5_000}, "points must be an integer"),
        ({"first": "nan"}, "first must be a number; got 'nan'"),
        ({"name": "y"}, "a has no metric 'y'"),
        ({"run": "../a"}, "there is no run '../a' here"),
    ],
)
def test_a_wrong_question_is_one_line(words: dict[str, str], said: str, tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="training", config={}) as run:
        run.log(1, {"x": 1.0})
    with pytest.raises((ConfigError, RunError), match=said):
        answer(RunIndex([tmp_path / "a"]), "series", {"run": "a", "name": "x", **words})


def test_a_large_table_of_tasks_is_answered_whole(tmp_path: Path) -> None:
    count = 20_000
    probs = np.full(count, 1 / count)
    with Run.create(tmp_path / "a", kind="training", config={}) as run:
        names = [f"t{k}" for k in range(count)]
        run.log_tasks(1, {"task": names, "label": ["l"] * count, "prob": probs})
    found = asked(tmp_path / "a", "practice")
    assert (found["num_tasks"], len(found["tasks"])) == (count, 12)
    assert found["labels"][0]["share"] == pytest.approx(1.0)
