"""What simulations and trainings show: a live picture in a terminal, lines in a pipe."""

import io
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from stepladder.cli.output.views import (
    SAMPLES,
    SUCCESS,
    SimulationView,
    TrainingView,
    blocks,
    places,
)
from stepladder.training.config import TrainingConfig
from stepladder.training.evaluation.scores import Evaluation, Interval, Score
from stepladder.training.evaluation.stored import evaluation_from_json

pytest.importorskip("torch")

from stepladder.training.loop import Clockwork
from stepladder.training.results import Progress

LEDGE = TrainingConfig().to_json()
LOGGED = {f"{SUCCESS}simplest": 0.875, f"{SAMPLES}simplest": 3.0, f"{SAMPLES}simpler": 1.0}
NEWS = "simplest -> simpler at episode 70 by standard: success 0.80"


def score(name: str, rate: float, parts: tuple[Score, ...] = ()) -> Score:
    return Score(
        name=name,
        num_games=16,
        num_trials=16,
        num_steps=160,
        num_successes=16 * rate,
        num_draws=None,
        num_losses=None,
        rate=Interval(rate, 0.1, 0.9),
        mean_return=Interval(rate, float("nan"), float("nan")),
        mean_length=10.0,
        parts=parts,
    )


EVALUATION = Evaluation(
    env="stepladder/Ledge-v0",
    seed=1,
    way="drawn",
    total=score("all", 0.25, (score("simplest", 0.5), score("simpler", 0.0))),
)


BASELINE = Evaluation(
    env="stepladder/Ledge-v0",
    seed=1,
    way="random",
    total=score("all", 0.3, (score("simplest", 0.4), score("simpler", 0.2))),
)


def progress(num_steps: int = 500, **changes: Any) -> Progress:
    settings: dict[str, Any] = {
        "num_steps": num_steps,
        "total_steps": 2_000,
        "evaluation_steps": 0,
        "num_episodes": 12,
        "num_updates": 34,
        "steps_per_second": 100.0,
        "seconds": Clockwork(env=1.0, act=1.0, learn=2.0),
        "elapsed_s": 5.0,
        "left_s": (2_000 - num_steps) / 100.0,
        "stage": "simpler",
        "phase": None,
        "success": 0.75,
        "mean_return": 1.5,
        "evaluation": None,
        "news": (),
        "logged": LOGGED,
    }
    return Progress(**{**settings, **changes})


def shown(*epochs: Progress, terminal: bool, config: Mapping[str, Any] = LEDGE) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=100, color_system=None)
    with TrainingView("PPO on Ledge", config, console) as view:
        for epoch in epochs:
            view(epoch)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_picture_has_all_stages_with_the_present_one_marked() -> None:
    known = progress(evaluation=EVALUATION, baseline=BASELINE, news=(NEWS,))
    picture = shown(known, terminal=True)
    assert "25%  500 of 2,000 steps  0:00:15 left" in picture
    assert "100 steps/s (env 25%, act 25%, learn 50%)" in picture
    assert "12 episodes, 34 updates, success 0.75, return 1.50" in picture
    lines = [line.split() for line in picture.splitlines()]
    assert ["simplest", "0.88", "━━━━━━━━╸", "75%", "0.50", "0.40"] in lines
    assert ["▶", "simpler", "25%", "0.00", "0.20"] in lines
    for stage in ("simple", "medium", "complex"):
        assert [stage] in lines
    standing = "drawn actions: all solved 0.25 (0.10 to 0.90); random play 0.30"
    assert f"held out, at 500 steps, {standing}" in picture
    assert NEWS in picture


def test_what_was_known_before_stays_in_the_picture() -> None:
    later = progress(600, logged={}, success=None, mean_return=None, evaluation_steps=160)
    picture = shown(progress(evaluation=EVALUATION, news=(NEWS,)), later, terminal=True)
    last = picture[picture.rindex("PPO on Ledge") :]
    assert "held out, at 500 steps" in last
    assert NEWS in last
    assert "0.88" in last
    # Evaluations are no part of the budget.
    assert "30%  600 of 2,000 steps" in last
    assert "160 more steps in evaluations, 12 episodes, 34 updates" in last


def test_phases_are_shown_like_stages() -> None:
    config = {"curriculum": {"phases": [{"name": "drill"}, {"name": "defence"}]}}
    assert places(config) == ("drill", "defence")
    logged = {f"{SUCCESS}hockey": 0.5, f"{SAMPLES}hockey": 9.0}
    here = progress(phase="defence", stage=None, logged=logged)
    lines = [line.split() for line in shown(here, terminal=True, config=config).splitlines()]
    assert ["▶", "defence"] in lines
    assert ["drill"] in lines
    assert ["hockey", "0.50", "━━━━━", "100%"] in lines
    assert "phase defence, success 0.75" in shown(here, terminal=False, config=config)


def test_where_nobody_watches_there_is_a_line_now_and_then_and_for_all_news() -> None:
    epochs = [progress(steps) for steps in range(10, 2_001, 10)]
    lines = shown(*epochs, terminal=False).splitlines()
    assert lines[0] == "PPO on Ledge"
    assert 15 <= len(lines) <= 22
    assert lines[-1].startswith("2,000 steps (100%)  stage simpler, success 0.75, return 1.50  100")
    told = shown(progress(10, evaluation=EVALUATION, news=(NEWS,)), terminal=False).splitlines()
    assert told[2:] == [f"  {NEWS}", f"  held out, {EVALUATION}"]
    known = [progress(steps, evaluation=EVALUATION, baseline=BASELINE) for steps in (10, 20)]
    told = [line for line in shown(*known, terminal=False).splitlines() if "held out" in line]
    assert told == [f"  held out, {one}" for one in (BASELINE, EVALUATION, EVALUATION)]


def test_an_evaluation_comes_back_from_a_run() -> None:
    again = evaluation_from_json({"step": 3, **EVALUATION.to_json()})
    # What is not a number differs even from itself.
    assert str(again) == str(EVALUATION)
    assert again.to_json() == EVALUATION.to_json()


# Simulations.

SIMULATED = {
    "metric/agent_step": 1600.0,
    "overview/mastered_fraction": 0.5,
    "overview/mean_performance": 0.456,
    "overview/steps_per_second": 12345.6,
    "env_task_dependency/num_learnable": 10.0,
    "env_task_dependency/success": 0.25,
    "env_task_dependency/share_mastered": 0.2,
    "env_task_dependency/share_locked": 0.41,
    "env_task_dependency/share_impossible": 0.0,
    "env_task_dependency/per_label_performance/taskclass0": 1.0,
    "env_task_dependency/per_label_performance/taskclass1": 0.5,
    "env_task_dependency/per_label_performance/taskclass2": 0.0,
    "env_curriculum_stats/per_label_samples/taskclass0": 0.0,
    "env_curriculum_stats/per_label_samples/taskclass1": 100.0,
    "env_curriculum_stats/per_label_samples/taskclass2": 25.0,
    "env_curriculum_stats/per_label_samples/other": 900.0,
}


def simulated(num_epochs: int, *epochs: int, terminal: bool = False, width: int = 80) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=width, color_system=None)
    with SimulationView("frontier on chain-10", num_epochs, console) as view:
        for epoch in epochs:
            view(epoch, SIMULATED)
    return file.getvalue()


def test_a_pipe_gets_the_title_and_a_line_for_every_tenth_of_the_epochs() -> None:
    lines = simulated(100, *range(100)).splitlines()
    assert lines[0] == "frontier on chain-10"
    assert lines[1] == (
        "epoch  10/100      1,600 plays  mastered  5/10  mean skill 0.46  success 0.25"
    )
    assert [int(line.split("/")[0].split()[1]) for line in lines[1:]] == list(range(10, 101, 10))


def test_the_last_epoch_is_always_shown_and_few_epochs_all() -> None:
    assert len(simulated(3, 0, 1, 2).splitlines()) == 4
    assert "epoch 25/25" in simulated(25, *range(25)).splitlines()[-1]


def test_a_terminal_gets_skill_and_practice_task_by_task() -> None:
    picture = simulated(100, 15, terminal=True)
    assert "epoch 16/100" in picture
    assert "1,600 plays 12,346/s" in picture
    assert "skill    █▄ " in picture
    # Relative to the task with most plays; what is logged of others together is no task.
    assert "practice  █▂" in picture
    assert "wasted on tasks mastered 20%, locked 41%, impossible 0%" in picture


def test_the_picture_fits_a_narrow_terminal() -> None:
    for width in (40, 80, 120):
        for line in simulated(100, 15, terminal=True, width=width).splitlines():
            plain = line.replace("\x1b[?25l", "").replace("\x1b[?25h", "")
            assert len(plain) <= width


def test_nothing_is_said_before_the_first_epoch_or_without_a_console() -> None:
    assert simulated(100) == ""
    with SimulationView("title", 10, None) as view:
        view(9, SIMULATED)


def test_blocks_show_everything_above_nothing_and_share_room_when_there_is_little() -> None:
    assert blocks([0.0, 0.01, 0.5, 1.0, 7.0], 10) == " ▁▄██"
    assert blocks([1.0, 0.0, 0.5, 0.5], 2) == "▄▄"
    assert len(blocks([0.5] * 1000, 37)) == 37
    assert blocks([], 10) == ""
