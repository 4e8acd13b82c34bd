"""The infos of all envs after a step or reset.

Read from the arrays of `batch` after the kernels have run. Keys and types are those of Gymnasium's
`SyncVectorEnv`; or, for adapters, there is one dict per env. What the next step changes is copied
here; the infos are made of it when they are read (`lazy_infos`).
"""

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from stepladder.arrays import Flags
from stepladder.games.lazy_infos import LazyInfos

if TYPE_CHECKING:
    from stepladder.games.batch import GameVectorEnv
    from stepladder.games.curriculum_link import PlayedTasks

RowIndices = npt.NDArray[np.int64]
Infos = dict[str, Any]
Kinds = dict[str, type]

TEXT_KEYS = ("curriculum_stage", "curriculum_label", "curriculum_task")
NUMBER_KEYS = ("curriculum_slot", "curriculum_generation", "curriculum_plan_version")
TASK_KEYS = (*TEXT_KEYS, *NUMBER_KEYS)
"""Infos about a task."""

RESULT_KEYS = ("curriculum_plan_version_end", "curriculum_success")
"""Infos about a record."""

LAST_KEYS = ("final_obs", "final_info")
"""What same-step autoreset tells of episodes that have ended."""

NO_ROWS: RowIndices = np.zeros(0, dtype=np.int64)


class LastSteps(NamedTuple):
    """The last steps of episodes after which others have begun already."""

    rows: RowIndices
    seen: dict[str, npt.NDArray[Any]] | npt.NDArray[Any]
    """One entry per row."""
    infos: "Outcome"


class Outcome:
    """What the infos of a step are made of.

    Args:
        num_envs: Envs.
        kinds: The infos of every step by name, each with its type.
        columns: Their values, of shape ``(len(kinds), num_envs)``; None after a reset.
        absent: Envs that have none of them.
        played: What has ended and what has begun, if infos tell of tasks.
        last: Of episodes that have ended in the step that began others.
    """

    __slots__ = ("_absent", "_columns", "_kinds", "_last", "_num_envs", "_played")

    def __init__(
        self,
        num_envs: int,
        kinds: Kinds,
        columns: npt.NDArray[np.float64] | None,
        absent: RowIndices = NO_ROWS,
        played: "PlayedTasks | None" = None,
        last: LastSteps | None = None,
    ):
        self._num_envs, self._kinds, self._columns = num_envs, kinds, columns
        self._absent, self._played, self._last = absent, played, last

    def names(self) -> frozenset[str]:
        """Return the keys."""
        played = self._played
        return names_of(
            () if self._columns is None else tuple(self._kinds),
            self._last is not None,
            played is not None,
            played is not None and played.num_ended > 0,
        )

    def one(self, name: str) -> Infos:
        """Return an entry; masks and infos about tasks come all together."""
        if self._columns is None or name not in self._kinds:
            return self.all()
        number = list(self._kinds).index(name)
        return {name: self._column(name, self._columns[number])}

    def all(self) -> Infos:
        """Return an array for each key, and under ``_key`` a mask of the envs that have it."""
        infos: Infos = {}
        if self._last is not None:
            rows, seen, outcome = self._last
            mask = mask_of(rows, self._num_envs)
            infos["final_obs"], infos["_final_obs"] = last_seen(rows, seen, self._num_envs), mask
            infos["final_info"], infos["_final_info"] = outcome.all(), mask
        if self._columns is not None:
            mask = np.ones(self._num_envs, dtype=np.bool_)
            mask[self._absent] = False
            for name, column in zip(self._kinds, self._columns, strict=True):
                infos[name], infos["_" + name] = self._column(name, column), mask
        if self._played is not None:
            add_tasks(infos, self._played, self._num_envs)
            if self._played.num_ended:
                add_results(infos, self._played, self._num_envs)
        return infos

    def _column(self, name: str, column: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        values = column.astype(self._kinds[name])
        values[self._absent] = 0
        return values


@cache
def names_of(
    steps: tuple[str, ...], has_last: bool, has_tasks: bool, has_results: bool
) -> frozenset[str]:
    """Return the keys of infos that hold these parts."""
    names = (
        *steps,
        *(LAST_KEYS if has_last else ()),
        *(TASK_KEYS if has_tasks else ()),
        *(RESULT_KEYS if has_results else ()),
    )
    return frozenset(key for name in names for key in (name, "_" + name))


def merged(vec: "GameVectorEnv", *, is_step: bool) -> LazyInfos:
    """Return one dict for all envs: an array per key and a mask ``_key`` of the envs that have it.

    Args:
        vec: The vector env.
        is_step: Whether this was a step rather than a reset.
    """
    return LazyInfos(outcome_of(vec, is_step=is_step))


def outcome_of(vec: "GameVectorEnv", *, is_step: bool) -> Outcome:
    """Return what the infos of the last step or reset are made of."""
    num_begun, num_ended = vec.num_begun, vec.num_ended
    kinds, num_envs = vec.info_kinds, vec.num_envs
    if is_step and not (num_begun or num_ended):
        # The usual case.
        return Outcome(num_envs, kinds, vec.extras.copy())
    if vec.autoreset_mode is AutoresetMode.SAME_STEP:
        return _outcome_of_both(vec, is_step=is_step)
    begun = vec.batch.has_begun.nonzero()[0] if num_begun else NO_ROWS
    columns = vec.extras.copy() if is_step and num_begun < num_envs else None
    link = vec.link if vec.task_infos else None
    return Outcome(num_envs, kinds, columns, begun, None if link is None else link.played())


def _outcome_of_both(vec: "GameVectorEnv", *, is_step: bool) -> Outcome:
    """Return the same for same-step autoreset: what has ended has begun again already."""
    batch, kinds, num_envs = vec.batch, vec.info_kinds, vec.num_envs
    begun, ended = batch.has_begun.nonzero()[0], batch.has_ended.nonzero()[0]
    link = vec.link if vec.task_infos else None
    last = None
    if len(ended):
        others = np.flatnonzero(~batch.has_ended)
        played = None if link is None else link.ended_before(ended)
        outcome = Outcome(num_envs, kinds, vec.extras.copy(), others, played)
        last = LastSteps(ended, _rows_of(vec.seen_last, ended), outcome)
    if vec.link is not None:
        vec.link.note(begun)
    played = link.begun_now(begun) if link is not None and len(begun) else None
    columns = vec.extras.copy() if is_step and len(begun) < num_envs else None
    return Outcome(num_envs, kinds, columns, begun, played, last)


def mask_of(rows: RowIndices, num_envs: int) -> Flags:
    """Return True for some envs and False for the others."""
    mask = np.zeros(num_envs, dtype=np.bool_)
    mask[rows] = True
    return mask


def add_tasks(infos: Infos, played: "PlayedTasks", num_envs: int) -> None:
    """Add infos about the tasks that envs play."""
    rows = played.rows
    mask = mask_of(rows, num_envs)
    for key, values in zip(TEXT_KEYS, played.texts(), strict=True):
        texts = np.empty(num_envs, dtype=object)
        texts[rows] = values
        infos[key] = texts
    for key, values in zip(NUMBER_KEYS, played.numbers(), strict=True):
        numbers = np.zeros(num_envs, dtype=np.int64)
        numbers[rows] = values
        infos[key] = numbers
    infos.update(dict.fromkeys(("_" + key for key in TASK_KEYS), mask))


def add_results(infos: Infos, played: "PlayedTasks", num_envs: int) -> None:
    """Add infos about the records that envs post at the end of an episode."""
    rows = played.rows[: played.num_ended]
    mask = mask_of(rows, num_envs)
    version = np.zeros(num_envs, dtype=np.int64)
    version[rows] = played.plan_version
    success = np.zeros(num_envs)
    success[rows] = played.successes()
    infos["curriculum_plan_version_end"], infos["curriculum_success"] = version, success
    infos["_curriculum_plan_version_end"] = infos["_curriculum_success"] = mask


def _rows_of(memory: Any, rows: RowIndices) -> Any:
    """Return a copy of some rows."""
    if isinstance(memory, dict):
        return {key: part[rows] for key, part in memory.items()}
    return memory[rows]


def last_seen(rows: RowIndices, seen: Any, num_envs: int) -> npt.NDArray[Any]:
    """Return the last observation of every env that ended; None for the others."""
    found = np.empty(num_envs, dtype=object)
    for place, row in enumerate(rows.tolist()):
        if isinstance(seen, dict):
            found[row] = {key: part[place] for key, part in seen.items()}
        else:
            found[row] = seen[place]
    return found


def by_row(vec: "GameVectorEnv", *, is_step: bool) -> list[tuple[int, Infos]]:
    """Return the infos of each env that has any."""
    infos = _split(outcome_of(vec, is_step=is_step).all(), vec.num_envs)
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
