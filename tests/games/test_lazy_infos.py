"""Infos that are made when somebody looks at them are like any other dict."""

import copy
import pickle
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from games.game_cases import NEXT_STEP, SAME_STEP, assert_same
from stepladder import Task, Uniform, make_vec
from stepladder.games.lazy_infos import LazyInfos

PLAIN = {"a": 1, "_a": [True], "b": "two"}


class Known:
    """Makes what `PLAIN` holds, and notes what was made."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def names(self) -> Collection[str]:
        return PLAIN.keys()

    def one(self, name: str) -> dict[str, Any]:
        self.made.append(name)
        return {name: PLAIN[name]}

    def all(self) -> dict[str, Any]:
        self.made += PLAIN
        return dict(PLAIN)


READINGS: dict[str, Callable[[Any], Any]] = {
    "dict": dict,
    "unpacked": lambda infos: {**infos},
    "as keywords": lambda infos: dict(**infos),
    "updated": lambda infos: (found := {"z": 0}, found.update(infos))[0],
    "or": lambda infos: infos | {"b": 3},
    "or from the right": lambda infos: {"b": 3, "z": 0} | infos,
    "or in place": lambda infos: infos.__ior__({"c": 3}),
    "keys": lambda infos: list(infos),
    "backwards": lambda infos: list(reversed(infos)),
    "values": lambda infos: list(infos.values()),
    "items": lambda infos: list(infos.items()),
    "length": len,
    "truth": bool,
    "text": repr,
    "copy": copy.copy,
    "own copy": lambda infos: infos.copy(),
    "deep copy": copy.deepcopy,
    "pickle": lambda infos: pickle.loads(pickle.dumps(infos)),
    "get": lambda infos: [infos.get("a"), infos.get("z"), infos.get("z", 5)],
    "in": lambda infos: ["a" in infos, "z" in infos, 3 in infos],
    "pop": lambda infos: [infos.pop("a"), infos.pop("z", 4), list(infos)],
    "pop item": lambda infos: [infos.popitem(), list(infos)],
    "default": lambda infos: [infos.setdefault("a", 7), infos.setdefault("z", 7), list(infos)],
    "delete": lambda infos: (infos.__delitem__("_a"), list(infos)),
    "clear": lambda infos: (infos.clear(), list(infos)),
    "add": lambda infos: (infos.update({"z": 1}, y=2), list(infos)),
    "set": lambda infos: (infos.__setitem__("b", 5), infos.__setitem__("z", 1), dict(infos)),
    "equal": lambda infos: [infos == PLAIN, infos != PLAIN, infos.__eq__(PLAIN), infos == {}],
    "equal to its like": lambda infos: infos == LazyInfos(Known()),
}


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("looked_before", [False, True])
def test_whatever_is_read_is_what_a_plain_dict_gives(reading: str, looked_before: bool) -> None:
    infos = LazyInfos(Known())
    if looked_before:
        assert infos["b"] == "two"
    found, expected = READINGS[reading](infos), READINGS[reading](dict(PLAIN))
    assert found == expected
    if isinstance(expected, dict):
        assert list(found) == list(expected)


def test_nothing_is_made_before_it_is_looked_at_and_nothing_twice() -> None:
    known = Known()
    infos = LazyInfos(known)
    infos["z"] = 1
    assert "a" in infos
    assert known.made == []
    assert infos["a"] == infos["a"] == 1
    assert known.made == ["a"]
    assert dict(infos) == {**PLAIN, "z": 1}
    assert known.made == ["a", *PLAIN]
    with pytest.raises(KeyError, match="'y'"):
        infos["y"]


TASKS = [Task(f"level {seed}", "easy", {"stage": "simplest"}, seed) for seed in range(3)]


@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
def test_what_is_looked_at_later_is_what_it_was(mode: Any) -> None:
    """Two batches of the same games: the infos of one are read at once, of the other at the end."""
    kept: list[Any] = []
    pair = [
        make_vec(
            "stepladder/Ledge-v0", 3, curriculum=Uniform(TASKS, seed=1, capacity=2),
            autoreset_mode=mode, env_kwargs={"time_limit": 12},
        )
        for _ in range(2)
    ]  # fmt: skip
    at_once = [copy.deepcopy(dict(pair[0].reset(seed=0)[1]))]
    kept.append(pair[1].reset(seed=0)[1])
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = rng.integers(0, 6, 3)
        at_once.append(copy.deepcopy(dict(pair[0].step(actions)[4])))
        kept.append(pair[1].step(actions)[4])
    assert all(type(infos) is LazyInfos for infos in kept)
    for late, early in zip(kept, at_once, strict=True):
        assert_same(dict(late), early)
    assert any("curriculum_success" in (infos.get("final_info") or infos) for infos in at_once)
    for envs in pair:
        envs.close()


def test_gymnasiums_wrappers_take_them_for_a_dict() -> None:
    envs = RecordEpisodeStatistics(
        make_vec("stepladder/Ledge-v0", 2, env_kwargs={"time_limit": 5, "stage": "simplest"})
    )
    envs.reset(seed=0)
    for _ in range(6):
        infos = envs.step(np.zeros(2, dtype=np.int64))[4]
        if "episode" in infos:
            break
    np.testing.assert_equal(infos["episode"]["l"], [5, 5])
    assert set(infos) >= {"episode", "_episode", "is_success", "_is_success"}
    envs.close()
