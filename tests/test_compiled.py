"""The switch for bounds checks, and when a kernel that was cached on disk is compiled again."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stepladder.source_stamp import PACKAGE, imported_files

PROGRAM = """
import numpy as np
from stepladder.compiled import CHECKS_BOUNDS, bare, compiled, inlined, record_at

PAIR = np.dtype([("first", "i8"), ("second", "i8")])

@inlined
def element(array, index):
    return array[index]

@compiled
def read(array, index):
    return element(array, index)

@bare
def write(array, index):
    array[index] = 1.0

@bare
def see_record(words, index):
    return record_at(words, index, PAIR).first

assert CHECKS_BOUNDS
for kernel, last in ((read, 2), (write, 2), (see_record, 1)):
    kernel(np.zeros(3, int), last)
    try:
        kernel(np.zeros(3, int), last + 1)
    except IndexError:
        print("refused")
"""


@pytest.mark.processes
@pytest.mark.timeout(100)
def test_with_the_switch_every_kind_of_kernel_checks_its_indices() -> None:
    # Without a folder for compiled code nothing of it is kept, as nothing may be.
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, "STEPLADDER_CHECK_BOUNDS": "1"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert child.stdout.split() == ["refused"] * 3, child.stderr


KERNELS = {
    "constants": "FACTOR = 2",
    "inner": """from stepladder.constants import FACTOR

@inlined
def inner(x):
    return x * FACTOR""",
    "caller": """from stepladder.inner import (
    inner,
)

@compiled
def caller(x):
    return inner(x) + 1""",
    "other": "@bare\ndef other(x):\n    return x + 1",
}

CALLS = """
from stepladder.caller import caller
from stepladder.other import other
print(caller(5), sum(caller.stats.cache_hits.values()))
print(other(5), sum(other.stats.cache_hits.values()))
"""


TAKER = """from typing import NamedTuple
from stepladder.compiled import compiled
from stepladder.MODULE import Pair

@compiled
def taker(pair):
    return pair.left + pair.right"""

PAIR = "from typing import NamedTuple\n\nclass Pair(NamedTuple):\n    left: int\n    right: int\n"

TAKES = """
from stepladder.taker import Pair, taker
print(taker(Pair(2, 3)), sum(taker.stats.cache_hits.values()))
"""


def package_in(folder: Path) -> Path:
    """Make a package with nothing but what compiles kernels."""
    package = folder / "stepladder"
    package.mkdir()
    (package / "__init__.py").touch()
    for name in ("compiled", "forking", "inlining", "source_stamp"):
        shutil.copy(PACKAGE / f"{name}.py", package)
    return package


def results(folder: Path, calls: str = CALLS) -> list[tuple[int, ...]]:
    """Call kernels in a new process; return what each gave, and whether it was in the cache."""
    environment = {name: value for name, value in os.environ.items() if "NUMBA" not in name}
    child = subprocess.run(
        [sys.executable, "-c", calls],
        env={**environment, "PYTHONPATH": str(folder), "STEPLADDER_CHECK_BOUNDS": ""},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert child.stderr == ""
    return [tuple(map(int, line.split())) for line in child.stdout.splitlines()]


@pytest.mark.processes
@pytest.mark.timeout(100)
def test_a_cached_kernel_is_compiled_again_when_a_module_it_imports_changes(tmp_path: Path) -> None:
    package = package_in(tmp_path)
    for name, code in KERNELS.items():
        head = "from stepladder.compiled import bare, compiled, inlined\n"
        (package / f"{name}.py").write_text(f"{head}{code}\n")
    assert results(tmp_path) == [(11, 0), (6, 0)]
    assert results(tmp_path) == [(11, 1), (6, 1)]
    inner = package / "inner.py"
    inner.write_text(inner.read_text().replace("x * FACTOR", "x - FACTOR"))
    assert results(tmp_path) == [(4, 0), (6, 1)]
    constants = package / "constants.py"
    constants.write_text(constants.read_text().replace("2", "1"))
    assert results(tmp_path) == [(5, 0), (6, 1)]
    assert results(tmp_path) == [(5, 1), (6, 1)]


@pytest.mark.processes
@pytest.mark.timeout(100)
def test_a_cached_kernel_survives_the_move_of_a_class_that_it_takes(tmp_path: Path) -> None:
    package = package_in(tmp_path)
    (package / "old.py").write_text(PAIR)
    (package / "taker.py").write_text(TAKER.replace("MODULE", "old"))
    assert results(tmp_path, TAKES) == [(5, 0)]
    assert results(tmp_path, TAKES) == [(5, 1)]
    # An upgrade leaves the cache of the version before it behind.
    (package / "old.py").rename(package / "new.py")
    (package / "taker.py").write_text(TAKER.replace("MODULE", "new"))
    assert results(tmp_path, TAKES) == [(5, 0)]
    assert results(tmp_path, TAKES) == [(5, 1)]


@pytest.mark.slow
def test_the_imports_found_by_pattern_are_those_of_the_syntax_tree() -> None:
    for file in PACKAGE.rglob("*.py"):
        modules: list[str] = []
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                modules += [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                modules += [alias.name for alias in node.names]
        expected: set[Path] = set()
        for module in modules:
            if module.split(".")[0] == "stepladder":
                path = PACKAGE.parent.joinpath(*module.split("."))
                # The last part is a module, a package, or a name defined in its parent.
                places = [path.with_suffix(".py"), path / "__init__.py"]
                places += [path.parent.with_suffix(".py"), path.parent / "__init__.py"]
                expected.add(next(place for place in places if place.exists()))
        assert imported_files(file.read_text()) == expected, file
