"""What tasks and phases of hockey say, checked before a game is begun.

Part of `contradictions`. The game itself would refuse the same, but only when such a task is first
drawn, which may be hours later.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from stepladder.configs.problems import nearest
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.phased.config import PhasedConfig
from stepladder.curricula.phased.settings import Mixed, Ramp
from stepladder.errors import TaskError
from stepladder.games.hockey.task import DEFAULTS, TASK_DTYPE, write_task

if TYPE_CHECKING:
    from stepladder.training.config import TrainingConfig


def about_hockey(config: "TrainingConfig") -> Iterator[tuple[str, str]]:
    """Yield the path and the text of all that makes no sense in hockey."""
    if config.evaluation.num_games % 2:
        text = f"must be even, half from either side; got {config.evaluation.num_games}."
        yield "evaluation.num_games", text
    said = {name: value for name, value in config.env_kwargs.items() if name in DEFAULTS}
    yield from _about(said, "env_kwargs")
    for index, task in enumerate(config.tasks):
        yield from _about(task.params, f"tasks[{index}].params")
    yield from _about_phases(config.curriculum, "curriculum")


def _about_phases(curriculum: CurriculumConfig, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(curriculum, PhasedConfig):
        return
    for index, phase in enumerate(curriculum.phases):
        where = f"{path}.phases[{index}]"
        yield from _about(phase.settings, f"{where}.settings")
        yield from _about_phases(phase.inner(), f"{where}.curriculum")


def _about(settings: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for name, setting in settings.items():
        if name not in DEFAULTS:
            yield f"{path}.{name}", f"hockey has no such parameter.{nearest(name, DEFAULTS)}"
            continue
        for value in _values(setting):
            text = _refusal(name, value)
            if text is not None:
                yield f"{path}.{name}", text


def _values(setting: Any) -> tuple[Any, ...]:
    if isinstance(setting, Mixed):
        return setting.values
    return (setting.start, setting.end) if isinstance(setting, Ramp) else (setting,)


def _refusal(name: str, value: Any) -> str | None:
    try:
        write_task(np.zeros(1, TASK_DTYPE)[0], {name: value}, None, "hockey")
    except TaskError as error:
        return str(error).removeprefix(f"{name} of task 'hockey' ")
    return None
