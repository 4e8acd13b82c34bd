"""Levels as tasks for a curriculum, and the way back from a task to its level.

Between `tasks` and the game: a source lists levels without making any; `level_of` makes one when
its task is first played. For a folder of level files, ``FolderSource(root)`` is the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepladder.errors import TaskError
from stepladder.games.arguments import check_spelling
from stepladder.games.ledge.edits import edit_level
from stepladder.games.ledge.generators import GENERATORS, generate
from stepladder.games.ledge.held_out import VALIDATION, held_out
from stepladder.games.ledge.level import MAX_LEVEL_STEPS, STAGES, Level, check_stage
from stepladder.tasks.editing import EditableSource
from stepladder.tasks.plain import checked_integer
from stepladder.tasks.scramble import stream_key
from stepladder.tasks.source import MAX_SOURCE_TASKS, ListSource
from stepladder.tasks.task import MAX_SEED, Task

PARAMETERS = ("level", "stage", "generator", "time_limit")
"""Parameters of a task; others are ignored, unless they look like a misspelling."""

GENERATION = 2
"""Raised with every change of what the generators make, so that old snapshots are refused."""


class LedgeLevels(EditableSource):
    """Generated levels: one label per stage, all stages and generators in turn.

    A task's level is made from its seed when it is first played.
    """

    def __init__(
        self,
        stages: Sequence[str] = STAGES,
        per_stage: int | None = None,
        seed: int = 0,
    ) -> None:
        """Describe the levels; none is made yet.

        Args:
            stages: Which stages to offer, in the order of their labels.
            per_stage: Levels of each stage, or None for an endless supply.
            seed: From 0 to 2**63 - 1; another seed gives other levels.

        Raises:
            TaskError: If there are no stages, or one is unknown or named twice.
        """
        self._stages = _checked_stages(stages)
        self._per_stage = (
            None
            if per_stage is None
            else checked_integer(per_stage, "per_stage", 1, MAX_SOURCE_TASKS // len(self._stages))
        )
        self._seed = checked_integer(seed, "The seed of LedgeLevels", 0, MAX_SEED)

    @property
    def num_tasks(self) -> int | None:
        """Number of levels, or None if they are endless."""
        return None if self._per_stage is None else self._per_stage * len(self._stages)

    def get(self, task_id: int) -> Task:
        """Make the task with this id."""
        stage, generator, index = self._locate(task_id)
        # A key has 64 bits, a task's seed 63.
        seed = stream_key(self._seed, int(task_id)) >> 1
        params = {"stage": stage, "generator": generator}
        return Task(f"{stage}/{generator}/{index}", stage, params, seed)

    def edit(self, task: Task, seed: int) -> Task:
        """Return a task with one small change in its level, which stays solvable.

        A tile is added or removed, a mine, the start, the switch or the door moves, or a ledge is
        shifted. `EditableSource.edit` has the rest.
        """
        seed = checked_integer(seed, "The seed of an edit", 0, MAX_SEED)
        edited = edit_level(level_of(task), seed)
        return Task(task.name, task.label, {**task.params, "level": edited.text}, task.seed)

    def name(self, task_id: int) -> str:
        """Return stage, generator and the level's number within its stage."""
        stage, generator, index = self._locate(task_id)
        return f"{stage}/{generator}/{index}"

    def label(self, task_id: int) -> str:
        """Return the stage."""
        return self._locate(task_id)[0]

    def labels(self) -> list[str]:
        """Return the stages."""
        return list(self._stages)

    def label_indices(self, task_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the position in `labels` of each task's stage, shape ``(len(task_ids),)``."""
        self.check_ids(task_ids)
        return task_ids % len(self._stages)

    def describe(self) -> dict[str, Any]:
        """Return everything the levels depend on."""
        return {
            "kind": "ledge levels",
            "num_tasks": self.num_tasks,
            "stages": {stage: list(GENERATORS[stage]) for stage in self._stages},
            "seed": self._seed,
            "generation": GENERATION,
        }

    def _locate(self, task_id: int) -> tuple[str, str, int]:
        """Return stage, generator and number within the stage."""
        index, stage_index = divmod(self.check_id(task_id), len(self._stages))
        stage = self._stages[stage_index]
        generators = list(GENERATORS[stage])
        return stage, generators[index % len(generators)], index


def held_out_source(stages: Sequence[str] = STAGES, levels: str = VALIDATION) -> ListSource:
    """Return the held-out levels of some stages as tasks, labelled by stage.

    Args:
        stages: Which stages, in the order of their labels.
        levels: Which set of levels: ``"validation"``, or ``"test"`` for final tables.
    """
    return ListSource(
        Task(level.name, stage, {"level": level.text})
        for stage in _checked_stages(stages)
        for level in held_out(stage, levels)
    )


def level_of(task: Task, seed: int | None = None) -> Level:
    """Return the level that a task stands for.

    Args:
        task: With the text of a level as its parameter "level", or else with a "stage" and perhaps
            a "generator". Either may have a "time_limit", in steps.
        seed: Used for generation if the task has no seed of its own.

    Raises:
        TaskError: If the task names no level, or it cannot be read or made.
    """
    params = task.params
    check_spelling(params, PARAMETERS, task.name)
    if "level" in params:
        level = Level.parse(params["level"], task.name)
    elif "stage" in params:
        seed = seed if task.seed is None else task.seed
        if seed is None:
            raise TaskError(
                f"The task {task.name!r} names a stage but has no seed; one is needed to generate "
                "a level. Give the task a seed."
            )
        level = generate(params["stage"], seed, params.get("generator"))
    else:
        raise TaskError(
            f"The task {task.name!r} names no level; expected a parameter 'level' (its text) or "
            f"'stage' (one of {', '.join(STAGES)}), got {sorted(params)}. Add one."
        )
    if "time_limit" not in params:
        return level
    what = f"The time_limit of task {task.name!r}"
    return level.with_time_limit(checked_integer(params["time_limit"], what, 1, MAX_LEVEL_STEPS))


def _checked_stages(stages: Sequence[str]) -> tuple[str, ...]:
    if isinstance(stages, str):
        raise TaskError(f"stages must be a list of stages; got the string {stages!r}. Wrap it.")
    checked = tuple(check_stage(stage) for stage in stages)
    if not checked or len(set(checked)) < len(checked):
        raise TaskError(
            f"stages must name at least one stage, each once; got {list(checked)}. Correct it."
        )
    return checked
