"""The tasks that a training's curriculum draws from.

Between `config` and the curriculum: ``config.curriculum.make(source_of(config))``.
"""

from stepladder.games.ledge.source import LedgeLevels
from stepladder.tasks import ListSource, Source, Task
from stepladder.training.config import TrainingConfig
from stepladder.training.contradictions import LEDGE


def source_of(config: TrainingConfig) -> Source:
    """Return what is practised: the tasks named, generated levels of Ledge, or the env as it is."""
    if config.tasks:
        return ListSource(config.tasks)
    if config.env == LEDGE:
        levels = config.levels
        return LedgeLevels(levels.stages, levels.per_stage, levels.seed)
    return ListSource([Task(config.env)])
