"""A hash of a source file together with everything it imports from this package.

At the bottom of the package, below `compiled`, which puts the stamp on every kernel that numba
caches on disk. numba itself only looks at the file in which a kernel is written, but a kernel
contains the code and the constants of the modules it imports. Without the stamp, a change there
(or an upgrade of the package) would leave old machine code in use.
"""

import hashlib
import re
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent

_IMPORTS = re.compile(
    rf"^[ \t]*from ({PACKAGE.name}[\w.]*) import (\([^)]*\)|[^\n]*)"
    rf"|^[ \t]*import ({PACKAGE.name}[\w.]*)",
    re.MULTILINE,
)


@cache
def source_stamp(file: Path) -> bytes:
    """Return a hash that changes with a file and with all it imports, directly or indirectly.

    It covers the modules of this package only and depends on no path and no time. A file outside
    the package works too.

    Raises:
        OSError: The file cannot be read.
    """
    found, pending = {file}, [file]
    while pending:
        new = _read(pending.pop())[1] - found
        found |= new
        pending.extend(new)
    digests = sorted(_read(each)[0] for each in found)
    return hashlib.sha256(b"".join(digests)).digest()


def imported_files(text: str) -> frozenset[Path]:
    """Return the files of this package that a source text imports.

    A text pattern, because parsing takes fifty times as long and every process does this. An import
    quoted in a docstring counts too, which does no harm.
    """
    modules: set[str] = set()
    for package, names, module in _IMPORTS.findall(text):
        if module:
            modules.add(module)
        for name in re.findall(r"(\w+)(?: as \w+)?[ \t]*(?:,|$|\))", _one_line(names)):
            modules.add(f"{package}.{name}" if _file_of(f"{package}.{name}") else package)
    return frozenset(file for module in modules if (file := _file_of(module)))


def _one_line(names: str) -> str:
    return " ".join(re.sub(r"#[^\n]*", "", names).split())


@cache
def _file_of(module: str) -> Path | None:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    candidates = (path.with_name(path.name + ".py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


@cache
def _read(file: Path) -> tuple[bytes, frozenset[Path]]:
    content = file.read_bytes()
    return hashlib.sha256(content).digest(), imported_files(content.decode())
