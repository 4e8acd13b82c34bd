"""Films: what was written can be read back, and nobody ever sees half of one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from stepladder.errors import ConfigError
from stepladder.games.drawing import Picture
from stepladder.games.drawing.film import FILM_MARK, check_film, write_film

COLOURS = ((200, 40, 40), (40, 180, 60), (30, 60, 210))


def pictures(count: int = 6, height: int = 32, width: int = 48) -> Iterator[Picture]:
    """Give pictures of one colour each, all different from the one before."""
    for number in range(count):
        yield np.full((height, width, 3), COLOURS[number % 3], dtype=np.uint8)


def gif_frames(path: Path) -> tuple[list[Picture], list[int]]:
    """Return the pictures of a GIF and how long each is shown, in milliseconds."""
    frames, times = [], []
    with Image.open(path) as image:
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            frames.append(np.asarray(image.convert("RGB")))
            times.append(image.info["duration"])
    return frames, times


def test_a_gif_holds_all_pictures_at_their_pace(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "film.gif"
    assert write_film(path, pictures(), fps=25) == 6
    frames, times = gif_frames(path)
    assert [frame.shape for frame in frames] == [(32, 48, 3)] * 6
    assert times == [40] * 6
    for frame, wanted in zip(frames, pictures(), strict=True):
        assert np.abs(frame.astype(int) - wanted).max() <= 8
    assert FILM_MARK.encode() in path.read_bytes()


def test_the_pace_of_a_gif_is_right_on_average(tmp_path: Path) -> None:
    write_film(tmp_path / "film.gif", pictures(30), fps=30)
    _, times = gif_frames(tmp_path / "film.gif")
    assert set(times) == {30, 40}
    assert sum(times) == 1000


def test_pictures_that_stay_the_same_cost_next_to_nothing(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 4, (64, 64, 3), dtype=np.uint8) * 80
    sizes = []
    for count in (1, 100):
        path = tmp_path / f"{count}.gif"
        assert write_film(path, [noise] * count, fps=10) == count
        frames, times = gif_frames(path)
        assert sum(times) == 100 * count
        assert max(np.abs(frame.astype(int) - noise).max() for frame in frames) <= 8
        sizes.append(path.stat().st_size)
    assert sizes[1] < sizes[0] + 60 * 100


@pytest.mark.parametrize(("height", "width"), [(32, 48), (33, 47)])
def test_an_mp4_holds_all_pictures_at_their_pace(tmp_path: Path, height: int, width: int) -> None:
    path = tmp_path / "film.MP4"
    assert write_film(path, pictures(12, height, width), fps=60) == 12
    with av.open(str(path)) as film:
        stream = film.streams.video[0]
        assert stream.average_rate == 60
        assert stream.codec_context.pix_fmt == "yuv420p"
        assert film.metadata["comment"] == FILM_MARK
        frames: list[Any] = [frame.to_ndarray(format="rgb24") for frame in film.decode(stream)]
    assert [frame.shape for frame in frames] == [(height + height % 2, width + width % 2, 3)] * 12
    for frame, wanted in zip(frames, pictures(12, height, width), strict=True):
        assert np.abs(frame[8, 8].astype(int) - wanted[8, 8]).max() <= 12


@pytest.mark.parametrize("name", ["film.gif", "film.mp4"])
def test_a_film_that_fails_leaves_the_older_one_and_nothing_else(tmp_path: Path, name: str) -> None:
    def failing() -> Iterator[Picture]:
        yield from pictures(3)
        raise KeyboardInterrupt

    path = tmp_path / name
    write_film(path, pictures(2), fps=10)
    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write_film(path, failing(), fps=10)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["film.gif", "film.mp4"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "a film needs at least one picture; got none"),
        ([None], "a picture must be a uint8 array of shape .*; got a NoneType"),
        ([np.zeros((4, 4), dtype=np.uint8)], r"got uint8 of shape \(4, 4\)"),
        ([np.zeros((4, 4, 3))], r"got float64 of shape \(4, 4, 3\)"),
        ([*pictures(1), *pictures(1, 16)], r"must have one shape; got \(16, 48, 3\) after \(32, "),
    ],
)
def test_pictures_that_make_no_film_are_refused(
    tmp_path: Path, name: str, given: list[Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        write_film(tmp_path / name, given, fps=10)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "fps", "said"),
    [
        ("film.avi", 10, "a film must be called .gif or .mp4; got 'film.avi'"),
        ("film", 10, "a film must be called .gif or .mp4; got 'film'"),
        ("film.gif", 60, "a .gif can show 0.1 to 50 pictures a second; got fps 60"),
        ("film.gif", 0, "0.1 to 50 pictures a second; got fps 0"),
        ("film.mp4", float("nan"), "0.1 to 240 pictures a second; got fps nan"),
    ],
)
def test_films_that_cannot_be_written_are_refused_before_anything_is_played(
    name: str, fps: float, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        check_film(name, fps)


@pytest.mark.parametrize("name", ["film.gif", "film.mp4"])
def test_a_missing_package_is_named_with_the_fix(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def missing(module: str) -> Any:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr("stepladder.games.drawing.packages.import_module", missing)
    with pytest.raises(ConfigError, match=r"needs the package av, .*stepladder\[watch\]"):
        check_film(name, 10)
