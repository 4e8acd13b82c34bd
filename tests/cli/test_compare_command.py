"""``stepladder compare``: a table one can trust, a picture, and JSON for machines."""

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from cli.command_line import CommandLine, finished
from stepladder.cli.compare import PICTURE_MARK, _columns
from stepladder.simulator.compare import ComparisonCell, compare
from stepladder.simulator.scenarios import SUITE

QUICK = ("--scenarios", "chain-3", "grid-2x2", "--curricula", "frontier", "--num-seeds", "4")


def cell(**changes: object) -> ComparisonCell:
    numbers: dict[str, object] = {
        "scenario": "chain-3",
        "curriculum": "frontier",
        "num_seeds": 4,
        "mean_samples": 1234.4,
        "low": 1000.0,
        "high": 1468.8,
        "ratio_to_oracle": 2.345,
        "ratio_low": 2.0,
        "ratio_high": 2.7,
        "finished_share": 1.0,
        "area": 0.5,
        "area_to_oracle": 0.6,
        "share_mastered": 0.1,
        "share_locked": 0.25,
        "share_impossible": 0.05,
        "budget": 9000,
    }
    return ComparisonCell(**{**numbers, **changes})  # pyright: ignore[reportArgumentType]


def test_json_is_one_object_per_line_and_nothing_else(command: CommandLine) -> None:
    code, out, err = command("compare", *QUICK, "--json")
    assert (code, err) == (0, "")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["scenario"], row["curriculum"]) for row in rows] == [
        (scenario, curriculum)
        for scenario in ("chain-3", "grid-2x2")
        for curriculum in ("oracle", "uniform", "frontier")
    ]
    wanted = {"scenario", "curriculum", "mean_samples", "low", "high", "ratio_to_oracle"}
    for row in rows:
        assert wanted <= row.keys()
        assert row["low"] <= row["mean_samples"] <= row["high"]
    assert [row["ratio_to_oracle"] for row in rows if row["curriculum"] == "oracle"] == [1.0, 1.0]
    # What the library says, to the last digit.
    library = compare(["chain-3", "grid-2x2"], ["frontier"], num_seeds=4)
    assert rows == [entry.to_json() for entry in library.cells]
    assert list(Path().iterdir()) == []


def test_the_measure_of_each_kind_of_learner_is_named(command: CommandLine) -> None:
    places = ("--scenarios", "chain-3", "hinder-1", "--curricula", "uniform", "--num-seeds", "2")
    code, out, _ = command("compare", *places)
    assert code == 0
    assert "samples: mean plays until every learnable task was mastered at once" in out
    assert "samples: mean env steps until success on held-out tasks was 0.9" in out


def test_the_seed_decides(command: CommandLine) -> None:
    first = command("compare", *QUICK, "--json", "--seed", 7).out
    assert command("compare", *QUICK, "--json", "--seed", 7).out == first
    assert command("compare", *QUICK, "--json", "--seed", 8).out != first


def test_more_envs_are_another_measurement(command: CommandLine) -> None:
    out = command("compare", *QUICK, "--json", "--num-envs", 4).out
    library = compare(["chain-3", "grid-2x2"], ["frontier"], num_seeds=4, num_envs=4)
    assert [json.loads(line) for line in out.splitlines()] == [
        entry.to_json() for entry in library.cells
    ]
    assert out != command("compare", *QUICK, "--json").out


def test_the_table_shows_intervals_ratios_and_waste(command: CommandLine) -> None:
    code, out, err = command("compare", *QUICK)
    assert (code, err) == (0, "")
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[0] == "chain-3: 3 tasks, 4 seeds; each task unlocks the next"
    assert lines[1].split("  ")[0] == "curriculum"
    assert lines[1].split()[1:] == ["samples", "95", "%", "interval", "x", "oracle", "wasted"]
    oracle, uniform, frontier = (lines[number].split() for number in (2, 3, 4))
    assert (oracle[0], oracle[-1]) == ("oracle", "1.00")
    library = compare(["chain-3"], ["frontier"], num_seeds=4)
    mine = library.cell("chain-3", "uniform")
    assert uniform == [
        *("uniform", f"{mine.mean_samples:,.0f}", f"{mine.low:,.0f}", "to", f"{mine.high:,.0f}"),
        f"{mine.ratio_to_oracle:.2f}",
        f"{mine.share_mastered + mine.share_locked + mine.share_impossible:.0%}",
    ]
    assert frontier[0] == "frontier"
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "picture: comparison.svg"


def test_a_wide_terminal_tells_the_wasted_plays_apart(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    heading = command("compare", *QUICK).out.splitlines()[1]
    assert heading.split()[-3:] == ["mastered", "locked", "impossible"]


def test_a_winner_and_an_unfinished_mean_are_marked() -> None:
    assert _columns(cell(), is_wide=False) == [
        *("frontier", "1,234", "1,000 to 1,469", "2.35"),
        "40%",
    ]
    assert _columns(cell(is_winner=True), is_wide=False)[0] == "frontier *"
    unfinished = _columns(cell(finished_share=0.75), is_wide=True)
    assert unfinished[1:4] == [">1,234", "1,000 to 1,469", ">2.35"]
    assert unfinished[4:] == ["40%", "10%", "25%", "5%"]
    assert _columns(cell(num_seeds=1), is_wide=False)[2] == ""


def test_the_marks_are_explained_where_they_are_used(command: CommandLine) -> None:
    won = command("compare", "--scenarios", "chain-10", "--curricula", "frontier").out
    assert "frontier *" in won
    assert "*  its interval lies below that of every other curriculum" in won
    assert ">  some seeds" not in won
    lost = command("compare", *QUICK, "--budget", 20).out
    assert ">20" in lost
    assert ">  some seeds did not finish within the budget, so the mean is higher" in lost
    assert "beware: within the budget of" not in won
    assert "not even the oracle learned" in lost
    assert "*  its interval" not in lost


def test_the_picture_is_an_svg_with_a_panel_per_scenario(command: CommandLine) -> None:
    out = command("compare", *QUICK, "--picture", "pictures/mine.svg").out
    assert out.endswith("picture: pictures/mine.svg\n")
    text = Path("pictures/mine.svg").read_text()
    ElementTree.fromstring(text)
    assert ">chain-3</text>" in text
    assert ">grid-2x2</text>" in text
    assert not Path("comparison.svg").exists()
    assert command("compare", *QUICK, "--json", "--picture", "other.svg").code == 0
    assert Path("other.svg").read_text() == text


def test_a_picture_of_ours_is_replaced_and_nothing_else(command: CommandLine) -> None:
    assert command("compare", *QUICK).code == 0
    first = Path("comparison.svg").read_text()
    assert PICTURE_MARK in first
    assert command("compare", *QUICK, "--seed", 50).code == 0
    assert Path("comparison.svg").read_text() != first
    Path("comparison.svg").write_text("<svg>a drawing of mine</svg>")
    said = command.fails("compare", *QUICK)
    assert said == (
        "comparison.svg was not written by this command and is not replaced. "
        "Name another file with --picture."
    )
    assert Path("comparison.svg").read_text() == "<svg>a drawing of mine</svg>"


def test_without_matplotlib_the_table_is_there_and_the_fix_is_named(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    out = command("compare", *QUICK).out
    assert "frontier" in out
    last = out.splitlines()[-1]
    assert last.startswith("no picture: a picture needs the package matplotlib")
    assert last.endswith("Install it with: pip install 'stepladder[plot]'")
    assert "stepladder[plot]" in command.fails("compare", *QUICK, "--picture", "a.png")


def test_words_stand_for_many_names(command: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepladder.cli.compare.SUITE", ("chain-2", "chain-3"))
    monkeypatch.setattr(
        "stepladder.cli.compare.curriculum_variants", lambda **_: {"uniform": 0, "learnability": 0}
    )
    out = command(
        *("compare", "--scenarios", "suite", "chain-2", "--curricula", "all"),
        *("--num-seeds", 2, "--json"),
    ).out
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["scenario"], row["curriculum"]) for row in rows] == [
        (scenario, name)
        for scenario in ("chain-2", "chain-3")
        for name in ("oracle", "uniform", "learnability")
    ]
    assert "chain-100" in SUITE


def test_a_graph_in_a_file_can_be_compared_on(command: CommandLine) -> None:
    Path("diamond.json").write_text('{"parents": [[], [0], [0], [1, 2]]}')
    out = command("compare", "--scenarios", "diamond.json", "--num-seeds", 2, "--json").out
    assert json.loads(out.splitlines()[0])["scenario"] == "diamond"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--scenarios", "chain-3", "nope"], "there is no scenario 'nope'; expected one of"),
        (["--scenarios"], "there is no scenario to compare on"),
        (["--scenarios", "a/x.json", "b/x.json"], "two scenarios are called 'x'"),
        (["--curricula", "nope"], "there is no curriculum 'nope'; there are uniform, frontier,"),
        (["--num-seeds", "0"], "--num-seeds must be an integer of at least 1; got 0"),
        (["--seed", "-1"], "seed must be an integer of at least 0; got -1"),
        (["--budget", "0"], "budget must be an integer of at least 1; got 0"),
        (["--num-envs", "none"], "--num-envs must be an integer of at least 1; got 'none'"),
        (["--picture", "a.svg"], "a.svg is a folder. Name a file with --picture."),
        (["--picture", "a.pdf"], "a picture must be called .svg or .png; got 'a.pdf'."),
    ],
)
def test_a_mistake_is_one_line(command: CommandLine, argv: list[str], said: str) -> None:
    for folder in ("a", "b", "a.svg"):
        Path(folder).mkdir()
        Path(folder, "x.json").write_text('{"parents": [[]]}')
    assert said in command.fails("compare", *argv)
    assert sorted(path.name for path in Path().iterdir()) == ["a", "a.svg", "b"]


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_a_pipe_receives_json_alone(tmp_path: Path) -> None:
    code, out, err = finished("compare", *QUICK, "--json", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert len([json.loads(line) for line in out.splitlines()]) == 6
    assert list(tmp_path.iterdir()) == []
