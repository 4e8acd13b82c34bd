"""Pink noise: one process per env, of unit variance, whose power falls as one over frequency."""

import numpy as np
import pytest

from stepladder.agents.sac.noise import PinkNoise, pink_series


def made(num_envs: int = 4, num_steps: int = 16, seed: int = 0) -> PinkNoise:
    """Make noise."""
    return PinkNoise(num_envs, 2, num_steps, np.random.default_rng(seed))


@pytest.mark.parametrize("num_steps", [2, 3, 64, 101])
def test_noise_has_unit_variance_and_no_mean(num_steps: int):
    series = pink_series(4_000, num_steps, 2, np.random.default_rng(1))
    assert series.shape == (4_000, num_steps, 2)
    assert series.var() == pytest.approx(1.0, abs=0.05)
    assert series.mean() == pytest.approx(0.0, abs=0.05)
    # At every step alike.
    np.testing.assert_allclose(series.var(axis=(0, 2)), 1.0, atol=0.12)


def test_power_falls_as_one_over_frequency():
    series = pink_series(500, 256, 1, np.random.default_rng(2))[..., 0]
    power = (np.abs(np.fft.rfft(series, axis=1)) ** 2).mean(0)[1:]
    slope, _ = np.polyfit(np.log(np.arange(1, len(power) + 1)), np.log(power), 1)
    assert slope == pytest.approx(-1.0, abs=0.05)


def test_envs_and_dimensions_are_independent():
    series = pink_series(2_000, 8, 2, np.random.default_rng(3))
    first, second = series[:, 4, 0], series[:, 4, 1]
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.1
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.1
    # In time they are not.
    assert np.corrcoef(series[:, 4, 0], series[:, 5, 0])[0, 1] > 0.3


def test_only_the_env_that_ends_begins_anew():
    noise, undisturbed = made(), made()
    for _ in range(3):
        noise.draw()
        undisturbed.draw()
    noise.begin(np.array([False, True, False, False]))
    differs = np.zeros(4, dtype=bool)
    for _ in range(8):
        differs |= (noise.draw() != undisturbed.draw()).any(1)
    assert differs.tolist() == [False, True, False, False]


def test_a_process_begins_anew_by_itself_when_it_is_over():
    noise = made(num_envs=2, num_steps=4)
    noise.draw()
    noise.begin(np.array([True, False]))
    drawn = np.stack([noise.draw() for _ in range(12)])
    # The envs' clocks now differ by one; none repeats itself.
    for env in range(2):
        assert len(set(drawn[:, env, 0].tolist())) == 12


def test_noise_comes_back_as_it_was():
    noise = made()
    for _ in range(5):
        noise.draw()
    other = made(seed=9)
    other.load_state_dict(noise.state_dict())
    other._rng.bit_generator.state = noise._rng.bit_generator.state
    for _ in range(30):
        assert np.array_equal(noise.draw(), other.draw())


def test_beginning_nowhere_draws_nothing():
    noise = made()
    before = noise._rng.bit_generator.state
    noise.begin(np.zeros(4, dtype=bool))
    assert noise._rng.bit_generator.state == before
