"""What a step says beside observations and rewards: the infos of all envs.

Read from the arrays of `batch` after the kernels have run. Key for key and type for type what
Gymnasium's `SyncVectorEnv` makes of single envs' infos; or, for adapters, one dict per env.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from stepladder.games.episodes import BEGINNINGS, ENDINGS

if TYPE_CHECKING:
    from stepladder.games.batch import GameVectorEnv

Column = tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]
"""What envs say under one key, and which of them do."""


def merged(vec: "GameVectorEnv", *, is_step: bool) -> dict[str, Any]:
    """Return one dict for all envs: an array per key and a mask ``_key`` of who has it.

    Args:
        vec: The vector env.
        is_step: Whether this was a step rather than a reset.
    """
    batch = vec.batch
    infos: dict[str, Any] = {}
    num_ended, num_begun = int(batch.events[ENDINGS]), int(batch.events[BEGINNINGS])
    ended = batch.has_ended.copy() if num_ended else None
    is_same_step = vec.autoreset_mode is AutoresetMode.SAME_STEP
    if ended is not None and is_same_step:
        final: dict[str, Any] = {}
        _add(final, step_columns(vec, ended))
        _add(final, ending_columns(vec, ended))
        infos["final_obs"], infos["_final_obs"] = _last_seen(vec, ended), ended
        infos["final_info"], infos["_final_info"] = final, ended
    if is_step and num_begun < vec.num_envs:
        stepped = ~batch.has_begun if num_begun else np.ones(vec.num_envs, dtype=np.bool_)
        _add(infos, step_columns(vec, stepped))
    if ended is not None and not is_same_step:
        _add(infos, ending_columns(vec, ended))
    if num_begun and vec.lessons is not None:
        begun = batch.has_begun.copy()
        rows = np.flatnonzero(begun)
        vec.lessons.note(rows, batch.episodes["slot"][rows])
        _add(infos, lesson_columns(vec, begun))
    return infos


def _add(infos: dict[str, Any], columns: dict[str, Column]) -> None:
    """Add columns; a key that is there already belongs to other envs, and both are kept."""
    for key, (values, mask) in columns.items():
        if key in infos:
            infos[key] = np.where(mask, values, infos[key])
            infos["_" + key] = infos["_" + key] | mask
        else:
            infos[key], infos["_" + key] = values, mask


def step_columns(vec: "GameVectorEnv", mask: npt.NDArray[np.bool_]) -> dict[str, Column]:
    """Return what envs say in every step."""
    is_all = bool(mask.all())
    columns: dict[str, Column] = {}
    for name, kind, values in zip(vec.info_names, vec.info_kinds, vec.extras, strict=True):
        own = values.astype(kind) if is_all else np.where(mask, values, 0.0).astype(kind)
        columns[name] = (own, mask)
    return columns


def ending_columns(vec: "GameVectorEnv", ended: npt.NDArray[np.bool_]) -> dict[str, Column]:
    """Return what envs say at the end of an episode."""
    success = np.where(ended, vec.batch.episodes["success"], 0.0)
    columns: dict[str, Column] = {"is_success": (success > 0.5, ended)}
    if vec.lessons is not None:
        # With same-step autoreset the next episode has begun; the record of the last is kept.
        columns |= lesson_columns(vec, ended, of_last=True)
        version = np.where(ended, vec.lessons.host.curriculum.plan.version, 0)
        columns["curriculum_plan_version_end"] = (version, ended)
        columns["curriculum_success"] = (success, ended)
    return columns


def lesson_columns(
    vec: "GameVectorEnv", mask: npt.NDArray[np.bool_], *, of_last: bool = False
) -> dict[str, Column]:
    """Return what envs say about the task they play, or have just played."""
    assert vec.lessons is not None
    episodes, lessons = vec.batch.episodes, vec.lessons
    rows = np.flatnonzero(mask)
    prefix = "last_" if of_last else ""
    texts = {
        "curriculum_stage": lessons.task_stages[rows],
        "curriculum_label": lessons.task_labels[rows],
        "curriculum_task": lessons.task_names[rows],
    }
    columns: dict[str, Column] = {}
    for key, values in texts.items():
        column = np.full(vec.num_envs, None, dtype=object)
        column[rows] = values
        columns[key] = (column, mask)
    for key in ("slot", "generation", "plan_version"):
        column = np.zeros(vec.num_envs, dtype=np.int64)
        column[rows] = episodes[prefix + key][rows]
        columns[f"curriculum_{key}"] = (column, mask)
    return columns


def _last_seen(vec: "GameVectorEnv", ended: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Return the last observation of every env that ended."""
    seen = np.full(vec.num_envs, None, dtype=object)
    memory = vec.seen_last
    for row in np.flatnonzero(ended).tolist():
        if isinstance(memory, dict):
            seen[row] = {key: part[row].copy() for key, part in memory.items()}
        else:
            seen[row] = memory[row].copy()
    return seen


def by_row(vec: "GameVectorEnv", *, is_step: bool) -> list[tuple[int, dict[str, Any]]]:
    """Return what each env says, for those that say anything."""
    infos = _split(merged(vec, is_step=is_step), vec.num_envs)
    return [(row, info) for row, info in enumerate(infos) if info]


def _split(infos: dict[str, Any], num_envs: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(num_envs)]
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
