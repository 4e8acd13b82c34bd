"""Each check of an env: a broken copy of three envs, two by others, has just that illness."""

from typing import Any

import pytest

from diagnosis.examined import examined, found_in, planted, told
from diagnosis.patients import HOSTS
from stepladder.curricula import FrontierConfig
from stepladder.diagnosis.checks import spaces
from stepladder.diagnosis.probes import playing, repeating

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

ERRORS = {
    "task ignored": "tasks-without-effect",
    "task late": "task-comes-late",
    "broken task": "tasks-not-built",
    "no delivery": "no-delivery",
    "raises": "env-raises",
    "leaves by SystemExit": "env-dies",
    "never ends": "endless-episodes",
    "success never": "success-never",
    "success always": "success-always",
    "success in percent": "success-missing",
    "success a text": "success-missing",
    "misspelt success": "success-missing",
    "unseeded": "not-reproducible",
    "reward of NaN": "not-finite",
    "wrong shape": "outside-space",
}
"""Every fault that is an error, and the check that finds it."""

OF_NUMBERS = {"NaN seen": "not-finite", "far outside": "outside-space"}
"""Those of observations that are not bytes."""

USUAL = {"walk": {}, "grid": {}, "rink": {"warning": {"episodes-entangled"}}}
"""What is found in healthy ones: the original hockey alternates who starts, whatever the seed."""


@pytest.mark.parametrize("host", HOSTS)
def test_nothing_is_found_in_a_healthy_env(host: str) -> None:
    evidence = examined(HOSTS[host][0], tasks=HOSTS[host][1])
    assert told(found_in(evidence)) == USUAL[host]
    assert evidence.troubles == []
    assert None not in (evidence.play, evidence.repeats, evidence.conformity, evidence.drawing)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("fault", ERRORS)
def test_a_planted_fault_is_the_only_error(
    host: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for all three.
    monkeypatch.setattr(repeating, "MOST_COMPARED", 40)
    monkeypatch.setattr(playing, "GIVEN_UP_AFTER", 300)
    monkeypatch.setattr(spaces, "GIVEN_UP_AFTER", 300)
    settings: dict[str, Any] = {}
    if fault == "misspelt success":
        settings["curriculum"] = FrontierConfig()
    if fault == "success never":
        # Random play rarely wins. On a busy machine so many episodes take more than a second.
        settings |= {"episodes": 60, "seconds": 30.0}
    found = found_in(planted(host, fault, **settings))
    assert told(found).get("error") == {ERRORS[fault]}
    for one in found:
        assert one.text
        assert one.fix.endswith(".")


def test_a_space_that_agents_cannot_learn_in_is_told() -> None:
    raw = examined("minigrid:MiniGrid-Empty-5x5-v0", return_threshold=0.1)
    assert told(found_in(raw)) == {"warning": {"spaces-unsupported"}}


@pytest.mark.parametrize("fault", OF_NUMBERS)
def test_a_number_that_no_agent_can_use_is_the_only_error(fault: str) -> None:
    assert told(found_in(planted("walk", fault))) == {"error": {OF_NUMBERS[fault]}}
