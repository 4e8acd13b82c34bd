"""Curricula over the tasks of a scenario, by name or by settings.

Between the registry of curricula and the engines: `compare`, `simulate` and `sweep` ask here for
the settings that a name stands for in a scenario, and for the curriculum itself.
"""

from collections.abc import Callable

from stepladder.configs.checks import require_kind
from stepladder.curricula.base import Curriculum
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.registry import curriculum_variant
from stepladder.simulator.scenarios import Scenario
from stepladder.tasks import Pool

MakeConfig = Callable[[Scenario], CurriculumConfig]


def settings_of(
    curriculum: CurriculumConfig | MakeConfig | str, place: Scenario
) -> CurriculumConfig:
    """Return the settings that a name or a function stands for in a scenario.

    Settings are returned as they are.

    Raises:
        ConfigError: There is no such name, or it is none of these.
    """
    if isinstance(curriculum, str):
        return curriculum_variant(curriculum).make(place.knowledge)
    if callable(curriculum):
        curriculum = curriculum(place)
    require_kind(
        "curriculum", curriculum, CurriculumConfig, fix="Give a name, or such as FrontierConfig()."
    )
    return curriculum


def build(
    curriculum: CurriculumConfig | MakeConfig | str, place: Scenario, seed: int
) -> Curriculum:
    """Build a curriculum over a scenario's tasks.

    A method that replaces tasks gets a pool of the scenario's capacity.
    """
    config, source = settings_of(curriculum, place), place.graph.source()
    if config.replaces_tasks and place.capacity is not None:
        return config.make(Pool(source, place.capacity, seed), seed=seed)
    return config.make(source, seed=seed)
