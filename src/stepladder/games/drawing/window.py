"""A window that shows pictures at a steady pace, until it is closed.

Used by envs with ``render_mode="human"`` and by ``stepladder watch``. The screen is taken when a
window is opened and given back when the last one is closed.
"""

import os
import sys
from typing import TYPE_CHECKING, ClassVar

from stepladder.configs.checks import require_positive
from stepladder.errors import ConfigError
from stepladder.games.drawing import Picture
from stepladder.games.drawing.packages import keeping_signals, required

if TYPE_CHECKING:
    import pygame
else:
    pygame = required("pygame", "pygame-ce", "a window")

INVISIBLE = ("dummy", "offscreen")
"""What SDL falls back to where there is no screen."""

CHOICE = "SDL_VIDEODRIVER"
SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", CHOICE)


class Window:
    """Shows pictures. It opens with the first one, in the size of that.

    The user may close it by hand or with Escape: `is_open` is False then, and further pictures are
    ignored.

    Args:
        title: What stands above it.
        fps: Pictures per second; `show` waits until it is time for the next one.
    """

    _opened: ClassVar[list["Window"]] = []
    _took_screen: ClassVar[bool] = False

    def __init__(self, title: str, fps: float):
        require_positive("fps", fps)
        self.fps = fps
        """Pictures per second."""
        self.held: set[str] = set()
        """Names of the keys that are held down, such as ``"left"`` and ``"space"``."""
        self._title = title
        self._handle: pygame.Window | None = None
        self._is_over = False
        self._clock = pygame.time.Clock()

    @property
    def is_open(self) -> bool:
        """Whether pictures are shown, or will be once there is one."""
        return not self._is_over

    def show(self, picture: Picture) -> None:
        """Show a picture of shape ``(height, width, 3)``, and wait until the next one is due.

        Raises:
            ConfigError: There is no screen.
        """
        if self._is_over:
            return
        height, width, _ = picture.shape
        if self._handle is None:
            self._open((width, height))
        handle = self._handle
        assert handle is not None
        if handle.size != (width, height):
            handle.size = (width, height)
        image = pygame.image.frombuffer(picture.tobytes(), (width, height), "RGB")
        handle.get_surface().blit(image, (0, 0))
        handle.flip()
        _close_on_request(self._opened)
        self._clock.tick(self.fps)

    def close(self) -> None:
        """Close the window and give the screen back. Nothing happens the second time."""
        self._is_over = True
        if self._handle is None:
            return
        # Envs of other libraries may have closed the display for the whole process.
        if pygame.display.get_init():
            self._handle.destroy()
        self._handle = None
        self._opened.remove(self)
        if not self._opened and Window._took_screen:
            pygame.display.quit()
            Window._took_screen = False

    def _open(self, size: tuple[int, int]) -> None:
        had_screen = pygame.display.get_init()
        _take_screen()
        Window._took_screen |= not had_screen
        self._handle = pygame.Window(self._title, size)
        self._opened.append(self)

    def note_key(self, event: "pygame.event.Event") -> None:
        """Note a key that goes down or up; a window that others cover hears of no key."""
        if event.type == pygame.WINDOWFOCUSLOST:
            self.held.clear()
        elif event.type == pygame.KEYDOWN:
            self.held.add(pygame.key.name(event.key))
        elif event.type == pygame.KEYUP:
            self.held.discard(pygame.key.name(event.key))

    def is_meant_by(self, event: "pygame.event.Event") -> bool:
        """Whether an event asks this window to close."""
        if event.type == pygame.QUIT:
            return True
        is_escape = event.type == pygame.KEYDOWN and event.key == pygame.K_ESCAPE
        is_request = is_escape or event.type == pygame.WINDOWCLOSE
        return is_request and getattr(event, "window", None) is self._handle


def require_screen() -> None:
    """Raise unless a window can be opened, as a check before the first picture.

    Raises:
        ConfigError: There is no visible screen.
    """
    had_screen = pygame.display.get_init()
    _take_screen()
    if not had_screen:
        pygame.display.quit()


def _take_screen() -> None:
    """Begin to use the screen, unless it is in use already."""
    if sys.platform == "linux" and not any(os.environ.get(name) for name in SCREENS):
        raise _no_screen("none of DISPLAY and WAYLAND_DISPLAY is set")
    try:
        with keeping_signals():
            pygame.display.init()
    except pygame.error as error:
        raise _no_screen(str(error)) from error
    driver = pygame.display.get_driver()
    # An invisible screen is only right if it was chosen, as tests do.
    if driver in INVISIBLE and os.environ.get(CHOICE) != driver:
        pygame.display.quit()
        raise _no_screen(f"SDL found only its {driver} driver")


def _no_screen(reason: str) -> ConfigError:
    return ConfigError(
        f"there is no screen for a window: {reason}. Write a film instead (--out film.mp4), or use "
        "render_mode='rgb_array'."
    )


def _close_on_request(windows: list[Window]) -> None:
    """Close the windows that the user has closed; one window reads the events of all."""
    for event in pygame.event.get():
        for window in list(windows):
            if getattr(event, "window", None) is window._handle:
                window.note_key(event)
            if window.is_meant_by(event):
                window.close()
