"""`stepladder play`: keys become actions, a policy plays the other player, the window ends it."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pygame
import pytest

from stepladder.cli import play
from stepladder.cli.main import main
from stepladder.games.drawing.window import Window
from stepladder.games.registry import GAMES

pytestmark = pytest.mark.timeout(120)


class Quick(Window):
    """Waits for nobody, and holds keys."""

    keys: frozenset[str] = frozenset()
    num_pictures = 0
    most_pictures = 10_000

    def __init__(self, title: str, fps: float):
        super().__init__(title, 1e6)
        self.held |= self.keys
        Quick.num_pictures = 0

    def show(self, picture: Any) -> None:
        """Show a picture; close after the last one that is wanted."""
        super().show(picture)
        Quick.num_pictures += 1
        if Quick.num_pictures == self.most_pictures:
            self.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr(play, "Window", Quick)
    yield
    assert not pygame.display.get_init()


@pytest.mark.parametrize(
    ("keys", "number", "sign"), [("up", 1, 1), ("down", 1, -1), ("right", 0, 1), ("left", 0, -1)]
)
def test_keys_move_the_racket_of_hockey(keys: str, number: int, sign: int) -> None:
    env = gym.make("stepladder/Hockey-v0", players="both")
    game = GAMES["stepladder/Hockey-v0"]
    observation, _ = env.reset(seed=0)
    before = observation["player_one"][number]
    action = {"player_one": game.action_of_keys({keys}), "player_two": np.zeros(4, np.float32)}
    for _ in range(10):
        observation, *_ = env.step(action)
    assert sign * (observation["player_one"][number] - before) > 0.02
    env.close()


def test_keys_of_ledge_are_its_actions() -> None:
    game = GAMES["stepladder/Ledge-v0"]
    held = ((), ("left",), ("right",), ("space",), ("left", "up"), ("right", "space"))
    assert [game.action_of_keys(set(keys)) for keys in held] == [0, 1, 2, 3, 4, 5]
    assert game.action_of_keys({"left", "right"}) == 0


def test_a_game_is_not_won_by_who_does_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["play", "hockey", "--episodes", "1", "--seed", "3"]) == 0
    first, last = capsys.readouterr().out.strip().splitlines()
    assert first.startswith("arrows: move; ")
    assert last == "you won 0 of 1 game against policy"
    monkeypatch.setattr(Quick, "most_pictures", 20)
    assert main(["play", "hockey", "--against", "strong"]) == 0
    assert capsys.readouterr().out.endswith("you won 0 of 0 games against strong\n")


def test_it_goes_on_until_the_window_is_closed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Quick, "most_pictures", 40)
    monkeypatch.setattr(Quick, "keys", frozenset({"right"}))
    assert main(["play", "ledge", "--scale", "0.5"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("you won ")
    assert Quick.num_pictures == 40


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["chess"], "chess"),
        (["ledge", "--against", "weak"], "ledge is for one player"),
        (["hockey", "--against", "nobody"], "there is no 'nobody'"),
        (["hockey", "--speed", "9"], "speed"),
    ],
)
def test_what_cannot_be_played_is_told_in_one_line(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", *words]) == 2
    told = capsys.readouterr().err
    assert expected in told
    assert told.count("\n") <= 2
