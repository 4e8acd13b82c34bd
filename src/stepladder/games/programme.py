"""What an evaluation plays: fixed games, by group, with fixed seeds.

Made by a `Game` for an evaluation; `training.evaluation` plays the games of each group as one
batch, so that no group changes the games of another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

from stepladder.errors import ConfigError
from stepladder.tasks import Task


@dataclass(frozen=True, kw_only=True)
class Fixture:
    """Games that differ only in their seeds."""

    group: str
    """What its result is reported under: a stage, an opponent or a label."""

    part: str
    """What distinguishes it within its group: a level, a starting side or a task."""

    num_games: int
    first_seed: int
    """Seed of its first game; each further game has the next number."""

    task: Task | None = None
    """What is played; None is the env without a task."""

    rival: str | None = None
    """Name of the policy that plays player two; None if the env does, or there is only one."""


@dataclass(frozen=True, kw_only=True)
class Programme:
    """All games of an evaluation, in the order of their rows."""

    fixtures: tuple[Fixture, ...]
    env_kwargs: dict[str, Any]
    """Arguments of the envs that they are played in."""

    is_match: bool = False
    """Whether there is an opponent, so that games can be drawn and lost."""

    is_fixed: bool = False
    """Whether a fixture contains no chance, so that two games of it are hardly two trials."""

    @property
    def num_games(self) -> int:
        """Rows of the batch: each plays one game."""
        return len(self.seeds)

    @property
    def seeds(self) -> list[int]:
        """One per row."""
        return [
            fixture.first_seed + number
            for fixture in self.fixtures
            for number in range(fixture.num_games)
        ]

    @property
    def tasks(self) -> list[Task] | None:
        """One per row, or None if the envs are played without tasks."""
        games = [(one.task, one.num_games) for one in self.fixtures if one.task is not None]
        return [task for task, num_games in games for _ in range(num_games)] or None

    def by_group(self) -> dict[str, "Programme"]:
        """Return a programme for each group, by its name, in the order of their first games."""
        groups: dict[str, list[Fixture]] = {}
        for fixture in self.fixtures:
            groups.setdefault(fixture.group, []).append(fixture)
        return {name: replace(self, fixtures=tuple(some)) for name, some in groups.items()}

    def rows(self) -> list[range]:
        """Return the rows of each fixture."""
        ends = list(accumulate((one.num_games for one in self.fixtures), initial=0))
        return [range(start, stop) for start, stop in pairwise(ends)]

    def rivals(self) -> dict[str, slice]:
        """Return which policies play player two, and in which rows."""
        rows: dict[str, slice] = {}
        for fixture, games in zip(self.fixtures, self.rows(), strict=True):
            if fixture.rival is not None:
                # Games against one rival are next to each other.
                first = rows[fixture.rival].start if fixture.rival in rows else games.start
                rows[fixture.rival] = slice(first, games.stop)
        return rows


def task_programme(
    env_kwargs: Mapping[str, Any],
    tasks: Sequence[Task],
    num_games: int,
    seed: int,
    *,
    labels: Sequence[str] = (),
    is_fixed: bool = False,
) -> Programme:
    """Return games of some tasks, at least `num_games` per label, each task equally often.

    If a label has more tasks than that, evenly spaced ones are played; of fixed tasks, all are.

    Args:
        env_kwargs: Arguments of the envs.
        tasks: What can be played.
        num_games: Games per label.
        seed: Seed of the first game of each label.
        labels: Which labels are played; none named is all.
        is_fixed: Whether the tasks contain no chance.

    Raises:
        ConfigError: No task has one of the labels.
    """
    by_label: dict[str, list[Task]] = {}
    for task in tasks:
        by_label.setdefault(task.label, []).append(task)
    for label in labels:
        if label not in by_label:
            raise ConfigError(
                f"no task has the label {label!r}; there are {', '.join(by_label)}. Correct it."
            )
    fixtures: list[Fixture] = []
    for label, group in by_label.items():
        if labels and label not in labels:
            continue
        if len(group) > num_games and not is_fixed:
            group = [group[number * len(group) // num_games] for number in range(num_games)]
        each = -(-num_games // len(group))
        fixtures += [
            Fixture(
                group=label,
                part=task.name,
                num_games=each,
                first_seed=seed + number * each,
                task=task,
            )
            for number, task in enumerate(group)
        ]
    return Programme(fixtures=tuple(fixtures), env_kwargs=dict(env_kwargs), is_fixed=is_fixed)
