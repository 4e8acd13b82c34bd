"""The curriculum of a simulated run comes back as its last checkpoint left it."""

import json
from pathlib import Path

import numpy as np
import pytest

from stepladder.cli.inputs.run_curriculum import is_simulation, run_curriculum
from stepladder.curricula import FrontierConfig, Phase, PhasedConfig, UniformConfig
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.registry import curriculum_variants
from stepladder.errors import ConfigError, RunError
from stepladder.runs import Run, RunReader
from stepladder.simulator import GraphScenario, TaskGraph, simulate
from stepladder.simulator.scenarios import scenario

PLACE = scenario("chain-4")
CONFIGS: dict[str, CurriculumConfig] = {
    **{name: PLACE.curriculum_config(name) for name in curriculum_variants(can_edit=False)},
    "phased": PhasedConfig(
        phases=(
            Phase(name="first", curriculum=FrontierConfig(), episodes=100),
            Phase(name="then", curriculum=PLACE.curriculum_config("staged")),
        )
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_curriculum_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    result = simulate(
        curriculum=CONFIGS[name],
        place=PLACE,
        engine="direct",
        num_epochs=3,
        seed=5,
        run_folder=tmp_path / "run",
    )
    reader = RunReader(tmp_path / "run")
    assert is_simulation(reader)
    again = run_curriculum(reader)
    assert str(again.explain()) == str(result.curriculum.explain())
    assert np.array_equal(again.probs(), result.curriculum.probs())
    assert [str(again.explain(slot)) for slot in range(4)] == [
        str(result.curriculum.explain(slot)) for slot in range(4)
    ]


def test_a_pool_that_holds_a_part_of_the_tasks_comes_back_too(tmp_path: Path) -> None:
    place = GraphScenario(name="part", graph=TaskGraph.independent(20), capacity=6)
    result = simulate(
        curriculum=FrontierConfig(),
        place=place,
        engine="direct",
        num_epochs=20,
        run_folder=tmp_path / "run",
    )
    again = run_curriculum(RunReader(tmp_path / "run"))
    assert again.pool.num_slots == 6
    assert again.pool.generations.max() > 0
    assert again.pool.task_ids.tolist() == result.curriculum.pool.task_ids.tolist()


def test_the_curriculum_of_a_learner_that_generalises_comes_back_too(tmp_path: Path) -> None:
    result = simulate(
        scenario="levels-2x5",
        curriculum="learnability",
        engine="direct",
        num_epochs=3,
        samples_per_epoch=1000,
        run_folder=tmp_path / "run",
    )
    reader = RunReader(tmp_path / "run")
    assert is_simulation(reader)
    assert np.array_equal(run_curriculum(reader).probs(), result.curriculum.probs())


def test_a_run_without_a_checkpoint_or_a_graph_cannot_be_asked(tmp_path: Path) -> None:
    with Run.create(tmp_path / "real", kind="training", config={"simulator": "none"}) as run:
        run.save_checkpoint("last", UniformConfig().make(PLACE.graph.source()).snapshot(), 1)
    assert not is_simulation(RunReader(tmp_path / "real"))
    about = {"simulator": {"graph": PLACE.graph.to_json()}}
    with Run.create(tmp_path / "young", kind="simulation", config=about):
        young = RunReader(tmp_path / "young")
    with pytest.raises(RunError, match="has no checkpoint yet"):
        run_curriculum(young)


def test_damaged_settings_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    simulate(place=PLACE, engine="direct", num_epochs=1, run_folder=folder)
    document = json.loads((folder / "config.json").read_text())
    document["config"]["simulator"]["graph"] = {"parents": 3}
    (folder / "config.json").write_text(json.dumps(document))
    with pytest.raises(ConfigError, match="parents: must be a list; got 3"):
        run_curriculum(RunReader(folder))
