"""How many envs and workers are fastest: measured in turns, chosen with sense, cleaned up."""

from collections.abc import Callable
from itertools import groupby
from typing import Any

import gymnasium as gym
import numpy as np
import psutil
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from stepladder.envs import tuning
from stepladder.envs.tuning import TURNS, Tuning, TuningRow, tune
from stepladder.errors import ConfigError

SINGLE_S = 100e-6

Cost = Callable[[int, int], float]
"""Seconds that a vector step takes with this many envs and workers."""


class Bench:
    """A machine with its own clock: only steps take time, as long as they are told to."""

    def __init__(self, cost: Cost, num_cores: int):
        self.cost = cost
        self.num_cores = num_cores
        self.now = 0.0
        self.steps: list[Any] = []
        """Who stepped, in order: "single", or envs and workers."""
        self.open: list[Any] = []
        self.actions: list[Any] = []

    def clock(self) -> float:
        return self.now

    def spend(self, who: Any, seconds: float) -> None:
        self.steps.append(who)
        self.now += seconds

    def make(self, env: Any, num_envs: int, *, num_workers: int) -> "FakeVectorEnv":
        return FakeVectorEnv(self, num_envs, num_workers)

    def env(self) -> gym.Env[Any, Any]:
        return TimedEnv(self)

    def turns(self) -> list[Any]:
        """Return who was measured, in order."""
        return [who for who, _ in groupby(self.steps)]


class TimedEnv(gym.Env[Any, Any]):
    observation_space = Box(0.0, 1.0, (1,))

    def __init__(self, bench: Bench):
        self.action_space = Discrete(5)
        self.bench = bench
        bench.open.append(self)
        self.is_over = True

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.is_over = False
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        assert not self.is_over, "stepped after its end"
        self.bench.spend("single", SINGLE_S)
        self.is_over = len(self.bench.steps) % 7 == 0
        return np.zeros(1, np.float32), 0.0, self.is_over, False, {}

    def close(self) -> None:
        self.bench.open.remove(self)


class FakeVectorEnv:
    def __init__(self, bench: Bench, num_envs: int, num_workers: int):
        self.bench, self.num_envs, self.num_workers = bench, num_envs, num_workers
        self.action_space = MultiDiscrete([5] * num_envs)
        self.seed: int | None = None
        bench.open.append(self)

    def reset(self, *, seed: int) -> None:
        self.seed = seed

    def step(self, actions: Any) -> None:
        assert self.seed is not None, "stepped before reset"
        assert self.action_space.contains(actions)
        self.bench.actions.append(actions.tolist())
        self.bench.spend(
            (self.num_envs, self.num_workers), self.bench.cost(self.num_envs, self.num_workers)
        )

    def close(self) -> None:
        self.bench.open.remove(self)


def loop(num_envs: int, num_workers: int) -> float:
    """Workers share the steps, at 10 us of overhead each, and none helps beyond 8 envs."""
    return SINGLE_S * max(num_envs / (num_workers + 1), num_envs / 8) + 10e-6 * num_workers


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    """Make a machine on which the next call of `tune` runs."""

    def make(cost: Cost = loop, num_cores: int = 2) -> Bench:
        made = Bench(cost, num_cores)
        monkeypatch.setattr(tuning, "make_vec", made.make)
        monkeypatch.setattr(tuning, "perf_counter", made.clock)
        monkeypatch.setattr(tuning, "usable_cores", lambda: num_cores)
        return made

    return make


def row(num_envs: int, num_workers: int, steps_per_s: float) -> TuningRow:
    return TuningRow(
        num_envs=num_envs,
        num_workers=num_workers,
        steps_per_s=steps_per_s,
        speedup=steps_per_s / 1000.0,
    )


def tuned(*rows: TuningRow, env: str = "Pole-v1", is_id: bool = True) -> Tuning:
    return Tuning(
        env=env, is_id=is_id, num_cores=2, single_steps_per_s=1000.0, single_spread=0.05, rows=rows
    )


def test_rates_and_speedups_are_those_of_the_clock(bench: Callable[..., Bench]) -> None:
    found = tune(bench().env, env_counts=[1, 4], seconds=0.1)
    assert found.single_steps_per_s == pytest.approx(10_000.0)
    rates = {(row.num_envs, row.num_workers): row.steps_per_s for row in found.rows}
    # 4 envs: 400 us alone; with one worker 200 us and 10 us on top.
    assert rates == pytest.approx({(1, 0): 10_000.0, (4, 0): 10_000.0, (4, 1): 4 / 210e-6})
    assert [row.speedup for row in found.rows] == pytest.approx([1.0, 1.0, 400 / 210])
    assert found.num_cores == 2


def test_settings_take_turns_and_one_env_among_them(bench: Callable[..., Bench]) -> None:
    machine = bench()
    tune(machine.env, env_counts=[4], seconds=0.01)
    assert machine.turns() == ["single", (4, 0), (4, 1)] * (TURNS + 1)


def test_the_first_turn_and_disturbances_do_not_count(bench: Callable[..., Bench]) -> None:
    # Two of five turns are slow and one is odd. The one before them is slow as well.
    factors = {1: 1000.0, 2: 1000.0, 3: 1000.0, 4: 0.01}

    def disturbed(num_envs: int, num_workers: int) -> float:
        turn = machine.turns().count((num_envs, num_workers))
        return loop(num_envs, num_workers) * factors.get(turn, 1.0)

    machine = bench(disturbed)
    found = tune(machine.env, env_counts=[4], worker_counts=[1], seconds=0.01)
    assert found.rows[0].steps_per_s == pytest.approx(4 / 210e-6)


def test_every_setting_is_measured_for_the_time_that_was_asked_for(
    bench: Callable[..., Bench],
) -> None:
    machine = bench(lambda num_envs, num_workers: 1e-3)
    tune(machine.env, env_counts=[2], worker_counts=[0], seconds=0.5)
    # The turn before the others is as long as they are, and each has one step more to wake up.
    assert machine.steps.count((2, 0)) == pytest.approx(0.6 / 1e-3 + TURNS + 1, abs=TURNS + 1)


def test_more_envs_are_tried_while_they_help(bench: Callable[..., Bench]) -> None:
    # With one worker n envs take 50 n + 50 us. Steps per second of 2, 4, 8, 16, 32 and 64 envs:
    # 13,333, 16,000, 17,778, 18,824 (6 % more), 19,394 (3 %) and 19,692 (2 %: twice in vain).
    found = tune(bench(lambda n, w: loop(n, w) + 40e-6).env, seconds=0.01)
    rates = [row.steps_per_s for row in found.rows if row.num_workers == 1]
    assert rates == pytest.approx([13_333, 16_000, 17_778, 18_824, 19_394, 19_692], rel=1e-3)
    assert (found.best.num_envs, found.best.num_workers) == (16, 1)


def test_the_search_does_not_end_before_each_core_has_two_envs(
    bench: Callable[..., Bench],
) -> None:
    found = tune(bench(lambda n, w: n * SINGLE_S, num_cores=8).env, seconds=0.01)
    assert max(row.num_envs for row in found.rows) == 16
    assert (found.best.num_envs, found.best.num_workers) == (1, 0)


def test_the_search_ends_somewhere(bench: Callable[..., Bench]) -> None:
    found = tune(bench(lambda n, w: 1e-3).env, worker_counts=[0], seconds=0.01)
    assert [row.num_envs for row in found.rows] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]


def test_numbers_that_were_asked_for_are_all_tried_once(bench: Callable[..., Bench]) -> None:
    # 90 envs are no faster than 30.
    found = tune(bench().env, env_counts=[90, 1, 3, 3, 30, 99], worker_counts=[2, 0], seconds=0.01)
    assert [(row.num_envs, row.num_workers) for row in found.rows] == [
        *((1, 0), (3, 0), (3, 2), (30, 0), (30, 2), (90, 0), (90, 2), (99, 0), (99, 2))
    ]


@pytest.mark.parametrize(
    ("num_cores", "expected"),
    [
        (1, [0]),
        (2, [0, 1]),
        (8, [0, 1, 2, 3, 4, 5, 6, 7]),
        (12, [0, 1, 2, 4, 8, 11]),
        (64, [0, 1, 2, 4, 8, 16, 32, 63]),
    ],
)
def test_workers_go_up_to_one_less_than_there_are_cores(
    bench: Callable[..., Bench], num_cores: int, expected: list[int]
) -> None:
    found = tune(bench(num_cores=num_cores).env, env_counts=[100], seconds=0.01)
    assert [row.num_workers for row in found.rows] == expected


def test_each_setting_is_told_when_it_is_known(bench: Callable[..., Bench]) -> None:
    told: list[TuningRow] = []
    found = tune(bench().env, env_counts=[1, 4], seconds=0.01, on_row=told.append)
    assert tuple(told) == found.rows


def test_the_seed_decides_about_the_actions(bench: Callable[..., Bench]) -> None:
    drawn: list[Any] = []
    for seed in (3, 3, 4):
        machine = bench()
        tune(machine.env, env_counts=[4], worker_counts=[0], seconds=0.01, seed=seed)
        drawn.append(machine.actions[:32])
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({tuple(actions) for actions in drawn[0]}) > 16


def test_everything_is_closed(bench: Callable[..., Bench]) -> None:
    machine = bench()
    tune(machine.env, env_counts=[1, 4], seconds=0.01)
    assert machine.open == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_everything_is_closed_after_an_interruption_too(
    bench: Callable[..., Bench], error: type[BaseException]
) -> None:
    def interrupted(num_envs: int, num_workers: int) -> float:
        assert len(machine.open) == 3
        raise error

    machine = bench(interrupted)
    with pytest.raises(error):
        tune(machine.env, env_counts=[4], seconds=0.01)
    assert machine.open == []


def test_the_best_is_the_smallest_that_is_nearly_the_fastest() -> None:
    rows = (row(4, 0, 1000.0), row(8, 0, 1930.0), row(8, 1, 1960.0), row(32, 1, 2000.0))
    assert tuned(*rows).best == rows[1]
    assert tuned(*rows, row(64, 1, 2100.0)).best == row(32, 1, 2000.0)
    assert tuned(*rows[:2], row(32, 0, 5000.0)).best == row(32, 0, 5000.0)


def test_the_best_setting_can_be_pasted() -> None:
    assert tuned(row(32, 1, 1.0)).call == 'make_vec("Pole-v1", num_envs=32, num_workers=1)'
    named = tuned(row(2, 0, 1.0), env="make_env", is_id=False)
    assert named.call == "make_vec(make_env, num_envs=2, num_workers=0)"


def test_the_text_says_how_many_envs_to_use_with_how_many_cores() -> None:
    rows = (row(1, 0, 990.0), row(2, 0, 1100.0), row(2, 1, 1800.0), row(16, 0, 1300.0))
    assert tuned(*rows, row(16, 1, 12_345.0)).as_text().splitlines() == [
        "Pole-v1 on 2 cores; one env in a plain loop: 1,000 steps/s",
        "",
        "speed-up over it:",
        "num_envs  num_workers=0  num_workers=1",
        "       1           0.99",
        "       2           1.10           1.80",
        "      16           1.30          12.35",
        "",
        "cores  num_envs  steps/s  speed-up",
        "    1        16    1,300   1.30x",
        "    2        16   12,345  12.35x *",
    ]


def test_objects_for_machines_hold_every_setting_and_mark_one() -> None:
    entries = tuned(row(1, 0, 990.0), row(2, 1, 1800.0)).to_json()
    assert entries[1] == {
        "env": "Pole-v1",
        "num_envs": 2,
        "num_workers": 1,
        "steps_per_s": 1800.0,
        "speedup": 1.8,
        "single_steps_per_s": 1000.0,
        "num_cores": 2,
        "is_best": True,
    }
    assert [entry["is_best"] for entry in entries] == [False, True]


def not_an_env() -> Any:
    return 3


@pytest.mark.parametrize(
    ("env", "settings", "said"),
    [
        ("Nope-v1", {}, "'Nope-v1' cannot be found: Environment `Nope` doesn't exist"),
        ("no_such_module:Pole-v1", {}, "cannot be imported: No module named 'no_such_module'"),
        (not_an_env, {}, "not_an_env should make an env and returned 3. Return one env"),
        ("CartPole-v1", {"seconds": 0.0}, "seconds must be finite and above 0; got 0.0"),
        ("CartPole-v1", {"seed": -1}, "seed must be an integer of at least 0; got -1"),
        ("CartPole-v1", {"env_counts": [0]}, "env_counts must be an integer of at least 1"),
        ("CartPole-v1", {"worker_counts": [1.5]}, "worker_counts must be an integer"),
        ("CartPole-v1", {"env_counts": []}, "env_counts must hold at least one number"),
        (
            "CartPole-v1",
            {"worker_counts": [4, 5], "env_counts": [1, 4]},
            "worker_counts must allow for 4 envs; got 4",
        ),
    ],
)
def test_a_mistake_is_named(env: Any, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        tune(env, **{"env_counts": [1], "worker_counts": [0], **settings})
    assert said in str(refusal.value)


@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.parametrize("env", ["CartPole-v1", gym.spec("CartPole-v1")], ids=["id", "spec"])
def test_real_workers_are_measured_and_gone_afterwards(env: Any) -> None:
    before = set(psutil.Process().children(recursive=True))
    found = tune(env, env_counts=[2], worker_counts=[0, 1], seconds=0.05)
    assert found.env == "CartPole-v1"
    assert found.is_id
    assert [row.num_workers for row in found.rows] == [0, 1]
    assert min(row.steps_per_s for row in found.rows) > 0
    assert not any(
        child.is_running() and child.status() != psutil.STATUS_ZOMBIE
        for child in set(psutil.Process().children(recursive=True)) - before
    )
