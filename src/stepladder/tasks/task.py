"""One thing to practise: a name, a label, parameters, a seed.

Start of the data flow: sources make tasks, the pool holds them in slots, an env receives one per
episode. A task crosses processes and outlives them in snapshots, so it is immutable, plain, and
named by a digest of its content rather than by Python's salted hash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn, cast, final

from stepladder.configs.documents import to_plain
from stepladder.errors import TaskError
from stepladder.tasks.paths import write_path
from stepladder.tasks.plain import canonical_json, checked_integer, digest

MAX_SEED = 2**63 - 1
"""Largest seed: what a signed 64-bit integer in shared memory can hold."""

_FIELDS = ("name", "label", "params", "seed")
_REPR_PARAMS_LENGTH = 200


@final
class Task:
    """An immutable task. Tasks with equal content are equal and have equal keys.

    Numbers keep their type: a parameter of 1 and one of 1.0 make two different tasks.
    """

    __slots__ = ("_params_json", "label", "name", "seed")

    name: str
    """What the task is called."""

    label: str
    """The group the task belongs to."""

    _params_json: str

    seed: int | None
    """The seed, or None if the task has none of its own."""

    def __init__(
        self,
        name: str,
        label: str = "default",
        params: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        """Check and copy the content of a task.

        Args:
            name: What to call it; not empty. Unique within a finite source.
            label: The group it belongs to, such as a stage; not empty.
            params: What an env needs to build it: anything JSON can hold. Numpy scalars become
                plain numbers and tuples become lists. Copied, so later changes have no effect.
            seed: From 0 to 2**63 - 1, or None to leave it to the draw.

        Raises:
            TaskError: If any of these is malformed.
        """
        _fill(
            self,
            _text(name, "name"),
            _text(label, "label"),
            _params_text(params),
            None if seed is None else checked_integer(seed, "A task's seed", 0, MAX_SEED),
        )

    @property
    def params(self) -> dict[str, Any]:
        """The parameters, as a fresh dict on every access: changing it changes no task."""
        return {} if self._params_json == "{}" else json.loads(self._params_json)

    @property
    def key(self) -> str:
        """32 hex digits that depend on all four fields, the same in every process."""
        seed = "null" if self.seed is None else self.seed
        name, label = json.dumps(self.name), json.dumps(self.label)
        return digest(f"[{name},{label},{self._params_json},{seed}]")

    def with_params(self, overrides: Mapping[str, Any]) -> Task:
        """Return the same task with some params set, by dotted path.

        Example:
            >>> Task("duel", params={"puck": {"speed": 1}}).with_params({"puck.speed": 2}).params
            {'puck': {'speed': 2}}
        """
        if not overrides:
            return self
        params = self.params
        for path, value in overrides.items():
            write_path(params, path, value)
        return Task(self.name, self.label, params, self.seed)

    def to_json(self) -> dict[str, Any]:
        """Return the task as a plain dict, from which `from_json` makes an equal one."""
        return {name: getattr(self, name) for name in _FIELDS}

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> Task:
        """Make a task from what `to_json` returned; all fields but the name may be left out.

        Raises:
            TaskError: If a field is malformed, missing or unknown.
        """
        if not isinstance(cast("object", fields), Mapping):
            raise TaskError(
                f"A task in JSON must be an object with the fields {', '.join(_FIELDS)}; got "
                f"{type(fields).__name__}. Pass what Task.to_json returned."
            )
        unknown = [key for key in fields if key not in _FIELDS]
        if unknown:
            raise TaskError(
                f"A task has no field {unknown[0]!r}; it has {', '.join(_FIELDS)}. "
                "Put anything else into params."
            )
        if "name" not in fields:
            raise TaskError(f"A task needs a name; got only {sorted(fields)}. Add 'name'.")
        return Task(**fields)

    def _content(self) -> tuple[str, str, str, int | None]:
        return self.name, self.label, self._params_json, self.seed

    def __eq__(self, other: object) -> bool:
        """Compare by content."""
        return isinstance(other, Task) and self._content() == other._content()

    def __hash__(self) -> int:
        """Hash for dicts of this process only; `key` is the same in every process."""
        return hash(self._content())

    def __repr__(self) -> str:
        """Show all fields; long parameters are cut."""
        params = repr(self.params)
        if len(params) > _REPR_PARAMS_LENGTH:
            params = params[: _REPR_PARAMS_LENGTH - 3] + "..."
        return f"Task({self.name!r}, label={self.label!r}, params={params}, seed={self.seed})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the stored text; it was checked when the task was made."""
        return _revive, self._content()

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        """Refuse: a task may be shared by many slots and envs."""
        raise AttributeError(
            f"A task cannot be changed: tried to set {name} = {value!r}. Make a new Task instead."
        )

    def __delattr__(self, name: str) -> NoReturn:
        """Refuse, like `__setattr__`."""
        raise AttributeError(f"A task cannot be changed: tried to delete {name}.")


def _fill(task: Task, name: str, label: str, params_json: str, seed: int | None) -> None:
    # The only place that writes to a task, past the __setattr__ that refuses.
    object.__setattr__(task, "name", name)
    object.__setattr__(task, "label", label)
    object.__setattr__(task, "_params_json", params_json)
    object.__setattr__(task, "seed", seed)


def _revive(name: str, label: str, params_json: str, seed: int | None) -> Task:
    task = Task.__new__(Task)
    _fill(task, name, label, params_json, seed)
    return task


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value:
        raise TaskError(
            f"A task's {field} must be a string that is not empty; got {value!r}. "
            f"Give the task a {field}."
        )
    return str.__str__(value)


def _params_text(params: Any) -> str:
    if params is None:
        return "{}"
    if not isinstance(params, Mapping):
        raise TaskError(
            f"A task's params must be a mapping; got {type(params).__name__}. "
            'Wrap it, for example as {"value": ...}.'
        )
    return canonical_json(to_plain(params, "params")) if params else "{}"
