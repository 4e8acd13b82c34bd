"""Pictures of a game: returned one per env, or shown in a window.

Mixed into `batch.GameVectorEnv`; what is drawn comes from the game's painter in `drawing`, which is
loaded when somebody first looks.
"""

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.errors import ConfigError, EnvError


class Pictures:
    """Renders envs."""

    num_envs: int
    metadata: dict[str, Any]
    render_mode: str | None

    @property
    @abstractmethod
    def has_begun(self) -> bool:
        """Whether every env has been reset."""

    @abstractmethod
    def paint(self, env_index: int) -> npt.NDArray[np.uint8]:
        """Draw one env."""

    def prepare_pictures(self, render_mode: str | None) -> None:
        """Choose how to render.

        Raises:
            ConfigError: There is no such way.
        """
        known = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in known:
            raise ConfigError(f"render_mode must be None or one of {known}; got {render_mode!r}.")
        self.render_mode = render_mode
        self._window: Any = None

    @property
    def has_window(self) -> bool:
        """Whether a window has been opened."""
        return self._window is not None

    def render(self) -> tuple[npt.NDArray[np.uint8], ...] | None:
        """Return a picture of every env, or show the first one in a window."""
        if self.render_mode is None:
            raise ConfigError(
                "render was called, but there is no render_mode. Make the env with "
                "render_mode='rgb_array' or 'human'."
            )
        if not self.has_begun:
            raise EnvError("render was called before reset. Call reset first.")
        if self.render_mode == "human":
            self._show(self.paint(0))
            return None
        return tuple(self.paint(env_index) for env_index in range(self.num_envs))

    def _show(self, picture: npt.NDArray[np.uint8]) -> None:
        if self._window is None:
            # Loaded here: only who looks at a game needs the library that draws.
            from stepladder.games.drawing.window import Window

            self._window = Window(type(self).__name__, fps=self.metadata["render_fps"])
        self._window.show(picture)

    def close_window(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
