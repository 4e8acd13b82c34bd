"""WHERE A TASK IS PLAYED: a wrapper for one env, our own vector env, a wrapper for others.

What needs a further package is imported from its own module: `stepladder.envs.sb3`.
"""

from typing import TYPE_CHECKING

from stepladder.lazy import lazy_names

if TYPE_CHECKING:
    from stepladder.envs.agent_rows import AgentRows
    from stepladder.envs.curriculum_env import CurriculumEnv
    from stepladder.envs.make import make_vec
    from stepladder.envs.parallel import ParallelAsEnv
    from stepladder.envs.tracking.score_reporter import ScoreReporter
    from stepladder.envs.two_player import AgainstOpponent, BothPlayers
    from stepladder.envs.vector import CurriculumVectorEnv
    from stepladder.envs.workers import WorkerVectorEnv

__all__ = [
    "AgainstOpponent",
    "AgentRows",
    "BothPlayers",
    "CurriculumEnv",
    "CurriculumVectorEnv",
    "ParallelAsEnv",
    "ScoreReporter",
    "WorkerVectorEnv",
    "make_vec",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "stepladder.envs.agent_rows": "AgentRows",
        "stepladder.envs.curriculum_env": "CurriculumEnv",
        "stepladder.envs.make": "make_vec",
        "stepladder.envs.parallel": "ParallelAsEnv",
        "stepladder.envs.tracking.score_reporter": "ScoreReporter",
        "stepladder.envs.two_player": "AgainstOpponent BothPlayers",
        "stepladder.envs.vector": "CurriculumVectorEnv",
        "stepladder.envs.workers": "WorkerVectorEnv",
    },
)
