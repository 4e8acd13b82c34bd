"""EVERY CORE BUSY: the vector env that steps envs in this process and in workers at once.

Read `vector_env` first, then `coordinator`, then `group` (what is done) and `pool` and `worker` (by
whom).
"""

from stepladder.envs.workers.vector_env import WorkerVectorEnv

__all__ = ["WorkerVectorEnv"]
