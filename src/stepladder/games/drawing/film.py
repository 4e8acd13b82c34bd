"""Films of pictures, written by PyAV: GIF for pages, MP4 for everything longer.

End of the drawing: ``stepladder watch --out`` and any code with pictures come here. A film is
written under another name and renamed when it is complete, so that no reader sees half of one.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any
from zlib import compress, decompress

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

PACKAGE = ("av", "av", "a film")
"""Module, package and purpose."""

COMMENT, TRAILER = b"\x21\xfe", b"\x3b"
"""How a comment begins in a GIF, and how the file ends."""

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
    required(*PACKAGE)


def write_film(path: str | os.PathLike[str], pictures: Iterable[Picture], fps: float) -> int:
    """Write a film, replacing an older file; return how many pictures it has.

    Args:
        path: The file; its suffix is .gif or .mp4.
        pictures: Arrays of shape ``(height, width, 3)``, uint8, of one shape. They are drawn one
            by one; an MP4 is written as they come, a GIF when the last one is there.
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
    # The colours are chosen when the last picture is known. Until then all of them are kept, packed
    # because a film may be long; pictures of games get a hundred times smaller.
    first = next(pictures)
    packed = [compress(picture.tobytes(), level=1) for picture in chain([first], pictures)]
    av = required(*PACKAGE)

    def frames() -> Iterator[Any]:
        for place, content in enumerate(packed):
            picture = np.frombuffer(decompress(content), np.uint8).reshape(first.shape)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = place, 1 / fps
            yield frame

    with av.open(os.fspath(draft), "w", format="gif", options={"loop": "0"}) as film:
        stream = film.add_stream("gif", rate=fps)
        stream.height, stream.width = first.shape[:2]
        stream.pix_fmt = "pal8"
        for frame in _with_few_colours(av, frames, 1 / fps):
            film.mux(stream.encode(frame))
        film.mux(stream.encode())
    _comment(draft)
    return len(packed)


def _with_few_colours(
    av: Any, frames: Callable[[], Iterator[Any]], time_base: Fraction
) -> Iterator[Any]:
    """Reduce pictures to the 256 colours that a GIF can show.

    The colours are chosen for the whole film, so that what does not move keeps its colour and
    costs nothing.
    """
    choosing, reducing = av.filter.Graph(), av.filter.Graph()
    source = choosing.add_buffer(**_kind(av, next(frames()), time_base))
    source.link_to(palette := choosing.add("palettegen", "stats_mode=diff"))
    palette.link_to(chosen := choosing.add("buffersink"))
    choosing.configure()
    for frame in frames():
        source.push(frame)
    source.push(None)
    colours = chosen.pull()
    source = reducing.add_buffer(**_kind(av, next(frames()), time_base))
    table = reducing.add_buffer(**_kind(av, colours, time_base))
    reduced, end = reducing.add("paletteuse", "dither=none"), reducing.add("buffersink")
    source.link_to(reduced, 0, 0)
    table.link_to(reduced, 0, 1)
    reduced.link_to(end)
    reducing.configure()
    colours.pts, colours.time_base = 0, time_base
    table.push(colours)
    table.push(None)
    for frame in frames():
        source.push(frame)
        yield end.pull()


def _kind(av: Any, frame: Any, time_base: Fraction) -> dict[str, Any]:
    """Return what a graph must know about the frames that it is given."""
    kind = av.VideoFormat(frame.format.name)
    return {"width": frame.width, "height": frame.height, "format": kind, "time_base": time_base}


def _comment(draft: Path) -> None:
    """Put our mark in front of the end of a GIF: PyAV writes no comments into this format."""
    with draft.open("r+b") as file:
        file.seek(-len(TRAILER), os.SEEK_END)
        file.write(COMMENT + bytes([len(FILM_MARK)]) + FILM_MARK.encode() + b"\x00" + TRAILER)


def _write_mp4(draft: Path, pictures: Iterator[Picture], fps: Fraction) -> int:
    av = required(*PACKAGE)
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
