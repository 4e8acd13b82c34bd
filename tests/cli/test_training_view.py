"""What a training looks like: the live picture in a terminal, the lines in a pipe."""

import io
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from stepladder.cli.kept_scores import evaluation_from_json
from stepladder.cli.training_view import SAMPLES, SUCCESS, TrainingView, places
from stepladder.training.config import TrainingConfig
from stepladder.training.evaluation.scores import Evaluation, Interval, Score

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
    is_deterministic=True,
    total=score("all", 0.25, (score("simplest", 0.5), score("simpler", 0.0))),
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
    picture = shown(progress(evaluation=EVALUATION, news=(NEWS,)), terminal=True)
    assert "25%  500 of 2,000 steps  0:00:15 left" in picture
    assert "100 steps/s (env 25%, act 25%, learn 50%)" in picture
    assert "12 episodes, 34 updates, success 0.75, return 1.50" in picture
    lines = [line.split() for line in picture.splitlines()]
    assert ["simplest", "0.88", "━━━━━━━━╸", "75%", "0.50"] in lines
    assert ["▶", "simpler", "25%", "0.00"] in lines
    for stage in ("simple", "medium", "complex"):
        assert [stage] in lines
    assert "held out, at 500 steps: all solved 0.25 (0.10 to 0.90)" in picture
    assert NEWS in picture


def test_what_was_known_before_stays_in_the_picture() -> None:
    later = progress(600, logged={}, success=None, mean_return=None, evaluation_steps=160)
    picture = shown(progress(evaluation=EVALUATION, news=(NEWS,)), later, terminal=True)
    last = picture[picture.rindex("PPO on Ledge") :]
    assert "held out, at 500 steps" in last
    assert NEWS in last
    assert "0.88" in last
    assert "38%  600 of 2,000 steps" in last
    assert "160 steps in evaluations, 12 episodes, 34 updates" in last


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


def test_an_evaluation_comes_back_from_a_run() -> None:
    again = evaluation_from_json({"step": 3, **EVALUATION.to_json()})
    # What is not a number differs even from itself.
    assert str(again) == str(EVALUATION)
    assert again.to_json() == EVALUATION.to_json()
