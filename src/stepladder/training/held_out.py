"""What an evaluation plays: fixed games, by group, with fixed seeds.

Between a request and `evaluation`, which plays all of them as one batch. Ledge has levels that no
generator makes, hockey its opponents from both starting sides; any other env is played as it is,
or with the tasks that are named.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepladder.errors import ConfigError
from stepladder.games.hockey.task import CALLER, OPPONENTS
from stepladder.games.ledge.source import held_out_source
from stepladder.tasks import Task

SIDES = ("one", "two")
"""Whose half the puck starts in."""

THE_GAME: dict[str, Any] = {
    "mode": "NORMAL",
    "opponent_gain": None,
    "puck_speed": None,
    "original_starts": False,
    "success": "win",
    "time_limit": None,
    "closeness_weight": 0.0,
    "touch_weight": 0.0,
    "direction_weight": 0.0,
}
"""Hockey itself, whatever the envs of a training have as defaults."""


@dataclass(frozen=True, kw_only=True)
class Fixture:
    """Games that are alike but for their seeds."""

    group: str
    """What its result is reported under: stage, opponent or label."""

    part: str
    """What tells it from others of its group: level, starting side or task."""

    num_games: int
    first_seed: int
    """Of its games; each further one has the next number."""

    task: Task | None = None
    """What is played; None is the env as it comes."""

    rival: str | None = None
    """Who plays player two; None where the env does, or where there is none."""


@dataclass(frozen=True, kw_only=True)
class Programme:
    """All games of an evaluation, in the order of their rows."""

    fixtures: tuple[Fixture, ...]
    env_kwargs: dict[str, Any]
    """Arguments of the envs that they are played in."""

    is_match: bool = False
    """Whether there is an opponent, so that games can be drawn and lost."""

    is_fixed: bool = False
    """Whether chance has no part in a fixture, so that two games of one are hardly two trials."""

    @property
    def num_games(self) -> int:
        """Rows of the batch: each plays one game."""
        return sum(fixture.num_games for fixture in self.fixtures)

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
        """One per row, or None where envs are played as they come."""
        tasks = [
            fixture.task
            for fixture in self.fixtures
            for _ in range(fixture.num_games)
            if fixture.task is not None
        ]
        return tasks or None

    def rivals(self) -> dict[str, slice]:
        """Return who is needed as player two, and in which rows."""
        start, rows = 0, dict[str, slice]()
        for fixture in self.fixtures:
            stop = start + fixture.num_games
            if fixture.rival is not None:
                # Games against one are next to each other.
                first = rows[fixture.rival].start if fixture.rival in rows else start
                rows[fixture.rival] = slice(first, stop)
            start = stop
        return rows


def hockey_programme(
    env_kwargs: Mapping[str, Any],
    opponents: Sequence[str],
    rivals: Collection[str],
    num_games: int,
    seed: int,
) -> Programme:
    """Return games of hockey against each opponent, half of them from each starting side.

    Args:
        env_kwargs: Of the envs of the training; how the players act is taken from them.
        opponents: ``"weak"``, ``"strong"`` or names among the rivals.
        rivals: Who can be called to play player two.
        num_games: Against each; an even number.
        seed: Of the first game against each, so that all opponents face the same starts.

    Raises:
        ConfigError: An opponent is unknown or named twice, or the number is odd.
    """
    if not opponents or len(set(opponents)) < len(opponents):
        raise ConfigError(
            f"opponents must name at least one, each once; got {list(opponents)}. Mend the list."
        )
    if num_games % 2:
        raise ConfigError(
            f"num_games must be even in hockey, so that both sides start equally often; got "
            f"{num_games}. Use {num_games + 1}."
        )
    fixtures: list[Fixture] = []
    for opponent in opponents:
        is_rival = opponent in rivals
        if not is_rival and OPPONENTS.get(opponent, (CALLER,))[0] == CALLER:
            raise ConfigError(
                f"there is no opponent {opponent!r}; expected weak, strong"
                f"{''.join(f', {name}' for name in rivals)}. Correct the name."
            )
        for number, side in enumerate(SIDES):
            said = {**THE_GAME, "opponent": "caller" if is_rival else opponent, "starts": side}
            fixture = Fixture(
                group=opponent,
                part=f"starts={side}",
                num_games=num_games // 2,
                first_seed=seed + number * (num_games // 2),
                task=Task(f"{opponent}, starts={side}", opponent, said),
                rival=opponent if is_rival else None,
            )
            fixtures.append(fixture)
    has_rivals = any(opponent in rivals for opponent in opponents)
    kwargs = {**env_kwargs, "players": "both" if has_rivals else "one"}
    kwargs.pop("opponent", None)
    return Programme(fixtures=tuple(fixtures), env_kwargs=kwargs, is_match=True)


def ledge_programme(
    env_kwargs: Mapping[str, Any],
    stages: Sequence[str],
    num_games: int,
    seed: int,
    *,
    is_deterministic: bool,
) -> Programme:
    """Return the held-out levels of some stages, without shaping.

    Who does always the same plays each level once, as nothing would change; others play at least
    `num_games` a stage, each level equally often.
    """
    kwargs = {name: value for name, value in env_kwargs.items() if name not in ("level", "stage")}
    levels = held_out_source(stages)
    return task_programme(
        {**kwargs, "shaping": False},
        [levels.get(number) for number in range(levels.num_tasks)],
        1 if is_deterministic else num_games,
        seed,
        is_fixed=True,
    )


def task_programme(
    env_kwargs: Mapping[str, Any],
    tasks: Sequence[Task],
    num_games: int,
    seed: int,
    *,
    is_fixed: bool = False,
) -> Programme:
    """Return games of some tasks, at least `num_games` a label, each task equally often.

    Where a label has more tasks than that, every so many-th is played; of fixed ones, all are.
    """
    by_label: dict[str, list[Task]] = {}
    for task in tasks:
        by_label.setdefault(task.label, []).append(task)
    fixtures: list[Fixture] = []
    for label, group in by_label.items():
        if len(group) > num_games and not is_fixed:
            group = [group[number * len(group) // num_games] for number in range(num_games)]
        each = -(-num_games // len(group))
        for number, task in enumerate(group):
            fixture = Fixture(
                group=label,
                part=task.name,
                num_games=each,
                first_seed=seed + number * each,
                task=task,
            )
            fixtures.append(fixture)
    return Programme(fixtures=tuple(fixtures), env_kwargs=dict(env_kwargs), is_fixed=is_fixed)


def plain_programme(
    env_kwargs: Mapping[str, Any], name: str, num_games: int, seed: int
) -> Programme:
    """Return games of an env as it comes."""
    fixture = Fixture(group=name, part=name, num_games=num_games, first_seed=seed)
    return Programme(fixtures=(fixture,), env_kwargs=dict(env_kwargs))
