"""A package with a curriculum, an agent and a game is installed, and used through every command.

Its code is that of the worked examples in CONTRIBUTING.md; nothing in the library knows of it.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.command_line import CommandLine, finished, running, wait_until
from stepladder.curricula import CURRICULA
from stepladder.curricula.registry import curriculum_variant
from stepladder.runs import RunReader
from worked_examples import WorkedExample

pytest.importorskip("torch")

from stepladder.training.checkpoints import store
from training.training_scenes import differences, left_behind

GAME, AGENT, CURRICULUM = "acme/Slide-v0", "Linear", "rarest"

PROJECT = f"""
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "acme"
version = "1.0"
dependencies = ["stepladder"]

[project.entry-points."stepladder.curricula"]
{CURRICULUM} = "acme.rarest:RarestConfig"

[project.entry-points."stepladder.agents"]
{AGENT} = "acme.linear:LinearConfig"

[project.entry-points."stepladder.games"]
"{GAME}" = "acme.slide.game:SLIDE"
"""

TRAIN = (
    *("train", "--env", GAME, "--source", "longest=5", "--num-envs", 4),
    *("--agent", AGENT.lower(), "--agent.batch-steps", 24, "--agent.learning-rate", 0.1),
    *("--curriculum", CURRICULUM, "--curriculum.power", 2),
    *("--epoch-steps", 64, "--evaluation.num-games", 2, "--evaluation.every-steps", "None"),
)

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package with pip into a folder, without a network; return the folder."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("packages")
    files = {"pyproject.toml": PROJECT, "acme/__init__.py": ""}
    for kind in ("curriculum", "agent", "game"):
        files |= WorkedExample.read(kind).pack("acme")
    for path, content in files.items():
        (source / path).parent.mkdir(exist_ok=True, parents=True)
        (source / path).write_text(content)
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    offline = ("--no-index", "--no-deps", "--no-build-isolation")
    done = subprocess.run(
        [*pip, *offline, "--target", folder, source],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def here(packages: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process find the package, and forget it afterwards."""
    before = dict(CURRICULA._entries)
    monkeypatch.syspath_prepend(str(packages))
    yield
    CURRICULA._entries.clear()
    CURRICULA._entries.update(before)
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme"]:
        del sys.modules[name]


def test_all_three_are_trained_killed_resumed_exactly_evaluated_watched_and_reported(
    packages: Path, tmp_path: Path
) -> None:
    def says(*argv: object) -> str:
        code, out, err = finished(*argv, cwd=tmp_path, packages=packages)
        assert (code, err) == (0, ""), err
        return out

    run, whole = tmp_path / "cut", tmp_path / "whole"
    argv = (*TRAIN, "--total-steps", 10**8, "--checkpoints.every-steps", 64, "--out", run)
    with running(*argv, cwd=tmp_path, packages=packages) as process:
        wait_until(lambda: len(store.find(run)) > 1, process)
        os.killpg(process.pid, signal.SIGKILL)
    config = RunReader(run).config
    assert (config["env"], config["agent"]["type"]) == (GAME, AGENT)
    assert config["agent"]["batch_steps"] == 24
    assert (config["curriculum"]["type"], config["curriculum"]["power"]) == (CURRICULUM, 2.0)

    saved = RunReader(run).checkpoint_step()
    assert saved is not None
    until = ("--total-steps", saved + 200)
    resumed = says("train", "--resume", run, *until)
    assert "\nfinished after " in resumed
    says(*TRAIN, *until, "--out", whole)
    assert differences(left_behind(run), left_behind(whole)) == []

    evaluated = json.loads(says("eval", run, "--json"))
    assert (evaluated["env"], evaluated["policy"]) == (GAME, f"cut ({AGENT})")
    assert [part["name"] for part in evaluated["total"]["parts"]] == ["calm", "windy"]
    film = says("watch", run, "--out", "film.gif", "--max-steps", 4)
    assert film.partition(":")[0] == "film.gif"
    assert (tmp_path / "film.gif").read_bytes().startswith(b"GIF8")
    says("report", run)
    assert "evaluation" in (tmp_path / "report.html").read_text()


def test_its_curriculum_is_compared(packages: Path, tmp_path: Path) -> None:
    argv = ("--scenarios", "chain-3", "--curricula", CURRICULUM, "--num-seeds", 2, "--json")
    code, out, err = finished("compare", *argv, cwd=tmp_path, packages=packages)
    assert (code, err) == (0, ""), err
    found = [json.loads(line)["curriculum"] for line in out.splitlines()]
    assert found == ["oracle", "uniform", CURRICULUM]


@pytest.mark.usefixtures("here")
def test_the_package_is_imported_when_a_curriculum_is_asked_for() -> None:
    assert CURRICULUM in CURRICULA
    assert "acme" not in sys.modules
    assert CURRICULA[CURRICULUM] is importlib.import_module("acme.rarest").RarestConfig
    assert curriculum_variant(CURRICULUM).about == "Tasks that were played least."


@pytest.mark.usefixtures("here")
def test_commands_offer_its_curriculum_with_flags_of_its_own(command: CommandLine) -> None:
    quick = ("--scenario", "chain-3", "--num-epochs", 2, "--engine", "direct")
    told = json.loads(command("simulate", CURRICULUM, "--power", 2, *quick, "--json").out)
    assert told["curriculum"] == CURRICULUM
    run = told["run"]
    assert RunReader(run).config["curriculum"] == {
        "type": CURRICULUM,
        "exploration": 0.0,
        "max_share": None,
        "target": None,
        "power": 2.0,
    }
    said = json.loads(command("explain", run, "--json").out)
    assert [task["reason"].startswith("it was played ") for task in said["tasks"]] == [True] * 3
    grid = ("--scenario", "chain-3", "--curriculum", CURRICULUM, "--grid", "power=0,1")
    rows = command("sweep", *grid, "--num-seeds", 2, "--json").out.splitlines()
    assert sorted(json.loads(row)["params"]["power"] for row in rows) == [0.0, 1.0]


@pytest.mark.usefixtures("here")
def test_settings_of_its_curriculum_are_read_from_a_file(command: CommandLine) -> None:
    Path("mine.json").write_text(json.dumps({"type": CURRICULUM, "power": 0.5}))
    quick = ("--scenario", "chain-3", "--num-epochs", 1, "--engine", "direct", "--no-keep")
    told = json.loads(command("simulate", "from-file", "mine.json", *quick, "--json").out)
    assert told["curriculum"] == "mine"
    Path("mine.json").write_text(json.dumps({"type": CURRICULUM, "pwer": 0.5}))
    assert "pwer: unknown key. Did you mean 'power'?" in command.fails(
        "simulate", "from-file", "mine.json"
    )


def test_without_the_package_a_line_says_what_there_is(command: CommandLine) -> None:
    said = command.fails("train", "--env", "CartPole-v1", "--agent", AGENT.lower())
    assert said == "--agent must be one of dddqn, sac, ppo; got 'linear'."
    assert f"the env {GAME!r} cannot be found" in command.fails("train", "--env", GAME)
    assert CURRICULUM in command.fails("compare", "--curricula", CURRICULUM)
