"""Seeds of many envs: one number for all, or one each.

Used by `batch`. As in Gymnasium, one seed for all gives each env that seed plus its index, so that
a batch plays what single envs with those seeds play.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stepladder.errors import ConfigError
from stepladder.tasks.scramble import mix64

MAX_SEED = 2**63 - 1


class Seeds(NamedTuple):
    """What each env is seeded with, and which ones are."""

    words: npt.NDArray[np.uint64]
    is_given: npt.NDArray[np.bool_]


def seeds_for(seed: int | Sequence[int | None] | None, num_envs: int) -> Seeds | None:
    """Return the seeds of all envs, or None if none was given.

    Raises:
        ConfigError: A seed is no whole number of 0 or more, or there are too few or too many.
    """
    if seed is None:
        return None
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        each: list[int | None] = [int(seed) + index for index in range(num_envs)]
    elif isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str):
        each = list(seed)
    else:
        raise ConfigError(f"seed must be a whole number, a list of them or None; got {seed!r}.")
    if len(each) != num_envs:
        raise ConfigError(f"expected {num_envs} seeds, one per env; got {len(each)}.")
    for one in each:
        if one is not None and not _is_seed(one):
            raise ConfigError(
                f"a seed must be a whole number from 0 to {MAX_SEED - num_envs}; got {one!r}."
            )
    given = np.array([one is not None for one in each])
    return Seeds(scrambled(np.array([one or 0 for one in each], dtype=np.uint64)), given)


def _is_seed(seed: Any) -> bool:
    is_integer = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    return is_integer and 0 <= int(seed) <= MAX_SEED


def scrambled(seeds: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return dice for seeds: neighbouring seeds must not give overlapping streams."""
    return mix64(mix64(seeds) ^ np.uint64(0x5DEECE66D1CE4E5B))


def fresh_seeds(num_envs: int) -> npt.NDArray[np.uint64]:
    """Return seeds that nobody chose."""
    return np.random.SeedSequence().generate_state(2 * num_envs, np.uint32).view(np.uint64)
