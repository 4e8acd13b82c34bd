"""Counter-based random numbers: the same (seed, env, episode) gives the same draw anywhere.

Used by the draw in `kernels` and by the per-episode settings of `phased`. There is no state
to share, to save or to fall out of step: env 3's seventh episode draws the same number whatever
the number of processes, and whatever else is drawn.

The generator is Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"),
checked in the tests against the published known answers.
"""
# pyright: reportReturnType=false, reportArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

import numpy as np

from stepladder.compiled import inlined

MULTIPLIER_0 = np.uint64(0xD2511F53)
MULTIPLIER_1 = np.uint64(0xCD9E8D57)
WEYL_0 = np.uint64(0x9E3779B9)
WEYL_1 = np.uint64(0xBB67AE85)
LOW_32 = np.uint64(0xFFFFFFFF)
SHIFT_32 = np.uint64(32)

DRAW_STREAM = 0
"""Words that choose a slot and seed an episode."""

SETTING_STREAM = 1
"""First of the streams that draw settings, one per setting."""

LIMIT_STREAM = 2**32 - 1
"""Words that decide whether a draw of a slot above its largest share is kept."""


@inlined
def philox(
    key_0: int, key_1: int, count_0: int, count_1: int, count_2: int, count_3: int
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return the four 32-bit words of one block, each in a uint64."""
    a, b = np.uint64(count_0) & LOW_32, np.uint64(count_1) & LOW_32
    c, d = np.uint64(count_2) & LOW_32, np.uint64(count_3) & LOW_32
    k, m = np.uint64(key_0) & LOW_32, np.uint64(key_1) & LOW_32
    for _ in range(10):
        product_0 = MULTIPLIER_0 * a
        product_1 = MULTIPLIER_1 * c
        a, b, c, d = (
            (product_1 >> SHIFT_32) ^ b ^ k,
            product_1 & LOW_32,
            (product_0 >> SHIFT_32) ^ d ^ m,
            product_0 & LOW_32,
        )
        k = (k + WEYL_0) & LOW_32
        m = (m + WEYL_1) & LOW_32
    return a, b, c, d


@inlined
def uniform_and_seed(
    seed: int, env_index: int, episode_index: int, stream: int
) -> tuple[float, int]:
    """Return a number in [0, 1) with 53 random bits, and an independent 63-bit seed."""
    a, b, c, d = philox(seed, seed >> 32, env_index, episode_index, episode_index >> 32, stream)
    high, low = a >> np.uint64(5), b >> np.uint64(6)
    uniform = (float(high) * 67108864.0 + float(low)) / 9007199254740992.0
    return uniform, np.int64(((c << SHIFT_32) | d) >> np.uint64(1))
