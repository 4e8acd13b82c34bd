"""The policies that come with the package: they win, and damage to them is found."""

import json
import runpy
import shutil
import sys
from pathlib import Path

import pytest

from cli.command_line import CommandLine
from stepladder import load_policy
from stepladder.errors import ConfigError, SnapshotError
from stepladder.training.pretrained import PRETRAINED_FOLDER, find_pretrained, pretrained_names

ROOT = Path(__file__).parents[2]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with copies of all of them."""
    return Path(shutil.copytree(PRETRAINED_FOLDER, tmp_path / "copied"))


def test_each_is_small_and_says_how_it_was_made() -> None:
    assert pretrained_names() == ["hockey", "ledge"]
    for name in pretrained_names():
        found = find_pretrained(name)
        assert found.path.stat().st_size < 1_000_000
        assert (PRETRAINED_FOLDER / f"{name}.json").stat().st_size < 50_000
        assert found.step >= 20_000_000
        policy = load_policy(found.path)
        assert policy.agent == found.config.agent.kind
        assert set(found.evaluation["ways"]) == {"drawn", "best", "random"}


@pytest.mark.parametrize(("name", "least"), [("hockey", 0.85), ("ledge", 0.5)])
def test_each_plays_as_well_as_its_document_says(
    command: CommandLine, name: str, least: float
) -> None:
    few = ("--episodes", 16, "--drawn", "--json")
    code, out, err = command("eval", "--pretrained", name, *few)
    assert (code, err) == (0, "")
    total = json.loads(out)["total"]
    played = {part["name"]: part["rate"]["value"] for part in total["parts"]}
    told = find_pretrained(name).evaluation["ways"]["drawn"]
    assert total["rate"]["value"] >= least  # random play: 0.1
    for group, rate in played.items():
        assert rate == pytest.approx(told[group]["value"], abs=0.35)


def test_a_film_shows_it_win_against_each_opponent(command: CommandLine, tmp_path: Path) -> None:
    pytest.importorskip("av")
    film = tmp_path / "hockey.gif"
    code, out, err = command("watch", "--pretrained", "hockey", "--out", film, "--fps", 5)
    assert (code, err) == (0, "")
    assert ", 2 episodes, drawn actions, played by hockey, step 24,000,134: 2 succeeded" in out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("watch", "--pretrained", "hocky", "--out", "a.gif"), "Did you mean 'hockey'?"),
        (("watch", "--out", "a.gif"), "there is nothing to watch. Name an env"),
        (("watch", "CartPole-v1", "--pretrained", "ledge", "--out", "a.gif"), "Leave one out."),
        (("watch", "--pretrained", "ledge", "--trust", "--out", "a.gif"), "and --trust were given"),
        (("eval", "--pretrained", "../hockey"), "there are hockey, ledge."),
        (("eval",), "no policy was given"),
        (("eval", "random", "--pretrained", "ledge"), "two policies were given"),
        (("eval", "--pretrained", "ledge", "--checkpoint", "best"), "has no checkpoint 'best'"),
    ],
)
def test_what_does_not_go_with_it_is_refused(
    command: CommandLine, argv: tuple[str, ...], said: str
) -> None:
    assert said in command.fails(*argv)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("hockey.safetensors", b"", "not those that its document is about"),
        ("hockey.safetensors", None, "No such file"),
        ("hockey.json", b"{", "cannot be used"),
        ("hockey.json", b"[]", "not of the format 1"),
        ("hockey.json", b'{"format": 2}', "not of the format 1"),
        ("hockey.json", b'{"format": 1, "step": 3}', "lacks config, evaluation, sha256"),
    ],
)
def test_damage_is_said_with_what_to_do(
    copied: Path, file: str, text: bytes | None, said: str
) -> None:
    (copied / file).unlink()
    if text is not None:
        (copied / file).write_bytes(text)
    with pytest.raises(SnapshotError, match="Install the package again") as caught:
        find_pretrained("hockey", copied)
    assert said in str(caught.value)
    assert find_pretrained("ledge", copied).name == "ledge"


def test_a_single_changed_byte_is_found(copied: Path) -> None:
    path = copied / "ledge.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(SnapshotError, match="not those"):
        find_pretrained("ledge", copied)


def test_the_tool_makes_one_that_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--config", "cartpole", "--total-steps", "512", "--out", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["pretrain.py", "hockey", *flags])
    runpy.run_path(str(ROOT / "tools/pretrain.py"), run_name="__main__")
    assert "not evaluated" in capsys.readouterr().out
    made = find_pretrained("hockey", tmp_path)
    assert (made.config.env, made.step) == ("CartPole-v1", 512)
    assert load_policy(made.path).predict([0.0, 0.0, 0.0, 0.0])[0] in (0, 1)
    with pytest.raises(ConfigError, match="there are hockey"):
        find_pretrained("ledge", tmp_path)
