"""The switch for bounds checks, and when a kernel that was cached on disk is compiled again."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

from stepladder import source_stamp
from stepladder.simulator.generalising.course import play_endings
from stepladder.simulator.loops import play_rounds
from stepladder.source_stamp import PACKAGE, imports_of, read_files

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
    "messages": "def shown(x):\n    return str(x)",
    "caller": """from stepladder.inner import (
    inner,
)
from stepladder.messages import shown

def explain(x):
    return shown(caller(x))

class Explained:
    def text(self, x):
        return shown(caller(x))

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
        env={
            **environment,
            "PYTHONPATH": str(folder),
            "STEPLADDER_CHECK_BOUNDS": "",
            # Python takes a file changed within a second, of the same length, for the old one.
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert child.stderr == ""
    return [tuple(map(int, line.split())) for line in child.stdout.splitlines()]


MULTIPLIES = """
import sys
import numba
import numpy as np
from stepladder.compiled import compiled

@compiled
def first(array):
    return array[0]

@numba.njit
def product(one, other):
    return np.dot(one, other)

print(first(np.ones(2)), "scipy.linalg" in sys.modules, product(np.ones(2), np.full(2, 3.0)))
"""


@pytest.mark.processes
@pytest.mark.timeout(100)
def test_linear_algebra_is_loaded_for_the_kernels_that_need_it_alone() -> None:
    pytest.importorskip("scipy")
    child = subprocess.run(
        [sys.executable, "-c", MULTIPLIES], capture_output=True, text=True, timeout=80, check=True
    )
    assert child.stdout.split() == ["1.0", "False", "6.0"], child.stderr


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
    # What no kernel reads may change.
    for name in ("messages", "forking"):
        file = package / f"{name}.py"
        file.write_text(f"{file.read_text()}\n\nUNREAD = 1\n")
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
        assert {one.file for one in imports_of(file.read_text())} == expected, file


def test_names_are_followed_to_where_they_are_defined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_stamp, "PACKAGE", tmp_path)
    monkeypatch.setattr(source_stamp, "_file_of", source_stamp._file_of.__wrapped__)
    files = {
        "kernels.py": """
from stepladder.errors import OddError
from stepladder.parts import SCALE, Pair, check
from stepladder import layout as where

class State(NamedTuple):
    pair: Pair

def make():
    @bare
    def step(x):
        return x * SCALE + where.START
    return step

def refuse(x):
    check(x)
    raise OddError
""",
        "parts/__init__.py": """
from stepladder.parts.checks import check
from stepladder.parts.numbers import (
    SCALE,
)
from stepladder.parts.pair import Pair
""",
        "parts/checks.py": "def check(x): ...",
        "parts/numbers.py": "from stepladder.factors import A, B\nSCALE: int = 3 * A\nOTHER = B",
        "parts/pair.py": "from stepladder.unused import help\nclass Pair(Fields):\n    a: int\n",
        "factors.py": "A = 2\nB = 3",
        "layout.py": "from stepladder.factors import B\nSTART, END = 0, B",
        "errors.py": "class OddError(Exception): ...",
        "unused.py": "def help(): ...",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {str(file.relative_to(tmp_path)) for file in read_files(tmp_path / "kernels.py")}
    read = {"kernels.py", "parts/__init__.py", "parts/numbers.py", "parts/pair.py", "layout.py"}
    assert found == {*read, "factors.py"}


@pytest.mark.slow
def test_a_stamp_covers_whatever_a_kernel_reads() -> None:
    pytest.importorskip("torch")
    num_reads = 0
    for file in PACKAGE.rglob("*.py"):
        if re.search(r"^@(bare|compiled|inlined)\b", file.read_text(), re.MULTILINE):
            place = file.relative_to(PACKAGE.parent).with_suffix("")
            module = importlib.import_module(str(place).replace(os.sep, "."))
            for kernel in [one for one in vars(module).values() if isinstance(one, Dispatcher)]:
                reads = files_read_by(kernel.py_func, set())
                assert reads <= read_files(Path(kernel.py_func.__code__.co_filename)), kernel
                num_reads += len(reads)
    assert num_reads > 500
    # Plain functions that become kernels around the rule of a method.
    for loop in (play_rounds, play_endings):
        assert files_read_by(loop, set()) <= read_files(
            Path(loop.__code__.co_filename), loop.__name__
        )


def files_read_by(function: Any, known: set[Any]) -> set[Path]:
    """Return the files of the package that the machine code of a function is made of."""
    known.add(function)
    code, scope = function.__code__, function.__globals__
    file = Path(code.co_filename)
    places = {one.name: one.file for one in imports_of(file.read_text())}
    found = {file}
    for name in code.co_names:
        value = scope.get(name)
        if isinstance(value, Dispatcher):
            if value.py_func not in known:
                found |= files_read_by(value.py_func, known)
        elif name in places and name in scope:
            found.add(places[name])
    return found
