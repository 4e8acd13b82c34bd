"""Single settings by dotted name, and configs with some of them changed."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from stepladder.configs.checks import Integer, UnitInterval
from stepladder.configs.codec import Config
from stepladder.configs.field_docs import field_docs
from stepladder.configs.problems import Problems
from stepladder.configs.settings import settings_of, with_settings


@dataclass(frozen=True, kw_only=True)
class Inner(Config):
    share: UnitInterval = 0.5
    """How much."""


@dataclass(frozen=True, kw_only=True)
class Outer(Config):
    inner: Inner = field(default_factory=Inner)
    count: Annotated[int, Integer(1, 9)] | None = None
    """How many. By default
    as many as there are."""
    kind: Literal["a", "b"] = "a"
    names: tuple[str, ...] = ()
    is_on: bool = True
    pairs: tuple[tuple[float, float], ...] = ()


def test_settings_say_what_they_hold_and_what_holds_no_single_value_is_left_out():
    found = {one.name: one for one in settings_of(Outer())}
    assert list(found) == ["inner.share", "count", "kind", "names", "is_on"]
    assert (found["inner.share"].low, found["inner.share"].high) == (0.0, 1.0)
    count = found["count"]
    assert (count.kind, count.low, count.high, count.can_be_none) == ("integer", 1, 9, True)
    assert found["kind"].choices == ("a", "b")
    assert field_docs(count.owner)["count"] == "How many. By default as many as there are."


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("inner.share", "0.25", 0.25),
        ("count", "7", 7),
        ("count", "none", None),
        ("kind", "b", "b"),
        ("names", "x+y", ("x", "y")),
        ("is_on", "false", False),
        ("count", "many", "many"),
    ],
)
def test_a_text_is_read_as_its_setting_holds_it(name: str, text: str, value: Any):
    (setting,) = (one for one in settings_of(Outer()) if one.name == name)
    assert setting.read(text) == value


def test_settings_are_changed_by_name_and_all_problems_are_found_at_once():
    problems = Problems()
    changed = with_settings(Outer(), {"inner.share": 0.1, "names": ["x"]}, problems)
    assert changed == Outer(inner=Inner(share=0.1), names=("x",))
    wrong = {"inner.share": 2.0, "inner.other": 1, "count": 0, "kind.of": 1, "nothing": 1}
    assert with_settings(Outer(), wrong, problems) == Outer()
    paths = [path for path, _ in problems.found]
    assert sorted(paths) == ["count", "inner.other", "inner.share", "kind.of", "nothing"]
