"""How many envs and workers are fastest on this machine: measured, not guessed.

Above `make_vec`, below the command ``stepladder tune``. Every setting steps with random actions.
Settings with the same number of envs are built together and measured in short turns, one env in a
plain loop among them, so that other load on the machine affects all of them.
"""

import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle
from time import perf_counter
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from stepladder.configs.checks import require_integer, require_positive
from stepladder.cores import usable_cores
from stepladder.envs.make import env_functions, make_vec
from stepladder.envs.types import EnvFunction, GymEnv, GymVectorEnv
from stepladder.envs.workers.env_functions import apply_to
from stepladder.errors import ConfigError

MOST_ENVS = 512
"""Envs after which the search ends, though throughput may still rise."""

RISE = 1.05
"""Twice as many envs are worth it if they are faster by this factor."""

DOUBTFUL_SPREAD = 0.2
"""One env's rate varies by less on a machine with nothing else to do."""

TURNS = 5
"""Turns in which a setting is measured; one more goes before them and is not counted."""

NUM_SAMPLED_ACTIONS = 32
"""Batches of actions that are drawn beforehand and used in turn."""

MakeEnv = str | EnvSpec | EnvFunction


@dataclass(frozen=True, kw_only=True)
class TuningRow:
    """One setting and how fast it was."""

    num_envs: int
    num_workers: int
    """Worker processes beside the main one; 0 is a loop in the main process."""

    steps_per_s: float
    """Env steps per second of all envs together."""

    speedup: float
    """As a multiple of one env in a plain loop, which took turns with it."""

    @property
    def num_cores(self) -> int:
        """Cores that this setting keeps busy."""
        return self.num_workers + 1


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What was measured."""

    env: str
    """Id of the env, or name of the function that makes it."""

    is_id: bool
    """Whether `env` is an id."""

    num_cores: int
    """Cores that this process may use."""

    single_steps_per_s: float
    """Env steps per second of one env in a plain loop."""

    single_spread: float
    """How far the middle four fifths of the rates of one env lie apart, as a share of them."""

    rows: tuple[TuningRow, ...]
    """Every setting that was measured, by envs and workers."""

    @property
    def best(self) -> TuningRow:
        """The setting to use: the fewest envs, then workers, that are nearly the fastest."""
        return _best(self.rows)

    @property
    def call(self) -> str:
        """The best setting, ready to be pasted."""
        env = f'"{self.env}"' if self.is_id else self.env
        return (
            f"make_vec({env}, num_envs={self.best.num_envs}, num_workers={self.best.num_workers})"
        )

    def best_by_cores(self) -> list[TuningRow]:
        """Return the best setting for each number of cores in use."""
        counts = sorted({row.num_cores for row in self.rows if row.num_cores <= self.num_cores})
        return [_best([row for row in self.rows if row.num_cores == count]) for count in counts]

    def as_text(self) -> str:
        """Return all speed-ups as a table, then the number of envs to use by cores."""
        worker_counts = sorted({row.num_workers for row in self.rows})
        speedups = {(row.num_envs, row.num_workers): f"{row.speedup:.2f}" for row in self.rows}
        grid = [["num_envs", *(f"num_workers={count}" for count in worker_counts)]]
        for num_envs in sorted({row.num_envs for row in self.rows}):
            cells = (speedups.get((num_envs, count), "") for count in worker_counts)
            grid.append([str(num_envs), *cells])
        advice = [["cores", "num_envs", "steps/s", "speed-up"]]
        advice += [
            [
                str(row.num_cores),
                str(row.num_envs),
                f"{row.steps_per_s:,.0f}",
                f"{row.speedup:.2f}x{' *' if row == self.best else '  '}",
            ]
            for row in self.best_by_cores()
        ]
        doubt = [
            "",
            f"One env varied by {self.single_spread:.0%} meanwhile: something else uses the cores. "
            "Measure again when the machine is idle.",
        ]
        return "\n".join(
            [
                f"{self.env} on {self.num_cores} cores; one env in a plain loop: "
                f"{self.single_steps_per_s:,.0f} steps/s",
                "",
                "speed-up over it:",
                *_aligned(grid),
                "",
                *_aligned(advice),
                *(doubt if self.single_spread > DOUBTFUL_SPREAD else []),
            ]
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Return the rows as plain objects."""
        return [
            {
                "env": self.env,
                **asdict(row),
                "single_steps_per_s": self.single_steps_per_s,
                "num_cores": self.num_cores,
                "is_best": row == self.best,
            }
            for row in self.rows
        ]


def tune(
    env: MakeEnv,
    *,
    worker_counts: Sequence[int] | None = None,
    env_counts: Sequence[int] | None = None,
    seconds: float = 0.5,
    seed: int = 0,
    on_row: Callable[[TuningRow], None] | None = None,
) -> Tuning:
    """Measure how many envs and workers are fastest on this machine.

    Args:
        env: A Gymnasium id, a spec, or a function that makes an env.
        worker_counts: Numbers of workers to try, each with more envs than workers; by default 0
            to one less than there are cores, from nine cores on 0, powers of two and the last.
        env_counts: Numbers of envs to try; by default 1, 2, 4 and so on, until every core had two
            envs and more were no faster.
        seconds: How long each setting is measured.
        seed: Seed of the actions and of the envs.
        on_row: Called with every setting that has been measured.

    Raises:
        ConfigError: A number is out of range, or there is nothing to measure.
    """
    num_cores = usable_cores()
    doublings = [2**k for k in range(MOST_ENVS.bit_length())]
    tried = _distinct("worker_counts", worker_counts, 0, _default_worker_counts(num_cores))
    counts = _distinct("env_counts", env_counts, 1, doublings)
    require_positive("seconds", seconds)
    require_integer("seed", seed, 0)
    if tried[0] >= counts[-1]:
        raise ConfigError(
            f"worker_counts must allow for {counts[-1]} envs; got {tried[0]}. The main process "
            "steps envs too, so give fewer workers than envs."
        )
    rows: list[TuningRow] = []
    singles: list[float] = []
    num_without_rise = 0
    for num_envs in (count for count in counts if count > tried[0]):
        fitting = [count for count in tried if count < num_envs]
        rates, found = _measured(env, num_envs, fitting, seconds, seed)
        singles += rates
        if on_row is not None:
            for row in found:
                on_row(row)
        has_risen = not rows or _fastest(found) >= RISE * _fastest(rows)
        rows += found
        num_without_rise = 0 if has_risen else num_without_rise + 1
        # By default more envs are tried only as long as they help; once may be chance.
        if env_counts is None and num_without_rise >= 2 and num_envs >= 2 * num_cores:
            break
    return Tuning(
        env=_name(env),
        is_id=not callable(env),
        num_cores=num_cores,
        single_steps_per_s=statistics.median(singles),
        single_spread=_spread(singles),
        rows=tuple(rows),
    )


def _measured(
    env: MakeEnv, num_envs: int, worker_counts: Sequence[int], seconds: float, seed: int
) -> tuple[list[float], list[TuningRow]]:
    """Measure all settings with this number of envs, and one env, in turns.

    Returns:
        The rates of one env, turn by turn; and a row for each setting.
    """
    with ExitStack() as stack:
        turns = [_single_turn(env, seconds / TURNS, seed, stack)]
        for num_workers in worker_counts:
            envs = make_vec(env, num_envs, num_workers=num_workers)
            stack.enter_context(closing(envs))
            turns.append(_vector_turn(envs, seconds / TURNS, seed))
        rates = [[turn() for turn in turns] for _ in range(TURNS + 1)][1:]
    singles = [of_all[0] for of_all in rates]
    single, *vectors = (statistics.median(of_one) for of_one in zip(*rates, strict=True))
    return singles, [
        TuningRow(
            num_envs=num_envs, num_workers=num_workers, steps_per_s=rate, speedup=rate / single
        )
        for num_workers, rate in zip(worker_counts, vectors, strict=True)
    ]


def _single_turn(env: MakeEnv, seconds: float, seed: int, stack: ExitStack) -> Callable[[], float]:
    make = env_functions(env, 1)[0]
    try:
        single = make()
    except (gym.error.Error, ImportError) as error:
        raise ConfigError(
            f"the env {_name(env)!r} cannot be made: {error} Correct the id, or install what it "
            "needs."
        ) from error
    stack.callback(single.close)
    single.action_space.seed(seed)
    actions = [single.action_space.sample() for _ in range(NUM_SAMPLED_ACTIONS)]

    def begin(env: GymEnv) -> None:
        env.reset(seed=seed)

    def step_all(env: GymEnv) -> None:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    apply_to(single, 0, begin, ())
    turn = partial(apply_to, single, 0, step_all, ())
    return lambda: NUM_SAMPLED_ACTIONS * _calls_per_s(turn, seconds)


def _vector_turn(envs: GymVectorEnv, seconds: float, seed: int) -> Callable[[], float]:
    envs.reset(seed=seed)
    envs.action_space.seed(seed)
    actions = cycle([envs.action_space.sample() for _ in range(NUM_SAMPLED_ACTIONS)])
    return lambda: envs.num_envs * _calls_per_s(lambda: envs.step(next(actions)), seconds)


def _calls_per_s(call: Callable[[], object], seconds: float) -> float:
    # Workers that had gone to sleep wake up outside the measurement.
    call()
    count, began = 0, perf_counter()
    while (elapsed := perf_counter() - began) < seconds:
        call()
        count += 1
    return count / elapsed


def _spread(rates: Sequence[float]) -> float:
    ordered, cut = sorted(rates), len(rates) // 10
    return (ordered[-1 - cut] - ordered[cut]) / statistics.median(rates)


def _best(rows: Sequence[TuningRow]) -> TuningRow:
    """Return the fewest envs, then workers, within measuring noise of the fastest."""
    enough = _fastest(rows) / RISE
    good = [row for row in rows if row.steps_per_s >= enough]
    return min(good, key=lambda row: (row.num_envs, row.num_workers))


def _fastest(rows: Sequence[TuningRow]) -> float:
    return max(row.steps_per_s for row in rows)


def _default_worker_counts(num_cores: int) -> list[int]:
    if num_cores <= 8:
        return list(range(num_cores))
    powers = [2**k for k in range(num_cores.bit_length()) if 2**k < num_cores]
    return [0, *powers, num_cores - 1]


def _distinct(name: str, counts: Sequence[int] | None, least: int, default: list[int]) -> list[int]:
    """Check numbers and sort them."""
    if counts is None:
        return default
    if not counts:
        raise ConfigError(f"{name} must hold at least one number; got none. Give one, or None.")
    for count in counts:
        require_integer(name, count, least)
    return sorted(set(counts))


def _name(env: MakeEnv) -> str:
    if isinstance(env, str):
        return env
    if isinstance(env, EnvSpec):
        return env.id
    name = getattr(env, "__name__", "")
    return name if name.isidentifier() else "make_env"


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table with all columns flush right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
