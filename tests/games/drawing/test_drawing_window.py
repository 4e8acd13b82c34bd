"""The window: opens with the first picture, closes when asked to, and leaves nothing behind."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pygame
import pytest

from stepladder.errors import ConfigError
from stepladder.games.drawing.window import Window, require_screen

PICTURE = np.full((48, 64, 3), 200, dtype=np.uint8)


@pytest.fixture(autouse=True)
def _screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Draw on a screen that nobody sees, and find it given back."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame.display.quit()
    yield
    assert not pygame.display.get_init()


def test_a_window_opens_with_its_first_picture_and_closes_for_good() -> None:
    window = Window("test", fps=1000)
    assert window.is_open
    assert not pygame.display.get_init()
    window.show(PICTURE)
    assert pygame.display.get_init()
    window.close()
    assert not window.is_open
    window.close()
    window.show(PICTURE)
    assert not pygame.display.get_init()


def test_what_is_shown_is_the_picture() -> None:
    window = Window("test", fps=1000)
    window.show(PICTURE)
    handle = window._handle
    assert handle is not None
    assert tuple(handle.get_surface().get_at((5, 5)))[:3] == (200, 200, 200)
    window.show(np.zeros((20, 30, 3), dtype=np.uint8))
    assert tuple(handle.size) == (30, 20)
    window.close()


@pytest.mark.parametrize("wish", ["quit", "close", "escape"])
def test_a_window_that_somebody_closes_is_closed(wish: str) -> None:
    window = Window("test", fps=1000)
    window.show(PICTURE)
    event = {
        "quit": pygame.event.Event(pygame.QUIT),
        "close": pygame.event.Event(pygame.WINDOWCLOSE, window=window._handle),
        "escape": pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE, window=window._handle),
    }[wish]
    pygame.event.post(event)
    window.show(PICTURE)
    assert not window.is_open


def test_asking_for_a_screen_does_not_take_it() -> None:
    require_screen()
    assert not pygame.display.get_init()
    window = Window("test", fps=1000)
    window.show(PICTURE)
    require_screen()
    assert pygame.display.get_init()
    window.close()


def test_two_windows_share_the_screen_and_close_one_by_one() -> None:
    one, two = Window("one", fps=1000), Window("two", fps=1000)
    one.show(PICTURE)
    two.show(PICTURE)
    pygame.event.post(pygame.event.Event(pygame.WINDOWCLOSE, window=one._handle))
    # Whoever looks at the events first heeds them for all.
    two.show(PICTURE)
    assert (one.is_open, two.is_open) == (False, True)
    assert pygame.display.get_init()
    two.close()


def test_a_screen_that_somebody_else_uses_is_left_alone() -> None:
    pygame.display.init()
    window = Window("test", fps=1000)
    window.show(PICTURE)
    window.close()
    assert pygame.display.get_init()
    pygame.display.quit()


def test_a_screen_that_somebody_else_took_away_is_no_error() -> None:
    window = Window("test", fps=1000)
    window.show(PICTURE)
    pygame.quit()
    window.close()
    assert not window.is_open


def test_pictures_come_at_a_steady_pace() -> None:
    window = Window("test", fps=50)
    window.show(PICTURE)
    began = time.perf_counter()
    for _ in range(5):
        window.show(PICTURE)
    # Not sooner; how much later depends on the machine.
    assert time.perf_counter() - began > 0.08
    window.close()


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_a_process_with_a_window_can_still_be_ended() -> None:
    code = (
        "import os, signal, numpy as np;"
        "from stepladder.games.drawing.window import Window;"
        "before = dict(os.environ);"
        "Window('test', 1000).show(np.zeros((8, 8, 3), dtype=np.uint8));"
        "assert dict(os.environ) == before;"
        "os.kill(os.getpid(), signal.SIGTERM)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True)
    assert (done.returncode, done.stderr) == (-signal.SIGTERM, b"")


@pytest.mark.parametrize("display", [None, ":7654"])
def test_without_a_screen_one_line_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, display: str | None
) -> None:
    for name in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    if display is not None:
        monkeypatch.setenv("DISPLAY", display)
    with pytest.raises(ConfigError, match=r"there is no screen for a window: .*--out film.mp4"):
        require_screen()
    window = Window("test", fps=1000)
    with pytest.raises(ConfigError, match="there is no screen"):
        window.show(PICTURE)
    window.close()


def test_a_pace_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigError, match="fps must be finite and above 0; got 0"):
        Window("test", fps=0)


def test_a_window_knows_the_keys_that_are_held_down() -> None:
    window = Window("test", fps=1000)
    window.show(PICTURE)

    def post(kind: int, key: int = 0) -> None:
        pygame.event.post(pygame.event.Event(kind, window=window._handle, key=key))
        window.show(PICTURE)

    post(pygame.KEYDOWN, key=pygame.K_LEFT)
    post(pygame.KEYDOWN, key=pygame.K_SPACE)
    assert window.held == {"left", "space"}
    post(pygame.KEYUP, key=pygame.K_LEFT)
    assert window.held == {"space"}
    # Somebody who goes to another window lets go of all keys.
    post(pygame.WINDOWFOCUSLOST)
    assert window.held == set()
    window.close()
