"""``simulate --learner``, and the commands and scripts that the playground gives to copy."""

import contextlib
import io
import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from stepladder.cli.simulate import read_arguments
from stepladder.configs.settings import settings_of
from stepladder.curricula.registry import curriculum_variants
from stepladder.errors import ConfigError
from stepladder.simulator import scenario
from stepladder.simulator.playground import Question
from stepladder.simulator.playground.playing import play
from stepladder.simulator.playground.sharing import as_python, command_words

CASES = [
    Question(
        scenario="chain-4",
        settings={"probing": 0.2, "pooled": False, "max_share": 0.5},
        learner={"dynamics.eta": 0.1, "dynamics.mastery": 0.8},
        seed=2,
    ),
    Question(scenario="grid-2x2", curriculum="staged", settings={"demotion.threshold": 0.1}),
]


@pytest.mark.processes
@pytest.mark.timeout(120)
@pytest.mark.parametrize("question", CASES, ids=["frontier", "staged"])
def test_a_copied_command_prints_the_numbers_that_were_shown(question: Question):
    setup = question.setup()
    words = [sys.executable, "-m", *command_words(setup), "--no-keep", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    told, course = json.loads(done.stdout), play(setup, "chosen")
    assert told["done_at"] == course.done_at
    assert told["progress"] == pytest.approx(course.progress[-1], abs=1e-6)
    assert told["verdict"] == course.verdict


@pytest.mark.parametrize("question", CASES, ids=["frontier", "staged"])
def test_copied_python_prints_the_numbers_that_were_shown(question: Question):
    setup, out = question.setup(), io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(as_python(setup), {})
    course = play(setup, "chosen")
    assert out.getvalue() == f"{course.verdict}\n{course.progress[-1]} {course.done_at}\n"


def _other(setting: Any) -> Any:
    """Return another value than the default that most settings allow."""
    if setting.kind == "switch":
        return not setting.value
    if setting.kind == "integer":
        return (setting.value or 0) + 3
    if setting.kind == "number":
        high = setting.high if setting.high is not None else 1e6
        return min((setting.value or 0.0) + 0.013, high)
    if setting.kind == "choice":
        return setting.choices[-1]
    return ["position"] if setting.kind == "names" else None


@pytest.mark.parametrize("name", list(curriculum_variants(can_edit=False)))
def test_every_setting_of_every_curriculum_can_be_copied(name: str):
    place = scenario("chain-4")
    try:
        usual = place.curriculum_config(name)
    except ConfigError as error:
        assert "edits tasks" in str(error) or "advantages" in str(error)  # noqa: PT017
        return
    settings: dict[str, Any] = {}
    for one in settings_of(usual):
        changed = {**settings, one.name: _other(one)}
        # Some settings cannot be changed without others.
        with contextlib.suppress(ConfigError):
            Question(scenario="chain-4", curriculum=name, settings=changed).setup()
            settings = changed
    setup = Question(scenario="chain-4", curriculum=name, settings=settings).setup()
    chosen, arguments = read_arguments(command_words(setup)[2:])
    assert chosen.config == setup.config
    assert arguments.simulation.scenario == "chain-4"
    assert len(settings) >= 0.6 * len(settings_of(usual))


def test_the_defaults_of_a_curriculum_follow_the_learner():
    words = ["staged", "--learner", "dynamics.mastery=0.7", "dynamics.eta=0.1", "--seed", "1"]
    chosen, arguments = read_arguments(words)
    usual: Any = scenario("chain-10").curriculum_config("staged")
    assert usual.threshold == 0.9
    assert chosen.config == replace(usual, threshold=0.7)
    assert arguments.learner == ("dynamics.mastery=0.7", "dynamics.eta=0.1")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("dynamics.eta=2", "must lie in"),
        ("dynamics.eta", "must be NAME=VALUE"),
        ("dynamics.etta=0.1", "Did you mean 'dynamics.eta'"),
        ("dynamics.eta=much", "got 'much'"),
    ],
)
def test_a_wrong_setting_of_the_learner_is_one_line(given: str, said: str):
    with pytest.raises(ConfigError, match=said) as caught:
        read_arguments(["uniform", "--learner", given])
    assert "\n" not in str(caught.value)
