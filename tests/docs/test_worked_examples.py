"""Each worked example of CONTRIBUTING.md is complete, touches few files and passes its contract."""

import json
import re
from pathlib import Path

import pytest

from worked_examples import WorkedExample, run, run_contract

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


@pytest.mark.parametrize("kind", ["curriculum", "backend", "agent"])
def test_at_most_two_files_are_touched(kind: str) -> None:
    example = WorkedExample.read(kind)
    assert len(example.new_files) == len(example.lines) == 1


def test_the_curriculum_is_found_by_its_name(tmp_path: Path) -> None:
    # Its contract is in tests/contracts/test_curriculum_contract.py, which reads the page too.
    WorkedExample.read("curriculum").install(tmp_path)
    quick = ("--scenario", "chain-3", "--num-epochs", "2", "--engine", "direct", "--no-keep")
    told = run(tmp_path, "-m", "stepladder", "simulate", "rarest", "--power=2", *quick, "--json")
    assert json.loads(told)["curriculum"] == "rarest"


def test_the_backend_keeps_the_contract(tmp_path: Path) -> None:
    WorkedExample.read("backend").install(tmp_path)
    join = (
        "from sync import rig; rig.IN_PROCESS += ('mapped',); rig.IN_WORKERS += ('mapped-fork',);"
        " rig.BACKENDS = rig.IN_PROCESS + rig.IN_WORKERS"
    )
    told = run_contract(tmp_path, join, "tests/contracts/test_sync_contract.py", "-k", "mapped")
    passed = re.search(r"(\d+) passed", told)
    assert passed is not None
    assert int(passed[1]) >= 20
    code = """
from gymnasium.vector import SyncVectorEnv
from stepladder import CurriculumEnv, CurriculumVectorEnv, Task, Uniform
from testing_env import PracticeEnv
envs = SyncVectorEnv([lambda: CurriculumEnv(PracticeEnv())] * 2)
envs = CurriculumVectorEnv(envs, Uniform([Task("a")]), backend="mapped")
envs.reset(seed=0)
for _ in range(50):
    envs.step([0, 0])
envs.close()
print(type(envs.tracker.host).__name__)
"""
    assert run(tmp_path, "-c", code) == "MappedHost\n"


def test_a_game_is_a_folder_and_one_line() -> None:
    example = WorkedExample.read("game")
    assert {Path(path).parent.name for path in example.new_files} == {"slide"}
    assert len(example.lines) == 1


@pytest.mark.timeout(600)
def test_the_game_keeps_the_contract(tmp_path: Path) -> None:
    WorkedExample.read("game").install(tmp_path)
    join = (
        "from games import game_cases as known;"
        " from stepladder.games.slide.env import SlideEnv, SlideVectorEnv;"
        " known.IDS['slide'] = 'stepladder/Slide-v0'; known.CASES['slide'] = ('slide', {});"
        " known.VECTOR_ENVS['slide'] = SlideVectorEnv; known.SINGLE_ENVS['slide'] = SlideEnv"
    )
    kinds = ("batch_is_single", "check_env", "determinism", "saving")
    files = (f"tests/games/test_game_{kind}.py" for kind in kinds)
    told = run_contract(tmp_path, join, *files, "-k", "slide", timeout_s=500)
    passed = re.search(r"(\d+) passed", told)
    assert passed is not None
    assert int(passed[1]) >= 8
    quick = ("--total-steps", "500", "--num-envs", "8", "--source", "longest=3", "--no-keep")
    told = run(tmp_path, "-m", "stepladder", "train", "--env", "stepladder/Slide-v0", *quick)
    assert re.search(r"^calm +\d+ ", told, re.M)


def test_the_agent_keeps_the_contract(tmp_path: Path) -> None:
    WorkedExample.read("agent").install(tmp_path)
    join = (
        "from agents import small_worlds as known;"
        " from stepladder.agents.linear import LinearConfig;"
        " known.KINDS['linear'] = (LinearConfig(learning_rate=0.1), known.CHOICES)"
    )
    told = run_contract(tmp_path, join, "tests/agents/test_every_agent.py", "-k", "linear")
    passed = re.search(r"(\d+) passed", told)
    assert passed is not None
    assert int(passed[1]) >= 12
    quick = ("--env", "CartPole-v1", "--agent", "linear", "--total-steps", "500", "--no-keep")
    told = run(tmp_path, "-m", "stepladder", "train", *quick, "--agent.batch-steps", "64")
    assert re.search(r"^all +\d+ ", told, re.M)
