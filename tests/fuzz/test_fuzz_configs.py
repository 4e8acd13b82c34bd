"""Thousands of wrong configs: each is refused with a reason, or read and written back alike."""

import random
from typing import Any

import pytest

from fuzz.fuzz_configs import NASTY, get, outcome, places, put, run, run_sweeps, targets
from stepladder.errors import ConfigError
from stepladder.training.config import TrainingConfig, load_config

TARGETS = {target.name: target for target in targets()}

CHEAP = [name for name in NASTY if name not in ("a long text", "deep list", "deep object", "many")]

KEPT_SEEDS = (0, 1, 2)
"""Seeds of random changes; one that has once found something stays here."""

KEPT_CASES: list[tuple[str, tuple[Any, ...], str]] = [
    # Each has once ended in a traceback, in a crash of NumPy, or in another config.
    ("preset ledge", ("num_envs",), "10**30"),
    ("preset ledge", ("num_envs",), "10**5000"),
    ("preset ledge", (), "deep list"),
    ("preset ledge", (), "a long text"),
    ("preset ledge", ("env",), "itself"),
    ("preset ledge", ("agent", "learning_rate"), "10**400"),
    ("preset ledge", ("agent", "entropy_coef"), "nan"),
    ("preset ledge", ("curriculum", "confidence_z"), "1e+300"),
    ("preset ledge", ("curriculum", "confidence_z"), "10**400"),
    ("preset ledge", ("curriculum", "window_episodes"), "1000000000000000"),
    ("preset ledge", ("curriculum", "stages", 0, "min_episodes"), "10**400"),
    ("preset ledge", ("source", "stages"), "a long text"),
    ("preset hockey-sac", ("curriculum", "phases", 0, "settings", "opponent"), "a ramp"),
    ("preset hockey-sac", ("curriculum", "phases", 0, "settings", "opponent"), "a mixture"),
    ("preset hockey-sac", ("curriculum", "phases", 0, "settings"), "{1: 2}"),
    ("preset hockey-sac", ("curriculum", "phases", 0, "mixture"), "a ramp"),
    ("preset hockey-sac", ("tasks", 0, "seed"), "a long text"),
    ("preset ledge", ("tasks",), "a long text"),
    ("preset ledge", ("tasks",), r"'\ud800'"),
    ("preset ledge", ("deliver",), "0"),
    ("preset ledge", ("wrappers",), "[1, 'a']"),
    ("StagedConfig", ("check_interval_episodes",), "18446744073709551616"),
    ("MixtureConfig", ("weights",), "{1: 2}"),
    ("MixtureConfig", ("weights", "a"), "10**40"),
    ("PhasedConfig", ("phases", 0, "mixture"), "{}"),
    ("PhasedConfig", ("phases", 0, "mixture", "a"), "-1"),
    ("PhasedConfig", ("phases", 1, "curriculum"), "None"),
    ("PhasedConfig", ("phases", 1, "settings", "z", "end"), "10**40"),
    ("example curriculum_simple.json", ("training", "checkpoint_save_freq"), "10**400"),
    ("example curriculum_simple.json", ("agent", "hyperparameters", "eps_min"), "1e-320"),
    ("example curriculum_simple.json", ("agent", "hyperparameters", "action_fineness"), "1e+38"),
]


@pytest.mark.parametrize(("name", "path", "value"), KEPT_CASES)
def test_what_once_went_wrong_is_refused_or_read(
    name: str, path: tuple[Any, ...], value: str
) -> None:
    target = TARGETS[name]
    outcome(target, put(target.document, path, NASTY[value]()))


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_right_is_read_written_and_built(name: str) -> None:
    assert outcome(TARGETS[name], TARGETS[name].document) == "accepted"


@pytest.mark.parametrize("name", TARGETS)
def test_one_wrong_value_anywhere_is_refused_or_read(name: str) -> None:
    # Every place, each with one of the values: which one depends on the place alone.
    target = TARGETS[name]
    rng = random.Random(name)
    for path in places(target.document):
        for value in rng.sample(CHEAP, 1):
            outcome(target, put(target.document, path, NASTY[value]()))


@pytest.mark.parametrize("seed", KEPT_SEEDS)
def test_random_changes_are_refused_or_read(seed: int) -> None:
    found = run(seed, count=300)
    assert found["refused"] > 100


def test_texts_of_sweeps_are_refused_or_read() -> None:
    found = run_sweeps(0, 150)
    assert found["refused"] > 50


def test_everything_that_is_wrong_is_listed_with_its_path() -> None:
    document = TARGETS["preset hockey-sac"].document
    for path, value in (
        (("num_envs",), 10**30),
        (("reward_scale",), float("nan")),
        (("agent", "gamma"), float("inf")),
        (("curriculum", "phases", 0, "settings", "opponent", "weights", 0), 10**40),
    ):
        document = put(document, path, value)
        assert get(document, path) is value
    with pytest.raises(ConfigError) as caught:
        load_config(document)
    lines = str(caught.value).splitlines()
    assert lines[0] == "4 problems in the config; nothing was started:"
    assert lines[1:] == [
        "  num_envs: must fit into 64 bits; got 1000000000000000000000000000000. Give a smaller "
        "number.",
        "  curriculum.phases[0].settings.opponent.weights[0]: must fit into 64 bits; got an "
        "integer of 133 bits. Give a smaller number.",
        "  agent.gamma: is inf; numbers must be finite. Replace it or leave it out.",
        "  reward_scale: is nan; numbers must be finite. Replace it or leave it out.",
    ]


def test_absurd_sizes_are_refused_in_python_too() -> None:
    sizes: tuple[Any, ...] = (10**30, 10**400, 10**5000, 2**20 + 1, True, 1.0, "8", None)
    for num_envs in sizes:
        with pytest.raises(ConfigError, match="num_envs must be"):
            TrainingConfig(num_envs=num_envs)
