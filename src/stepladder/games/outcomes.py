"""The infos of all envs after a step or reset.

Read from the arrays of `batch` after the kernels have run. Keys and types are those of Gymnasium's
`SyncVectorEnv`; or, for adapters, there is one dict per env.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

if TYPE_CHECKING:
    from stepladder.games.batch import GameVectorEnv
    from stepladder.games.curriculum_link import CurriculumLink

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Infos = dict[str, Any]

TASK_KEYS = (
    "curriculum_stage",
    "curriculum_label",
    "curriculum_task",
    "curriculum_slot",
    "curriculum_generation",
    "curriculum_plan_version",
)
"""Infos about a task; the first three are texts."""

TASK_MASKS = tuple("_" + key for key in TASK_KEYS)

NO_ROWS: Rows = np.zeros(0, dtype=np.int64)


def merged(vec: "GameVectorEnv", *, is_step: bool) -> Infos:
    """Return one dict for all envs: an array per key and a mask ``_key`` of the envs that have it.

    Args:
        vec: The vector env.
        is_step: Whether this was a step rather than a reset.
    """
    batch = vec.batch
    link = vec.link if vec.task_infos else None
    infos: Infos = {}
    begun = np.flatnonzero(batch.has_begun) if batch.events["num_begun"][0] else NO_ROWS
    ended = np.flatnonzero(batch.has_ended) if batch.events["num_ended"][0] else NO_ROWS
    if len(ended) and vec.autoreset_mode is AutoresetMode.SAME_STEP:
        # The next episodes have begun already; infos of the last ones are kept apart.
        mask = mask_of(ended, vec.num_envs)
        infos["final_obs"], infos["_final_obs"] = last_seen(vec, ended), mask
        infos["final_info"], infos["_final_info"] = final_infos(vec, ended, mask), mask
        ended = NO_ROWS
    if is_step and len(begun) < vec.num_envs:
        mask = np.ones(vec.num_envs, dtype=np.bool_)
        columns = vec.extras.copy()
        if len(begun):
            mask[begun], columns[:, begun] = False, 0.0
        add_step(infos, vec, columns, mask)
    if link is not None and (len(begun) or len(ended)):
        link.note(begun, batch.episodes)
        rows = np.concatenate([ended, begun])
        add_tasks(infos, link, rows, mask_of(rows, vec.num_envs))
        if len(ended):
            add_results(infos, vec, link, ended, mask_of(ended, vec.num_envs))
    return infos


def mask_of(rows: Rows, num_envs: int) -> Mask:
    """Return True for some envs and False for the others."""
    mask = np.zeros(num_envs, dtype=np.bool_)
    mask[rows] = True
    return mask


def add_step(
    infos: Infos, vec: "GameVectorEnv", columns: npt.NDArray[np.float64], mask: Mask
) -> None:
    """Add the infos of every step; the columns are not copied."""
    for (name, kind), column in zip(vec.info_kinds.items(), columns, strict=True):
        infos[name] = column if kind is float else column.astype(kind)
        infos["_" + name] = mask


def final_infos(vec: "GameVectorEnv", ended: Rows, mask: Mask) -> Infos:
    """Return the infos of the last step of an episode, for same-step autoreset."""
    infos: Infos = {}
    columns = np.zeros_like(vec.extras)
    columns[:, ended] = vec.extras[:, ended]
    add_step(infos, vec, columns, mask)
    if vec.link is not None and vec.task_infos:
        # The next episodes have not been noted yet.
        add_tasks(infos, vec.link, ended, mask)
        add_results(infos, vec, vec.link, ended, mask)
    return infos


def add_results(
    infos: Infos, vec: "GameVectorEnv", link: "CurriculumLink", ended: Rows, mask: Mask
) -> None:
    """Add infos about the records that envs post at the end of an episode."""
    success = np.zeros(vec.num_envs)
    success[ended] = vec.batch.episodes["success"][ended]
    version = np.zeros(vec.num_envs, dtype=np.int64)
    version[ended] = link.host.curriculum.plan.version
    infos["curriculum_plan_version_end"] = version
    infos["curriculum_success"] = success
    infos["_curriculum_plan_version_end"] = infos["_curriculum_success"] = mask


def add_tasks(infos: Infos, link: "CurriculumLink", rows: Rows, mask: Mask) -> None:
    """Add infos about the tasks that envs play."""
    texts = np.empty(link.texts.shape, dtype=object)
    texts[:, rows] = link.texts[:, rows]
    numbers = np.zeros_like(link.numbers)
    numbers[:, rows] = link.numbers[:, rows]
    infos.update(zip(TASK_KEYS, (*texts, *numbers), strict=True))
    infos.update(dict.fromkeys(TASK_MASKS, mask))


def last_seen(vec: "GameVectorEnv", ended: Rows) -> npt.NDArray[Any]:
    """Return the last observation of every env that ended."""
    seen = np.empty(vec.num_envs, dtype=object)
    memory = vec.seen_last
    for row in ended.tolist():
        if isinstance(memory, dict):
            seen[row] = {key: part[row].copy() for key, part in memory.items()}
        else:
            seen[row] = memory[row].copy()
    return seen


def by_row(vec: "GameVectorEnv", *, is_step: bool) -> list[tuple[int, Infos]]:
    """Return the infos of each env that has any."""
    infos = _split(merged(vec, is_step=is_step), vec.num_envs)
    return [(row, info) for row, info in enumerate(infos) if info]


def _split(infos: Infos, num_envs: int) -> list[Infos]:
    rows: list[Infos] = [{} for _ in range(num_envs)]
    for key, values in infos.items():
        if key.startswith("_"):
            continue
        if isinstance(values, dict):
            values = _split(values, num_envs)
        elif values.dtype != object:
            values = values.tolist()
        for row in np.flatnonzero(infos["_" + key]).tolist():
            rows[row][key] = values[row]
    return rows
