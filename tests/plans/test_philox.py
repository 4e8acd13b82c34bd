"""The counter-based generator: published answers, range, independence of its coordinates."""

import numpy as np
import pytest

from stepladder.compiled import compiled
from stepladder.plans.philox import DRAW_STREAM, SETTING_STREAM, philox, uniform_and_seed

ONES = 0xFFFFFFFF

# From the authors' kat_vectors: counter words, key words, result of Philox4x32-10.
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN_ANSWERS)
def test_published_known_answers(
    counter: tuple[int, ...], key: tuple[int, ...], words: tuple[int, ...]
):
    assert philox(*key, *counter) == words


def test_one_bit_of_the_counter_changes_half_of_the_bits():
    first, second = philox(1, 2, 3, 4, 5, 6), philox(1, 2, 3, 4, 5, 7)
    changed = sum(bin(int(a) ^ int(b)).count("1") for a, b in zip(first, second, strict=True))
    assert 40 < changed < 88


@compiled
def fill(
    uniforms: np.ndarray, seeds: np.ndarray, seed: int, env: int, first: int, stream: int
) -> None:
    for index in range(len(uniforms)):
        uniforms[index], seeds[index] = uniform_and_seed(seed, env, first + index, stream)


def draws(
    count: int = 50_000, seed: int = 0, env: int = 0, first: int = 0, stream: int = DRAW_STREAM
) -> tuple[np.ndarray, np.ndarray]:
    uniforms, seeds = np.empty(count), np.empty(count, dtype=np.int64)
    fill(uniforms, seeds, seed, env, first, stream)
    return uniforms, seeds


def test_uniform_and_seed_are_put_together_from_the_four_words():
    # Of the zeros' answer: 0x6627E8D5 >> 5 and 0xE169C58D >> 6 make 53 bits, the rest 63.
    uniform, seed = uniform_and_seed(0, 0, 0, 0)
    assert uniform == ((0x6627E8D5 >> 5) * 2**26 + (0xE169C58D >> 6)) / 2**53
    assert seed == (0xBC57AC4C9B00DBD8) >> 1


def test_numbers_lie_in_their_range_and_are_uniform():
    uniforms, seeds = draws()
    assert uniforms.min() >= 0.0
    assert uniforms.max() < 1.0
    counts = np.histogram(uniforms, bins=100, range=(0.0, 1.0))[0]
    # 99 degrees of freedom: mean 99, standard deviation 14.
    assert 55 < np.sum((counts - 500.0) ** 2 / 500.0) < 155
    assert seeds.min() >= 0
    assert len(np.unique(seeds)) == len(seeds)
    assert abs(np.mean(seeds >= 2**62) - 0.5) < 0.01


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"seed": 2**32},
        {"seed": 2**62},
        {"env": 1},
        {"env": -1},
        {"first": 2**32},
        {"stream": SETTING_STREAM},
    ],
)
def test_every_coordinate_gives_other_numbers(other: dict[str, int]):
    one, one_seeds = draws()
    two, two_seeds = draws(**other)
    assert abs(np.corrcoef(one, two)[0, 1]) < 4.5 / np.sqrt(len(one))
    assert not set(one_seeds.tolist()) & set(two_seeds.tolist())


def test_episodes_of_an_env_are_independent_of_each_other():
    uniforms, seeds = draws()
    bound = 4.5 / np.sqrt(len(uniforms))
    for lag in (1, 2, 7, 64):
        assert abs(np.corrcoef(uniforms[:-lag], uniforms[lag:])[0, 1]) < bound
    assert abs(np.corrcoef(uniforms, seeds)[0, 1]) < bound


def test_the_same_coordinates_give_the_same_numbers_whoever_asks():
    uniforms, seeds = draws(100, seed=5, env=3, first=10)
    for index in (0, 99, 50):
        assert uniform_and_seed(5, 3, 10 + index, DRAW_STREAM) == (uniforms[index], seeds[index])
