"""A question of the playground as a command and as Python: both repeat exactly what was shown.

Beside `playing`. What is written differs from what the names of scenario and curriculum stand for.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from stepladder.configs.settings import settings_of
from stepladder.simulator.playground.epochs import engine_for
from stepladder.simulator.playground.question import NUM_POINTS, Setup, learner_settings

NONE = "None"
"""How the command line writes that a setting has no value."""


def command_words(setup: Setup, scenario_file: str | None = None) -> list[str]:
    """Return the words of a `stepladder simulate` that plays the same.

    Args:
        setup: What is played.
        scenario_file: The file of the scenario, if it has no name that commands know.
    """
    question = setup.question
    words = ["stepladder", "simulate", question.curriculum]
    for name, value in _changed_settings(setup).items():
        words += _flag(name, value)
    learner = [f"{name}={_text(value)}" for name, value in _changed_learner(setup).items()]
    if learner:
        words += ["--learner", *learner]
    words += ["--scenario", scenario_file or question.scenario]
    for flag, value in _simulation(setup).items():
        words += [f"--{flag.replace('_', '-')}", str(value)]
    return words


def as_command(setup: Setup, scenario_file: str | None = None) -> str:
    """Return the command as one line that can be pasted into a shell."""
    return shlex.join(command_words(setup, scenario_file))


def as_python(setup: Setup, scenario_file: str | None = None) -> str:
    """Return a script that plays the same and prints how it ended."""
    question = setup.question
    settings, learner = _changed_settings(setup), _changed_learner(setup)
    lines = ["from dataclasses import replace", ""] if settings or learner else []
    lines += ["from stepladder.simulator import scenario, simulate", ""]
    lines.append(f"place = scenario({(scenario_file or question.scenario)!r})")
    if learner:
        lines.append(f"place = {_replaced('place', learner)}")
    lines.append(f"curriculum = place.curriculum_config({question.curriculum!r})")
    if settings:
        lines.append(f"curriculum = {_replaced('curriculum', settings)}")
    own = [f"{name}={value!r}" for name, value in _simulation(setup).items()]
    lines += [
        "result = simulate(",
        "    place=place,",
        "    curriculum=curriculum,",
        *(f"    {one}," for one in own),
        ")",
        "print(result.verdict)",
        "print(result.simulator.progress, result.simulator.done_at)",
    ]
    return "\n".join(lines) + "\n"


def _simulation(setup: Setup) -> dict[str, Any]:
    """Return the settings of the simulation itself."""
    question = setup.question
    curriculum = setup.place.curriculum(setup.config, question.seed)
    return {
        "num_envs": question.num_envs,
        "num_epochs": NUM_POINTS,
        "samples_per_epoch": setup.samples_per_epoch,
        "engine": engine_for(curriculum),
        "seed": question.seed,
    }


def _changed_settings(setup: Setup) -> dict[str, Any]:
    """Return the settings of the curriculum that differ from its usual ones."""
    usual = {one.name: one.value for one in settings_of(setup.usual)}
    now = {one.name: one.value for one in settings_of(setup.config)}
    return {name: value for name, value in now.items() if name in usual and value != usual[name]}


def _changed_learner(setup: Setup) -> dict[str, Any]:
    """Return the settings of the learner that were changed by the question."""
    names = setup.question.learner
    return {one.name: one.value for one in learner_settings(setup.place) if one.name in names}


def _flag(name: str, value: Any) -> list[str]:
    """Return a setting as a flag of the command line."""
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        # A switch has only the flag that changes it.
        head, dot, last = flag.rpartition(".")
        return [f"--{flag}"] if value else [f"--{head}{dot}no-{last}"]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [f"--{flag}", *map(str, value)]
    return [f"--{flag}", NONE if value is None else _text(value)]


def _text(value: Any) -> str:
    """Return a value as `--learner` and flags read it."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "none"}[value]
    if isinstance(value, tuple):
        return "+".join(map(str, value))
    return str(value)


def _replaced(name: str, values: Mapping[str, Any]) -> str:
    """Return Python that changes settings, also those inside of settings."""
    own: dict[str, str] = {}
    inner: dict[str, dict[str, Any]] = {}
    for dotted, value in values.items():
        field, dot, rest = dotted.partition(".")
        if dot:
            inner.setdefault(field, {})[rest] = value
        else:
            own[field] = repr(tuple(value) if isinstance(value, list) else value)
    for field, entries in inner.items():
        own[field] = _replaced(f"{name}.{field}", entries)
    return f"replace({name}, {', '.join(f'{field}={text}' for field, text in own.items())})"
