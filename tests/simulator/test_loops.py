"""Which curricula run in compiled code. That they take the same course is in `test_engines`."""

import subprocess
import sys
from pathlib import Path

import pytest

import stepladder
from stepladder.curricula import Curriculum, Frontier, LearningProgress, Staged, Uniform
from stepladder.curricula.registry import curriculum_variants
from stepladder.simulator import TaskGraph, scenario
from stepladder.simulator.loops import loop_of

SOURCE = str(Path(stepladder.__file__).parents[1])


class Own(Uniform):
    """A curriculum of somebody's own, whose Python code a compiled loop would pass over."""


def test_curricula_and_their_classes_are_asked_alike():
    source = TaskGraph.chain(3).source()
    assert Frontier.compiled_rule() is not None
    assert LearningProgress(source).compiled_rule() is not None
    assert Staged.compiled_rule() is None


def test_a_subclass_has_no_compiled_form_of_its_own():
    assert Own.compiled_rule() is None
    assert Own(TaskGraph.chain(3).source()).compiled_rule() is None


def test_every_rule_has_a_curriculum_that_can_tell_its_state_and_a_loop_of_its_own():
    kinds = {
        type(scenario("chain-3").curriculum(name, 0))
        for name in curriculum_variants(can_edit=False)
    }
    loops = set()
    for kind in kinds:
        rule = kind.compiled_rule()
        if rule is not None:
            assert kind.kernel_state is not Curriculum.kernel_state
            assert loop_of(rule) is loop_of(rule)
            loops.add(loop_of(rule).__qualname__)
    assert len(loops) == sum(kind.compiled_rule() is not None for kind in kinds) == 6


PLAY = """
from stepladder.curricula import Uniform
from stepladder.simulator import scenario
from stepladder.simulator.engines import CompiledEngine
from stepladder.simulator.loops import loop_of

place = scenario("chain-3")
CompiledEngine(place.simulator(0), place.curriculum("uniform", 0)).advance(10)
print(sum(loop_of(Uniform.rule).stats.cache_hits.values()))
"""


@pytest.mark.processes
@pytest.mark.timeout(180, method="signal")
def test_a_loop_is_compiled_once_and_found_on_disk_by_the_next_process():
    found = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", PLAY],
            env={"PYTHONPATH": SOURCE, "PATH": ""},
            capture_output=True,
            text=True,
            timeout=170,
            check=True,
        ).stdout.strip()
        for _ in range(2)
    ]
    assert found[1] == "1"
