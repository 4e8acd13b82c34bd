"""Films of pictures: GIF by Pillow for pages, MP4 by PyAV for everything longer.

End of the drawing: ``stepladder watch --out`` and any code with pictures come here. A film is
written under another name and renamed when it is complete, so that no reader sees half of one.
"""

import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from stepladder.errors import ConfigError
from stepladder.files import draft_of
from stepladder.games.drawing import Picture
from stepladder.games.drawing.packages import required

FILM_MARK = "made by stepladder"
"""Marks our films, as a comment in each."""

SLOWEST = 0.1
FASTEST = {".gif": 50, ".mp4": 240}
"""Pictures per second by suffix: browsers slow down faster GIFs."""

PACKAGES = {".gif": ("PIL.Image", "pillow", "a GIF"), ".mp4": ("av", "av", "an MP4")}
"""Module, package and purpose by suffix."""

FAR_OFF, FEW = 40, 0.0005
"""A GIF keeps its colours while no more than this share of pixels is further off than this."""

MP4_QUALITY = {"crf": "20", "preset": "veryfast"}
"""Constant quality, without visible loss; a film of plain colours gets small anyhow."""


def check_film(path: str | os.PathLike[str], fps: float) -> None:
    """Raise unless a film of this name and pace can be written, and its packages are there.

    Raises:
        ConfigError: It cannot.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FASTEST:
        raise ConfigError(
            f"a film must be called .gif or .mp4; got {os.fspath(path)!r}. Change its suffix."
        )
    if not SLOWEST <= fps <= FASTEST[suffix]:
        raise ConfigError(
            f"a {suffix} can show {SLOWEST} to {FASTEST[suffix]} pictures a second; got fps "
            f"{fps:g}. Give an fps in that range."
        )
    required(*PACKAGES[suffix])


def write_film(path: str | os.PathLike[str], pictures: Iterable[Picture], fps: float) -> int:
    """Write a film, replacing an older file; return how many pictures it has.

    Args:
        path: The file; its suffix is .gif or .mp4.
        pictures: Arrays of shape ``(height, width, 3)``, uint8, of one shape. They are drawn one
            by one; an MP4 is written as they come, a GIF is put together in memory.
        fps: Pictures per second; a GIF's is kept on average, to a hundredth of a second.

    Raises:
        ConfigError: The suffix, the pace or a picture is wrong, or there is no picture. Then no
            file was written.
    """
    check_film(path, fps)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(target)
    # Whatever is there under this name, a link for one, is not written through.
    draft.unlink(missing_ok=True)
    write = _write_gif if target.suffix.lower() == ".gif" else _write_mp4
    try:
        count = write(draft, _checked(pictures), Fraction(fps).limit_denominator(1000))
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
    return count


def _checked(pictures: Iterable[Picture]) -> Iterator[Picture]:
    """Pass on pictures that are all alike."""
    shape: tuple[int, ...] | None = None
    for picture in pictures:
        is_array = isinstance(picture, np.ndarray)
        size = picture.shape if is_array else ()
        if len(size) != 3 or size[2] != 3 or 0 in size or picture.dtype != np.uint8:
            kind = f"{picture.dtype} of shape {size}" if is_array else f"a {type(picture).__name__}"
            raise ConfigError(
                "a picture must be a uint8 array of shape (height, width, 3); got "
                f"{kind}. Use render_mode='rgb_array'."
            )
        if shape not in (None, picture.shape):
            raise ConfigError(
                f"all pictures of a film must have one shape; got {picture.shape} after {shape}. "
                "Film envs of different sizes one by one."
            )
        shape = picture.shape
        yield picture
    if shape is None:
        raise ConfigError("a film needs at least one picture; got none. Play at least one step.")


def _write_gif(draft: Path, pictures: Iterator[Picture], fps: Fraction) -> int:
    count = 0

    def shown() -> Iterator[Any]:
        nonlocal count
        for image in _with_few_colours(pictures):
            # Rounded so that errors do not add up: the n-th picture comes on time.
            now, then = (round(100 * number / fps) for number in (count, count + 1))
            image.info["duration"] = 10 * (then - now)
            count += 1
            yield image

    frames = shown()
    first = next(frames)
    # Opened here, because Pillow leaves its file open when it is interrupted.
    with draft.open("wb") as file:
        first.save(
            file,
            format="GIF",
            save_all=True,
            append_images=frames,
            loop=0,
            comment=FILM_MARK.encode(),
        )
    return count


def _with_few_colours(pictures: Iterator[Picture]) -> Iterator[Any]:
    """Reduce pictures to 256 colours, which is all that a GIF can show at once.

    The colours chosen for one picture serve the next ones as well, as long as they fit: what does
    not move then keeps its colour and costs nothing.
    """
    images = required(*PACKAGES[".gif"])
    palette: Any = None
    for picture in pictures:
        image = images.fromarray(picture)
        if palette is not None:
            reduced = image.quantize(palette=palette, dither=images.Dither.NONE)
            errors = np.abs(np.asarray(reduced.convert("RGB")).astype(np.int16) - picture)
            if (errors.max(axis=2) > FAR_OFF).mean() < FEW:
                yield reduced
                continue
        palette = image.quantize(method=images.Quantize.FASTOCTREE)
        yield palette.copy()


def _write_mp4(draft: Path, pictures: Iterator[Picture], fps: Fraction) -> int:
    av = required(*PACKAGES[".mp4"])
    count = 0
    with av.open(os.fspath(draft), "w", format="mp4", options={"movflags": "faststart"}) as film:
        film.metadata["comment"] = FILM_MARK
        stream = film.add_stream("libx264", rate=fps, options=MP4_QUALITY)
        # Every player can show this format; it needs even numbers of rows and columns.
        stream.pix_fmt = "yuv420p"
        for picture in pictures:
            height, width, _ = picture.shape
            even = np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
            if count == 0:
                stream.height, stream.width = even.shape[:2]
            film.mux(stream.encode(av.VideoFrame.from_ndarray(even, format="rgb24")))
            count += 1
        film.mux(stream.encode())
    return count
