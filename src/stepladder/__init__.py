"""Stepladder decides what a reinforcement-learning agent practises next.

One curriculum in the host process turns the results of all environments into a plan; every
environment draws its tasks from that plan. Start with `Auto`, or with `Staged` if you know the
order; wrap each env in `CurriculumEnv` and the vector env in `CurriculumVectorEnv`.

Names are imported when first used, so that ``import stepladder`` is quick and loads neither numba
nor anything heavier.
"""
# ruff: noqa: F401
# Reason: editors and type checkers read the imports below; at run time the table is read instead.

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepladder import errors
    from stepladder.curricula import (
        Auto,
        Curriculum,
        Frontier,
        Learnability,
        LearningProgress,
        LevelReplay,
        Phase,
        Phased,
        Record,
        Snapshot,
        Stage,
        Staged,
        Uniform,
    )
    from stepladder.diagnosis import doctor
    from stepladder.envs import CurriculumEnv, CurriculumVectorEnv, make_vec
    from stepladder.simulator import compare, simulate
    from stepladder.tasks import FolderSource, ListSource, ParameterSource, Task, UnionSource
    from stepladder.training import LoopRun, TrainedPolicy, load_policy, run, train

__version__ = "0.2.0"

_HOMES = {
    name: home
    for home, names in {
        "stepladder.curricula": (
            "Auto Curriculum Frontier Learnability LearningProgress LevelReplay Phase Phased "
            "Record Snapshot Stage Staged Uniform"
        ),
        "stepladder.diagnosis": "doctor",
        "stepladder.envs": "CurriculumEnv CurriculumVectorEnv make_vec",
        "stepladder.simulator": "compare simulate",
        "stepladder.tasks": "FolderSource ListSource ParameterSource Task UnionSource",
        "stepladder.training": "LoopRun TrainedPolicy load_policy run train",
    }.items()
    for name in names.split()
}
"""Module of each public name."""

__all__ = sorted([*_HOMES, "errors"])  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "errors":
        return import_module("stepladder.errors")
    raise AttributeError(f"module 'stepladder' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
