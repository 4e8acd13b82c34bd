"""Games describe themselves: what each says fits its env, and no other module names one."""

import re
from pathlib import Path

import gymnasium as gym
import pytest

import stepladder
from stepladder.errors import ConfigError, TaskError
from stepladder.games import Game
from stepladder.games.registry import BUILT_IN, DEFAULT_ENV, GAMES, register_game, register_id
from stepladder.training.config import TrainingConfig
from stepladder.training.evaluation import EvaluationRequest

SOURCE = Path(stepladder.__file__).parent
MAY_NAME_GAMES = ("games/", "training/presets.py", "training/published/")


def test_no_module_outside_games_names_one() -> None:
    names = re.compile(r"hockey|\bledge", re.IGNORECASE)
    naming = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if not str(path.relative_to(SOURCE)).startswith(MAY_NAME_GAMES)
        if names.search(path.read_text())
    ]
    assert naming == []


@pytest.mark.parametrize("env", BUILT_IN)
def test_a_built_in_game_fits_its_env(env: str) -> None:
    game = GAMES[env]
    assert set(game.usual_opponents) <= set(game.opponents)
    made = gym.make(env, **game.training_arguments(0.9))
    made.reset(seed=0)
    made.close()
    symmetry = game.symmetry({})
    if symmetry is not None:
        assert symmetry.action_signs is not None
        assert len(symmetry.number_signs) == made.observation_space.shape[0]  # pyright: ignore
        assert len(symmetry.action_signs) == made.action_space.shape[0]  # pyright: ignore
    programme = EvaluationRequest(env=env, num_games=2).programme(())
    assert programme.num_games == len(programme.seeds) > 0
    assert programme.is_match == bool(game.opponents)


def test_what_a_plain_game_says_is_as_little_as_there_can_be() -> None:
    game = Game()
    assert game.source({}) is game.symmetry({}) is game.level_task("a", "b") is None
    assert list(game.check(TrainingConfig(env="CartPole-v1"))) == []
    with pytest.raises(ConfigError, match="has 'stages', and this env has no tasks of its own"):
        game.source({"stages": 1})
    with pytest.raises(ConfigError, match="CartPole-v1 is played without tasks"):
        EvaluationRequest(env="CartPole-v1", labels=("easy",))


def test_levels_are_read_by_the_game_that_has_them() -> None:
    reading = [env for env in GAMES if env in BUILT_IN and GAMES[env].level_task("a", "#")]
    assert reading == [DEFAULT_ENV]
    with pytest.raises(TaskError, match="no stage"):
        EvaluationRequest(env=DEFAULT_ENV, labels=("steep",))


def test_what_cannot_be_a_game_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GAMES, "_entries", {})
    with pytest.raises(ConfigError, match="the game 'x' must be an instance of Game"):
        GAMES.register("x")(Game)
    register_game("no good id-vx")(gym.Env)
    with pytest.raises(ConfigError, match="Gymnasium refuses the id 'no good id-vx'"):
        register_id("no good id-vx")
    GAMES.register("acme/Nothing-v0")(Game())
    with pytest.raises(ConfigError, match=r"'acme/Nothing-v0' names no env.*Game\(env=\.\.\.\)"):
        register_id("acme/Nothing-v0")
