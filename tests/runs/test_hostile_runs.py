"""Runs that somebody has made to harm: names that lead elsewhere, links, pipes, queries, bombs.

Each attack ends in one line that says why, in a bounded time, and changes nothing.
"""

import fcntl
import os
import shutil
import sqlite3
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runs.scenes import fill
from stepladder.cli.main import main
from stepladder.curricula import Snapshot
from stepladder.errors import RunError, StepladderError
from stepladder.runs import Run, RunReader, database, encoding
from stepladder.runs.trust import names_of_code
from test_files import IRREGULAR

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a run with a little of everything, and a second checkpoint."""
    with Run.create(tmp_path / "run", kind="simulation", config={"a": 1}, seed=3) as run:
        fill(run)
        run.log(30, {"overview/reward": 0.75})
        run.save_checkpoint("second", Snapshot({"at": 30}), 30)
    return tmp_path / "run"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Return a folder beside the run, with files that look like a checkpoint's."""
    outside = tmp_path / "outside"
    for name in ("step-000000000016", "step-000000000016/inside"):
        (outside / name).mkdir(parents=True)
    for name in ("first.1.npz", "precious.9.npz", ".first.1.npz.7.part", "step-000000000016/file"):
        (outside / name).write_text("precious")
    return outside


def listing(folder: Path) -> dict[str, bytes | None]:
    """Return everything in a folder, with its content."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def sql(folder: Path, *statements: str, arguments: tuple[Any, ...] = ()) -> None:
    with closing(sqlite3.connect(folder / "run.sqlite")) as connection:
        for statement in statements:
            connection.execute(statement, arguments if "?" in statement else ())
        connection.commit()


QUESTIONS: list[Callable[[RunReader], Any]] = [
    lambda reader: reader.status,
    RunReader.metric_names,
    RunReader.last_metrics,
    RunReader.times,
    RunReader.events,
    RunReader.tasks,
    RunReader.task_steps,
    lambda reader: reader.num_records,
    RunReader.records,
    RunReader.checkpoints,
    RunReader.checkpoint_step,
    RunReader.checkpoint,
]


def ask_everything(folder: Path) -> list[str]:
    """Return every refusal that reading a run ends in; nothing else may come out."""
    said: list[str] = []
    for question in QUESTIONS:
        try:
            question(RunReader(folder))
        except StepladderError as error:
            said.append(str(error))
    assert not any("\n" in text for text in said)
    return said


# Names in the database.

NAMES = [
    "{outside}/step-000000000016",
    "../outside/step-000000000016",
    "../../outside/step-000000000016",
    "..",
    ".",
    "",
    "/",
    "a/b",
    "step-000000000016/../../../outside/step-000000000016",
    "a\x00b",
    "a\nb",
    "x" * 300,
    b"\xff",
]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_going_back_removes_nothing_outside_the_run(folder: Path, outside: Path, name: Any) -> None:
    if isinstance(name, str):
        name = name.format(outside=outside)
    shutil.copytree(outside / "step-000000000016", folder / "step-000000000016")
    sql(folder, "UPDATE checkpoints SET name = ? WHERE name = 'second'", arguments=(name,))
    before, elsewhere = listing(folder / "checkpoints"), listing(outside)
    with pytest.raises(RunError, match="the database names a checkpoint") as caught:
        Run.resume(folder, checkpoint="first")
    assert "\n" not in str(caught.value)
    assert listing(outside) == elsewhere
    assert listing(folder / "checkpoints") == before
    # What was logged after the checkpoint is still there too.
    assert RunReader(folder).times()[0].tolist() == [10, 20, 30]


def test_a_name_of_ours_removes_only_what_is_in_the_run(folder: Path, outside: Path) -> None:
    shutil.copytree(outside / "step-000000000016", folder / "checkpoints/step-000000000016")
    (folder / "checkpoints/step-000000000016/link").symlink_to(outside)
    (folder / "checkpoints/second.77.npz").symlink_to(outside / "precious.9.npz")
    name = "step-000000000016"
    sql(
        folder,
        f"INSERT INTO checkpoints SELECT 9, '{name}', '{name}.1.npz', 40, 1.0, 1, 1 FROM schema",
    )
    elsewhere = listing(outside)
    Run.resume(folder, checkpoint="first").close()
    assert listing(outside) == elsewhere
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["first.1.npz"]


FILES = [
    "{outside}/first.1.npz",
    "../outside/first.1.npz",
    "../../outside/first.1.npz",
    "../run.sqlite",
    "second.2.npz",
    "first.1.npz/",
    "./first.1.npz",
    "first.npz",
    "first.1.npz\n",
    "",
    b"\xff",
]


@pytest.mark.parametrize("file", FILES, ids=repr)
def test_a_checkpoint_is_read_only_from_its_own_file(
    folder: Path, outside: Path, file: Any
) -> None:
    Snapshot({"of": "somebody else"}).save(outside / "first.1.npz")
    if isinstance(file, str):
        file = file.format(outside=outside)
    sql(folder, "UPDATE checkpoints SET file = ? WHERE name = 'first'", arguments=(file,))
    with pytest.raises(RunError, match="does not belong to this run"):
        RunReader(folder).checkpoint("first")


# Links and files of other kinds.

PARTS = ["config.json", "run.sqlite", "run.lock", "checkpoints", "run.sqlite-wal"]


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (part, kind)
        for part in PARTS
        for kind in IRREGULAR
        if (part, kind) != ("checkpoints", "a folder")
    ],
)
def test_what_is_no_file_is_neither_followed_nor_waited_for(
    folder: Path, outside: Path, part: str, kind: str
) -> None:
    path = folder / part
    kept = outside / "kept"
    if path.exists():
        path.rename(kept)
    if kind == "a symbolic link":
        # To the very thing, so that nothing is wrong but the link.
        if not kept.exists():
            kept.touch()
        path.symlink_to(kept)
    else:
        IRREGULAR[kind](path)
    before = listing(outside)
    with pytest.raises(RunError) as caught:
        Run.resume(folder, checkpoint="first")
    assert "\n" not in str(caught.value)
    assert listing(outside) == before
    ask_everything(folder)
    assert listing(outside) == before
    if part != "config.json" and not (part == "run.sqlite" and kind == "a folder"):
        # Overwriting goes on where a link or a pipe can be removed, and is refused elsewhere.
        try:
            Run.create(folder, kind="training", overwrite=True).close()
        except RunError as error:
            said = str(error)
            assert "\n" not in said
    assert listing(outside) == before


def test_a_linked_checkpoint_is_not_read(folder: Path, outside: Path) -> None:
    Snapshot({"of": "somebody else"}).save(outside / "other.npz")
    (folder / "checkpoints/first.1.npz").unlink()
    (folder / "checkpoints/first.1.npz").symlink_to(outside / "other.npz")
    with pytest.raises(RunError, match="a symbolic link"):
        RunReader(folder).checkpoint("first")


def test_overwriting_does_not_follow_linked_checkpoints(folder: Path, outside: Path) -> None:
    shutil.rmtree(folder / "checkpoints")
    (folder / "checkpoints").symlink_to(outside)
    before, database_before = listing(outside), (folder / "run.sqlite").read_bytes()
    with pytest.raises(RunError, match=r"a symbolic link.*expected a folder"):
        Run.create(folder, kind="training", overwrite=True)
    assert listing(outside) == before
    # Refused before anything was removed.
    assert (folder / "run.sqlite").read_bytes() == database_before


def test_overwriting_removes_links_and_not_what_they_lead_to(folder: Path, outside: Path) -> None:
    shutil.copy(folder / "run.sqlite", outside / "other.sqlite")
    (folder / "run.sqlite").unlink()
    (folder / "run.sqlite").symlink_to(outside / "other.sqlite")
    (folder / "checkpoints/first.9.npz").symlink_to(outside / "precious.9.npz")
    (folder / "checkpoints/step-000000000016").symlink_to(outside / "step-000000000016")
    before = listing(outside)
    Run.create(folder, kind="training", overwrite=True).close()
    assert listing(outside) == before
    assert not (folder / "run.sqlite").is_symlink()


def test_a_run_that_is_itself_reached_by_a_link_is_used(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    assert ask_everything(tmp_path / "link") == []
    Run.resume(tmp_path / "link", checkpoint="first").close()


def test_a_lock_says_only_numbers(folder: Path) -> None:
    with closing(_HeldLock(folder / "run.lock")) as held:
        held.say(b"1 \x1b[31mhacker\n")
        with pytest.raises(RunError, match=r"by process \(unknown\)"):
            Run.resume(folder)


class _HeldLock:
    def __init__(self, path: Path):
        self._file = path.open("r+b")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def say(self, text: bytes) -> None:
        self._file.truncate(0)
        self._file.write(text)
        self._file.flush()

    def close(self) -> None:
        self._file.close()


# Queries, and what they may cost.

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"

SCHEMAS = {
    "a recursive view": [
        "DROP TABLE metric_names",
        f"CREATE VIEW metric_names AS {ENDLESS} SELECT i AS id, 'm' || i AS name FROM n",
    ],
    "a view for the version": [
        "DROP TABLE schema",
        f"CREATE VIEW schema AS {ENDLESS} SELECT max(i) AS version FROM n",
    ],
    "a view of another name": [f"CREATE VIEW other AS {ENDLESS} SELECT i FROM n"],
    "a trigger": [
        "CREATE TRIGGER t AFTER DELETE ON steps BEGIN DELETE FROM events; END",
    ],
    "a trigger on settings": [
        "CREATE TRIGGER t AFTER INSERT ON settings BEGIN UPDATE steps SET time = 0; END",
    ],
    "an index of an expression": [
        "CREATE INDEX i ON events (length(hex(zeroblob(step))))",
    ],
    "a check": [
        "ALTER TABLE steps RENAME TO old",
        "CREATE TABLE steps (step INTEGER PRIMARY KEY, time REAL NOT NULL "
        "CHECK (length(hex(zeroblob(100000000))) > 0))",
    ],
    "a generated column": [
        "DROP TABLE steps",
        "CREATE TABLE steps (step INTEGER PRIMARY KEY, time REAL AS (length(hex(zeroblob(step)))))",
    ],
    "a virtual table": ["DROP TABLE events", "CREATE VIRTUAL TABLE events USING fts5(text)"],
    "a missing table": ["DROP TABLE checkpoints"],
    "another column": ["ALTER TABLE events ADD COLUMN more TEXT"],
    "two versions": ["INSERT INTO schema VALUES (1)"],
    "no version": ["DELETE FROM schema"],
    "a version that is text": ["UPDATE schema SET version = 'one'"],
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_other_tables_than_ours_are_refused_before_they_are_asked(folder: Path, name: str) -> None:
    sql(folder, *SCHEMAS[name])
    said = ask_everything(folder)
    assert len(said) == len(QUESTIONS)
    with pytest.raises(RunError) as caught:
        Run.resume(folder)
    assert "\n" not in str(caught.value)
    assert main(["report", str(folder), "--out", str(folder.parent / "report.html")]) == 2
    assert main(["explain", str(folder)]) == 2


def nested_pages(path: Path, table: str) -> None:
    """Let the pages of a table point to each other so that reading it would take forever."""
    size = 512
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute(f"PRAGMA page_size={size}")
        connection.execute("VACUUM")
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
            f"INSERT OR REPLACE INTO {table} SELECT i, 1.5 FROM n"
        )
        connection.commit()
        ((root,),) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)
        )
    content = bytearray(path.read_bytes())
    leaves = [
        number
        for number in range(2, len(content) // size + 1)
        if content[(number - 1) * size] == 0x0D
    ]
    chain = [root, *leaves[-9:]]
    for number, below in zip(chain, [*chain[1:], leaves[3]], strict=True):
        count = 60
        cells = b"".join(struct.pack(">IB", below, index + 1) for index in range(count))
        start = size - len(cells)
        pointers = b"".join(struct.pack(">H", start + 5 * index) for index in range(count))
        head = struct.pack(">BHHHBI", 0x05, 0, count, start, 0, below)
        body = head + pointers
        whole = body + bytes(start - len(body)) + cells
        assert len(whole) == size
        offset = (number - 1) * size
        content[offset : offset + size] = whole
    path.write_bytes(content)


@pytest.mark.slow
def test_pages_that_lead_in_circles_end_soon(folder: Path) -> None:
    nested_pages(folder / "run.sqlite", "steps")
    tracemalloc.start()
    with pytest.raises(RunError, match="far longer than its size explains"):
        RunReader(folder).times()
    assert tracemalloc.get_traced_memory()[1] < 500_000_000
    tracemalloc.stop()
    with pytest.raises(RunError) as caught:
        Run.resume(folder, checkpoint="first")
    assert "\n" not in str(caught.value)


BOMBS = {
    "records": "UPDATE record_chunks SET data = ?",
    "tasks": "UPDATE task_columns SET data = ? WHERE name = 'p'",
}


@pytest.mark.parametrize("question", BOMBS)
def test_a_little_that_stands_for_much_is_refused(
    folder: Path, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "USUAL_BYTES", 2**20)
    bomb = b"z" + zlib.compress(bytes(32 * 2**20))
    assert len(bomb) < 2**16
    sql(folder, BOMBS[question], arguments=(bomb,))
    tracemalloc.start()
    with pytest.raises(RunError, match="far too many bytes"):
        getattr(RunReader(folder), question)()
    assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    tracemalloc.stop()


DAMAGE = [
    "DELETE FROM settings",
    "UPDATE settings SET value = x'ff'",
    "UPDATE checkpoints SET step = 'late'",
    "UPDATE checkpoints SET last_event = 'none'",
    "UPDATE checkpoints SET last_chunk = 1.5",
    "UPDATE metric_names SET name = x'00ff' || id",
]


@pytest.mark.parametrize("statement", DAMAGE)
def test_going_on_with_a_damaged_database_changes_nothing(folder: Path, statement: str) -> None:
    sql(folder, statement)
    with pytest.raises(RunError) as caught:
        Run.resume(folder, checkpoint="first")
    assert "\n" not in str(caught.value)
    with closing(sqlite3.connect(folder / "run.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM steps").fetchone() == (3,)
    assert len(list((folder / "checkpoints").iterdir())) == 2


def test_a_journal_that_was_put_there_is_not_played_back(folder: Path, outside: Path) -> None:
    (folder / "run.sqlite-journal").write_bytes(os.urandom(600))
    with pytest.raises(RunError, match=r"run\.sqlite-journal exists"):
        Run.resume(folder)


def test_a_locked_database_is_told_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
    with closing(sqlite3.connect(folder / "run.sqlite", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(RunError, match="database is locked"):
            Run.resume(folder, checkpoint="first")
        # Whoever only reads is not kept out.
        assert ask_everything(folder) == []
        connection.execute("ROLLBACK")
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        assert all("locked" in text for text in ask_everything(folder))
        connection.execute("ROLLBACK")
    assert RunReader(folder).times()[0].tolist() == [10, 20, 30]


# Single bytes.


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pristine") / "run"
    with Run.create(folder, kind="simulation", config={"a": 1}, seed=3) as run:
        fill(run)
    return folder


def changes(rng: np.random.Generator, content: bytes) -> Iterator[bytes]:
    """Yield a content with single bytes changed, cut off, and with a piece put elsewhere."""
    while True:
        changed = bytearray(content)
        kind = rng.integers(4)
        if kind == 0:
            yield bytes(changed[: rng.integers(len(changed))])
        elif kind == 1:
            start, end, to = sorted(rng.integers(len(changed), size=3).tolist())
            yield bytes(changed[:end] + changed[start:end] + changed[to:])
        else:
            for place in rng.integers(len(changed), size=rng.integers(1, 6)):
                changed[place] = rng.integers(256)
            yield bytes(changed)


@pytest.mark.slow
@pytest.mark.parametrize("file", ["run.sqlite", "config.json", "checkpoints/first.1.npz"])
def test_changed_files_are_refused_or_read(tmp_path: Path, pristine: Path, file: str) -> None:
    shutil.copytree(pristine, tmp_path / "run")
    path = tmp_path / "run" / file
    rng = np.random.default_rng(7)
    for _, content in zip(range(150), changes(rng, path.read_bytes()), strict=False):
        path.write_bytes(content)
        ask_everything(tmp_path / "run")


def test_names_of_code_are_found_wherever_a_run_has_them() -> None:
    assert names_of_code({}) == ()
    assert names_of_code({"env": 7, "tasks": [1]}) == ()
    assert names_of_code({"env": "a.b:C-v0", "tasks": "d:e"}) == ("a.b:C-v0", "d:e")
    assert names_of_code({"env": "stepladder/Ledge-v0", "tasks": "levels"}) == ()
