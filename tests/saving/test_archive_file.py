"""Arrays in one file: what is read comes from the file's own bytes, and nothing is believed."""

import io
import os
import struct
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from stepladder.errors import SnapshotError
from stepladder.saving.archive_file import read_arrays, write_arrays
from stepladder.saving.snapshot import Snapshot

RECORD = np.dtype([("a", "<i4"), ("b", "<f8")])


def npy(header: str, content: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    text = header.encode() + b"\n"
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text + content


def header(descr: str = "'<f8'", shape: str = "(2,)", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}"


def written(folder: Path, entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    path = folder / "made.npz"
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.zeros((0, 4), dtype=np.float32),
        np.array(3.5),
        np.array([True, False]),
        np.zeros(3, dtype=RECORD),
        np.array(["name", "other"]),
    ],
    ids=str,
)
def test_what_is_written_is_read_again(tmp_path: Path, array: np.ndarray) -> None:
    write_arrays(tmp_path / "a.npz", {"one/two": array})
    found = read_arrays(tmp_path / "a.npz")
    assert list(found) == ["one/two"]
    np.testing.assert_array_equal(found["one/two"], array)
    assert found["one/two"].dtype == array.dtype
    assert found["one/two"].flags.writeable
    # As NumPy itself reads it.
    with np.load(tmp_path / "a.npz") as archive:
        np.testing.assert_array_equal(archive["one/two"], array)


@pytest.mark.slow
def test_compressed_entries_are_refused_before_memory_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, state=np.zeros(256 * 2**20, dtype=np.uint8))
    assert path.stat().st_size < 2**20
    tracemalloc.start()
    with pytest.raises(ValueError, match="compressed"):
        read_arrays(path)
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()
    with pytest.raises(SnapshotError, match="is not a readable snapshot"):
        Snapshot.load(path)


HOSTILE_HEADERS = {
    "more than there is": header(shape="(1000000000000,)"),
    "less than there is": header(shape="(1,)"),
    "negative": header(shape="(-1, -2)"),
    "no tuple": header(shape="2"),
    "floats": header(shape="(2.0,)"),
    "too many dimensions": header(shape="(" + "1," * 100 + "2)"),
    "objects": header(descr="'|O'"),
    "no bytes each": header(descr="'|V0'", shape="(1000000000000000000,)"),
    "no type": header(descr="'nonsense'"),
    "a record of objects": header(descr="[('a', '|O')]"),
    "a call": "__import__('os').abort()",
    "deep": header(shape="(" * 900),
    "no dict": "[1, 2]",
    "other keys": "{'descr': '<f8'}",
    "nothing": "",
    "large subarrays": header(descr="('<f8', (100000, 100000))"),
    "a long one": header() + " " * 70_000,
}


@pytest.mark.parametrize("name", HOSTILE_HEADERS)
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0), (9, 9)], ids=str)
def test_a_header_that_lies_is_refused(tmp_path: Path, name: str, version: tuple[int, int]) -> None:
    text = HOSTILE_HEADERS[name]
    if len(text) > 65_000 and version == (1, 0):
        pytest.skip("such a header has no room for its length")
    path = written(tmp_path, {"state.npy": npy(text, bytes(16), version)})
    with pytest.raises(ValueError, match=r".") as caught:
        read_arrays(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("count", "reason"), [(200, "twice"), (7, "claim 8,")])
def test_entries_over_each_other_are_refused(tmp_path: Path, count: int, reason: str) -> None:
    content = npy(header("'|u1'", "(1000000,)"), bytes(1_000_000))
    path = written(tmp_path, {"a.npy": content})
    raw = path.read_bytes()
    # More entries in the directory, each of which says that the first one's bytes are its own.
    start = raw.rindex(b"PK\x01\x02")
    end = raw.rindex(b"PK\x05\x06")
    one = raw[start:end]
    directory = one + b"".join(
        one.replace(b"a.npy", f"{number % 7}.npy".encode()) for number in range(count)
    )
    tail = bytearray(raw[end:])
    struct.pack_into("<HHI", tail, 8, count + 1, count + 1, len(directory))
    path.write_bytes(raw[:start] + directory + tail)
    with pytest.raises(ValueError, match=reason):
        read_arrays(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_no_compression_is_read(tmp_path: Path, method: int) -> None:
    path = written(tmp_path, {"state.npy": npy(header(), bytes(16))}, method)
    with pytest.raises(ValueError, match="compressed"):
        read_arrays(path)


@pytest.mark.parametrize("name", ["state", "../state.npy.txt", "folder/"])
def test_an_entry_that_is_no_array_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is not an array"):
        read_arrays(written(tmp_path, {name: npy(header(), bytes(16))}))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(SnapshotError, match="a pipe; expected a regular file"):
        Snapshot.load(tmp_path / "pipe.npz")


def test_every_single_changed_byte_is_refused_or_harmless(tmp_path: Path) -> None:
    snapshot = Snapshot({"a": [1, 2]}, {"numbers": np.arange(4.0)})
    path = snapshot.save(tmp_path / "s.npz")
    whole = path.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x55
        path.write_bytes(changed)
        with suppress(SnapshotError):
            # Dates and the like, which nobody reads.
            assert Snapshot.load(path).state == snapshot.state


def test_every_cut_is_refused(tmp_path: Path) -> None:
    path = Snapshot({"a": 1}, {"numbers": np.arange(4.0)}).save(tmp_path / "s.npz")
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(SnapshotError):
            Snapshot.load(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000 + "]" * 100_000, "deeper"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "deeper"),
        ('{"schema": 1, "state": {"a": NaN}}', "NaN"),
        ('{"schema": 1, "state": {"a": 1e400}}', "too large"),
        ('{"schema": 1, "schema": 1}', "twice"),
        ('{"schema": ' + "9" * 5000 + "}", "digits"),
        ("[]", "list"),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "Expecting"),
    ],
)
def test_a_state_that_is_no_plain_json_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "s.npz"
    write_arrays(path, {"state": np.frombuffer(text.encode(), dtype=np.uint8)})
    with pytest.raises(SnapshotError, match=reason):
        Snapshot.load(path)


def test_writing_replaces_a_link_and_not_what_it_points_to(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    link = tmp_path / "s.npz"
    link.symlink_to(other)
    Snapshot({}).save(link)
    assert other.read_text() == "mine"
    assert not link.is_symlink()


def test_numpy_files_of_one_array_are_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    (tmp_path / "one.npz").write_bytes(buffer.getvalue())
    with pytest.raises(ValueError, match="zip"):
        read_arrays(tmp_path / "one.npz")
