"""EVERY CORE BUSY: the vector env that steps envs in this process and in workers at once.

Read `vector_env` first, then `parent.coordinator`, then `group` (what a process does with its
envs), `parent.worker_pool` and `child.worker`.
"""

from stepladder.envs.workers.vector_env import WorkerVectorEnv

__all__ = ["WorkerVectorEnv"]
