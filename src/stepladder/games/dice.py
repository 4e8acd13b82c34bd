"""Random numbers for envs that live in compiled code: one 64-bit state per env.

Below all kernels of the games. An env draws only from its own state, so what it plays depends on
its seed alone: not on the size of the batch, its place in it or the number of threads.
"""

import numpy as np
import numpy.typing as npt

from stepladder.compiled import inlined

Dice = npt.NDArray[np.uint64]
"""One state per env, advanced in place."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 2.0**-53


@inlined
def mixed(bits: np.uint64) -> np.uint64:
    """Scramble 64 bits: the finaliser of splitmix64."""
    bits = (bits ^ (bits >> _S30)) * _FIRST
    bits = (bits ^ (bits >> _S27)) * _SECOND
    return bits ^ (bits >> _S31)


@inlined
def uniform(dice: Dice, env_index: int) -> float:
    """Return the next number of an env, in [0, 1)."""
    state = dice[env_index] + GOLDEN
    dice[env_index] = state
    return float(mixed(state) >> _S11) * _UNIT
