"""A learner whose settings are known, and trainings that it could have had."""

from pathlib import Path
from typing import Any

from stepladder.curricula.reporting.meter import CurriculumMeter
from stepladder.runs import Run
from stepladder.runs.reporter import EpochReporter
from stepladder.simulator import Generalising, GeneralScenario
from stepladder.simulator.engines import DirectEngine

NUM_ENVS = 16

KNOWN = Generalising(
    groups=("walk", "jump", "climb"),
    num_tasks=(200, 200, 200),
    difficulty=(0.0, 3.0, 6.0),
    spread=(1.0, 1.0, 1.0),
    success_steps=(10, 15, 20),
    failure_steps=(40, 40, 40),
    eta=4e-3,
    update_steps=1_024,
    goal=0.8,
)


def known_scenario(**changes: Any) -> GeneralScenario:
    return GeneralScenario(name="known", dynamics=KNOWN, **changes)


def make_training(
    folder: Path | str,
    *,
    curriculum: str = "uniform",
    num_steps: int = 160_000,
    num_epochs: int = 40,
    seed: int = 0,
    kind: str = "training",
    scenario: GeneralScenario | None = None,
) -> Path:
    """Let the known learner practise, and report it as a training does."""
    place = scenario or known_scenario()
    simulator, chosen = place.simulator(seed, NUM_ENVS), place.curriculum(curriculum, seed)
    meter = CurriculumMeter(chosen)
    engine = DirectEngine(simulator, chosen, NUM_ENVS, meter)
    config = {"num_envs": NUM_ENVS, "agent": {"rollout_steps": 1_024}, "env": "nowhere:Nothing"}
    with Run.create(folder, kind=kind, config=config, seed=seed, overwrite=True) as run:
        reporter = EpochReporter(chosen, run, meter=meter)
        for epoch in range(1, num_epochs + 1):
            engine.advance(epoch * num_steps // num_epochs)
            reporter.end_epoch(simulator.num_samples, engine.take_stats())
        reporter.close()
    return Path(folder)
