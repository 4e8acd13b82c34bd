from pathlib import Path

import numpy as np
import pytest

from stepladder.agents.base import Agent
from stepladder.errors import SnapshotError
from stepladder.saving.snapshot import Snapshot
from stepladder.training.config import OpponentsConfig
from stepladder.training.opponents.archive import Archive
from stepladder.training.opponents.league import League
from training.opponents.small_agents import (
    NUM_ENVS,
    league_of,
    learn_a_little,
    small_agent,
    small_member,
    views,
)

ALL = np.arange(NUM_ENVS)
POOL = ["caller:pool"] * NUM_ENVS


def through_a_file(snapshot: Snapshot, folder: Path) -> Snapshot:
    return Snapshot.load(snapshot.save(folder / "league.npz"))


class Course:
    """A training that goes on in a fixed way, and everything that came of it."""

    def __init__(self, league: League, agent: Agent):
        self.league, self.agent = league, agent

    def play(self, first: int, last: int) -> list[object]:
        seen: list[object] = []
        for step in range(first, last):
            rng = np.random.default_rng(step)
            seen.append(self.league.act(views(step)).tolist())
            ended = np.flatnonzero(rng.random(NUM_ENVS) < 0.3)
            self.league.end(ended, rng.integers(-1, 2, len(ended)))
            names = rng.choice(
                ["caller:pool", "caller:newest", "caller:archive", "weak"], len(ended)
            )
            self.league.begin(ended, names.tolist())
            if step % 5 == 0:
                learn_a_little(self.agent)
            self.league.after_step(step * 100, self.agent)
            if step % 8 == 0:
                seen.append(sorted(self.league.metrics().items()))
        return [*seen, self.league.explain()]


@pytest.mark.parametrize("kind", ["sac", "recurrent"])
def test_a_restored_league_goes_on_bit_for_bit(kind: str, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    for seed in range(2):
        archive.add(small_member(seed, kind), origin="elsewhere")
    config = OpponentsConfig(snapshot_every_steps=400, pool_size=2)
    names = ("caller:pool", "caller:newest", "caller:archive", "weak")

    def fresh(agent: Agent) -> League:
        return league_of(agent, *names, config=config, seed=5, archive=archive)

    agent = small_agent(kind)
    course = Course(fresh(agent), agent)
    course.league.begin(ALL, POOL)
    course.play(0, 21)
    weights, num_updates = agent.weights(), agent.num_updates
    saved = through_a_file(course.league.state(), tmp_path)
    uninterrupted = course.play(21, 45)

    other = small_agent(kind, seed=9)
    league = fresh(other)
    other.load_weights(weights)
    other.num_updates = num_updates
    league.restore(saved)
    assert Course(league, other).play(21, 45) == uninterrupted


def test_games_that_were_reported_before_a_kill_are_not_counted_again(tmp_path: Path) -> None:
    agent, archive = small_agent(), Archive(tmp_path / "archive")
    archive.add(small_member(1), origin="elsewhere")
    league = league_of(agent, "caller:archive", archive=archive)
    saved = league.state()

    def go_on() -> None:
        league.begin(ALL, ["caller:archive"] * NUM_ENVS)
        league.end(ALL, [1] * NUM_ENVS)
        league.after_step(100, agent)

    go_on()
    (learner,) = archive.ratings().known()
    league.restore(saved)
    go_on()
    assert archive.rating(learner).num_games == NUM_ENVS


def test_a_state_of_another_league_is_refused_with_the_difference() -> None:
    agent = small_agent()
    saved = league_of(agent).state()
    other = league_of(agent, config=OpponentsConfig(pool_size=5))
    with pytest.raises(SnapshotError, match="pool_size was 3 and is now 5"):
        other.restore(saved)


@pytest.mark.parametrize("part", ["tally", "lineup", "members", "pool", "next_refresh"])
def test_a_damaged_state_is_refused_and_changes_nothing(part: str, tmp_path: Path) -> None:
    agent = small_agent()
    league = league_of(agent)
    saved = league.state()
    league.begin(ALL, POOL)
    league.end([0], [1])
    before = through_a_file(league.state(), tmp_path)
    broken = Snapshot(
        {name: value for name, value in saved.state.items() if name != part}, saved.arrays
    )
    with pytest.raises(SnapshotError):
        league.restore(broken)
    after = league.state()
    assert after.state == before.state
    assert after.arrays.keys() == before.arrays.keys()
    for name, array in before.arrays.items():
        np.testing.assert_array_equal(array, after.arrays[name])
