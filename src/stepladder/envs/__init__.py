"""WHERE A TASK IS PLAYED: a wrapper for one env, and one for each kind of vector env.

`CurriculumVecEnvWrapper` is in `stepladder.envs.sb3`, which needs Stable-Baselines3.
"""

from stepladder.envs.curriculum_env import CurriculumEnv
from stepladder.envs.vector import CurriculumVectorEnv

__all__ = ["CurriculumEnv", "CurriculumVectorEnv"]
