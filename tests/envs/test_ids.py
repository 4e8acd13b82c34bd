"""Which env a text means: ids, ids of modules, functions of modules, and what is none of these."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

from stepladder.envs import make_vec
from stepladder.envs.ids import UnknownEnvError, find_env, module_of
from stepladder.errors import ConfigError

MODULE = """
import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv

class Pole(CartPoleEnv):
    def __init__(self, gravity=9.8, render_mode=None):
        super().__init__(render_mode=render_mode)
        self.gravity = gravity

gym.register("tests/Pole-v1", Pole, max_episode_steps=9)
gym.register("tests/Pole-v3", Pole, max_episode_steps=9)
gym.register("TestsOther-v0", Pole)

def TestsOther(gravity=1.0):
    return Pole(gravity)

number = 3
"""


@pytest.fixture
def module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[str]:
    name = f"poles_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    for env_id in ("tests/Pole-v1", "tests/Pole-v3", "TestsOther-v0"):
        gym.registry.pop(env_id, None)


def test_an_id_may_name_the_module_that_registers_it(module: str) -> None:
    with pytest.raises(UnknownEnvError):
        find_env("tests/Pole-v1")
    found = find_env(f"{module}:tests/Pole-v1")
    assert isinstance(found, EnvSpec)
    assert (found.id, found.max_episode_steps) == ("tests/Pole-v1", 9)
    assert find_env("tests/Pole-v1") is found


def test_without_a_version_the_newest_is_meant_and_said(
    module: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        found = find_env(f"{module}:tests/Pole")
    assert isinstance(found, EnvSpec)
    assert found.id == "tests/Pole-v3"
    assert "'tests/Pole' has no version; 'tests/Pole-v3' is used." in caplog.text


def test_a_function_of_a_module_comes_before_a_guess_of_the_version(module: str) -> None:
    found = find_env(f"{module}:TestsOther")
    assert not isinstance(found, EnvSpec)
    assert found(gravity=2.0).unwrapped.gravity == 2.0


@pytest.mark.parametrize("named", ["tests/Pole-v3", "Pole", "TestsOther"])
def test_make_vec_takes_every_form_with_arguments(module: str, named: str) -> None:
    vec = make_vec(f"{module}:{named}", 2, num_workers=0, env_kwargs={"gravity": 4.5})
    assert vec.get_attr("gravity") == (4.5, 4.5)
    vec.close()


@pytest.mark.processes
@pytest.mark.timeout(60, method="signal")
@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_workers_find_an_env_that_was_registered_here(module: str, start_method: Any) -> None:
    vec = make_vec(f"{module}:tests/Pole-v1", 2, num_workers=1, start_method=start_method)
    vec.reset(seed=0)
    vec.step(np.zeros(2, dtype=int))
    vec.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Nope-v1", "the env 'Nope-v1' cannot be found: Environment `Nope` doesn't exist"),
        ("CartPole-v99", "the env 'CartPole-v99' cannot be found: Environment version `v99`"),
        ("odd name", "cannot be found: Malformed environment ID: odd name"),
        ("nowhere:CartPole-v1", "the module 'nowhere' cannot be imported: No module named"),
        ("no/module:CartPole-v1", "'no/module' is not the name of a module"),
        (":CartPole-v1", "'' is not the name of a module"),
        ("MODULE:Nope-v1", "the env 'MODULE:Nope-v1' cannot be found: Environment `Nope`"),
        ("MODULE:number", "MODULE has no function 'number', nor does it register an env"),
        ("MODULE:", "the env 'MODULE:' cannot be found"),
        ("MODULE:a:b", "the env 'MODULE:a:b' cannot be found"),
    ],
)
def test_what_is_none_of_these_is_refused_in_one_line(module: str, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_vec(text.replace("MODULE", module), 1)
    assert said.replace("MODULE", module) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_who_knows_gymnasium_catches_gymnasiums_error() -> None:
    with pytest.raises(gym.error.UnregisteredEnv):
        make_vec("Nope-v1", 1)


def test_the_module_is_told_without_importing_it() -> None:
    assert module_of("runs.evil.payload:X-v0") == "runs.evil.payload"
    assert module_of("stepladder/Hockey-v0") is None
