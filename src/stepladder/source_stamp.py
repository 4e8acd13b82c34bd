"""A hash of a source file together with all that its kernels read from this package.

At the bottom of the package, below `compiled`, which puts the stamp on every kernel that numba
caches on disk. numba itself only looks at the file in which a kernel is written, but a kernel
contains the code and the constants of the modules it imports. Without the stamp, a change there
(or an upgrade of the package) would leave old machine code in use.

What only Python reads does not count: a name that is imported for plain functions and classes alone
is not followed, nor is that of an exception, which a kernel keeps by name.
"""

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parent

_IMPORTS = re.compile(
    rf"^[ \t]*from ({PACKAGE.name}[\w.]*) import (\([^)]*\)|[^\n]*)"
    rf"|^[ \t]*import ({PACKAGE.name}[\w.]*)",
    re.MULTILINE,
)
_LONG_STRING = re.compile(r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""')
_STATEMENT = re.compile(r"^(?=[^\s)\]}#])", re.MULTILINE)
"""Where a statement of a module begins, or a decorator."""

_DEFINED = re.compile(r"(?:async )?(?:def|class) (\w+)")
_METHOD = re.compile(r"^    (?:async )?def .*?(?=^    [^\s)]|\Z)", re.MULTILINE | re.DOTALL)
_RECORD = re.compile(r"class \w+\([^)]*\b(?:Fields|NamedTuple)\b")
_KERNEL = re.compile(r"@\w*(?:compiled|bare|inlined|intrinsic|njit)\b|FunctionType")
_ASSIGNED = re.compile(r"([\w, ]+)(?::[^=\n]*)?=(?!=)")
_CALL = re.compile(r"[\w.]+\(")
_WORD = re.compile(r"[A-Za-z_]\w*")
_OF_PYTHON = ("@cache", "@lru_cache", "@contextmanager", "@dataclass", "@overload", "@final")
"""Decorators of what is read only where it is named; all others may make kernels."""


class Import(NamedTuple):
    """A name that a file has from another one of this package."""

    name: str
    """What it is called here."""
    file: Path
    wanted: str
    """What it is called there; empty if it is the file itself, a module."""


class SourceText(NamedTuple):
    """What a file says."""

    digest: bytes
    imports: tuple[Import, ...]
    read: frozenset[str]
    """Names in what is read without being named: kernels, records, statements."""
    named: dict[str, str]
    """Constants, functions and classes that are read where they are named; the text of each."""


@cache
def source_stamp(file: Path, function: str = "") -> bytes:
    """Return a hash that changes with a file and with all that its kernels read.

    It covers the modules of this package only and depends on no path and no time. A file outside
    the package works too.

    Args:
        file: Where the kernels are.
        function: Name of a plain function in it that becomes a kernel elsewhere.

    Raises:
        OSError: The file cannot be read.
    """
    digests = sorted(_source(each).digest for each in read_files(file, function))
    return hashlib.sha256(b"".join(digests)).digest()


def read_files(file: Path, function: str = "") -> set[Path]:
    """Return a file and those of this package that its kernels read, directly or indirectly."""
    wanted: dict[Path, set[str]] = {file: {function}}
    pending = [file]
    while pending:
        place = pending.pop()
        names = _names_read(_source(place), wanted[place])
        for one in _source(place).imports:
            if one.name in names and not one.name.endswith("Error"):
                # Of a module that is imported as a whole, any name may be meant.
                new = {one.wanted} if one.wanted else names
                if one.file not in wanted or not new <= wanted[one.file]:
                    wanted.setdefault(one.file, set()).update(new)
                    pending.append(one.file)
    return set(wanted)


def _names_read(source: SourceText, wanted: set[str]) -> set[str]:
    """Return the names that kernels read in a file if others want some of it from there."""
    names = wanted | source.read
    pending = [name for name in names if name in source.named]
    while pending:
        new = _words(source.named[pending.pop()]) - names
        names |= new
        pending += [name for name in new if name in source.named]
    return names


@cache
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))


def imports_of(text: str) -> Iterable[Import]:
    """Yield what a source text has from this package.

    A text pattern, because parsing takes fifty times as long and every process does this.
    """
    for package, names, module in _IMPORTS.findall(text):
        if module:
            file = _file_of(module)
            if file is not None:
                yield Import(module.partition(".")[0], file, "")
        for name, other in re.findall(r"(\w+)(?: as (\w+))?[ \t]*(?:,|$|\))", _one_line(names)):
            file = _file_of(f"{package}.{name}")
            wanted = "" if file else name
            file = file or _file_of(package)
            if file is not None:
                yield Import(other or name, file, wanted)


def _one_line(names: str) -> str:
    return " ".join(re.sub(r"#[^\n]*", "", names).split())


@cache
def _file_of(module: str) -> Path | None:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    candidates = (path.with_name(path.name + ".py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


@cache
def _source(file: Path) -> SourceText:
    content = file.read_bytes()
    text = _LONG_STRING.sub('""', content.decode())
    read: list[str] = []
    named: dict[str, str] = {}
    decorators = ""
    for statement in _STATEMENT.split(_IMPORTS.sub("", text)):
        if statement.startswith("@"):
            decorators += statement
            continue
        defined, assigned = _DEFINED.match(statement), _ASSIGNED.match(statement)
        if defined is not None and not _is_read(decorators, statement):
            # Kernels call no methods.
            body = _METHOD.sub("", statement) if statement.startswith("class") else statement
            named[defined[1]] = named.get(defined[1], "") + decorators + body
        elif assigned is not None:
            for name in _WORD.findall(assigned[1]):
                named[name] = named.get(name, "") + statement[assigned.end() :]
        elif not _CALL.match(statement):  # which leaves nothing to read
            read.append(decorators + statement)
        decorators = ""
    imports = tuple(imports_of(text))
    digest = hashlib.sha256(content).digest()
    return SourceText(digest, imports, frozenset().union(*map(_words, read)), named)


def _is_read(decorators: str, definition: str) -> bool:
    """Whether kernels may read a function or class that they do not name."""
    marks = re.findall(r"^@.*", decorators, re.MULTILINE)
    is_of_python = all(mark.startswith(_OF_PYTHON) for mark in marks)
    return bool(not is_of_python or _RECORD.match(definition) or _KERNEL.search(definition))
