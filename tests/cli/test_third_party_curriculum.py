"""A curriculum of another package is chosen, simulated, trained, resumed and explained by name.

Its code is the example in CONTRIBUTING.md; nothing of it is known to the library.
"""

import importlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.command_line import CommandLine, running, wait_until
from stepladder.curricula import CURRICULA, CurriculumConfig, UniformConfig, register_curriculum
from stepladder.curricula.registry import curriculum_variant, curriculum_variants
from stepladder.errors import ConfigError, RunError
from stepladder.runs import RunReader
from stepladder.simulator import compare
from worked_examples import WorkedExample


def example(decorator: str = "") -> str:
    """Return the code of the curriculum in CONTRIBUTING.md."""
    (code,) = WorkedExample.read("curriculum").new_files.values()
    return code.replace("@dataclass", f"{decorator}@dataclass")


@pytest.fixture
def _clean_registry() -> Iterator[None]:
    """Forget what a test has registered."""
    before = dict(CURRICULA._entries)
    yield
    CURRICULA._entries.clear()
    CURRICULA._entries.update(before)
    sys.modules.pop("rare_tasks", None)


@pytest.fixture
def package(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    _clean_registry: None,
) -> Path:
    """Install a tiny package with an entry point into a folder on Python's path."""
    folder = tmp_path_factory.mktemp("site")
    info = folder / "rare_tasks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rare-tasks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[stepladder.curricula]\nrarest = rare_tasks:RarestConfig\n"
    )
    (folder / "rare_tasks.py").write_text(example())
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_the_package_is_imported_when_a_curriculum_is_asked_for(package: Path) -> None:
    assert "rarest" in CURRICULA
    assert "rare_tasks" not in sys.modules
    assert CURRICULA["rarest"] is importlib.import_module("rare_tasks").RarestConfig
    assert curriculum_variant("rarest").about == "Tasks that were played least."


def test_commands_offer_it_with_its_own_flags(package: Path, command: CommandLine) -> None:
    quick = ("--scenario", "chain-3", "--num-epochs", 2, "--engine", "direct")
    told = json.loads(command("simulate", "rarest", "--power", 2, *quick, "--json").out)
    assert told["curriculum"] == "rarest"
    run = told["run"]
    assert RunReader(run).config["curriculum"] == {
        "type": "rarest",
        "exploration": 0.0,
        "max_share": None,
        "target": None,
        "power": 2.0,
    }
    said = json.loads(command("explain", run, "--json").out)
    assert [task["reason"].startswith("it was played ") for task in said["tasks"]] == [True] * 3
    assert command("report", run).code == 0
    assert run.split("/")[-1] in Path("report.html").read_text()


def test_it_is_compared_and_swept_like_any_other(package: Path, command: CommandLine) -> None:
    quick = ("--num-seeds", 2, "--json")
    out = command("compare", "--scenarios", "chain-3", "--curricula", "rarest", *quick).out
    assert [json.loads(line)["curriculum"] for line in out.splitlines()] == [
        "oracle",
        "uniform",
        "rarest",
    ]
    grid = ("--scenario", "chain-3", "--curriculum", "rarest", "--grid", "power=0,1")
    rows = command("sweep", *grid, *quick).out.splitlines()
    assert sorted(json.loads(row)["params"]["power"] for row in rows) == [0.0, 1.0]


def test_its_settings_are_read_from_a_file(package: Path, command: CommandLine) -> None:
    Path("mine.json").write_text(json.dumps({"type": "rarest", "power": 0.5}))
    quick = ("--scenario", "chain-3", "--num-epochs", 1, "--engine", "direct", "--no-keep")
    told = json.loads(command("simulate", "from-file", "mine.json", *quick, "--json").out)
    assert told["curriculum"] == "mine"
    Path("mine.json").write_text(json.dumps({"type": "rarest", "pwer": 0.5}))
    assert "pwer: unknown key. Did you mean 'power'?" in command.fails(
        "simulate", "from-file", "mine.json"
    )


@pytest.mark.processes
@pytest.mark.timeout(180)
def test_a_training_that_was_killed_goes_on_with_it(
    package: Path, command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    small = (
        *("--num-envs", 2, "--epoch-steps", 64, "--evaluation.num-games", 2),
        *("--agent.rollout-steps", 64, "--agent.minibatch-size", 32, "--agent.hidden-sizes", 8),
    )
    begun = ("train", "cartpole", *small, "--curriculum", "rarest", "--curriculum.power", 2)
    endless = ("--total-steps", 10**8, "--checkpoints.every-steps", 64, "--out", "run")

    def saved() -> int:
        try:
            return RunReader("run").checkpoint_step() or 0
        except RunError:
            return 0

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with running(*begun, *endless, cwd=tmp_path, packages=package) as process:
        wait_until(lambda: saved() >= 256, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=40)
    goal = saved() + 200
    told = json.loads(command("train", "--resume", "run", "--total-steps", goal, "--json").out)
    assert told["refused_checkpoints"] == []
    assert RunReader("run").config["curriculum"]["power"] == 2.0
    assert "it was played " in command("explain", "run").out


@pytest.mark.usefixtures("_clean_registry")
def test_a_decorated_class_is_known_in_this_process() -> None:
    scope: dict[str, object] = {
        "__name__": "notebook",
        "register_curriculum": register_curriculum,
    }
    code = example("@register_curriculum\n")
    exec(code, scope)
    assert CURRICULA["rarest"] is scope["RarestConfig"]
    assert "rarest" in curriculum_variants()
    cells = compare(["chain-3"], ["rarest"], num_seeds=1).cells
    assert [cell.curriculum for cell in cells] == ["oracle", "uniform", "rarest"]
    exec(code, scope)
    assert CURRICULA["rarest"] is scope["RarestConfig"]


def test_what_cannot_be_a_curriculum_is_refused() -> None:
    class Nameless(CurriculumConfig):
        pass

    class Taken(CurriculumConfig):
        kind = "frontier"

    with pytest.raises(ConfigError, match="has no name"):
        register_curriculum(Nameless)
    with pytest.raises(ConfigError, match="already have an entry 'frontier'"):
        register_curriculum(Taken)
    with pytest.raises(ConfigError, match="must be a class derived from CurriculumConfig"):
        CURRICULA.register("odd")(int)
    with pytest.raises(ConfigError, match=r"Taken.kind must be 'odd'.*got 'frontier'"):
        CURRICULA.register("odd")(Taken)


@pytest.mark.usefixtures("_clean_registry")
def test_two_curricula_cannot_offer_the_same_name() -> None:
    @register_curriculum
    class Mine(UniformConfig):
        kind = "mine"

        @classmethod
        def variants(cls):
            return UniformConfig.variants()

    with pytest.raises(ConfigError, match="two curricula offer settings named 'uniform'; Mine is"):
        curriculum_variants()
