"""Which stage, and which sub-group of it, every slot belongs to.

Used by `staged` when it is built: a stage, or a sub-group of one, is a group of the plan, so that
its share of all draws is a single number.
"""

from dataclasses import dataclass

import numpy as np

from stepladder.arrays import Words
from stepladder.curricula.staged.config import StagedConfig
from stepladder.errors import ConfigError
from stepladder.plans.plan import Grouping
from stepladder.tasks import Pool
from stepladder.tasks.paths import read_path


@dataclass(frozen=True)
class StageGroups:
    """The slots in groups, and the groups in stages."""

    grouping: Grouping
    stage_of_group: Words
    names: list[str]
    """What each sub-group has in common; empty where stages are not split."""

    @classmethod
    def of(cls, pool: Pool, config: StagedConfig) -> "StageGroups":
        """Put each slot into its stage, or into its stage's sub-group.

        Raises:
            ConfigError: A label belongs to no stage, or a stage has no task.
        """
        stage_of_slot = _stages_of_slots(pool, config)
        if config.balance_by is None:
            num_stages = len(config.stages)
            names = [""] * num_stages
            return cls(Grouping(stage_of_slot, num_stages), np.arange(num_stages), names)
        groups: dict[tuple[int, str], int] = {}
        group_of_slot = np.zeros(pool.num_slots, dtype=np.int64)
        for slot in range(pool.num_slots):
            value = str(read_path(pool.task(slot).params, config.balance_by))
            key = (int(stage_of_slot[slot]), value)
            group_of_slot[slot] = groups.setdefault(key, len(groups))
        stage_of_group = np.array([stage for stage, _ in groups], dtype=np.int64)
        names = [name for _, name in groups]
        return cls(Grouping(group_of_slot, len(groups)), stage_of_group, names)


def _stages_of_slots(pool: Pool, config: StagedConfig) -> Words:
    stage_of_label = {
        label: index for index, stage in enumerate(config.stages) for label in stage.task_labels
    }
    for label in pool.label_names:
        if label not in stage_of_label:
            raise ConfigError(
                f"tasks with label {label!r} belong to no stage; the stages hold "
                f"{sorted(stage_of_label)}. Add the label to a stage, or remove the tasks."
            )
    stages = np.array([stage_of_label[name] for name in pool.label_names], dtype=np.int64)
    for index, stage in enumerate(config.stages):
        if index not in stages[pool.label_indices]:
            raise ConfigError(
                f"stage {stage.name!r} is empty: no active task has label "
                f"{' or '.join(map(repr, stage.task_labels))}. Add tasks with that label, "
                "raise the capacity, or leave the stage out."
            )
    return stages[pool.label_indices]
