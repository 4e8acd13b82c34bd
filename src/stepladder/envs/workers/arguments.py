"""Check what a user passes to a vector env, before an env is made, stepped or reset with it.

Used by `make_vec`, `vector_env` and `coordinator`.
"""

import multiprocessing
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, TypeGuard

import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_differing_spaces, batch_space

from stepladder.arrays import Flags
from stepladder.configs.checks import is_integer, is_number, require_integer, require_kind
from stepladder.envs.types import GymSpace
from stepladder.envs.workers.env_functions import EnvDescription
from stepladder.envs.workers.gymnasium_errors import DifferentSpacesError, WrongTypeError
from stepladder.envs.workers.main_program import exit_if_imported_by_worker
from stepladder.errors import ConfigError

StartMethod = Literal["fork", "forkserver", "spawn"]

OnDeath = Literal["restart", "raise"]
"""What to do when a worker has died."""

ObservationMode = Literal["same", "different"] | tuple[GymSpace, GymSpace]
"""What the observation spaces of envs have in common; or the batched and the single space."""


class WorkerArguments(TypedDict, total=False):
    """The fields of `WorkerSettings`, as keyword arguments."""

    autoreset_mode: AutoresetMode | str
    num_batches: int
    parent_steps: bool
    start_method: StartMethod | None
    on_worker_death: OnDeath
    timeout_s: float | None
    copy: bool
    observation_mode: ObservationMode


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """Settings of a `WorkerVectorEnv`, except the number of workers; `make_vec` explains them."""

    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP
    num_batches: int = 1
    parent_steps: bool = True
    start_method: StartMethod | None = None
    on_worker_death: OnDeath = "restart"
    timeout_s: float | None = 300.0
    copy: bool = True
    observation_mode: ObservationMode = "same"

    def __post_init__(self) -> None:
        checked_autoreset_mode(self.autoreset_mode)
        require_integer("num_batches", self.num_batches, 1)
        require_kind("parent_steps", self.parent_steps, bool, fix="Pass True or False.")
        require_kind("copy", self.copy, bool, fix="Pass True or False.")
        mode, timeout_s, method = self.observation_mode, self.timeout_s, self.start_method
        if mode not in ("same", "different") and not _are_spaces(mode):
            raise ConfigError(
                "observation_mode must be 'same', 'different' or a tuple of the batched and the "
                f"single observation space; got {mode!r}."
            )
        known = multiprocessing.get_all_start_methods()
        if method is not None and method not in known:
            raise ConfigError(
                f"start_method must be None or one of {', '.join(map(repr, known))}; got "
                f"{method!r}."
            )
        if self.on_worker_death not in ("restart", "raise"):
            raise ConfigError(
                f"on_worker_death must be 'restart' or 'raise'; got {self.on_worker_death!r}."
            )
        if timeout_s is not None and not (is_number(timeout_s) and timeout_s > 0):
            raise ConfigError(
                "timeout_s must be a positive number of seconds, or None for no limit; got "
                f"{timeout_s!r}."
            )

    def check_counts(self, num_envs: int, num_workers: int | Literal["auto"]) -> None:
        """Raise unless these settings suit so many envs and workers."""
        if num_workers != "auto":
            require_integer("num_workers", num_workers, 0)
        if not self.parent_steps and num_workers == 0:
            raise ConfigError(
                "parent_steps=False leaves all envs to workers, and num_workers is 0. Pass 1 or "
                "more, or 'auto'."
            )
        if self.num_batches > num_envs:
            raise ConfigError(
                f"num_batches is {self.num_batches} and there are only {num_envs} envs. Make more "
                "envs, or fewer batches."
            )
        if num_workers == 0:
            return
        exit_if_imported_by_worker()
        if num_workers != "auto" and multiprocessing.current_process().daemon:
            raise ConfigError(
                f"num_workers is {num_workers}, but this process is daemonic and may not start "
                "others. Pass num_workers=0, or start this process with daemon=False."
            )


def checked_autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Return the mode that was named."""
    try:
        return AutoresetMode(mode)
    except ValueError:
        names = ", ".join(repr(known.value) for known in AutoresetMode)
        raise ConfigError(f"autoreset_mode must be one of {names}; got {mode!r}.") from None


def _are_spaces(value: object) -> TypeGuard[tuple[GymSpace, GymSpace]]:
    """Whether a value is a tuple of two spaces."""
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(part, spaces.Space) for part in value)
    )


def check_indices(env_indices: Sequence[int], num_envs: int) -> None:
    """Raise unless there are envs with these indices."""
    for env_index in env_indices:
        if not 0 <= env_index < num_envs:
            raise ConfigError(
                f"env {env_index} does not exist; there are envs 0 to {num_envs - 1}."
            )


def checked_options(options: Any, num_envs: int) -> tuple[Any, Flags]:
    """Return the options of a reset without its mask, and the mask of the envs to reset."""
    every_env = np.ones(num_envs, dtype=np.bool_)
    if options is None:
        return None, every_env
    if isinstance(options, list | tuple):
        if len(options) != num_envs:
            raise ConfigError(
                f"options has {len(options)} entries and there are {num_envs} envs. Give one per "
                "env, or a single dict."
            )
        return list(options), every_env
    if not isinstance(options, Mapping):
        raise ConfigError(f"options must be a dict, or one per env; got {options!r}.")
    options = dict(options)
    mask = checked_reset_mask(options.pop("reset_mask", every_env), num_envs)
    return options or None, mask


def checked_seeds(seed: Any, num_envs: int) -> list[int | None] | None:
    """Return one seed per env; to an integer, each env's index is added."""
    if seed is None:
        return None
    if is_integer(seed):
        return [int(seed) + env_index for env_index in range(num_envs)]
    if not isinstance(seed, Iterable) or not all(one is None or is_integer(one) for one in seed):
        raise ConfigError(
            f"seed must be an integer, or one per env (None is no seed); got {seed!r}."
        )
    seeds = [None if one is None else int(one) for one in seed]
    if len(seeds) != num_envs:
        raise ConfigError(
            f"seed has {len(seeds)} entries and there are {num_envs} envs. Give one per env, or a "
            "single number."
        )
    return seeds


def checked_reset_mask(mask: Any, num_envs: int) -> Flags:
    """Return the mask of the envs to reset."""
    is_array = isinstance(mask, np.ndarray)
    if not is_array or mask.dtype != np.bool_ or mask.shape != (num_envs,):
        what = f"a {type(mask).__name__}"
        if is_array:
            what = f"an array of shape {mask.shape} and type {mask.dtype}"
        kind = ConfigError if is_array and mask.dtype == np.bool_ else WrongTypeError
        raise kind(
            f"options['reset_mask'] must be an array of {num_envs} bools; got {what}. Use "
            "terminated | truncated."
        )
    if not mask.any():
        raise ConfigError(
            "options['reset_mask'] is False for every env, so there is nothing to reset. Reset "
            "only when one has ended."
        )
    return mask


def batched_spaces(
    descriptions: Sequence[EnvDescription], observation_mode: ObservationMode
) -> tuple[GymSpace, GymSpace, GymSpace]:
    """Return single and batched observation space and the batched action space, if envs fit.

    Args:
        descriptions: What each env is, in env order.
        observation_mode: Whether observation spaces must be the ``same``, or may be ``different``
            in their bounds; or the batched and the single space, which all must be like.
    """
    first = descriptions[0]
    single, action = first.observation_space, first.action_space
    if _are_spaces(observation_mode):
        single = observation_mode[1]
    fits = operator.eq if observation_mode == "same" else is_space_dtype_shape_equiv
    for env_index, described in enumerate(descriptions):
        space = described.observation_space
        if not fits(space, single):
            hint = " If only bounds differ, pass observation_mode='different'."
            raise DifferentSpacesError(
                f"env {env_index} has the observation space {space}, expected {single}, as the "
                f"others have.{hint if observation_mode == 'same' else ''}"
            )
        if described.action_space != action:
            raise DifferentSpacesError(
                f"env {env_index} has the action space {described.action_space} and env 0 has "
                f"{action}; they must be the same."
            )
    num_envs = len(descriptions)
    batched: GymSpace = batch_space(single, num_envs)
    if _are_spaces(observation_mode):
        batched = observation_mode[0]
    elif observation_mode == "different":
        batched = batch_differing_spaces([each.observation_space for each in descriptions])
    return single, batched, batch_space(action, num_envs)
