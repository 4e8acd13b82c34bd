"""Stepladder decides what a reinforcement-learning agent practises next.

One curriculum in the host process turns the results of all environments into a plan; every
environment draws its tasks from that plan. Start with `Staged` or `LearningProgress`, wrap each
env in `CurriculumEnv` and the vector env in `CurriculumVectorEnv`.

Names are imported when first used, so that ``import stepladder`` is quick and loads neither numba
nor anything heavier.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepladder import errors
    from stepladder.curricula import (
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
    from stepladder.envs import CurriculumEnv, CurriculumVectorEnv, make_vec
    from stepladder.simulator import compare, simulate
    from stepladder.tasks import FolderSource, ListSource, ParameterSource, Task, UnionSource
    from stepladder.training import train

__version__ = "0.1.0"

_HOMES = {
    "Curriculum": "stepladder.curricula",
    "CurriculumEnv": "stepladder.envs",
    "CurriculumVectorEnv": "stepladder.envs",
    "FolderSource": "stepladder.tasks",
    "Frontier": "stepladder.curricula",
    "Learnability": "stepladder.curricula",
    "LearningProgress": "stepladder.curricula",
    "LevelReplay": "stepladder.curricula",
    "ListSource": "stepladder.tasks",
    "ParameterSource": "stepladder.tasks",
    "Phase": "stepladder.curricula",
    "Phased": "stepladder.curricula",
    "Record": "stepladder.curricula",
    "Snapshot": "stepladder.curricula",
    "Stage": "stepladder.curricula",
    "Staged": "stepladder.curricula",
    "Task": "stepladder.tasks",
    "Uniform": "stepladder.curricula",
    "UnionSource": "stepladder.tasks",
    "compare": "stepladder.simulator",
    "make_vec": "stepladder.envs",
    "simulate": "stepladder.simulator",
    "train": "stepladder.training",
}

__all__ = [
    "Curriculum",
    "CurriculumEnv",
    "CurriculumVectorEnv",
    "FolderSource",
    "Frontier",
    "Learnability",
    "LearningProgress",
    "LevelReplay",
    "ListSource",
    "ParameterSource",
    "Phase",
    "Phased",
    "Record",
    "Snapshot",
    "Stage",
    "Staged",
    "Task",
    "Uniform",
    "UnionSource",
    "compare",
    "errors",
    "make_vec",
    "simulate",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "errors":
        return import_module("stepladder.errors")
    raise AttributeError(f"module 'stepladder' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
