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

from stepladder.lazy import lazy_names

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
    "stepladder.curricula": (
        "Auto Curriculum Frontier Learnability LearningProgress LevelReplay Phase Phased "
        "Record Snapshot Stage Staged Uniform"
    ),
    "stepladder.diagnosis": "doctor",
    "stepladder.envs": "CurriculumEnv CurriculumVectorEnv make_vec",
    "stepladder.simulator": "compare simulate",
    "stepladder.tasks": "FolderSource ListSource ParameterSource Task UnionSource",
    "stepladder.training": "LoopRun TrainedPolicy load_policy run train",
}
"""Public names by the package that has them."""

__all__ = sorted(  # pyright: ignore[reportUnsupportedDunderAll]
    ["errors", *(name for names in _HOMES.values() for name in names.split())]
)

_get, _ = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    return import_module("stepladder.errors") if name == "errors" else _get(name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
