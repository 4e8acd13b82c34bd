"""What convolutions get to see of bytes."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

from stepladder.agents.vision.config import VisionConfig
from stepladder.agents.vision.convolutions import GridNetwork
from stepladder.agents.vision.grids import grid_of

RNG = np.random.default_rng(0)


def made(space: Box, frame_stack: int = 1, **settings: Any) -> GridNetwork:
    vision = VisionConfig(channels=(4, 4), features=6, tiles="convolved", **settings)
    grid, _ = grid_of(space, "", vision, frame_stack)
    assert grid is not None
    return GridNetwork(grid, frame_stack, torch.Generator().manual_seed(0))


def planes_of(network: GridNetwork, frames: Any) -> Any:
    """Return the planes of frames of shape ``(rows, frames, …)``."""
    rows = torch.from_numpy(frames.reshape(len(frames), -1))
    return network._planes_of(rows.reshape(-1, *network._frame_shape)).detach().numpy()


@pytest.mark.parametrize("num_frames", [1, 3])
@pytest.mark.parametrize("shape", [(20, 18), (20, 18, 3), (3, 20, 18)])
def test_brightness_lies_between_0_and_1_in_planes(shape: tuple[int, ...], num_frames: int):
    frames = RNG.integers(0, 256, (2, num_frames, *shape), dtype=np.uint8)
    got = planes_of(made(Box(0, 255, shape, np.uint8), num_frames), frames)
    expected = np.moveaxis(frames, -1, 2) if shape[-1] == 3 else frames
    np.testing.assert_allclose(got, expected.reshape(2, -1, 20, 18) / 255.0, rtol=1e-6)


@pytest.mark.parametrize("num_frames", [1, 2])
def test_kinds_are_one_hot_in_each_place(num_frames: int):
    frames = RNG.integers(0, 5, (2, num_frames, 6, 7), dtype=np.uint8)
    got = planes_of(made(Box(0, 4, (6, 7), np.uint8), num_frames), frames)
    expected = np.moveaxis(np.eye(5)[frames], -1, 2).reshape(2, -1, 6, 7)
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("num_frames", [1, 2])
def test_many_kinds_are_looked_up_in_a_table_per_channel(num_frames: int):
    frames = RNG.integers(0, 256, (2, num_frames, 6, 7, 2), dtype=np.uint8)
    network = made(Box(0, 255, (6, 7, 2), np.uint8), num_frames)
    got = planes_of(network, frames)
    tables = network.table.detach().numpy().reshape(2, 256, 8)
    found = np.stack([tables[channel][frames[..., channel]] for channel in range(2)], axis=2)
    expected = np.moveaxis(found, -1, 3).reshape(2, -1, 6, 7)
    assert np.array_equal(got, expected)


def test_channels_first_and_last_are_the_same_picture():
    first, last = made(Box(0, 255, (3, 20, 18), np.uint8)), made(Box(0, 255, (20, 18, 3), np.uint8))
    picture = torch.randint(0, 256, (5, 3, 20, 18), dtype=torch.uint8)
    turned = picture.permute(0, 2, 3, 1).flatten(1)
    assert torch.allclose(first(picture.flatten(1)), last(turned), atol=1e-5)


@pytest.mark.parametrize("shape", [(9, 11), (9, 11, 3), (3, 9, 11)])
def test_kinds_in_windows_are_convolved_as_planes_are(shape: tuple[int, ...]):
    space, settings = Box(0, 4, shape, np.uint8), {"kernels": (3, 3), "strides": (2, 1)}
    network = made(space, 2, **settings)
    assert network._has_windows
    assert not made(space, 2)._has_windows, "windows that overlap much are not made at once"
    codes = torch.randint(0, 5, (4, 2 * int(np.prod(shape))), dtype=torch.uint8)
    got = network(codes)
    network._has_windows = False
    assert torch.allclose(got, network(codes), atol=1e-5)
