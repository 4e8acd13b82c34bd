from typing import Any

import numpy as np
import pytest

from stepladder.errors import SnapshotError
from stepladder.saving.saved_array import Part, SavedArray, copy_arrays, restore_arrays

RECORD = np.dtype([("x", "f8"), ("inner", [("steps", "i8"), ("flag", "?")], (2,))])


def refusal(described: SavedArray, saved: Any, place: str = "the snapshot") -> str:
    with pytest.raises(SnapshotError) as caught:
        described.read({described.name: saved}, place)
    return str(caught.value)


def test_an_array_must_fit_in_shape_and_type():
    described = SavedArray("x", np.zeros(3))
    assert described.read({"x": np.ones(3)}).tolist() == [1.0, 1.0, 1.0]
    for saved, found in (
        (None, "is missing"),
        ([1.0, 1.0, 1.0], "is a list"),
        (np.ones(4), "is float64[4]"),
        (np.ones(3, dtype=np.int64), "is int64[3]"),
        (np.ones((3, 1)), "is float64[3, 1]"),
        (np.ones(3, dtype=">f8"), "is float64[3]"),
    ):
        assert f"array 'x' of the snapshot: {found}; expected float64[3]" in refusal(
            described, saved
        )


def test_a_refusal_names_array_place_value_and_range():
    described = SavedArray("rows", np.zeros((2, 2)), (Part.count("plays", np.s_[:, 1], 9),))
    saved = np.array([[0.5, 3.0], [0.5, 10.0]])
    assert refusal(described, saved, "part 'method' of run/curriculum.npz") == (
        "array 'rows' of part 'method' of run/curriculum.npz: plays[1] is 10.0; expected an "
        "integer from 0 to 9. It is damaged or belongs to something else; use an older one."
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_floats_are_finite_unless_a_part_says_otherwise(value: float):
    assert "is" in refusal(SavedArray("x", np.zeros(2)), np.array([0.0, value]))
    infinite = SavedArray("x", np.zeros(2), (Part("best", low=-np.inf, high=np.inf),))
    if np.isnan(value):
        assert "best[1] is nan" in refusal(infinite, np.array([0.0, value]))
    else:
        infinite.read({"x": np.array([0.0, value])})


def test_counts_kept_as_floats_must_be_whole():
    described = SavedArray("x", np.zeros(1), (Part.count("plays"),))
    assert "plays[0] is 0.5; expected an integer" in refusal(described, np.array([0.5]))
    assert "plays[0] is -1.0" in refusal(described, np.array([-1.0]))


def test_bounds_may_differ_from_element_to_element():
    described = SavedArray("x", np.zeros(2), (Part("place", ..., 0, np.array([1, 5])),))
    described.read({"x": np.array([1.0, 5.0])})
    assert "place[0] is 2.0; expected a finite number from 0 to 1" in refusal(
        described, np.array([2.0, 5.0])
    )


def test_fields_of_nested_records_are_checked():
    described = SavedArray(
        "games", np.zeros(2, dtype=RECORD), (Part.count("steps", "inner.steps", 7),)
    )
    saved = np.zeros(2, dtype=RECORD)
    saved["inner"]["steps"][1, 0] = 8
    assert "steps[1, 0] is 8; expected an integer from 0 to 7" in refusal(described, saved)
    saved["inner"]["steps"] = 0
    saved["x"][1] = np.nan
    assert "x[1] is nan" in refusal(described, saved)


def test_a_bool_is_0_or_1():
    described = SavedArray("flags", np.zeros(2, dtype=np.bool_))
    odd = np.array([0, 2], dtype=np.uint8).view(np.bool_)
    assert "array 'flags'" in refusal(described, odd)
    records = np.zeros(1, dtype=RECORD)
    records.view(np.uint8)[-1] = 7
    assert "inner.flag" in refusal(SavedArray("games", np.zeros(1, dtype=RECORD)), records)


def test_the_number_of_rows_can_be_free_up_to_a_limit():
    described = SavedArray("past", np.zeros((0, 3)), max_length=2)
    assert described.read({"past": np.ones((2, 3))}).shape == (2, 3)
    assert "float64[3, 3]; expected float64[0, 3] with up to 2 rows" in refusal(
        described, np.ones((3, 3))
    )
    assert "float64[2, 4]" in refusal(described, np.ones((2, 4)))


def test_nothing_is_written_unless_everything_fits():
    first, second = np.zeros(2), np.zeros(2)
    described = [SavedArray("a", first), SavedArray("b", second, (Part.share("b"),))]
    saved = {"a": np.ones(2), "b": np.array([0.0, 2.0])}
    with pytest.raises(SnapshotError):
        restore_arrays(described, saved)
    assert first.tolist() == [0.0, 0.0]
    restore_arrays(described, {**saved, "b": np.ones(2)})
    assert first.tolist() == second.tolist() == [1.0, 1.0]
    copies = copy_arrays(described)
    first[:] = 5.0
    assert copies["a"].tolist() == [1.0, 1.0]
