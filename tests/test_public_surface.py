"""The one public surface: what is there, and what importing it does not do."""

import importlib
import pkgutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import stepladder

HEAVY = ("torch", "ray", "matplotlib", "stable_baselines3", "numba", "gymnasium")
SOURCE = Path(stepladder.__file__).parents[1]


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process that finds the library where we found it."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env={"PYTHONPATH": str(SOURCE), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=80,
        check=False,
    )


def loaded_by(code: str) -> set[str]:
    """Return which of the heavy libraries some code loads."""
    done = run(
        f"""
        import sys
        {code}
        print(*(name for name in {HEAVY!r} if name in sys.modules))
        """
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def modules() -> list[str]:
    return [
        info.name for info in pkgutil.walk_packages([str(SOURCE / "stepladder")], "stepladder.")
    ]


# What is there.


def test_every_public_name_can_be_imported() -> None:
    for name in stepladder.__all__:
        assert getattr(stepladder, name) is not None
        scope: dict[str, object] = {}
        exec(f"from stepladder import {name}", scope)
        assert scope[name] is getattr(stepladder, name)


def test_all_is_sorted_and_names_everything_that_can_be_had() -> None:
    assert stepladder.__all__ == sorted(stepladder.__all__)
    names = [name for offered in stepladder._HOMES.values() for name in offered.split()]
    assert sorted([*names, "errors"]) == stepladder.__all__


def test_a_public_name_is_the_one_of_its_home() -> None:
    for home, names in stepladder._HOMES.items():
        module = importlib.import_module(home)
        for name in names.split():
            assert getattr(stepladder, name) is getattr(module, name)
            assert name in module.__all__


def test_every_package_offers_what_it_says() -> None:
    others = ("agents", "errors", "games", "runs", "sync", "sweeps")
    for home in {*stepladder._HOMES, *(f"stepladder.{name}" for name in others)}:
        module = importlib.import_module(home)
        assert len(set(module.__all__)) == len(module.__all__)
        for name in module.__all__:
            assert hasattr(module, name), f"{home}.{name}"
            assert name in dir(module)


def test_dir_shows_the_public_names() -> None:
    assert dir(stepladder) == sorted([*stepladder.__all__, "__version__"])
    assert stepladder.__version__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'stepladder' has no attribute 'Curiculum'"):
        _ = stepladder.Curiculum  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="Curiculum"):
        exec("from stepladder import Curiculum")
    assert not hasattr(stepladder, "CurriculumVecEnvWrapper")


def test_every_error_is_one_of_ours() -> None:
    from stepladder import errors

    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.StepladderError)
    raised = {name for name in vars(errors) if isinstance(getattr(errors, name), type)}
    assert raised == set(errors.__all__)


# What importing does not do.


@pytest.mark.processes
@pytest.mark.timeout(90, method="signal")
def test_importing_the_library_loads_nothing_heavy_and_says_nothing() -> None:
    assert loaded_by("import stepladder") == set()
    done = run("import stepladder; dir(stepladder)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.processes
@pytest.mark.timeout(90, method="signal")
def test_tasks_and_errors_need_nothing_heavy_either() -> None:
    assert loaded_by("from stepladder import Task, ListSource, errors; Task('a').key") == set()


@pytest.mark.processes
@pytest.mark.timeout(90, method="signal")
def test_curricula_need_numba_and_no_env() -> None:
    assert loaded_by("from stepladder import Staged, LearningProgress, Phased") == {"numba"}


LIGHT = (
    "stepladder.agents.config",
    "stepladder.training.config",
    "stepladder.training.evaluation",
    "stepladder.training.loop_run",
    "stepladder.training.loop_starting",
    "stepladder.training.presets",
    "stepladder.training.published.config",
)
"""Modules beside the learners that are read, checked and printed without torch."""


@pytest.mark.processes
@pytest.mark.timeout(90, method="signal")
def test_nothing_but_learners_and_adapters_loads_torch() -> None:
    adapters = (
        "stepladder.cli.output.learnt",
        # RLlib itself loads torch.
        "stepladder.cluster.rllib.adding",
        "stepladder.cluster.rllib.algorithm",
        "stepladder.cluster.rllib.env_maker",
        "stepladder.cluster.rllib.many_agents",
        "stepladder.envs.sb3",
        "stepladder.envs.sb3_callback",
        "stepladder.simulator.puffer",
    )
    learners = ("stepladder.agents.", "stepladder.training.")
    names = [
        name
        for name in modules()
        if name not in adapters and (name in LIGHT or not name.startswith(learners))
    ]
    assert len(names) > 30
    assert set(LIGHT) <= set(names)
    code = f"""
        import importlib, sys
        for name in {names!r}:
            importlib.import_module(name)
            assert "torch" not in sys.modules, name
            assert "stable_baselines3" not in sys.modules, name
    """
    done = run(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.processes
@pytest.mark.timeout(90, method="signal")
def test_importing_leaves_global_state_alone() -> None:
    done = run(
        """
        import logging, random, signal, sys, threading, warnings
        import gymnasium, numba, numpy
        before = (
            list(warnings.filters), random.getstate(), numpy.random.get_state()[1].tolist(),
            logging.root.level, list(logging.root.handlers), threading.active_count(),
            signal.getsignal(signal.SIGCHLD), sys.path[:],
        )
        import stepladder, stepladder.envs, stepladder.sync, stepladder.curricula
        after = (
            list(warnings.filters), random.getstate(), numpy.random.get_state()[1].tolist(),
            logging.root.level, list(logging.root.handlers), threading.active_count(),
            signal.getsignal(signal.SIGCHLD), sys.path[:],
        )
        assert after == before
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


WITHOUT_EXTRAS = """
    import sys
    for name in ("stable_baselines3", "torch", "ray", "matplotlib"):
        sys.modules[name] = None
    """


@pytest.mark.processes
@pytest.mark.timeout(90, method="signal")
def test_the_core_works_where_stable_baselines_and_torch_are_not_installed() -> None:
    done = run(
        WITHOUT_EXTRAS
        + """
    import gymnasium as gym
    import numpy as np
    from gymnasium.vector import SyncVectorEnv
    from stepladder import CurriculumEnv, CurriculumVectorEnv, Task, Uniform, Staged

    def deliver(env, task):
        env.unwrapped.length = task.params["pole"]

    def make():
        return CurriculumEnv(gym.make("CartPole-v1"), deliver=deliver, return_threshold=20.0)

    tasks = [Task(f"pole{i}", "easy", {"pole": 0.5 + 0.1 * i}) for i in range(3)]
    curriculum = Staged(tasks, stages=("easy",))
    venv = CurriculumVectorEnv(SyncVectorEnv([make] * 2), curriculum)
    venv.reset(seed=1)
    for _ in range(60):
        venv.step(np.ones(2, dtype=np.int64))
    assert curriculum.num_observed > 5
    venv.close()
    """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.processes
@pytest.mark.timeout(90, method="signal")
def test_the_adapter_alone_says_that_stable_baselines_is_missing() -> None:
    done = run(WITHOUT_EXTRAS + "\n    import stepladder.envs.sb3")
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr
    assert "stable_baselines3" in done.stderr
