"""Choose the number of workers: a few envs are stepped for a moment, without and with workers.

Called by `make_vec` for ``num_workers="auto"``. The trial has its own envs, which are closed before
the real ones are made. It uses the same vector env and the same curriculum's tasks, in one batch
with next-step autoreset, but no curriculum learns from it.
"""

import logging
import multiprocessing
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from stepladder.cores import usable_cores
from stepladder.curricula.base import Curriculum
from stepladder.envs.types import Action, EnvFunction
from stepladder.envs.workers.arguments import WorkerSettings
from stepladder.envs.workers.vector_env import WorkerVectorEnv
from stepladder.errors import DeliveryError, SignalError
from stepladder.plans.record import RECORD_DTYPE, RecordArray
from stepladder.sync import SharedHost

logger = logging.getLogger("stepladder.envs")

ROUNDS = 5
SLICE_S = 0.015
"""How often, and how long, each way is tried in turn."""

BUDGET_S = 1.0
"""No further round is begun after this time: for slow envs a single step is enough."""

FEW, MANY = 4, 32
"""Most envs that are tried, if making one takes long and if it does not."""

QUICKLY_MADE_S = 0.005

CLEARLY = 0.97
"""Workers must need at most this share of the plain loop's time."""


def choose_num_workers(
    functions: Sequence[EnvFunction],
    curriculum: Curriculum | None,
    settings: WorkerSettings,
) -> int:
    """Return how many workers to use.

    Args:
        functions: One per env.
        curriculum: What the envs would play.
        settings: Of the vector env that is to be made.
    """
    num_envs, cores = len(functions), usable_cores()
    if multiprocessing.current_process().daemon:
        logger.info("A daemonic process may not start others, so all envs are stepped in it.")
        return 0
    if not settings.parent_steps:
        return min(max(1, cores - 1), num_envs)
    most = min(cores, num_envs) - 1
    if most < 1:
        return 0
    try:
        with _global_generators_kept():
            pays_off = _pays_off(functions, curriculum, settings, most)
    except (DeliveryError, SignalError):
        # Settings of the envs are wrong, in whichever process they are.
        raise
    except Exception as error:  # the envs' own, or they cannot be made in a worker
        logger.warning(
            "Envs could not be tried with workers (%s: %s), so all are stepped in this process. "
            "Pass num_workers=%d to use workers anyway.",
            type(error).__name__,
            " ".join(str(error).split()),
            most,
        )
        return 0
    return most if pays_off else 0


def _pays_off(
    functions: Sequence[EnvFunction],
    curriculum: Curriculum | None,
    settings: WorkerSettings,
    num_workers: int,
) -> bool:
    """Whether this number of workers steps all envs faster than a plain loop."""
    num_shared, num_plain = _numbers_to_try(functions, num_workers)
    trial = vars(replace(settings, autoreset_mode=AutoresetMode.NEXT_STEP, num_batches=1))
    with ExitStack() as stack:
        shared = stack.enter_context(
            WorkerVectorEnv(functions[:num_shared], num_workers=num_workers, **trial)
        )
        plain = stack.enter_context(WorkerVectorEnv(functions[:num_plain], num_workers=0, **trial))
        collect: Callable[[], object] | None = None
        if curriculum is not None:
            host = stack.enter_context(_trial_host(curriculum, num_shared + num_plain))
            clients = host.clients()
            shared.set_attr("curriculum_client", clients[:num_shared])
            plain.set_attr("curriculum_client", clients[num_shared:])
            collect = host.collect
        shared_s, plain_s = _time_each((shared, plain), collect)
    return shared_s / num_shared < CLEARLY * plain_s / num_plain


def _numbers_to_try(functions: Sequence[EnvFunction], num_workers: int) -> tuple[int, int]:
    """Return how many envs to try with workers and without: more if one is quickly made."""
    num_shared = min(len(functions), 2 * (num_workers + 1))
    took = 0.0
    for _ in range(2):
        # Twice: what is loaded with the first env takes time only once.
        began = time.perf_counter()
        functions[0]().close()
        took = time.perf_counter() - began
    if took < QUICKLY_MADE_S:
        num_shared = min(len(functions), max(MANY, num_shared))
        return num_shared, min(num_shared, MANY)
    return num_shared, min(num_shared, FEW)


def _time_each(
    vecs: Sequence[WorkerVectorEnv], collect: Callable[[], object] | None
) -> tuple[float, ...]:
    """Return the seconds that a step of each vector env takes; measured in turn."""
    for vec in vecs:
        vec.action_space.seed(0)
        vec.reset(seed=0)
    actions = [[vec.action_space.sample() for _ in range(16)] for vec in vecs]
    results: list[list[float]] = [[] for _ in vecs]
    began = time.perf_counter()
    for _ in range(ROUNDS + 1):
        for vec, some, result in zip(vecs, actions, results, strict=True):
            result.append(_time_slice(vec, some, collect))
        if time.perf_counter() - began > BUDGET_S:
            break
    # The first round is for whatever is slow only once, if there are others.
    return tuple(statistics.median(result[1:] or result) for result in results)


def _time_slice(
    vec: WorkerVectorEnv, actions: list[Action], collect: Callable[[], object] | None
) -> float:
    began = now = time.perf_counter()
    num_steps = 0
    while now - began < SLICE_S:
        vec.step(actions[num_steps % len(actions)])
        if collect is not None:
            collect()
        num_steps += 1
        now = time.perf_counter()
    return (now - began) / num_steps


@contextmanager
def _global_generators_kept() -> Iterator[None]:
    """Put the global generators back: the trial must not change envs that use them."""
    plain, arrays = random.getstate(), np.random.get_state()  # noqa: NPY002, used by foreign envs
    try:
        yield
    finally:
        random.setstate(plain)
        np.random.set_state(arrays)  # noqa: NPY002


class _TrialHost(SharedHost):
    """Lets envs draw from the real plan, and drops their records."""

    def collect(self, ended: bool = True, rows: Any = None) -> RecordArray:
        """Empty all mailboxes."""
        self.mails.heads["taken"] = self.mails.heads["posted"]
        return np.zeros(0, dtype=RECORD_DTYPE)


@contextmanager
def _trial_host(curriculum: Curriculum, num_envs: int) -> Iterator[_TrialHost]:
    """Open a channel that leaves the curriculum as it was."""
    next_episode = curriculum.next_episode
    host: _TrialHost | None = None
    try:
        host = _TrialHost(curriculum, num_envs)
        yield host
        host.close()
    except BaseException:
        if host is not None:
            host.close()
        raise
    finally:
        curriculum.next_episode = next_episode
