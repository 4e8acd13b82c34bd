"""Functions that are compiled into their callers: the same code as numba makes, read once each."""

import re
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.inline_closurecall import InlineWorker

from stepladder import compiled
from stepladder.compiled import inlined

SETTINGS = {name: value for name, value in compiled._SETTINGS.items() if name != "cache"}
NUMBAS = {name: value for name, value in SETTINGS.items() if name != "pipeline_class"}


@inlined
def half_of(number: float) -> float:
    if number < 0.0:
        return 0.0
    return number / 2.0


@inlined
def sum_of_halves(numbers: Any, start: int) -> float:
    total = 0.0
    for index in range(start, len(numbers)):
        number = half_of(numbers[index])
        if number > 10.0:
            break
        total += number
    return total + half_of(total)


def kernel(numbers: Any) -> float:
    total = half_of(numbers[0])
    for index in range(len(numbers)):
        numbers[index] += half_of(half_of(numbers[index]))
        total += sum_of_halves(numbers, index)
    return total + sum_of_halves(numbers, 1)


def as_python(numbers: Any) -> float:
    """The same, with the functions as they are written."""
    names = {"half_of": half_of.py_func, "sum_of_halves": sum_of_halves.py_func}  # type: ignore[attr-defined]
    scope: dict[str, Any] = {**globals(), **names}

    def plain(function: Callable[..., Any]) -> Callable[..., Any]:
        return type(as_python)(function.__code__, scope)

    scope["half_of"], scope["sum_of_halves"] = map(plain, names.values())
    return plain(kernel)(numbers)


def numbers() -> Any:
    return np.array([3.0, -2.0, 8.0, 30.0, 5.0])


def machine_code(dispatcher: Any) -> list[str]:
    """Return what a kernel was compiled to, without the names and addresses of things."""
    (made,) = dispatcher.overloads.values()
    code = re.findall(r"^\s+[a-z].*$", made.library.get_asm_str(), re.MULTILINE)
    names: dict[str, str] = {}
    return [
        re.sub(
            r"_ZN[\w.$]+|\.const\.[\w.$<>]+|\$?\d{6,}",
            lambda name: names.setdefault(name[0], str(len(names))),
            line,
        )
        for line in code
        if not line.strip().startswith(".")
    ]


def test_a_kernel_is_to_the_instruction_what_numba_makes_of_it() -> None:
    ours, numbas = numba.njit(**SETTINGS)(kernel), numba.njit(**NUMBAS)(kernel)
    assert ours(numbers()) == numbas(numbers()) == as_python(numbers())
    assert len(machine_code(ours)) > 100
    assert machine_code(ours) == machine_code(numbas)


def test_each_function_is_read_once_for_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    run = InlineWorker.run_untyped_passes

    def noting(self: Any, func: Any, enable_ssa: bool = False) -> Any:
        read.append(func.__name__)
        return run(self, func, enable_ssa)

    monkeypatch.setattr(InlineWorker, "run_untyped_passes", noting)
    numba.njit(**SETTINGS)(kernel)(numbers())
    assert sorted(read) == ["half_of", "sum_of_halves"]
