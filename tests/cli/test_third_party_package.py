"""A game and an agent of another package, through every command, as if they were built in."""

import json
import os
import signal
from pathlib import Path

import pytest

from cli.command_line import CommandLine, finished, running, wait_until
from cli.test_env_of_a_module import has_checkpoint
from cli.third_party import AGENT, GAME, install
from stepladder.runs import RunReader
from training.training_scenes import differences, left_behind

pytest.importorskip("torch")

SMALL = (
    *("train", "--env", GAME, "--agent", AGENT, "--agent.step-size", "0.02"),
    *("--source", "num_tracks=4", "--num-envs", "4", "--epoch-steps", "64"),
    *("--max-episode-steps", "20", "--evaluation.num-games", "2"),
    *("--evaluation.every-steps", "None"),
)


@pytest.mark.processes
@pytest.mark.timeout(300)
def test_it_is_trained_killed_resumed_exactly_evaluated_watched_and_reported(
    tmp_path: Path,
) -> None:
    packages = install(tmp_path / "packages")
    run = tmp_path / "cut"
    argv = (*SMALL, "--total-steps", "100000000", "--checkpoints.every-steps", "64")
    with running(*argv, "--out", run, cwd=tmp_path, packages=packages) as process:
        wait_until(lambda: has_checkpoint(run), process)
        os.killpg(process.pid, signal.SIGKILL)
    config = RunReader(run).config
    assert (config["env"], config["agent"]["type"]) == (GAME, "Linear")
    assert config["agent"]["step_size"] == 0.02
    assert config["curriculum"]["type"] == "frontier"

    saved = RunReader(run).checkpoint_step()
    assert saved is not None
    until = ("--total-steps", saved + 200)
    code, out, err = finished("train", "--resume", run, *until, cwd=tmp_path, packages=packages)
    assert (code, err) == (0, ""), err
    assert "\nfinished after " in out
    whole = tmp_path / "whole"
    code, _, err = finished(*SMALL, *until, "--out", whole, cwd=tmp_path, packages=packages)
    assert (code, err) == (0, ""), err
    assert differences(left_behind(run), left_behind(whole)) == []

    code, out, err = finished("eval", run, "--json", cwd=tmp_path, packages=packages)
    assert (code, err) == (0, ""), err
    evaluated = json.loads(out)
    assert (evaluated["env"], evaluated["policy"]) == (GAME, "cut (Linear)")
    assert [part["name"] for part in evaluated["total"]["parts"]] == ["steep", "flat"]
    code, out, err = finished(
        *("eval", run, "--labels", "flat", "--json"), cwd=tmp_path, packages=packages
    )
    assert [part["name"] for part in json.loads(out)["total"]["parts"]] == ["flat"]

    code, out, err = finished(
        *("watch", run, "--out", "film.gif", "--max-steps", "4"), cwd=tmp_path, packages=packages
    )
    assert (code, err, out.partition(":")[0]) == (0, "", "film.gif")
    code, _, err = finished("report", run, cwd=tmp_path, packages=packages)
    assert (code, err) == (0, ""), err
    assert "evaluation" in (tmp_path / "report.html").read_text()
    code, out, err = finished("explain", run, cwd=tmp_path, packages=packages)
    assert (code, err) == (0, ""), err
    assert "track" in out


def test_without_the_package_a_line_says_what_there_is(command: CommandLine) -> None:
    said = command.fails("train", "--env", "CartPole-v1", "--agent", AGENT)
    assert said == "--agent must be one of dddqn, sac, ppo; got 'linear'."
    assert f"the env {GAME!r} cannot be found" in command.fails("train", "--env", GAME)
