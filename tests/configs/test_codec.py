"""Configs from JSON and back: what fits an annotation, and every problem with its path."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest

from stepladder.configs.checks import Name, PositiveInteger, UnitInterval, not_empty
from stepladder.configs.codec import Config, Kinds, fitted, to_json
from stepladder.configs.problems import Problems
from stepladder.errors import ConfigError
from stepladder.tasks import Task


@dataclass(frozen=True, kw_only=True)
class Point(Config):
    x: float
    y: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Named(Config):
    name: Name

    @classmethod
    def expand(cls, value: Any, problems: Problems) -> Any:
        return {"name": value} if isinstance(value, str) else value


@dataclass(frozen=True, kw_only=True)
class Shape(Config):
    kind: ClassVar[str]

    @classmethod
    def kinds(cls) -> Kinds:
        return {"circle": Circle, "box": Box}

    def to_json(self) -> dict[str, Any]:
        return {"type": self.kind, **super().to_json()}


@dataclass(frozen=True, kw_only=True)
class Circle(Shape):
    kind = "circle"
    radius: UnitInterval = 0.5


@dataclass(frozen=True, kw_only=True)
class Box(Shape):
    kind = "box"
    low: int = 0
    high: int = 1

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if not self.low < self.high:
            yield "high", f"must be above low ({self.low}); got {self.high}."


@dataclass(frozen=True, kw_only=True)
class Drawing(Config):
    title: str = "untitled"
    size: PositiveInteger = 3
    is_open: bool = False
    colour: Literal["red", "green"] = "red"
    where: tuple[float, float] = (0.0, 0.0)
    names: Annotated[tuple[Named, ...], not_empty] = (Named(name="first"),)
    shape: Shape = field(default_factory=Circle)
    limit: UnitInterval | None = None
    weights: dict[str, UnitInterval] = field(default_factory=dict[str, float])
    free: dict[str, Point | Any] = field(default_factory=dict[str, Any])
    tasks: tuple[Task, ...] = ()


FULL = Drawing(
    title="all",
    size=np.int64(4),  # pyright: ignore
    is_open=True,
    colour="green",
    where=[1, np.float32(0.5)],  # pyright: ignore
    names=["a", Named(name="b")],  # pyright: ignore
    shape=Box(low=-1, high=2),
    limit=1,
    weights={"a": 0.25},
    free={"p": Point(x=1), "plain": {"x": [1, (2,)]}, "none": None},
    tasks=(Task("t", params={"deep": [1]}),),
)


def problems_of(data: Any) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        Drawing.from_json(data, "the drawing")
    return dict(caught.value.problems)


def test_a_config_comes_back_from_its_json_unchanged():
    text = json.dumps(FULL.to_json(), allow_nan=False)
    assert Drawing.from_json(json.loads(text)) == FULL
    assert Drawing.from_json({}) == Drawing()


def test_values_become_what_the_annotation_says_in_python_too():
    assert (FULL.where, type(FULL.where[0]), type(FULL.size)) == ((1.0, 0.5), float, int)
    assert FULL.names == (Named(name="a"), Named(name="b"))
    assert FULL.free["plain"] == {"x": [1, [2]]}
    assert isinstance(FULL.limit, float)
    assert replace(Drawing(), shape={"type": "box"}).shape == Box()  # pyright: ignore


def test_an_object_in_a_union_is_the_dataclass_whose_fields_it_has():
    free = Drawing.from_json({"free": {"a": {"x": 1, "y": 2}, "b": {"x": 1}}}).free
    assert free == {"a": Point(x=1, y=2), "b": {"x": 1}}


def test_all_problems_are_listed_with_their_paths():
    found = problems_of(
        {
            "size": 0,
            "sizex": 3,
            "is_open": 1,
            "colour": "blue",
            "where": [1],
            "names": ["a", {"namex": "b"}, 3],
            "shape": {"type": "box", "low": 2, "high": "x"},
            "limit": 2,
            "weights": {"a": -1},
            "free": {"a": {"x": "1", "y": 2}},
            "tasks": [{"name": ""}],
        }
    )
    assert list(found) == [
        "size",
        "is_open",
        "colour",
        "where",
        "names[1].name",
        "names[1].namex",
        "names[2]",
        "shape.high",
        "limit",
        "weights.a",
        "free.a.x",
        "tasks[0]",
        "sizex",
    ]
    assert found["colour"] == "must be 'red' or 'green'; got 'blue'."
    assert found["names[1].namex"] == "unknown key. Did you mean 'name'?"
    assert found["shape.high"] == "must be an integer; got 'x'."


def test_what_a_part_says_about_its_own_fields_has_their_path():
    assert problems_of({"shape": {"type": "box", "low": 5}, "size": 0}) == {
        "size": "must be an integer of at least 1; got 0. Give such a number.",
        "shape.high": "must be above low (5); got 1.",
    }


@pytest.mark.parametrize(
    ("shape", "path", "text"),
    [
        ({"radius": 1}, "shape.type", "must be one of circle, box; it is missing."),
        ({"type": "circlex"}, "shape.type", "got 'circlex'. Did you mean 'circle'?"),
        ({"type": ["box"]}, "shape.type", "got ['box']."),
        ("box", "shape", 'got \'box\'. Give Box(), in JSON {"type": "box"}.'),
        ("bx", "shape", "{\"type\": …} with one of circle, box. Did you mean 'box'?"),
    ],
)
def test_a_kind_is_named_by_its_type(shape: Any, path: str, text: str):
    assert problems_of({"shape": shape})[path].endswith(text)


def test_one_kind_is_not_read_as_another():
    with pytest.raises(ConfigError, match="type: must be one of"):
        Box.from_json({"type": "circle"})


def test_one_problem_is_one_line_and_several_are_a_list():
    with pytest.raises(ConfigError) as caught:
        Drawing.from_json({"size": 0, "title": 3}, "the drawing")
    assert str(caught.value).splitlines() == [
        "2 problems in the drawing; nothing was started:",
        "  title: must be a text; got 3.",
        "  size: must be an integer of at least 1; got 0. Give such a number.",
    ]
    with pytest.raises(ConfigError) as caught:
        Drawing.from_json({"a\nb\x1b": 0}, "the drawing")
    assert str(caught.value).startswith(
        r"1 problem in the drawing; nothing was started: a b\x1b: unknown key. Known here: title,"
    )
    with pytest.raises(ConfigError, match=r"^names\[0\]\.name must not be empty; got ''\."):
        Drawing(names=[""])  # pyright: ignore
    with pytest.raises(ConfigError, match=r"^2 problems:\n  size: .*\n  is_open: "):
        Drawing(size=0, is_open=1)  # pyright: ignore


def test_what_json_cannot_hold_is_found_before_anything_is_read():
    assert list(problems_of({"free": {"a": {1: 2}}, "size": float("nan"), "sizex": 0})) == [
        "free.a",
        "size",
    ]
    assert list(problems_of([1])) == [""]
    with pytest.raises(ConfigError, match=r"^free\.a has type set"):
        Drawing(free={"a": {1}})
    with pytest.raises(ConfigError, match=r"^weights has the key 1; keys must be strings"):
        Drawing(weights={1: 0.5})  # pyright: ignore


def test_a_list_where_one_value_belongs_is_told_so():
    assert problems_of({"size": [1, 2]})["size"].endswith("a config has one: choose one.")


def test_single_values_are_fitted_or_refused_by_name():
    assert fitted([1], tuple[float, ...], "a.b") == (1.0,)
    with pytest.raises(ConfigError, match=r"^a\.b\[0\] must be a finite number; got 'x'"):
        fitted(["x"], tuple[float, ...], "a.b")


def test_values_become_what_json_gives_back():
    value = {"a": (1, [2.0, (np.float32(0.5), np.int64(3))]), 5: np.bool_(True), "p": Point(x=1)}
    plain = to_json(value)
    assert plain == {"a": [1, [2.0, [0.5, 3]]], "5": True, "p": {"x": 1.0, "y": 0.0}}
    assert json.loads(json.dumps(plain)) == plain
