"""A run is data: nothing that it names is imported without a word, and its text stays text."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from cli.command_line import CommandLine
from stepladder import trusted
from stepladder.errors import RunError
from stepladder.runs import Run, RunReader, trust
from stepladder.training.starting import resume, train
from training.training_scenes import FOREIGN

pytestmark = pytest.mark.timeout(100)

ENV = "runs.evil.payload:Payload-v0"

PAYLOAD = """
from pathlib import Path
import gymnasium as gym
Path("executed").touch()
gym.register(
    "Payload-v0",
    entry_point="gymnasium.envs.classic_control:CartPoleEnv",
    max_episode_steps=30,
)
def tasks():
    Path("called").touch()
    return []
"""

HOSTILE = "\x1b]0;title\x07\x1b[2J\x1b[31mred\x9b1m\u202etxt"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of a training, begun in another process as far as anybody knows."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    train(FOREIGN, run_folder=folder, on_epoch=lambda progress: True)
    return folder


@pytest.fixture
def evil(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a downloaded run whose settings name a module in its own folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = Path("runs/evil")
    folder.parent.mkdir()
    _copy(trained, folder)
    (folder / "payload.py").write_text(PAYLOAD)
    change(folder / "config.json", lambda document: document["config"].update(env=ENV))
    for manifest in folder.glob("checkpoints/*/manifest.json"):
        change(manifest, lambda document: document["run"].update(env=ENV))
    yield folder
    for name in ("runs", "runs.evil", "runs.evil.payload"):
        module = sys.modules.get(name)
        if module is not None and "evil" in str(getattr(module, "__path__", name)):
            del sys.modules[name]
    gym.registry.pop("Payload-v0", None)


def _copy(source: Path, target: Path) -> None:
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            place.write_bytes(path.read_bytes())


def change(path: Path, how: Callable[[dict[str, Any]], Any]) -> None:
    document = json.loads(path.read_text())
    how(document)
    path.write_text(json.dumps(document))


REFUSED = [
    ("watch", "runs/evil", "--out", "film.gif"),
    ("watch", "runs/evil", "--out", "film.gif", "--policy", "random"),
    ("eval", "runs/evil"),
    ("eval", "runs/evil/checkpoints/newest"),
    ("train", "--resume", "runs/evil"),
]


@pytest.mark.parametrize("argv", REFUSED, ids=" ".join)
def test_nothing_that_a_run_names_is_imported(
    command: CommandLine, evil: Path, argv: tuple[str, ...]
) -> None:
    newest = max(path.name for path in evil.glob("checkpoints/step-*") if path.is_dir())
    said = command.fails(*(word.replace("newest", newest) for word in argv))
    assert f"names {ENV!r}: playing it would import 'runs.evil.payload' and run that code" in said
    assert "add --trust" in said
    assert not Path("executed").exists()
    assert not any("evil" in name for name in sys.modules)
    assert str(Path.cwd()) not in sys.path


@pytest.mark.parametrize("verb", ["explain", "report"])
def test_whoever_only_reads_imports_nothing(command: CommandLine, evil: Path, verb: str) -> None:
    # The curriculum of such a run fits no more, which is told.
    assert command(verb, evil).code == (0 if verb == "report" else 2)
    assert not Path("executed").exists()


def test_going_on_in_python_needs_trust_too(evil: Path) -> None:
    before = (evil / "run.sqlite").read_bytes()
    with pytest.raises(RunError, match=r"trust=True"):
        resume(evil)
    assert not Path("executed").exists()
    assert (evil / "run.sqlite").read_bytes() == before


@pytest.mark.parametrize(
    "argv",
    [
        ("watch", "runs/evil", "--out", "film.gif", "--max-steps", "3", "--trust"),
        ("watch", "runs/evil", "--out", "film.gif", "--policy", "random", "--trust"),
        ("eval", "runs/evil", "--episodes", "2", "--trust"),
    ],
    ids=" ".join,
)
def test_with_trust_it_is_played(
    command: CommandLine, evil: Path, argv: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path.cwd())
    _forget_other_packages(monkeypatch)
    assert command(*argv).code == 0
    assert Path("executed").exists()


def test_an_env_that_the_user_names_needs_no_trust(command: CommandLine, evil: Path) -> None:
    outcome = command("eval", evil, "--env-id", "CartPole-v1", "--episodes", "2")
    assert outcome.code == 0
    assert not Path("executed").exists()


def _forget_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `runs` be the folder here, and not the one of these tests."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "runs"]:
        monkeypatch.delitem(sys.modules, name)


def test_tasks_that_a_run_names_are_not_made(
    command: CommandLine, evil: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "own"
    with Run.create(folder, kind="experiment", config={"env": "CartPole-v1"}, seed=1):
        pass
    tasks = "runs.evil.payload:tasks"
    change(folder / "config.json", lambda document: document["config"].update(tasks=tasks))
    said = command.fails("watch", folder, "--out", "film.gif")
    assert f"names {tasks!r}" in said
    assert not Path("executed").exists()


def test_a_run_that_this_process_has_begun_is_trusted_as_it_was_begun(tmp_path: Path) -> None:
    config = {"env": "one_module:A-v0"}
    with Run.create(tmp_path / "run", kind="experiment", config=config):
        pass
    trust.require_trust(tmp_path / "run", config, False)
    for other in ({"env": "other:A-v0"}, {**config, "tasks": "more:tasks"}):
        with pytest.raises(RunError, match="add --trust"):
            trust.require_trust(tmp_path / "run", other, False)
    with pytest.raises(RunError, match="add --trust"):
        trust.require_trust(tmp_path / "copy", config, False)


def test_trust_is_for_a_run_that_goes_on(command: CommandLine) -> None:
    assert "--trust is for --resume and config files" in command.fails(
        "train", "cartpole", "--trust"
    )


# Text stays text.


def test_no_command_lets_a_terminal_obey_what_a_run_says(
    command: CommandLine, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    with Run.create(folder, kind="experiment", config={"a": HOSTILE}, seed=1) as run:
        run.log(10, {HOSTILE: 1.0, "overview/reward": 0.5})
        run.event(10, HOSTILE, f"happened {HOSTILE}", {"task": HOSTILE})
        run.event(10, "explanation", HOSTILE)
        run.event(10, "verdict", HOSTILE)
        columns = {"task": [HOSTILE], "label": [HOSTILE], "reason": [HOSTILE], "prob": [1.0]}
        run.log_tasks(10, columns)
        run.close(f"failed: {HOSTILE}")
    assert HOSTILE in RunReader(folder).status
    for argv in (
        ("explain", folder),
        ("explain", folder, "--task", HOSTILE),
        ("explain", folder, "--task", f"{HOSTILE}?"),
        ("explain", folder, "--json"),
        ("report", folder, "--out", tmp_path / f"{HOSTILE}.html"),
        ("report", folder, "--metrics", f"{HOSTILE}?"),
        ("watch", folder, "--out", tmp_path / "film.gif"),
        ("eval", folder),
        ("train", "--resume", folder),
        ("train", f"{HOSTILE}.json"),
    ):
        outcome = command(*argv)
        shown = outcome.out + outcome.err
        assert shown
        assert not {code for code in shown if code != "\n" and not code.isprintable()}, argv
    assert r"\x1b]0;title\x07\x1b[2J\x1b[31mred\x9b1m\u202etxt" in command("explain", folder).out


NAMED = [
    {"env": "payload:X-v0"},
    {"env": "CartPole-v1", "wrappers": ["payload:X"]},
    {"env": "CartPole-v1", "tasks": "payload:X"},
    {"env": "CartPole-v1", "tasks": [{"name": "a"}], "deliver": "payload:X"},
]
"""Settings that name code, each in its own way."""


@pytest.mark.parametrize("settings", NAMED, ids=lambda settings: ", ".join(settings))
def test_a_config_file_that_names_a_module_needs_trust(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    monkeypatch.syspath_prepend(Path.cwd())
    Path("payload.py").write_text("open('executed', 'w').close()\n")
    Path("config.json").write_text(json.dumps(settings))
    # Also where a flag asks what the tasks or the env are.
    for flags in ((), ("--curriculum", "staged"), ("--total-steps", "9", "--curriculum", "auto")):
        said = command.fails("train", "config.json", "--no-keep", *flags)
        assert "config.json names 'payload:X" in said
        assert "add --trust" in said
    assert not Path("executed").exists()
    command.fails("train", "config.json", "--no-keep", "--trust")
    assert Path("executed").exists()
    sys.modules.pop("payload", None)


NETWORK = """
from pathlib import Path
from torch import nn
Path("executed").touch()
class Net(nn.Linear):
    def __init__(self, space, width=3):
        super().__init__(space.shape[0], width)
"""


@pytest.mark.slow
def test_a_network_that_a_policy_names_is_not_imported(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    small = ("--num-envs", "2", "--total-steps", "64", "--epoch-steps", "64", "--num-workers", "0")
    Path("net_here.py").write_text(NETWORK)
    wide = ("--agent.encoder", "net_here:Net", "--encoder-kwargs", "width=5")
    begun = ("train", "--env", "CartPole-v1", "--agent.rollout-steps", "32", *small, *wide)
    assert command(*begun, "--evaluation.num-games", "2", "--out", "run").code == 0
    assert RunReader("run").config["agent"]["encoder_kwargs"] == {"width": 5}
    # As another process finds it: a run that came from elsewhere.
    Path("run").rename("copy")
    Path("executed").unlink()
    monkeypatch.setattr(trusted, "_names", set())
    monkeypatch.delitem(sys.modules, "net_here")
    weights = next(Path("copy").glob("checkpoints/*/weights.safetensors"))
    once = ("--episodes", "1")
    for argv in (
        ("eval", "copy", *once),
        ("eval", weights, "--env-id", "CartPole-v1", *once),
        ("watch", "CartPole-v1", "--policy", "copy", "--out", "film.gif", "--max-steps", "2"),
        ("train", "--resume", "copy", "--total-steps", "128"),
    ):
        said = command.fails(*argv)
        assert "names 'net_here:Net': playing it would import 'net_here' and run that code" in said
        assert not Path("executed").exists()
    for argv in (
        ("eval", weights, "--env-id", "CartPole-v1", *once),
        ("watch", "CartPole-v1", "--policy", "copy", "--out", "film.gif", "--max-steps", "2"),
        ("train", "--resume", "copy", "--total-steps", "128"),
    ):
        monkeypatch.setattr(trusted, "_names", set())
        assert command(*argv, "--trust").code == 0, argv
    assert Path("executed").exists()
    assert "--encoder-kwargs are for a network of your own" in command.fails(
        "train", "cartpole", "--no-keep", "--encoder-kwargs", "width=5"
    )
    sys.modules.pop("net_here")


def test_a_flag_replaces_what_a_config_file_names_before_it_is_imported(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path.cwd())
    Path("payload.py").write_text("open('executed', 'w').close()\n")
    Path("config.yaml").write_text("env: payload:X-v0\nnum_envs: 2\nevaluation: {num_games: 1}\n")
    flags = ("--env", "CartPole-v1", "--curriculum", "uniform", "--total-steps", "50", "--no-keep")
    assert command("train", "config.yaml", *flags).code == 0
    assert not Path("executed").exists()


@pytest.mark.parametrize("settings", NAMED[1:], ids=lambda settings: ", ".join(settings))
def test_naming_the_env_does_not_make_the_rest_of_a_run_trusted(
    command: CommandLine, evil: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path.cwd())
    Path("payload.py").write_text("open('executed', 'w').close()\n")
    change(evil / "config.json", lambda document: document["config"].update(settings))
    for manifest in evil.glob("checkpoints/*/manifest.json"):
        change(manifest, lambda document: document["run"].update(settings))
    for argv in (
        ("eval", evil, "--env-id", "CartPole-v1"),
        ("watch", evil, "--env-id", "CartPole-v1", "--out", "film.gif"),
        ("train", "--resume", evil, "--env", "CartPole-v1"),
    ):
        said = command.fails(*argv)
        assert "names 'payload:X': playing it would import 'payload' and run that code" in said
    assert not Path("executed").exists()
