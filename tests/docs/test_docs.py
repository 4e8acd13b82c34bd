"""The docs tell the truth: files exist, snippets run, public names are explained."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import stepladder
import stepladder.curricula
from stepladder import errors
from stepladder.curricula.registry import CURRICULA, curriculum_variants

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

PREAMBLE = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from testing_env import PracticeEnv
from stepladder import *
from stepladder.curricula import *

class MyEnv(PracticeEnv):
    def set_task(self, task):
        super().set_task(Task(task.name, task.label, {{"success": 0.95}}))

def policy(observations):
    return np.zeros(len(observations), dtype=np.int64)
"""


def snippets(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_exists(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    text = re.sub(r"[Nn]ew file\s+`[^`]+`", "", text)
    named = re.findall(r"`([\w./]+\.(?:py|md|toml|txt|svg))`", text)
    linked = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    for name in named:
        places = (ROOT, ROOT / "src/stepladder", ROOT / "docs", ROOT / "benchmarks")
        assert any((place / name).exists() for place in places), f"{page.name} names {name}"
    for link in linked:
        assert (page.parent / link).exists(), f"{page.name} links to {link}"


def output_of(code: str, folder: Path) -> str:
    """Run a program in a folder where the quick start's env can be imported; return its output."""
    (folder / "corridor.py").write_text(snippets(ROOT / "docs/quick_start.md")[0])
    (folder / "program.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.processes
@pytest.mark.timeout(300)
def test_the_first_example_of_the_readme_runs(tmp_path):
    assert "Stage 2 of 2: 'long'" in output_of(snippets(ROOT / "README.md")[0], tmp_path)


@pytest.mark.processes
@pytest.mark.timeout(300)
def test_the_first_command_of_the_readme_trains_on_its_example(tmp_path):
    page = (ROOT / "README.md").read_text()
    (tmp_path / "corridor.py").write_text(snippets(ROOT / "README.md")[0])
    (command,) = re.findall(
        r"^stepladder (train .*corridor:Corridor[^#]*)", page, flags=re.MULTILINE
    )
    done = subprocess.run(
        [sys.executable, "-m", "stepladder", *command.split(), "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    (*_, total) = re.findall(r'"name": "all".*?"rate": \{"value": ([\d.]+)', done.stdout)
    assert float(total) > 0.8  # random play solves .15


@pytest.mark.processes
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("page", "expected"), [("vector_env", ""), ("games", "Stage 1 of 3: 'simplest'")]
)
def test_the_snippets_of_a_reference_page_run_with_what_it_takes_for_granted(
    page, expected, tmp_path
):
    code = "\n".join(snippets(ROOT / f"docs/{page}.md"))
    assert expected in output_of(PREAMBLE.format(tests=str(ROOT / "tests")) + code, tmp_path)


@pytest.mark.processes
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("quick_start", "Stage 3 of 3: 'long'"),
        ("concepts", "LearningProgress: 2 tasks, 20 episodes observed"),
        ("stable_baselines3", "Staged: 2 tasks"),
        ("resume", "episodes so far"),
        ("own_env", "solved: "),
        ("own_curriculum", "it failed in "),
        ("own_agent", "mean return: "),
        ("own_game", "calm "),
        ("coming_from", "200\n50\n"),
    ],
)
def test_the_snippets_of_a_page_for_newcomers_run_as_they_stand(page, expected, tmp_path):
    assert expected in output_of("\n".join(snippets(ROOT / f"docs/{page}.md")), tmp_path)


def test_the_example_of_the_phased_page_makes_a_curriculum():
    code = snippets(ROOT / "docs/phased.md")[0]
    names = {
        **vars(stepladder.curricula),
        "tasks": [stepladder.Task("s", "shoot"), stepladder.Task("d", "defend")],
    }
    imports, _, expression = code.partition("\n\n")
    exec(imports, names)
    assert eval(expression, names).current_phase == "shooting"


def test_every_public_name_appears_in_the_docs():
    text = "\n".join(page.read_text() for page in PAGES)
    missing = [name for name in stepladder.__all__ if name not in text]
    assert missing == []


def test_every_config_field_of_a_documented_curriculum_is_on_its_page():
    common = [field.name for field in fields(stepladder.curricula.CurriculumConfig)]
    for page, configs in {
        "curricula.md": [stepladder.curricula.CurriculumConfig],
        "auto.md": [stepladder.curricula.AutoConfig],
        "staged.md": [stepladder.curricula.StagedConfig],
        "frontier.md": [stepladder.curricula.FrontierConfig],
        "learnability.md": [stepladder.curricula.LearnabilityConfig],
        "level_replay.md": [stepladder.curricula.LevelReplayConfig],
        "advantage_bandit.md": [stepladder.curricula.AdvantageBanditConfig],
        "learning_progress.md": [stepladder.curricula.LearningProgressConfig],
        "phased.md": [stepladder.curricula.Phase],
    }.items():
        text = (ROOT / "docs" / page).read_text()
        for config in configs:
            for field in fields(config):
                if page == "curricula.md" or field.name not in common:
                    assert f"`{field.name}`" in text, f"{page} lacks {config.__name__}.{field.name}"


def test_the_faq_explains_every_error():
    text = (ROOT / "docs" / "faq.md").read_text()
    missing = [name for name in errors.__all__ if name not in text]
    assert missing == ["StepladderError"]


def test_every_curriculum_is_in_the_table_of_names():
    text = (ROOT / "docs" / "curricula.md").read_text()
    for kind in CURRICULA:
        (row,) = re.findall(rf"^\| `{kind}` \|.*$", text, flags=re.MULTILINE)
        config = CURRICULA[kind]
        assert f"`{config.__name__.removesuffix('Config')}`" in row
        assert all(f"`{name}`" in row for name in config.variants())
    commands = (ROOT / "docs" / "commands.md").read_text()
    assert [name for name in curriculum_variants() if f"`{name}`" not in commands] == []
