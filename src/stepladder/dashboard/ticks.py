"""Where an axis has its marks and how numbers are written on it.

Pure arithmetic, used by every picture of `dashboard`.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
MINUS = "\N{MINUS SIGN}"
MISSING = "\N{EN DASH}"


def nice_ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Return the multiples of 1, 2 or 5 times a power of ten that lie in [low, high].

    Args:
        low: Lower end of the axis.
        high: Upper end. If it is not above `low`, the only tick is `low`.
        count: About how many ticks are wanted; there are never more than one above it.
    """
    span = high - low
    if not span > 1e-290:
        return [low]
    raw = span / count
    power = math.floor(math.log10(raw))
    digit = next((d for d in (1, 2, 5) if d * 10.0**power >= raw * (1 - 1e-9)), 10)
    step = digit * 10.0**power
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    # Dividing by a whole power of ten gives 0.3 where multiplying by 0.1 gives 0.30000000000000004.
    if power < 0:
        return [k * digit / 10.0**-power for k in range(first, last + 1)]
    return [float(k * step) for k in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return round numbers in [low, high] for a logarithmic axis; both ends are above 0."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = max(last - first, 1)
    digits = (1, 2, 5) if decades <= 3 else (1,)
    stride = -(-decades // 6) if decades > 6 else 1
    ticks = [d * 10.0**p for p in range(first, last + 1, stride) for d in digits]
    inside = [t for t in ticks if low * (1 - 1e-9) <= t <= high * (1 + 1e-9)]
    # Within less than a decade there may be one round number or none; even steps read better then.
    return inside if len(inside) >= 3 else [t for t in nice_ticks(low, high, 4) if t > 0]


def format_ticks(ticks: Sequence[float]) -> list[str]:
    """Write the ticks of one axis, all with the same unit and number of decimals."""
    largest = max((abs(t) for t in ticks), default=0.0)
    steps = [b - a for a, b in pairwise(ticks) if b > a]
    step = min(steps, default=largest)
    if largest == 0 or step == 0:
        return [format_tick(t) for t in ticks]
    if largest >= 1e15 or largest < 1e-3:
        return [format_tick(t) for t in ticks]
    unit, suffix = next(((u, s) for u, s in _UNITS if largest >= max(u, 1e4)), (1.0, ""))
    decimals = min(max(0, -math.floor(math.log10(step / unit) + 1e-9)), 8)
    return [_sign(f"{t / unit:.{decimals}f}") + (suffix if t else "") for t in ticks]


def format_tick(value: float) -> str:
    """Write one number as shortly as an axis allows."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e15 or size < 1e-3:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        return _sign(f"{mantissa}e{int(exponent)}")
    unit, suffix = next(((u, s) for u, s in _UNITS if size >= max(u, 1e4)), (1.0, ""))
    return _sign(f"{value / unit:.4g}{suffix}")


def format_value(value: float | None) -> str:
    """Write a number for a table; a missing or non-finite one is a dash."""
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    if abs(value) < 1e15 and float(value).is_integer():
        return _sign(f"{value:,.0f}")
    if 1e4 <= abs(value) < 1e15:
        return _sign(f"{value:,.0f}")
    return _sign(f"{value:.4g}")


def value_range(series: Iterable[NDArray[np.float64]]) -> tuple[float, float] | None:
    """Return the ends of a linear axis that shows all finite values, or None if there is none.

    The axis starts at 0 where the values come near it, so that heights can be compared.
    """
    extremes = [
        (float(finite.min()), float(finite.max()))
        for values in series
        if (finite := values[np.isfinite(values)]).size
    ]
    if not extremes:
        return None
    low, high = min(e[0] for e in extremes), max(e[1] for e in extremes)
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        if low == 0:
            return 0.0, 1.0
        return (0.0, 2 * low) if low > 0 else (2 * low, 0.0)
    margin = 0.04 * (high - low)
    if 0 <= low <= 0.3 * high:
        return 0.0, high + margin
    if 0.3 * low <= high <= 0:
        return low - margin, 0.0
    return low - margin, high + margin


def log_range(series: Iterable[NDArray[np.float64]]) -> tuple[float, float] | None:
    """Return the ends of a logarithmic axis over the positive values, or None if there is none."""
    extremes = [
        (float(positive.min()), float(positive.max()))
        for values in series
        if (positive := values[np.isfinite(values) & (values > 0)]).size
    ]
    if not extremes:
        return None
    low, high = min(e[0] for e in extremes), max(e[1] for e in extremes)
    if high / low < 1.01:
        return low / 2, high * 2
    margin = (high / low) ** 0.04
    return low / margin, high * margin


def _sign(text: str) -> str:
    return text.replace("-", MINUS)
