"""Arrays in one ``.npz`` file of NumPy; reading takes no more memory than the file has bytes.

Below `snapshot`. ``np.load`` would allocate what a header claims, whatever the file holds. Here
entries must be uncompressed, must not share bytes, and a header must describe exactly the bytes
behind it; all of that is checked before memory is allocated.
"""

import ast
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from stepladder.files import open_for_reading, replacing

UNREADABLE = (
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    RecursionError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy and zipfile raise when a file is damaged or was not written here."""

MOST_HEADER = 10_000
"""Longest description of one array: that of a record with some hundred fields."""

CHUNK = 2**20
"""Bytes that are read at a time."""

SUFFIX = ".npy"

_ENCRYPTED = 0x1
_LENGTHS = {(1, 0): "<H", (2, 0): "<I"}
_KEYS = ("descr", "fortran_order", "shape")


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays by name in place of an older file, in one step; nothing is compressed.

    Raises:
        OSError: The file cannot be written.
        ValueError: An array holds objects.
    """
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_arrays(path: str | os.PathLike[str]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file that `write_arrays` wrote, by name.

    Raises:
        ValueError: The file is damaged, or was not written by `write_arrays`; one line.
    """
    try:
        with open_for_reading(path, follow=True) as file, zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            _require_plain(entries, os.fstat(file.fileno()).st_size)
            return {
                entry.filename.removesuffix(SUFFIX): _read_entry(archive, entry)
                for entry in entries
            }
    except UNREADABLE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(reason) from error


def _require_plain(entries: list[zipfile.ZipInfo], size: int) -> None:
    """Raise unless all entries together fit into the file as they are."""
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names):
        raise ValueError("an array is there twice")
    for entry in entries:
        name = entry.filename[:80]
        if not entry.filename.endswith(SUFFIX):
            raise ValueError(f"{name!r} is not an array")
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise ValueError(f"{name!r} is compressed, which no snapshot is")
        if entry.flag_bits & _ENCRYPTED:
            raise ValueError(f"{name!r} is encrypted, which no snapshot is")
    # In a hostile file, entries may overlap.
    claimed = sum(entry.file_size for entry in entries)
    if claimed > size:
        raise ValueError(f"its arrays claim {claimed:,} bytes and the file has {size:,}")


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> npt.NDArray[Any]:
    with archive.open(entry) as file:
        shape, is_transposed, dtype = _read_header(file)
        count = math.prod(shape)
        present = entry.file_size - file.tell()
        if dtype.hasobject or dtype.itemsize == 0:
            raise ValueError(f"{entry.filename!r} has type {str(dtype)[:80]}")
        if count * dtype.itemsize != present:
            raise ValueError(
                f"{entry.filename!r} says {dtype}{list(shape)}, which takes "
                f"{count * dtype.itemsize:,} bytes; it has {present:,}"
            )
        flat = np.empty(count, dtype=dtype)
        _fill(flat.view(np.uint8), file)
    return flat.reshape(shape[::-1]).T if is_transposed else flat.reshape(shape)


def _fill(memory: npt.NDArray[np.uint8], file: IO[bytes]) -> None:
    """Read to the end, where the checksum is compared; chunk by chunk, for `read` makes a copy."""
    filled = 0
    while chunk := file.read(CHUNK):
        memory[filled : filled + len(chunk)] = np.frombuffer(chunk, dtype=np.uint8)
        filled += len(chunk)
    if filled != len(memory):
        raise EOFError("an array is cut off")


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether it is in Fortran's order, and type.

    NumPy's own reader also accepts headers of Python 2, with other warnings and errors.
    """
    version = npy.read_magic(file)
    if version not in _LENGTHS:
        raise ValueError(f"an array has version {version}")
    (length,) = struct.unpack(_LENGTHS[version], file.read(struct.calcsize(_LENGTHS[version])))
    if length > MOST_HEADER:
        raise ValueError(f"the description of an array has {length:,} characters")
    header = ast.literal_eval(file.read(length).decode("latin-1"))
    shape, order = header["shape"], header["fortran_order"]
    if not isinstance(shape, tuple) or type(order) is not bool or len(header) != len(_KEYS):
        raise ValueError(f"an array is described by {str(header)[:80]}")
    lengths = cast("tuple[Any, ...]", shape)
    if not all(type(length) is int and length >= 0 for length in lengths):
        raise ValueError(f"an array has shape {str(lengths)[:80]}")
    return lengths, order, npy.descr_to_dtype(header["descr"])
