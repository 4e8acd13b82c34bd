"""What can be changed in the playground, as plain JSON: everything that configs say of themselves.

For the page. Names, kinds, ranges, defaults and help texts come from the configs; the only thing
decided here is how far a slider reaches where a setting has no upper limit.
"""

import math
from dataclasses import asdict
from typing import Any

from stepladder.configs.codec import to_json
from stepladder.configs.field_docs import field_docs
from stepladder.configs.problems import Problems
from stepladder.configs.settings import Setting, settings_of
from stepladder.curricula.registry import curriculum_variants
from stepladder.errors import ConfigError
from stepladder.simulator.base import Scenario
from stepladder.simulator.generalising.scenarios import GENERAL_FAMILIES, GENERAL_SUITE
from stepladder.simulator.playground.question import (
    LARGEST_BATCH,
    MAX_SAMPLES,
    MOST_SEEDS,
    OwnScenarios,
    Question,
    learner_settings,
    usual_budget,
    with_learner,
)
from stepladder.simulator.scenarios import FAMILIES, SUITE, scenario

SMALL = 0.02
"""A default below this has a logarithmic slider, or it could not be halved by hand."""

REACH = 20.0
"""A slider without an upper limit reaches so many times as far as the default."""


def controls(question: Question, places: OwnScenarios | None = None) -> dict[str, Any]:
    """Return what can be changed for the scenario and the curriculum of a question.

    Raises:
        ConfigError: There is no such scenario, or no such curriculum.
    """
    own = places or {}
    plain = Question(scenario=question.scenario, curriculum=question.curriculum)
    setup = plain.setup(own)
    # Some defaults of a curriculum depend on the learner.
    place = with_learner(setup.place, question.learner, Problems())
    usual = place.curriculum_config(question.curriculum)
    return {
        "scenario": {
            "name": question.scenario,
            "about": place.about,
            "num_tasks": place.num_tasks,
            "measure": place.measure,
            "budget": usual_budget(place),
        },
        "scenarios": [*_scenarios(own)],
        "forms": _forms(),
        "curricula": _curricula(place),
        "settings": [control(one) for one in settings_of(usual)],
        "learner": [control(one) for one in learner_settings(setup.place)],
        "limits": {"num_envs": LARGEST_BATCH, "budget": MAX_SAMPLES, "num_seeds": MOST_SEEDS},
    }


def control(setting: Setting) -> dict[str, Any]:
    """Return one setting as the page needs it."""
    plain = {name: to_json(value) for name, value in asdict(setting).items() if name != "owner"}
    for end in ("low", "high"):
        if plain[end] is not None and not math.isfinite(plain[end]):
            plain[end] = None
    plain["about"] = field_docs(setting.owner).get(setting.field, "").replace("`", "")
    plain["slider"] = slider(setting)
    return plain


def slider(setting: Setting) -> dict[str, Any] | None:
    """Return ends and scale of a slider; None for settings that are no numbers.

    What lies beyond the ends can be typed in.
    """
    if setting.kind not in ("number", "integer"):
        return None
    low = setting.low if setting.low is not None and math.isfinite(setting.low) else None
    high = setting.high if setting.high is not None and setting.high < 1e6 else None
    value = 0.0 if setting.value is None else float(setting.value)
    if setting.kind == "number" and 0.0 < value < SMALL and low == 0.0:
        most = 1.0 if high is None else high
        return {"low": value / 100.0, "high": min(most, value * 100.0), "log": True}
    if high is None or high > 100.0 * max(1.0, abs(value)):
        top = max(1.0, REACH * value if setting.kind == "number" else 10.0 * value)
        high = top if high is None else min(high, top)
    if low is None:
        low = min(-1.0, -abs(value))
    return {"low": low, "high": max(high, value, low + 1e-9), "log": False}


def _curricula(place: Scenario) -> list[dict[str, str]]:
    """Return the curricula that can be tried here, each with its purpose."""
    found: list[dict[str, str]] = []
    for name, variant in curriculum_variants(can_edit=False).items():
        try:
            place.curriculum_config(name)
        except ConfigError:
            continue
        found.append({"name": name, "about": variant.about})
    return found


def _scenarios(places: OwnScenarios) -> list[dict[str, str]]:
    named = [scenario(name) for name in (*SUITE, *GENERAL_SUITE)]
    own = [{"name": name, "about": place.about} for name, place in places.items()]
    return own + [{"name": place.name, "about": place.about} for place in named]


def _forms() -> list[dict[str, str]]:
    """Return how further scenarios are named."""
    graphs = [
        (name, "CxR" if name == "grid" else "N", about) for name, (about, _) in FAMILIES.items()
    ]
    general = [
        (name, "CxR" if sizes == 2 else "N", about)
        for name, (about, sizes, _) in GENERAL_FAMILIES.items()
    ]
    return [{"form": f"{name}-{size}", "about": about} for name, size, about in graphs + general]
