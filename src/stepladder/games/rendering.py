"""Pictures of the games of a batch, or a window with the first one.

Mixed into `batch.GameVectorEnv`; `drawing` has the painters and the window.
"""

from abc import abstractmethod
from typing import Any

from stepladder.errors import ConfigError, EnvError
from stepladder.games.drawing import Picture


class Rendering:
    """Draws envs as the render mode says."""

    num_envs: int
    metadata: dict[str, Any]

    _painter: Any = None
    _window: Any = None

    @property
    @abstractmethod
    def has_begun(self) -> bool:
        """Whether every env has been reset."""

    @abstractmethod
    def paint(self, env_index: int) -> Picture:
        """Draw one env."""

    def _use_render_mode(self, render_mode: str | None) -> None:
        known = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in known:
            raise ConfigError(f"render_mode must be None or one of {known}; got {render_mode!r}.")
        self.render_mode = render_mode

    def render(self) -> tuple[Picture, ...] | None:
        """Return a picture of every env, or show the first one in a window."""
        if self.render_mode is None:
            raise ConfigError(
                "render was called, but there is no render_mode. Make the env with "
                "render_mode='rgb_array' or 'human'."
            )
        if not self.has_begun:
            raise EnvError("render was called before reset. Call reset first.")
        if self.render_mode == "rgb_array":
            return tuple(self.paint(env_index) for env_index in range(self.num_envs))
        if self._window is None:
            # Imported here: only rendering needs the library that draws.
            from stepladder.games.drawing.window import Window

            self._window = Window(type(self).__name__, fps=self.metadata["render_fps"])
        self._window.show(self.paint(0))
        return None

    def _close_window(self) -> None:
        if self._window is not None:
            self._window.close()
