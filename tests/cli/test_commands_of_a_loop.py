"""What the commands make of the run of a loop of one's own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command_line import CommandLine
from stepladder import Staged, Task, make_vec, run
from stepladder.games.ledge.source import LedgeLevels

STAGES = ("simplest", "simpler")
NUM_ENVS = 2


def played(num_steps: int = 30, tasks: Any = None, **settings: Any) -> Any:
    """Return a loop over Ledge that has been saved and goes on."""
    source = [Task(stage, stage, {"stage": stage}, seed=1) for stage in STAGES]
    curriculum = Staged(tasks or source, stages=STAGES, threshold=0.5, min_episodes=2)
    envs = make_vec(
        "stepladder/Ledge-v0", NUM_ENVS, curriculum=curriculum, env_kwargs={"time_limit": 5}
    )
    loop = run("mine", envs, epoch_steps=NUM_ENVS, **settings)
    loop.reset(seed=0)
    for _ in range(num_steps):
        loop.step(np.zeros(NUM_ENVS, dtype=np.int64))
    loop.report({"policy": 0.5})
    return loop


def test_a_loop_is_explained_in_full_while_it_runs_and_afterwards(command: CommandLine) -> None:
    loop = played(save=lambda folder: (folder / "agent.txt").write_text("all it knows"))
    steps = loop.num_steps
    code, out, err = command("explain", "mine")
    assert (code, err) == (0, "")
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[0] == f"mine: loop, running, {steps} steps"
    assert "as of step" not in out
    assert "Stage 1 of 2: 'simplest'." in out
    assert "2 of 2 tasks:" in lines
    assert "simplest  1.0000  its stage 'simplest' is the current one" in lines
    for _ in range(7):
        loop.step(np.zeros(NUM_ENVS, dtype=np.int64))
    loop.close()
    out = command("explain", "mine").out
    assert out.startswith(f"mine: loop, finished, {loop.num_steps} steps\n\nStaged: 2 tasks, 1")
    code, out, err = command("report", "mine")
    assert (code, err) == (0, "")
    assert "losses/policy" in Path("report.html").read_text()


def test_a_loop_has_no_policy_that_a_command_could_play_or_resume(command: CommandLine) -> None:
    played(save=lambda folder: (folder / "agent.txt").write_text("all it knows")).close()
    said = command.fails("eval", "mine")
    assert "mine is a loop, which has no policy that was trained here. Name a training." in said
    said = command.fails("train", "--resume", "mine")
    assert "mine is a loop, not a training, and cannot be resumed" in said
    flags = ("--out", "a.gif", "--max-steps", 3, "--scale", 0.2)
    assert "no trained policy yet" in command.fails("watch", "mine", "--policy", "learnt", *flags)
    # Its env is played, with its tasks, by whoever else can.
    code, out, _ = command("watch", "mine", *flags)
    assert (code, "1 episode" in out) == (0, True)


@pytest.mark.parametrize("is_told", [True, False])
def test_a_game_s_own_tasks_are_watched_if_the_settings_say_which(
    command: CommandLine, is_told: bool
) -> None:
    levels = {"stages": list(STAGES), "per_stage": 3, "seed": 4}
    config = {"source": levels} if is_told else {}
    played(tasks=LedgeLevels(STAGES, per_stage=3, seed=4), config=config).close()
    argv = ("watch", "mine", "--out", "a.gif", "--max-steps", 3, "--scale", 0.2)
    if is_told:
        assert command(*argv).code == 0
    else:
        assert "does not say what its tasks are" in command.fails(*argv)
    assert "6 of 6 tasks:" in command("explain", "mine").out
