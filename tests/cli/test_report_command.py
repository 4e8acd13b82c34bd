"""``stepladder report``: one page, of one run or several."""

from pathlib import Path

import pytest

from cli.command_line import CommandLine
from stepladder.runs import Run


def make_run(folder: str, *metrics: str) -> None:
    with Run.create(folder, kind="simulation") as run:
        for step in range(10):
            run.log(step, {name: float(step % 3) for name in metrics})


def test_runs_lie_over_each_other_in_one_page(command: CommandLine) -> None:
    make_run("runs/simulated", "overview/reward")
    make_run("runs/real", "overview/reward", "losses/td")
    assert command("report", "runs/simulated", "runs/real") == (0, "report.html\n", "")
    page = Path("report.html").read_text()
    for word in ("simulated", "real", "overview/reward", "losses/td"):
        assert word in page
    assert '"view":{}' in page


def test_metrics_are_chosen_and_lines_smoothed(command: CommandLine) -> None:
    make_run("run", "overview/reward", "losses/td")
    outcome = command("report", "run", "--out", "pages/a.html", "--metrics", "over*", "--smooth", 3)
    assert outcome == (0, "pages/a.html\n", "")
    page = Path("pages/a.html").read_text()
    assert ("overview/reward" in page, "losses/td" in page) == (True, False)
    assert '"view":{"smooth":1}' in page, "one neighbour on either side"


def test_a_report_of_ours_is_replaced_and_nothing_else(command: CommandLine) -> None:
    make_run("run", "a")
    assert command("report", "run").code == 0
    assert command("report", "run").code == 0
    Path("report.html").write_text("<html>a page of mine</html>")
    assert "was not written by this command" in command.fails("report", "run")
    assert Path("report.html").read_text() == "<html>a page of mine</html>"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "there is no run to report on. Name the folder of one, or of several."),
        (["nowhere"], "nowhere is not a folder"),
        (["run", "--metrics", "nope"], "metrics names 'nope', which no run has"),
        (["run", "--smooth", "0"], "smooth must be an integer of at least 1"),
        (["run", "--out", "run"], "run is a folder. Name a file with --out."),
        (["run", "--out", "run/config.json/x.html"], "run/config.json"),
    ],
)
def test_a_mistake_is_one_line(command: CommandLine, argv: list[str], said: str) -> None:
    make_run("run", "a")
    assert said in command.fails("report", *argv)
    assert [path.name for path in Path().iterdir()] == ["run"]
