"""The playground's questions: what can be changed, one course, and what came out in words.

Between the page and `simulator.playground`, which plays. Scenarios are asked for by name; files of
scenarios are known by name, too: those that lie in the folders of the dashboard.
"""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from stepladder.dashboard.queries.params import integer
from stepladder.dashboard.run_index import RunIndex
from stepladder.errors import ConfigError, StepladderError
from stepladder.files import parsed_json
from stepladder.simulator.base import Scenario
from stepladder.simulator.playground import CURVES, SPREAD_CURVES, Playground, Question
from stepladder.simulator.playground.controls import controls
from stepladder.simulator.playground.seeds import in_words as seeds_in_words
from stepladder.simulator.playground.sharing import as_command, as_python
from stepladder.simulator.playground.wording import in_words
from stepladder.simulator.scenarios import scenario

LARGEST_FILE = 5_000_000
"""Bytes of a file that may be a scenario."""

MOST_FILES = 40
"""Files of scenarios that are looked at."""

MOST_TURNS = 2**53

_PLAYGROUND = Playground()


def playground(index: RunIndex, params: Mapping[str, str]) -> dict[str, Any]:
    """Return everything that can be changed for a question."""
    return controls(_question(params), _places(index))


def play(index: RunIndex, params: Mapping[str, str]) -> dict[str, Any]:
    """Return one course of a question: of ``chosen``, ``uniform`` or ``oracle``."""
    question = _question(params)
    turn = integer(params, "turn", 0, 0, MOST_TURNS)
    asker = params.get("asker", "")[:64]
    course = _PLAYGROUND.course(
        question, params.get("curve", "chosen"), places=_places(index), asker=asker, turn=turn
    )
    return course.to_json()


def played(index: RunIndex, params: Mapping[str, str]) -> dict[str, Any]:
    """Return what came out in words, and how to repeat it."""
    question, places = _question(params), _places(index)
    turn = integer(params, "turn", 0, 0, MOST_TURNS)
    asker = params.get("asker", "")[:64]
    courses = [
        _PLAYGROUND.course(question, curve, places=places, asker=asker, turn=turn)
        for curve in CURVES
    ]
    setup = question.setup(places)
    return {
        "words": in_words(setup.place, question.curriculum, *courses),
        "command": as_command(setup),
        "python": as_python(setup),
    }


def played_seeds(index: RunIndex, params: Mapping[str, str]) -> dict[str, Any]:
    """Return how the curriculum and uniform fare with several seeds, and that in words."""
    question, places = _question(params), _places(index)
    turn = integer(params, "turn", 0, 0, MOST_TURNS)
    asker = params.get("asker", "")[:64]
    own, uniform = (
        _PLAYGROUND.spread(question, curve, places=places, asker=asker, turn=turn)
        for curve in SPREAD_CURVES
    )
    unit = question.setup(places).place.measure.partition(" until ")[0]
    return {
        "spreads": {"chosen": own.to_json(), "uniform": uniform.to_json()},
        "words": seeds_in_words(question.curriculum, unit, own, uniform),
    }


def _question(params: Mapping[str, str]) -> Question:
    text = params.get("question", "{}")
    try:
        data = parsed_json(text)
    except ValueError as error:
        raise ConfigError(f"the question is not JSON ({error}). Ask from the page.") from error
    return Question.from_json(data, "the question")


def _places(index: RunIndex) -> dict[str, Scenario]:
    """Return the scenarios in files beside the runs, by their path from here."""
    found: dict[str, Scenario] = {}
    num_seen = 0
    for folder in dict.fromkeys([Path.cwd(), *index.folders]):
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if not entry.name.endswith(".json") or not entry.is_file(follow_symlinks=False):
                continue
            num_seen += 1
            stat = entry.stat(follow_symlinks=False)
            if num_seen <= MOST_FILES and 0 < stat.st_size <= LARGEST_FILE:
                place = _scenario_file(entry.path, stat.st_mtime_ns)
                if place is not None:
                    found[os.path.relpath(entry.path)] = place
    return found


@lru_cache(maxsize=2 * MOST_FILES)
def _scenario_file(path: str, changed: int) -> Scenario | None:
    """Return the scenario in a file; None if it holds something else."""
    try:
        return scenario(path)
    except (StepladderError, OSError):
        return None
