"""YAML means what JSON would mean, and nothing of it can grow, run or repeat itself."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from stepladder.configs.documents import load_document
from stepladder.configs.yaml_text import parsed_yaml
from stepladder.errors import ConfigError
from stepladder.files import MOST_DEPTH
from stepladder.simulator.scenarios import scenario
from stepladder.training.config import TrainingConfig, load_config

yaml = pytest.importorskip("yaml")


@pytest.fixture(params=["compiled", "plain"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.delattr(yaml, "CSafeLoader")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: 1\nb: [2.5, ~]\nc: {d: true, e: null}",
         {"a": 1, "b": [2.5, None], "c": {"d": True, "e": None}}),
        ("- 1\n- - 2\n  -\n- {}\n- []", [1, [2, None], {}, []]),
        # What PyYAML itself reads as a text, as false, as a date and as 5400.
        ("[1e-3, no, 2001-01-01, 1:30, 0x1f]", [0.001, "no", "2001-01-01", "1:30", "0x1f"]),
        ("['1', \"true\"]", ["1", "true"]),
        ("{1: a, on: b, ~: c}", {"1": "a", "on": "b", "~": "c"}),
        ("level: |\n  ##\n  #.\n", {"level": "##\n#.\n"}),
        ("<<: {a: 1}", {"<<": {"a": 1}}),
    ],
)  # fmt: skip
def test_plain_values_are_read_as_yaml_1_2_has_them(text: str, value: Any) -> None:
    assert parsed_yaml(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &x [1]\nb: [*x, *x]", "line 1: it has an anchor or alias"),
        ("a: 1\nb: *x", "line 2: it has an anchor or alias"),
        ("a: !!python/object/apply:os.system ['x']", "line 1: it has the tag tag:yaml.org,2002:py"),
        ("a: !mine 3", "line 1: it has the tag !mine"),
        ("a: 1\na: 2", "line 2: the key 'a' is there twice"),
        ("a: 1\n---\nb: 2", "line 3: a second document begins"),
        ("? [1]\n: 2", "line 1: a key is a list or an object"),
        ("a: .nan", "line 1: .nan is not a finite number"),
        ("\na: -.inf", "line 2: -.inf is not a finite number"),
        ("a: 1e999", "the number 1e999 is too large"),
        (f"a: {'9' * 400}", "an integer has 400 digits; at most 300"),
        ("[" * 50_000, f"nested deeper than {MOST_DEPTH} levels"),
        ("a: b: c", "line 1: mapping values are not allowed"),
    ],
)
def test_all_else_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        parsed_yaml(text.encode())
    assert "\n" not in str(caught.value)


def test_a_config_may_be_yaml_wherever_it_may_be_json(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("env: CartPole-v1\nagent: {type: PPO, learning_rate: 1e-3}\nseed: 3\n")
    config = load_config(path)
    assert (config.env, config.agent.learning_rate, config.seed) == ("CartPole-v1", 0.001, 3)
    path.write_text("num_env: 3\nseed: -1\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert [place for place, _ in caught.value.problems] == ["seed", "num_env"]
    graph = tmp_path / "two.yml"
    graph.write_text("parents:\n- []\n- [0]\n")
    assert scenario(str(graph)).name == "two"


def test_a_broken_file_and_a_missing_package_are_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: [")
    with pytest.raises(ConfigError, match=r"a\.yaml is not YAML that is read: line \d: .* Correct"):
        load_document(path)
    path.write_bytes(b"a: \xff")
    with pytest.raises(ConfigError, match="it is not UTF-8 text"):
        load_document(path)
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(
        ConfigError, match=r"needs the package PyYAML.*pip install 'stepladder\[cli"
    ):
        load_document(path)


def test_tasks_may_hold_more_than_settings(tmp_path: Path) -> None:
    level = "#" * 10_000
    config = TrainingConfig.from_json({"tasks": [{"name": "a", "params": {"level": level}}]})
    assert config.tasks[0].params["level"] == level
    with pytest.raises(ConfigError, match="at most 4096"):
        TrainingConfig.from_json({"env": level})
