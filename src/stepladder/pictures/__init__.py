"""PICTURES FOR PAGES AND PAPERS: figures by matplotlib (extra ``plot``), as SVG or PNG.

Below everything that has something to show: the modules here take plain values and know no run.
They import matplotlib, so import them where a picture is made; this one does not.
"""

import os
from importlib import import_module
from pathlib import Path

from stepladder.errors import ConfigError

SUFFIXES = (".svg", ".png")


def check_picture(path: str | os.PathLike[str]) -> None:
    """Raise unless a picture of this name can be written, and matplotlib is there.

    Raises:
        ConfigError: It cannot.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ConfigError(
            f"a picture must be called .svg or .png; got {os.fspath(path)!r}. Change its suffix."
        )
    require_matplotlib()


def require_matplotlib() -> None:
    """Raise unless matplotlib can be imported.

    Raises:
        ConfigError: It cannot.
    """
    try:
        import_module("matplotlib.figure")
    except ImportError as error:
        raise ConfigError(
            f"a picture needs the package matplotlib, which cannot be imported ({error}). "
            "Install it with: pip install 'stepladder[plot]'"
        ) from error
