"""Films of pictures: GIF for pages, MP4 for everything longer.

End of the drawing: ``stepladder watch --out`` and anybody with pictures come here. A film is
written under another name and renamed when it is complete, so that nobody ever sees half of one.
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

MARK = "made by stepladder"
"""What tells our films from anybody else's; every film holds it as a comment."""

SLOWEST = 0.1
FASTEST = {".gif": 50, ".mp4": 240}
"""Pictures per second by suffix: browsers slow down a GIF that wants more."""

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
    if suffix == ".gif":
        required("PIL.Image", "pillow", "a GIF")
    else:
        required("av", "av", "an MP4")


def write_film(path: str | os.PathLike[str], pictures: Iterable[Picture], fps: float) -> int:
    """Write a film, replacing an older file; return how many pictures it has.

    Args:
        path: Where to; the suffix, .gif or .mp4, says which kind.
        pictures: Arrays of shape ``(height, width, 3)``, uint8, all alike. They are asked for one
            by one; an MP4 is written as they come, a GIF is put together in memory.
        fps: Pictures per second; a GIF's is kept on average, to a hundredth of a second.

    Raises:
        ConfigError: The suffix, the pace or a picture makes no sense, or there is no picture. Then
            no file was written.
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
        if not _is_picture(picture):
            raise ConfigError(
                "a picture must be a uint8 array of shape (height, width, 3); got "
                f"{_described(picture)}. Use render_mode='rgb_array'."
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


def _is_picture(picture: Any) -> bool:
    is_array = isinstance(picture, np.ndarray) and picture.dtype == np.uint8
    return is_array and picture.ndim == 3 and picture.shape[2] == 3 and picture.size > 0


def _described(picture: Any) -> str:
    if isinstance(picture, np.ndarray):
        return f"{picture.dtype} of shape {picture.shape}"
    return f"a {type(picture).__name__}"


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
            comment=MARK.encode(),
        )
    return count


def _with_few_colours(pictures: Iterator[Picture]) -> Iterator[Any]:
    """Reduce pictures to 256 colours, which is all that a GIF can show at once.

    The colours chosen for one picture serve the next ones as well, as long as they fit: what does
    not move then keeps its colour and costs nothing.
    """
    images = required("PIL.Image", "pillow", "a GIF")
    palette: Any = None
    for picture in pictures:
        image = images.fromarray(picture)
        if palette is not None:
            reduced = image.quantize(palette=palette, dither=images.Dither.NONE)
            if _fits(reduced, picture):
                yield reduced
                continue
        palette = image.quantize(method=images.Quantize.FASTOCTREE)
        yield palette.copy()


def _fits(reduced: Any, picture: Picture) -> bool:
    """Whether a picture still looks the same with fewer colours."""
    errors = np.abs(np.asarray(reduced.convert("RGB")).astype(np.int16) - picture)
    return (errors.max(axis=2) > FAR_OFF).mean() < FEW


def _write_mp4(draft: Path, pictures: Iterator[Picture], fps: Fraction) -> int:
    av = required("av", "av", "an MP4")
    count = 0
    with av.open(os.fspath(draft), "w", format="mp4", options={"movflags": "faststart"}) as film:
        film.metadata["comment"] = MARK
        stream: Any = None
        for picture in pictures:
            picture = _evened(picture)
            if stream is None:
                stream = film.add_stream("libx264", rate=fps, options=MP4_QUALITY)
                stream.height, stream.width = picture.shape[:2]
                # What every player understands.
                stream.pix_fmt = "yuv420p"
            film.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            count += 1
        if stream is not None:
            film.mux(stream.encode())
    return count


def _evened(picture: Picture) -> Picture:
    """Return a picture with an even number of rows and columns, which MP4 wants."""
    height, width, _ = picture.shape
    if height % 2 == 0 and width % 2 == 0:
        return np.ascontiguousarray(picture)
    return np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
