"""WHAT THE GAMES LOOK LIKE: painters, a window and films. Nothing here is needed to train."""

import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.uint8]
"""Red, green and blue of every pixel, shape ``(height, width, 3)``."""
