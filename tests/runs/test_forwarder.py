"""Loggers beside a run: called in order, from their own thread, and no reason to stop."""

import threading
import warnings
from collections.abc import Mapping
from pathlib import Path

import pytest

from stepladder.errors import RunError
from stepladder.runs import Run, RunReader, forwarder
from stepladder.runs.forwarder import Forwarder


class Notebook:
    """A logger that notes its calls, and can be told to fail or to hang."""

    def __init__(self, fail_in: tuple[str, ...] = (), hang_in: str = ""):
        self.calls: list[tuple[object, ...]] = []
        self.threads: set[int] = set()
        self.go_on = threading.Event()
        self._fail_in = fail_in
        self._hang_in = hang_in

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._note("log", step, dict(metrics))

    def event(self, step: int, kind: str, text: str) -> None:
        self._note("event", step, kind, text)

    def close(self) -> None:
        self._note("close")

    def _note(self, method: str, *arguments: object) -> None:
        self.threads.add(threading.get_ident())
        if method == self._hang_in:
            assert self.go_on.wait(30)
        if method in self._fail_in:
            raise OSError(f"cannot {method}")
        self.calls.append((method, *arguments))


class Other(Notebook):
    pass


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


def test_a_logger_gets_everything_in_order_from_one_other_thread(folder: Path) -> None:
    notebook = Notebook()
    with Run.create(folder, kind="training", loggers=[notebook]) as run:
        run.log(1, {"a": 1})
        run.event(2, "stage", "why \udcff", {"x": 1})
        run.log_tasks(2, {"task": [], "label": []})
        run.log(3, {"b": 2.5})
    assert notebook.calls == [
        ("log", 1, {"a": 1.0}),
        ("event", 2, "stage", "why \\udcff"),
        ("log", 3, {"b": 2.5}),
        ("close",),
    ]
    assert len(notebook.threads) == 1
    assert threading.get_ident() not in notebook.threads
    assert run.num_logger_errors == 0
    assert RunReader(folder).events("logger_failed") == []


def test_a_resumed_run_tells_its_loggers(folder: Path) -> None:
    Run.create(folder, kind="training").close()
    notebook = Notebook()
    Run.resume(folder, loggers=[notebook]).close()
    assert notebook.calls[0][:3] == ("event", 0, "resumed")


def test_a_failing_logger_is_counted_told_of_once_and_otherwise_ignored(folder: Path) -> None:
    good, bad = Notebook(), Notebook(fail_in=("log", "close"))
    run = Run.create(folder, kind="training", loggers=[bad, good])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for step in range(10):
            run.log(step, {"a": float(step)})
        run.close()
    assert run.num_logger_errors == 11
    (warning,) = told
    assert warning.category is RuntimeWarning
    assert str(warning.message).startswith("Notebook failed in log (OSError: cannot log). The run")
    # It points to the line that logged, or closed.
    assert warning.filename == __file__
    (event,) = RunReader(folder).events("logger_failed")
    assert event.text == str(warning.message)
    assert len(good.calls) == 11
    assert RunReader(folder).metric("a")[0].tolist() == list(range(10))
    assert RunReader(folder).status == "finished"


def test_the_first_failure_of_each_logger_is_told(folder: Path) -> None:
    loggers = [Notebook(fail_in=("event",)), Other(fail_in=("close",)), Notebook()]
    run = Run.create(folder, kind="training", loggers=loggers)
    run.event(7, "stage", "why")
    with pytest.warns(RuntimeWarning, match="failed in") as told:
        run.close()
    assert sorted(str(warning.message).split(".")[0] for warning in told) == [
        "Notebook failed in event (OSError: cannot event)",
        "Other failed in close (OSError: cannot close)",
    ]
    assert run.num_logger_errors == 2
    assert len(RunReader(folder).events("logger_failed")) == 2


def test_a_logger_that_hangs_holds_up_neither_the_run_nor_other_loggers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarder, "CLOSE_TIMEOUT_S", 0.1)
    good, stuck = Notebook(), Notebook(hang_in="log")
    run = Run.create(folder, kind="training", loggers=[stuck, good])
    for step in range(20):
        run.log(step, {"a": float(step)})
    run.flush()
    assert len(RunReader(folder).metric("a")[0]) == 20
    with pytest.warns(RuntimeWarning, match=r"Notebook did not close within 0\.1 s\. The run"):
        run.close()
    assert len(good.calls) == 21
    assert stuck.calls == []
    assert RunReader(folder).status == "finished"
    assert run.num_logger_errors == 1
    stuck.go_on.set()


def test_a_logger_that_cannot_keep_up_is_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forwarder, "MOST_WAITING", 5)
    slow = Notebook(hang_in="log")
    to_slow = Forwarder(slow)
    for step in range(20):
        to_slow.put("log", step, {})
    # One is being worked at, or still waits with the five.
    assert to_slow.num_errors in (14, 15)
    slow.go_on.set()
    to_slow.close()
    assert [call[1] for call in slow.calls[:-1]] == list(range(20 - to_slow.num_errors))
    news = to_slow.take_news()
    assert news is not None
    assert news.startswith("Notebook cannot keep up: 5 calls are waiting")
    assert to_slow.take_news() is None


def test_loggers_cannot_change_what_the_next_one_gets(folder: Path) -> None:
    class Vandal(Notebook):
        def log(self, step: int, metrics: Mapping[str, float]) -> None:
            metrics["a"] = 0.0  # type: ignore[index]

    good = Notebook()
    run = Run.create(folder, kind="training", loggers=[Vandal(), good])
    run.log(1, {"a": 1.0})
    with pytest.warns(RuntimeWarning, match="Vandal failed in log"):
        run.close()
    assert good.calls[0] == ("log", 1, {"a": 1.0})


def test_loggers_are_closed_though_the_database_has_failed(tmp_path: Path) -> None:
    notebook = Notebook()
    run = Run.create(tmp_path / "run", kind="training", loggers=[notebook])
    (tmp_path / "run").rename(tmp_path / "moved")
    run.log(1, {"a": 1.0})
    with pytest.raises(RunError, match="removed or replaced"):
        run.close()
    assert notebook.calls[-1] == ("close",)
    assert run.is_closed
