"""Runs beside each other: what they are judged by, the settings that differ, and sweeps."""

from pathlib import Path
from urllib.parse import urlencode

import pytest

from stepladder.dashboard.answers import answer
from stepladder.dashboard.run_index import RunIndex
from stepladder.errors import RunError
from stepladder.runs import Run
from stepladder.simulator import simulate
from stepladder.simulator.swept import SweepConfig
from stepladder.sweeps import parse_choice, sweep


def _words(*names: str) -> str:
    return urlencode([("run", name) for name in names])


@pytest.fixture
def index(tmp_path: Path) -> RunIndex:
    simulate(
        scenario="levels-2x10",
        curriculum="uniform",
        num_epochs=4,
        samples_per_epoch=2000,
        engine="compiled",
        run_folder=tmp_path / "simulated",
    )
    config = {"curriculum": {"type": "staged", "threshold": 0.7}, "same": 1}
    parts = [
        {"name": name, "rate": {"value": value, "low": value - 0.1, "high": value + 0.1}}
        for name, value in (("group-0", 0.8), ("group-1", 0.2), ("all", 0.5))
    ]
    scores = {"way": "drawn", "total": {**parts[2], "parts": parts[:2]}}
    with Run.create(tmp_path / "real", kind="training", config=config, seed=3) as run:
        run.log(100, {"overview/x": 1.0})
        run.event(100, "evaluation", "", scores)
    other = {**config, "curriculum": {"type": "staged", "threshold": 0.8}}
    with Run.create(tmp_path / "other", kind="training", config=other, seed=3) as run:
        run.log(100, {"overview/x": 1.0})
    return RunIndex([tmp_path])


def test_a_simulation_is_judged_by_the_same_names_as_a_training(index: RunIndex):
    simulated = answer(index, "judged", {"run": "simulated"})
    assert simulated["figure"] == "success on held-out tasks"
    names = [curve["name"] for curve in simulated["curves"]]
    assert names == ["all", "group-0", "group-1"]
    assert len(simulated["curves"][0]["x"]) == 4
    real = answer(index, "judged", {"run": "real"})
    by_name = {curve["name"]: curve for curve in real["curves"]}
    assert (by_name["all"]["y"], by_name["all"]["low"]) == ([0.5], [0.4])
    assert by_name["group-0"]["x"] == [100]
    assert answer(index, "judged", {"run": "other"})["curves"] == []


def test_only_settings_that_differ_are_told(index: RunIndex):
    told = answer(index, "difference", {"runs": _words("real", "other")})
    assert told["rows"] == [{"setting": "curriculum.threshold", "values": ["0.7", "0.8"]}]
    assert told["num_same"] == 4
    with pytest.raises(RunError, match="no run"):
        answer(index, "difference", {"runs": _words("real", "../real")})


def test_sweeps_are_listed_with_their_best_and_lead_to_their_runs(tmp_path: Path):
    config = SweepConfig(scenario="chain-3", num_seeds=1, budget=400)
    choice = parse_choice("probing=0.05,0.3", config.fields())
    sweep(config, [choice], folder=tmp_path / "mine", jobs=1)
    trial = tmp_path / "mine/trial-1/seed-0"
    Run.create(trial, kind="training", config={}, seed=0).close()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/study.log").write_text("nonsense\n")
    index = RunIndex([tmp_path])
    rows = {row["name"]: row for row in answer(index, "sweeps", {})}
    assert list(rows) == ["broken", "mine"]
    assert "cannot be read" in rows["broken"]["problem"]
    told = answer(index, "sweep", {"name": "mine"})
    costs = [one["cost"] for one in told["trials"]]
    assert costs == sorted(costs)
    assert rows["mine"]["best"] == costs[0]
    groups = {one["number"]: one["group"] for one in told["trials"]}
    assert groups == {0: None, 1: "mine/trial-1"}
    with pytest.raises(RunError, match="no sweep"):
        answer(index, "sweep", {"name": "../sweeps/mine"})
