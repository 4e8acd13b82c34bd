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
    from stepladder.games.lessons import Lessons

Rows = npt.NDArray[np.int64]
Infos = dict[str, Any]

NO_ROWS: Rows = np.zeros(0, dtype=np.int64)


def merged(vec: "GameVectorEnv", *, is_step: bool) -> Infos:
    """Return one dict for all envs: an array per key and a mask ``_key`` of who has it.

    Args:
        vec: The vector env.
        is_step: Whether this was a step rather than a reset.
    """
    batch = vec.batch
    infos: Infos = {}
    begun = np.flatnonzero(batch.has_begun) if batch.events[BEGINNINGS] else NO_ROWS
    ended = np.flatnonzero(batch.has_ended) if batch.events[ENDINGS] else NO_ROWS
    if len(ended) and vec.autoreset_mode is AutoresetMode.SAME_STEP:
        # The next episodes have begun already; what the last ones said stands apart.
        mask = mask_of(ended, vec.num_envs)
        infos["final_obs"], infos["_final_obs"] = last_seen(vec, ended), mask
        infos["final_info"], infos["_final_info"] = final_infos(vec, ended), mask
        ended = NO_ROWS
    if is_step and len(begun) < vec.num_envs:
        add_step(infos, vec, begun)
    if vec.lessons is not None:
        if len(ended):
            add_results(infos, vec, vec.lessons, ended)
        vec.lessons.note(begun, batch.episodes["slot"][begun])
        talking = np.concatenate([ended, begun]) if len(ended) else begun
        if len(talking):
            add_lessons(infos, vec.lessons, batch.episodes, talking)
    return infos


def mask_of(rows: Rows, num_envs: int) -> npt.NDArray[np.bool_]:
    """Return truth for some envs."""
    mask = np.zeros(num_envs, dtype=np.bool_)
    mask[rows] = True
    return mask


def add_step(infos: Infos, vec: "GameVectorEnv", begun: Rows) -> None:
    """Add what envs say in every step, but those that have just begun an episode."""
    mask = np.ones(vec.num_envs, dtype=np.bool_)
    mask[begun] = False
    for name, kind, values in zip(vec.info_names, vec.info_kinds, vec.extras, strict=True):
        column = values.astype(kind)
        column[begun] = 0
        infos[name], infos["_" + name] = column, mask


def final_infos(vec: "GameVectorEnv", ended: Rows) -> Infos:
    """Return what envs said in the last step of an episode, for same-step autoreset."""
    infos: Infos = {}
    mask = mask_of(ended, vec.num_envs)
    for name, kind, values in zip(vec.info_names, vec.info_kinds, vec.extras, strict=True):
        column = np.zeros(vec.num_envs, dtype=kind)
        column[ended] = values[ended]
        infos[name], infos["_" + name] = column, mask
    if vec.lessons is not None:
        add_results(infos, vec, vec.lessons, ended)
        add_lessons(infos, vec.lessons, vec.batch.episodes, ended, prefix="last_")
    return infos


def add_results(infos: Infos, vec: "GameVectorEnv", lessons: "Lessons", ended: Rows) -> None:
    """Add what envs say of the record that they leave at the end of an episode."""
    mask = mask_of(ended, vec.num_envs)
    success = np.zeros(vec.num_envs)
    success[ended] = vec.batch.episodes["success"][ended]
    version = np.zeros(vec.num_envs, dtype=np.int64)
    version[ended] = lessons.host.curriculum.plan.version
    infos["curriculum_plan_version_end"] = version
    infos["curriculum_success"] = success
    infos["_curriculum_plan_version_end"] = infos["_curriculum_success"] = mask


def add_lessons(
    infos: Infos, lessons: "Lessons", episodes: npt.NDArray[Any], rows: Rows, prefix: str = ""
) -> None:
    """Add what envs say about the task they play, or with ``last_`` have just played."""
    num_envs = len(episodes)
    mask = mask_of(rows, num_envs)
    for key, texts in (
        ("curriculum_stage", lessons.task_stages),
        ("curriculum_label", lessons.task_labels),
        ("curriculum_task", lessons.task_names),
    ):
        column = np.empty(num_envs, dtype=object)
        column[rows] = texts[rows]
        infos[key], infos["_" + key] = column, mask
    for name in ("slot", "generation", "plan_version"):
        column = np.zeros(num_envs, dtype=np.int64)
        column[rows] = episodes[prefix + name][rows]
        infos[f"curriculum_{name}"], infos[f"_curriculum_{name}"] = column, mask


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
    """Return what each env says, for those that say anything."""
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
