"""Changed run folders: bytes and fields of the database, and ``config.json``; then all readers."""

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.mutations import FLOATS, INTEGERS, change_bytes, change_json_text
from stepladder.dashboard.answers import OF_A_RUN, answer
from stepladder.dashboard.report import write_report
from stepladder.dashboard.run_index import RunIndex
from stepladder.errors import StepladderError
from stepladder.runs import Run, RunReader
from stepladder.runs.run_folder import CONFIG, DATABASE
from stepladder.simulator import simulate

ODD: tuple[Any, ...] = (
    None,
    "",
    "\x1b[31m",
    "x" * 3000,
    b"",
    b"\x00\xff",
    "../../x",
    "/",
    "[" * 5000,
)


class Fuzzer:
    """Reads changed runs in every way there is, and resumes them."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._original = folder / "original"
        simulate(
            scenario="chain-4",
            num_envs=2,
            num_epochs=4,
            samples_per_epoch=100,
            seed=1,
            run_folder=self._original,
            keep_records=True,
        )
        self._changed = folder / "changed"

    def run(self, rng: np.random.Generator) -> None:
        shutil.rmtree(self._changed, ignore_errors=True)
        shutil.copytree(self._original, self._changed)
        kind = rng.random()
        if kind < 0.25:
            path = self._changed / CONFIG
            text = change_json_text(path.read_text(), rng)
            path.write_bytes(text.encode(errors="surrogateescape"))
        elif kind < 0.6:
            path = self._changed / DATABASE
            path.write_bytes(change_bytes(path.read_bytes(), rng))
        else:
            self._change_field(rng)
        if rng.random() < 0.2:
            Run.resume(self._changed).close()
        self._ask_all()
        self._read_all(rng)

    def _change_field(self, rng: np.random.Generator) -> None:
        with closing(sqlite3.connect(self._changed / DATABASE)) as database, database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            table = str(rng.choice([name for (name,) in tables if not name.startswith("sqlite")]))
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            column = str(rng.choice(columns))
            values = [*ODD, *FLOATS, *(n for n in INTEGERS if abs(n) < 2**63)]
            value = values[int(rng.integers(len(values)))]
            if rng.random() < 0.1:
                database.execute(f"DELETE FROM {table}")
            else:
                # What SQLite itself refuses cannot be in a file either.
                with suppress(sqlite3.IntegrityError):
                    database.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (value,))

    def _ask_all(self) -> None:
        """Ask what the dashboard asks: the overview always answers, with a row for the run."""
        index = RunIndex([self._changed])
        (row,) = answer(index, "overview", {})["runs"]
        json.dumps(row, allow_nan=False)
        for question in OF_A_RUN:
            # An error in one line is an answer, too.
            with suppress(StepladderError, OSError):
                words = {"run": row["name"], "name": "overview/reward", "of": "samples"}
                json.dumps(answer(index, question, words), allow_nan=False)

    def _read_all(self, rng: np.random.Generator) -> None:
        reader = RunReader(self._changed)
        str(reader.status)
        for name in reader.metric_names():
            reader.metric(name)
        reader.last_metrics()
        reader.times()
        reader.events()
        for step in reader.task_steps():
            reader.tasks(step)
        reader.records()
        for name in reader.checkpoints():
            reader.checkpoint(name)
        if rng.random() < 0.2:
            write_report([self._changed], self._folder / "report.html")
