"""Which parts of an observation are pictures or tiles, and where their channels are."""

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box

from stepladder.agents.vision.config import VisionConfig
from stepladder.agents.vision.grids import Grid, grid_of
from stepladder.errors import ConfigError

AUTO = VisionConfig()


def bytes_of(*shape: int) -> Box:
    return Box(0, 255, shape, np.uint8)


def found(space: Box, **settings: Any) -> Grid:
    grid, _ = grid_of(space, "eye", VisionConfig(**settings), 1)
    assert grid is not None
    return grid


@pytest.mark.parametrize(
    ("shape", "sides"),
    [
        ((84, 84, 3), (3, 84, 84)),
        ((3, 84, 84), (3, 84, 84)),
        ((1, 64, 48), (1, 64, 48)),
        ((40, 30, 1), (1, 40, 30)),
        ((96, 96), (1, 96, 96)),
        ((12, 20, 20), (12, 20, 20)),
        ((7, 7, 3), (3, 7, 7)),
    ],
)
def test_channels_are_at_the_short_end(shape: tuple[int, ...], sides: tuple[int, ...]):
    grid, doubts = grid_of(bytes_of(*shape), "", AUTO, 1)
    assert grid is not None
    assert (grid.channels, grid.height, grid.width) == sides
    assert doubts == []
    assert grid.is_scaled is (max(shape) > 15)


@pytest.mark.parametrize("shape", [(8, 8, 8), (3, 60, 4), (20, 30, 17), (4, 5, 3)])
def test_where_it_is_not_clear_the_user_is_told_and_decides(shape: tuple[int, ...]):
    _, doubts = grid_of(bytes_of(*shape), "eye", AUTO, 1)
    assert len(doubts) == 1
    assert f"under 'eye' have the shape {list(shape)}" in doubts[0]
    assert "Set vision.axis of the agent to first or last." in doubts[0]
    for axis, channels in (("first", shape[0]), ("last", shape[2])):
        grid, doubts = grid_of(bytes_of(*shape), "eye", VisionConfig(axis=axis), 1)
        assert grid is not None
        assert (grid.channels, doubts) == (channels, [])


def test_what_the_default_does_not_suit_is_told():
    _, large = grid_of(bytes_of(210, 160, 3), "", AUTO, 1)
    assert "are pictures of 210 x 160" in large[0]
    grid, floats = grid_of(Box(0.0, 1.0, (64, 64, 3), np.float32), "", AUTO, 1)
    assert grid is None
    assert "read as 12,288 separate numbers. If they are pictures, let the env" in floats[0]
    for numbers in (Box(-1.0, 1.0, (8, 30), np.float32), Box(-1.0, 1.0, (400,), np.float32)):
        assert grid_of(numbers, "", AUTO, 1) == (None, [])


def test_values_are_brightness_or_kinds_as_asked():
    tiles, picture = Box(0, 7, (9, 11), np.uint8), bytes_of(7, 7, 3)
    assert grid_of(tiles, "", AUTO, 1) == (None, [])
    convolved = found(tiles, tiles="convolved")
    # Few kinds are one-hot, many are embedded.
    assert (convolved.is_scaled, convolved.embedding, convolved.layers[0].num_in) == (False, 0, 8)
    many = found(Box(0, 40, (9, 11), np.uint8), tiles="convolved", embedding=5)
    assert (many.embedding, many.layers[0].num_in) == (5, 5)
    assert (found(picture).embedding, found(picture).layers[0].num_in) == (8, 24)
    assert found(picture, pictures="scaled").layers[0].num_in == 3
    assert grid_of(picture, "", VisionConfig(pictures="flat"), 1) == (None, [])


def test_the_layers_fit_every_size():
    nature = found(bytes_of(84, 84, 4))
    assert [(layer.kernel, layer.stride) for layer in nature.layers] == [
        ((8, 8), 4), ((4, 4), 2), ((3, 3), 1),
    ]  # fmt: skip
    assert nature.flat == 64 * 7 * 7
    for side in range(1, 97):
        assert 64 <= found(bytes_of(side, side, 1), axis="last").flat <= 64 * 8 * 8
    own = found(bytes_of(30, 30), channels=(2, 3), kernels=(5, 5), strides=(5, 1))
    assert own.flat == 3 * 2 * 2
    grid, _ = grid_of(bytes_of(84, 84, 4), "", AUTO, 4)
    assert grid is not None
    assert grid.layers[0].num_in == 16


def test_lists_of_another_length_are_refused():
    with pytest.raises(ConfigError, match=r"kernels must have an entry per convolution \(3, as"):
        VisionConfig(kernels=(3, 3))
