"""``stepladder sweep``: resumable whatever happens, and honest about what it found."""

import json
import os
import re
import shlex
import signal
import sys
from pathlib import Path

import pytest

from cli.command_line import CommandLine, finished, running, wait_until
from stepladder.cli.output.sweep_end import again_command, simulate_command
from stepladder.simulator.swept import SweepConfig
from stepladder.sweeps import SweepTrial
from stepladder.sweeps.study import JOURNAL

pytest.importorskip("optuna")

SMALL = ("--scenario", "chain-3", "--num-seeds", "2")
processes = [pytest.mark.processes, pytest.mark.timeout(60)]

GRID = ("--grid", "probing=0.05,0.5", "--grid", "trial_episodes=20,40")


def results_in(journal: Path) -> list[bytes]:
    """Return the lines of a journal that hold the result of a trial."""
    lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
    return [line for line in lines if b'"result"' in line and line.endswith(b"\n")]


def table_of(out: str) -> list[str]:
    """Return the lines with an interval in them."""
    return [line for line in out.splitlines() if re.search(r"\d to \d", line)]


def test_a_grid_ends_with_the_best_and_how_to_have_it_again(command: CommandLine) -> None:
    code, out, err = command("sweep", *SMALL, *GRID, "--out", "kept")
    assert (code, err) == (0, "")
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[0] == "frontier on chain-3: 4 trials of 2 seeds, kept in kept"
    assert lines[1].split() == [
        *("probing", "trial_episodes", "samples", "95", "%", "interval", "x", "oracle")
    ]
    ratios = [float(line.split()[-1]) for line in lines[2:6]]
    assert ratios == sorted(ratios)
    again = command("sweep", *SMALL, *GRID, "--out", "kept", "--json")
    trials = [json.loads(line) for line in again.out.splitlines()]
    best = min(trials, key=lambda trial: (trial["cost"], trial["number"]))
    values = [str(value) for value in best["params"].values()]
    assert lines[2].split()[:2] == values
    (again,) = [line.strip() for line in lines if line.startswith("  stepladder sweep")]
    (look,) = [line.strip() for line in lines if line.startswith("  stepladder simulate")]
    assert max(map(len, lines[:7])) <= 80
    # Both commands are right as they stand.
    assert command(*shlex.split(again)[1:]).code == 0
    assert len(results_in(Path("kept-best", JOURNAL))) == 1
    assert command(*shlex.split(look)[1:], "--num-epochs", 2).code == 0


def test_it_goes_on_where_it_was_and_says_so(command: CommandLine) -> None:
    whole = command("sweep", *SMALL, *GRID, "--json").out
    journal = Path("sweeps/chain-3-frontier", JOURNAL)
    content = journal.read_bytes()
    last = results_in(journal)[-1]
    journal.write_bytes(content[: content.index(last) + 20])
    out = command("sweep", *SMALL, *GRID).out
    assert out.startswith(
        "frontier on chain-3: 4 trials of 2 seeds, 3 of them resumed, kept in sweeps/"
    )
    assert command("sweep", *SMALL, *GRID, "--json").out == whole


def test_other_settings_are_refused_with_the_difference(command: CommandLine) -> None:
    assert command("sweep", *SMALL, *GRID).code == 0
    said = command.fails("sweep", *SMALL, *GRID, "--seed", 9)
    assert said.startswith(
        "sweeps/chain-3-frontier holds a sweep with other settings: seed was 0 and is now 9."
    )
    assert "values[1] was 0.5 and is now 0.4" in command.fails(
        "sweep", *SMALL, "--grid", "probing=0.05,0.4", *GRID[2:]
    )


def test_json_is_one_line_per_trial_the_best_first(command: CommandLine) -> None:
    code, out, err = command("sweep", *SMALL, *GRID, "--json", "--jobs", 1)
    assert (code, err) == (0, "")
    trials = [json.loads(line) for line in out.splitlines()]
    costs = [trial["cost"] for trial in trials]
    assert costs == sorted(costs)
    assert {trial["number"] for trial in trials} == {0, 1, 2, 3}


def test_a_search_by_optuna_can_go_on(command: CommandLine) -> None:
    search = ("--range", "probing=0.01..0.5:log", "--grid", "features=,position")
    first = command("sweep", *SMALL, *search, "--optuna-trials", 4, "--json")
    assert (first.code, first.err) == (0, "")
    assert len(first.out.splitlines()) == 4
    more = command("sweep", *SMALL, *search, "--optuna-trials", 6, "--top", 2)
    assert "6 trials of 2 seeds, 4 of them resumed" in more.out
    rows = table_of(more.out)
    assert len(rows) == 2


def test_combinations_that_do_not_go_together_are_mentioned(command: CommandLine) -> None:
    out = command(
        *("sweep", *SMALL, "--curriculum", "learning-progress"),
        *("--grid", "fast_halflife_episodes=2,8", "--grid", "slow_halflife_episodes=4,16"),
    ).out
    assert "invalid combinations: 1, such as: slow_halflife_episodes must lie above" in out
    assert "4 trials of 2 seeds" in out


def test_what_cannot_be_told_apart_from_the_best_is_marked(command: CommandLine) -> None:
    # Two settings that play alike: nothing is ever evicted from a pool that holds all.
    out = command("sweep", *SMALL, "--grid", "eviction_plays=20,21,22").out
    rows = table_of(out)
    assert [row.startswith("~") for row in rows] == [False, True, True]
    assert "~  its interval overlaps that of the best: 2 in all" in out


def test_where_seeds_do_not_finish_it_is_marked(command: CommandLine) -> None:
    out = command("sweep", *SMALL, *GRID, "--budget", 30).out
    assert ">30" in out
    assert ">  some seeds did not finish within the budget" in out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "nothing is varied. Name a field and its values: probing=0.02,0.05,0.1."),
        (["--grid", "porbing=1"], "there is no field 'porbing' to vary; there are exploration,"),
        (["--grid", "probing=much"], "probing must be a finite number; got 'much'"),
        (["--grid", "probing=-1"], "probing=-1.0 fits no combination: probing must lie"),
        (["--range", "probing=0.1..0.2"], "only a search can try a --range"),
        (["--grid", "probing=0.1", "--curriculum", "no"], "there is no curriculum 'no'"),
        (["--grid", "probing=0.1", "--scenario", "no"], "there is no scenario 'no'"),
        (["--grid", "probing=0.1", "--jobs", "0"], "jobs must be an integer of at least 1"),
        (["--grid", "probing=0.1", "--top", "0"], "top must be an integer of at least 1"),
        (["--grid", "probing=0.1", "--out", "full"], "full is not empty and does not hold a sweep"),
    ],
)
def test_a_mistake_is_one_line(command: CommandLine, argv: list[str], said: str) -> None:
    Path("full").mkdir()
    Path("full/thesis.tex").write_text("years of work")
    assert said in command.fails("sweep", *argv)
    assert sorted(str(path) for path in Path().rglob("*")) == ["full", "full/thesis.tex"]


def test_a_missing_optuna_is_named_with_its_extra(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    for more in ((), ("--optuna-trials", 2)):
        said = command.fails("sweep", *SMALL, "--grid", "probing=0.1", *more)
        assert said.endswith("pip install 'stepladder[sweep]'")
    assert list(Path().iterdir()) == []


def test_the_commands_at_the_end_say_everything_that_was_set() -> None:
    common = SweepConfig(scenario="chain-5", num_envs=4, budget=500, num_seeds=40, seed=3)
    trial = SweepTrial(number=0, params={"noise_z": None, "features": ("x", "y")}, cell=None)
    assert again_command(trial, common, Path("out")) == (
        "stepladder sweep --grid=noise_z=None --grid=features=x+y --scenario chain-5 "
        "--curriculum frontier --num-seeds 40 --seed 43 --num-envs 4 --budget 500 --out out-best"
    )
    assert simulate_command(trial, common) == (
        "stepladder simulate frontier --noise-z None --features x y --scenario chain-5 "
        "--num-envs 4 --seed 3"
    )
    learner = SweepTrial(number=0, params={"dynamics.eta": 0.1}, cell=None)
    assert simulate_command(learner, common) is None


class TestProcesses:
    pytestmark = processes

    def test_a_killed_sweep_loses_nothing_and_repeats_nothing(self, tmp_path: Path) -> None:
        argv = ("sweep", "--scenario", "chain-30", "--num-seeds", "16", "--jobs", "1", "--json")
        argv += ("--grid", "probing=0.01,0.02,0.05,0.1,0.2,0.5", "--grid", "trial_episodes=20,40")
        journal = tmp_path / "killed" / JOURNAL
        with running(*argv, "--out", "killed", cwd=tmp_path) as process:
            wait_until(lambda: len(results_in(journal)) >= 2, process)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(40)
        before = results_in(journal)
        assert 2 <= len(before) < 12
        code, out, err = finished(*argv, "--out", "killed", cwd=tmp_path)
        assert (code, err) == (0, "")
        after = results_in(journal)
        assert after[: len(before)] == before
        # The last one before the kill may have been written without having been counted.
        assert 12 <= len(after) <= 13
        assert len({json.loads(line)["trial_id"] for line in after}) == 12
        # The same, to the last digit, as a sweep that nobody killed.
        assert finished(*argv, "--out", "whole", cwd=tmp_path).out == out

    def test_an_interruption_keeps_what_is_finished_and_says_so(self, tmp_path: Path) -> None:
        argv = ("sweep", "--scenario", "chain-30", "--num-seeds", "16", "--out", "kept")
        argv += ("--grid", "probing=" + ",".join(str(n / 100) for n in range(1, 200)))
        journal = tmp_path / "kept" / JOURNAL
        with running(*argv, cwd=tmp_path) as process:
            wait_until(lambda: bool(results_in(journal)), process)
            os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=40)
        assert (process.returncode, out) == (130, "")
        again = shlex.join(["stepladder", *argv])
        assert err == f"stopped; what is done is kept in kept. Continue with: {again}\n"
        kept = [json.loads(line)["user_attr"]["result"] for line in results_in(journal)]
        assert all(result["error"] is None for result in kept)
