"""What one training practised and achieved: tables per epoch and label.

Start of this folder's data flow: `reading` makes a `Practice` of a run, `replay` repeats it with a
simulated learner, `fit` looks for the learner that explains it best.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.errors import ConfigError
from stepladder.simulator.calibration.repeats import RepeatedPlays

MOST_BINS = 200
"""Epochs that are fitted; shorter ones are added up."""

TABLES = ("plays", "successes", "success_steps", "failure_steps", "tasks_in_play")


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Results of an evaluation on tasks that were never practised, with drawn actions."""

    step: int
    """Env steps of training before it."""
    games: Floats
    """Episodes per group; 0 where a group was not played."""
    successes: Floats


@dataclass(frozen=True, kw_only=True)
class Practice:
    """What one training practised. All tables have the shape ``(num_epochs, num_groups)``."""

    name: str
    groups: tuple[str, ...]
    """Labels of the tasks."""
    num_tasks: Words
    """Tasks per group."""
    steps: Words
    """Env steps so far at the end of each epoch, rising."""
    plays: Floats
    """Episodes that ended."""
    successes: Floats
    """Sum of their successes."""
    success_steps: Floats
    """Sum of the lengths of those that succeeded."""
    failure_steps: Floats
    """Sum of the lengths of those that failed."""
    tasks_in_play: Floats | None = None
    """Tasks that plays were spread over, as if each was played alike; by default all."""
    held_out: tuple[HeldOut, ...] = ()
    repeats: RepeatedPlays | None = None
    """What shows how fast tasks are memorised; only if all tasks were drawn alike."""
    num_envs: int = 1
    update_steps: int = 8192
    """Env steps of all envs from one update of the agent to the next."""
    notes: tuple[str, ...] = field(default=())
    """What could not be read, in words."""

    def __post_init__(self) -> None:
        shape = (len(self.steps), len(self.groups))
        for name in TABLES:
            table = getattr(self, name)
            if table is not None and np.shape(table) != shape:
                raise ConfigError(
                    f"{self.name}: {name} must have a row per epoch and a column per group, "
                    f"{shape}; got {np.shape(table)}."
                )

    @property
    def num_plays(self) -> int:
        """Episodes of all groups."""
        return int(self.plays.sum())

    @property
    def spread_over(self) -> Floats:
        """Tasks that plays were spread over, per epoch and group; at least 1."""
        most = np.broadcast_to(self.num_tasks.astype(np.float64), self.plays.shape)
        given = most if self.tasks_in_play is None else np.minimum(self.tasks_in_play, most)
        return np.maximum(1.0, given)

    def rates(self) -> Floats:
        """Return the success per epoch and group; NaN without plays."""
        return np.divide(
            self.successes, self.plays, out=np.full(self.plays.shape, np.nan), where=self.plays > 0
        )

    def binned(self, most: int = MOST_BINS) -> "Practice":
        """Return the same with neighbouring epochs added up, so that there are few."""
        count = len(self.steps)
        if count <= most:
            return self
        starts = np.linspace(0, count, most + 1).astype(np.int64)[:-1]
        ends = np.append(starts[1:], count) - 1
        sums = {name: np.add.reduceat(getattr(self, name), starts, axis=0) for name in TABLES[:-1]}
        weights = np.add.reduceat(self.spread_over, starts, axis=0)
        counts = (ends - starts + 1)[:, None]
        return replace(self, steps=self.steps[ends], tasks_in_play=weights / counts, **sums)

    def until(self, step: int) -> "Practice":
        """Return the part of it up to an env step; at least one epoch."""
        count = max(1, int(np.searchsorted(self.steps, step, side="right")))
        early = tuple(one for one in self.held_out if one.step <= step)
        repeats = None if self.repeats is None else self.repeats.until(step)
        return replace(self._cut(slice(0, count)), held_out=early, repeats=repeats)

    def since(self, epoch: int) -> "Practice":
        """Return the part of it from an epoch on, without evaluations."""
        return replace(self._cut(slice(epoch, None)), held_out=(), repeats=None)

    def _cut(self, rows: slice) -> "Practice":
        present = (name for name in TABLES if getattr(self, name) is not None)
        tables = {name: getattr(self, name)[rows] for name in present}
        return replace(self, steps=self.steps[rows], **tables)

    def in_order(self, groups: tuple[str, ...]) -> "Practice":
        """Return the same with these groups in this order; groups without plays may be added."""
        missing = set(self.groups) - set(groups)
        if missing:
            raise ConfigError(f"{self.name} has the label {min(missing)!r}, which is not named.")
        places = [self.groups.index(name) if name in self.groups else -1 for name in groups]

        def ordered(table: Floats) -> Floats:
            wider = np.concatenate([table, np.zeros((*table.shape[:-1], 1), table.dtype)], axis=-1)
            return wider[..., places]

        evaluations = tuple(
            replace(one, games=ordered(one.games), successes=ordered(one.successes))
            for one in self.held_out
        )
        tables = {
            name: ordered(getattr(self, name))
            for name in (*TABLES, "num_tasks")
            if getattr(self, name) is not None
        }
        repeats = None if self.repeats is None else self.repeats.in_order(places)
        return replace(self, groups=groups, held_out=evaluations, repeats=repeats, **tables)
