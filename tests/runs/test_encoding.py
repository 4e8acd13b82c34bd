"""Checks before anything is stored, and bytes that become the same numbers again."""

import json
import math
import zlib
from typing import Any

import numpy as np
import pytest

from runs.scenes import make_records
from stepladder.errors import RunError
from stepladder.plans.record import DRAW_DTYPE, RECORD_DTYPE
from stepladder.runs import encoding
from stepladder.runs.encoding import STORED_RECORD, Unpacking

NAMES = {"task": ["a", "b"], "label": ["x", "x"]}


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, 2], np.int64, [1, 2]),
        ([True, False], np.int64, [1, 0]),
        (np.array([1, 2], dtype=np.uint8), np.int64, [1, 2]),
        (np.array([1, 2**63], dtype=np.uint64), np.float64, [1.0, 2.0**63]),
        ([0.5, 2], np.float64, [0.5, 2.0]),
        (np.array([0.5, -1], dtype=np.float32), np.float64, [0.5, -1.0]),
        ([math.inf, 1e-320], np.float64, [math.inf, 1e-320]),
        ((3, 4), np.int64, [3, 4]),
        (range(2), np.int64, [0, 1]),
        (np.arange(4)[::2], np.int64, [0, 2]),
        (np.array([1, 2], dtype=">i4"), np.int64, [1, 2]),
    ],
)
def test_columns_of_numbers_come_back_as_they_were(values: Any, kind: Any, expected: Any) -> None:
    column = encoding.checked_columns({**NAMES, "x": values})["x"]
    assert isinstance(column, np.ndarray)
    assert column.dtype == kind
    back = Unpacking().numbers(*encoding.packed_numbers(column))
    assert (back.dtype, back.tolist()) == (kind, expected)


def test_a_number_that_is_missing_is_nan() -> None:
    column = encoding.checked_columns({**NAMES, "x": [None, 1.5]})["x"]
    assert np.isnan(column[0])  # type: ignore[arg-type]
    assert column[1] == 1.5


def test_a_column_is_a_copy() -> None:
    values = np.zeros(2)
    column = encoding.checked_columns({**NAMES, "x": values})["x"]
    values[0] = 1
    assert list(column) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"label": ["x"]}, r"'task' is missing from \['label'\]"),
        ({"task": ["x"]}, r"'label' is missing from \['task'\]"),
        ({**NAMES, "x": [1]}, "column 'x' has 1 rows, but there are 2 tasks"),
        ({"x": [1], **NAMES}, "column 'x' has 1 rows, but there are 2 tasks"),
        ({"task": ["a"], "label": []}, "column 'label' has 0 rows, but there are 1 tasks"),
        ({**NAMES, "task": "ab"}, "column 'task' must be a list of strings; got 'ab'"),
        ({**NAMES, "task": None}, "column 'task' must be a list of strings; got None"),
        ({**NAMES, "label": ["x", 1]}, "column 'label' must hold strings; found 1"),
        ({**NAMES, "x": ["1", "2"]}, "column 'x' must hold numbers"),
        ({**NAMES, "x": [1j, 2]}, "column 'x' must hold numbers"),
        ({**NAMES, "x": [object(), 2]}, "column 'x' must hold numbers"),
        ({**NAMES, "x": [[1, 2], [3]]}, "column 'x' must hold numbers"),
        ({**NAMES, "x": [[1, 2], [3, 4]]}, r"column 'x' has shape \[2, 2\]"),
        ({**NAMES, "x": 3}, r"column 'x' has shape \[\]"),
        ({**NAMES, "": [1, 2]}, "the name of a column must be a non-empty string"),
        ({**NAMES, 3: [1, 2]}, "the name of a column must be a non-empty string; got 3"),
    ],
)
def test_a_snapshot_that_makes_no_sense_is_refused(columns: Any, words: str) -> None:
    with pytest.raises(RunError, match=words):
        encoding.checked_columns(columns)


def test_names_may_come_as_an_array() -> None:
    columns = encoding.checked_columns({"task": np.array(["a", "é"]), "label": ("x", "y")})
    assert columns == {"task": ["a", "é"], "label": ["x", "y"]}
    assert [type(name) for name in columns["task"]] == [str, str]


def test_a_snapshot_may_be_of_no_task_at_all() -> None:
    columns = encoding.checked_columns({"task": [], "label": [], "x": []})
    assert {name: len(column) for name, column in columns.items()} == dict.fromkeys(columns, 0)


@pytest.mark.parametrize("names", [[], ["a"], ["é", "\ud800", "a\x00", '"']])
def test_names_come_back_as_they_were(names: list[str]) -> None:
    data = encoding.packed(json.dumps(names).encode())
    assert Unpacking().names(data) == names


def test_much_is_compressed_and_little_is_not() -> None:
    little, much = b"x" * 100, b"x" * 100_000
    assert encoding.packed(little) == b"p" + little
    assert len(encoding.packed(much)) < 1000
    for data in (b"", little, much):
        assert Unpacking().content(encoding.packed(data)) == data


@pytest.mark.parametrize("data", [b"", b"x123", b"zrubbish"])
def test_bytes_of_another_kind_are_noticed(data: bytes) -> None:
    with pytest.raises((ValueError, zlib.error)):
        Unpacking().content(data)


def test_records_come_back_as_they_were() -> None:
    for count in (0, 3, 1000):
        records = make_records(*range(count))
        records["success"] = np.nan
        back = Unpacking().records(
            len(records), encoding.packed(records.astype(STORED_RECORD).tobytes())
        )
        assert back.dtype == RECORD_DTYPE
        assert back.tobytes() == records.tobytes()


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([(1,)], "one-dimensional array of RECORD_DTYPE; got"),
        (np.zeros(2), r"got float64\[2\]"),
        (np.zeros((2, 2), dtype=RECORD_DTYPE), r"\[2, 2\]"),
        (np.zeros(2, dtype=DRAW_DTYPE), "got .*task_id"),
    ],
)
def test_what_are_no_records_is_refused(records: Any, words: str) -> None:
    with pytest.raises(RunError, match=words):
        encoding.checked_records(records)


def test_data_of_an_event_becomes_plain_json() -> None:
    data = {
        "array": np.array([[1.5, np.nan]]),
        "scalar": np.float32(0.5),
        "inf": -math.inf,
        "deep": {"tuple": (1, None, True), 3: "é"},
    }
    text = encoding.packed_data(data)
    assert text is not None
    assert json.loads(text) == {
        "array": [[1.5, None]],
        "scalar": 0.5,
        "inf": None,
        "deep": {"tuple": [1, None, True], "3": "é"},
    }
    assert encoding.packed_data(None) is None
    assert encoding.packed_data({}) == "{}"


def test_data_that_json_cannot_hold_is_named_by_its_path() -> None:
    with pytest.raises(RunError, match=r"data\.a\.1 of an event has type object"):
        encoding.packed_data({"a": [1, object()]})
    with pytest.raises(RunError, match=r"must be a mapping; got \[1\]"):
        encoding.packed_data([1])  # type: ignore[arg-type]
    endless: dict[str, Any] = {}
    endless["self"] = endless
    with pytest.raises(RunError, match="contains itself"):
        encoding.packed_data(endless)
