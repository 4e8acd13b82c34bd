"""What agents see, against NumPy."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Text
from gymnasium.vector.utils import batch_space

from stepladder.agents.observations import CLIP, Encoder, Layout
from stepladder.errors import ConfigError

CPU = torch.device("cpu")

SPACES: dict[str, tuple[Space[Any], int, list[int]]] = {
    "numbers": (Box(-1.0, 1.0, (2, 3), np.float32), 6, []),
    "doubles": (Box(-np.inf, np.inf, (4,), np.float64), 4, []),
    "a choice": (Discrete(5), 0, [5]),
    "a choice from -2": (Discrete(4, start=-2), 0, [4]),
    "choices": (MultiDiscrete([2, 7]), 0, [2, 7]),
    "choices from 1": (MultiDiscrete([2, 3], start=[1, -1]), 0, [2, 3]),
    "switches": (MultiBinary((2, 2)), 0, [2, 2, 2, 2]),
    "yes or no": (Box(0, 1, (3,), np.bool_), 0, [2, 2, 2]),
    "kinds": (Box(-1, 3, (2, 2), np.int8), 0, [5, 5, 5, 5]),
    "a picture": (Box(0, 255, (2, 2), np.uint8), 4, []),
    "all": (
        Dict({"tiles": Box(0, 4, (3,), np.uint8), "own": Box(-1.0, 1.0, (2,)), "way": Discrete(3)}),
        2,
        [5, 5, 5, 3],
    ),
}


def slow_features(space: Space[Any], seen: Any) -> list[float]:
    """Return the features of one observation of a simple space."""
    if isinstance(space, Discrete):
        return np.eye(int(space.n))[int(seen - space.start)].tolist()
    if isinstance(space, MultiDiscrete):
        codes = (seen - space.start).tolist()
        return [x for n, code in zip(space.nvec, codes, strict=True) for x in np.eye(n)[code]]
    if isinstance(space, MultiBinary) or space.dtype == np.bool_:
        return [x for switch in seen.ravel() for x in np.eye(2)[int(switch)]]
    assert isinstance(space, Box)
    span = int(space.high.max() - space.low.min()) + 1 if space.dtype.kind in "iu" else 10**9
    if span <= 64:
        return [x for code in seen.ravel() for x in np.eye(span)[int(code) - int(space.low.min())]]
    return seen.astype(np.float32).ravel().tolist()


@pytest.mark.parametrize("name", SPACES)
def test_features_are_numbers_as_they_are_and_codes_one_of_several(name: str):
    space, num_numbers, kinds = SPACES[name]
    layout = Layout(space)
    assert (layout.num_numbers, layout.kinds) == (num_numbers, kinds)
    rows = batch_space(space, 6)
    rows.seed(0)
    seen: Any = rows.sample()
    features = Encoder(layout)(layout.to_seen(seen, CPU)).numpy()
    assert features.shape == (6, layout.num_features)
    for row in range(6):
        if isinstance(space, Dict):
            parts = {key: slow_features(part, seen[key][row]) for key, part in space.items()}
            is_number = {key: not Layout(part).num_codes for key, part in space.items()}
            expected = [
                x
                for wanted in (True, False)
                for key in parts
                if is_number[key] is wanted
                for x in parts[key]
            ]
        else:
            expected = slow_features(space, seen[row])
        assert features[row].tolist() == pytest.approx(expected)


def test_codes_take_a_byte_and_numbers_a_float():
    layout = Layout(SPACES["all"][0])
    rows = batch_space(SPACES["all"][0], 3)
    numbers, codes = layout.pack(rows.sample())
    assert (numbers.dtype, codes.dtype) == (np.float32, np.uint8)


@pytest.mark.parametrize("space", [Discrete(257), MultiDiscrete([3, 300]), Text(3)])
def test_what_cannot_be_seen_is_refused_by_name(space: Space[Any]):
    with pytest.raises(ConfigError, match="under 'odd'"):
        Layout(Dict({"odd": space}))


def test_a_normaliser_has_the_mean_and_spread_of_all_it_has_met():
    rng = np.random.default_rng(0)
    layout = Layout(Box(-np.inf, np.inf, (3,), np.float32))
    encoder = Encoder(layout, is_normalised=True)
    batches = [
        rng.normal(5.0, [1.0, 10.0, 1e-6], (size, 3)).astype(np.float32)
        for size in (1, 4, 0, 50, 7)
    ]
    for batch in batches:
        encoder.update_normaliser(torch.from_numpy(batch))
    whole = np.concatenate(batches)
    mean, spread = whole.mean(0, dtype=np.float64), whole.std(0, dtype=np.float64)
    np.testing.assert_allclose(encoder.mean.numpy(), mean, rtol=1e-5)
    np.testing.assert_allclose(encoder.spread.numpy(), np.maximum(spread, 1e-4), rtol=1e-4)
    got = encoder(layout.to_seen(whole, CPU)).numpy()
    expected = np.clip((whole - encoder.mean.numpy()) / encoder.spread.numpy(), -CLIP, CLIP)
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    far = encoder(layout.to_seen(np.full((1, 3), 1e6, dtype=np.float32), CPU))
    assert far.tolist() == [[CLIP] * 3]


def test_an_encoder_without_a_normaliser_has_no_weights():
    encoder = Encoder(Layout(SPACES["all"][0]))
    encoder.update_normaliser(torch.ones(3, 2))
    assert encoder.state_dict() == {}
