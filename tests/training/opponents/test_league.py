from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from stepladder.errors import ConfigError
from stepladder.training.checkpoints.tensor_files import save_policy
from stepladder.training.config import OpponentsConfig
from stepladder.training.opponents.archive import Archive
from stepladder.training.opponents.league import REFRESH_EVERY_STEPS
from training.opponents.small_agents import (
    NUM_ENVS,
    CountingMaker,
    league_of,
    learn_a_little,
    small_agent,
    small_member,
    views,
)

ALL = np.arange(NUM_ENVS)
POOL = ["caller:pool"] * NUM_ENVS


def policy_file(path: Path, seed: int = 0, kind: str = "sac") -> Path:
    member = small_member(seed, kind)
    save_policy(path, member.description, member.weights)
    return path


def test_scripted_opponents_are_left_to_the_env() -> None:
    make = CountingMaker()
    league = league_of(small_agent(), "weak", "none", make=make)
    league.begin(ALL, ["weak", "none", "strong", "basic_weak", "weak", "none"])
    actions = league.act(views(0))
    league.end(ALL, [1] * NUM_ENVS)
    assert (actions == 0).all()
    assert make.players == []
    assert league.metrics() == {}


def test_each_distinct_opponent_is_asked_once_about_just_its_rows(tmp_path: Path) -> None:
    make = CountingMaker()
    path = policy_file(tmp_path / "weights.safetensors")
    named = f"caller:{path}"
    league = league_of(small_agent(), "caller:newest", named, make=make)
    make.take()
    league.begin(ALL, ["caller:newest", named, "weak", named, "caller", named])
    actions = league.act(views(0))
    assert sorted(make.take()) == [2, 3]
    assert (actions[2] == 0).all()
    assert (actions[[0, 1, 3, 4, 5]] != 0).all()
    league.end([1, 3, 5], [1, 0, -1])
    league.act(views(1))
    assert make.take() == [2]


def test_a_row_plays_the_same_whoever_plays_the_others() -> None:
    agent, seen = small_agent(), views(0)
    config = OpponentsConfig(deterministic=True)
    alone, together = (league_of(agent, "caller:newest", config=config) for _ in range(2))
    alone.begin([2], ["caller:newest"])
    together.begin(ALL, ["caller:newest"] * NUM_ENVS)
    expected = agent.act_batch(seen, deterministic=True)
    np.testing.assert_allclose(together.act(seen), expected, rtol=1e-5)
    np.testing.assert_allclose(alone.act(seen)[2], expected[2], rtol=1e-5)
    assert (alone.act(seen)[[0, 1, 3, 4, 5]] == 0).all()


@pytest.mark.parametrize("kind", ["sac", "ppo", "recurrent", "dddqn"])
def test_every_kind_of_agent_can_be_an_opponent(kind: str) -> None:
    agent = small_agent(kind)
    league = league_of(agent, "caller:pool", "caller:newest")
    league.begin(ALL, ["caller:pool", "caller:newest"] * 3)
    for step in range(3):
        actions = league.act(views(step))
        assert actions.shape == (NUM_ENVS, *agent.action_space.shape)
        assert actions.dtype == agent.action_space.dtype
        assert all(agent.action_space.contains(action) for action in actions)


def test_different_kinds_of_agents_play_in_one_league(tmp_path: Path) -> None:
    path = policy_file(tmp_path / "weights.safetensors", kind="ppo_choices")
    league = league_of(small_agent("dddqn"), "caller:newest", f"caller:{path}")
    league.begin(ALL, ["caller:newest", f"caller:{path}"] * 3)
    assert set(league.act(views(0)).tolist()) <= set(range(8))


def test_one_who_does_not_fit_is_refused_in_one_line_before_anything_starts(
    tmp_path: Path,
) -> None:
    path = policy_file(tmp_path / "weights.safetensors", kind="dddqn")
    with pytest.raises(ConfigError, match="action_space is discrete 8, and here it is box") as told:
        league_of(small_agent("sac"), f"caller:{path}")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("caller:nowhere", "'nowhere' is not a file or folder"),
        ("caller:archive", "no archive is named"),
    ],
)
def test_a_name_that_stands_for_nobody_is_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        league_of(small_agent(), name)


@pytest.mark.parametrize("name", ["caller:pool", "caller:archive", "caller:somebody"])
def test_a_name_that_was_not_announced_is_refused(name: str) -> None:
    league = league_of(small_agent(), "caller:newest")
    with pytest.raises(ConfigError, match="was not announced"):
        league.begin([0], [name])


def test_every_result_is_counted_once_whoever_it_was_played_against() -> None:
    agent, rng = small_agent(), np.random.default_rng(0)
    league = league_of(agent, "caller:pool", "caller:newest", "weak")
    names = np.array(["caller:pool", "caller:newest", "weak"])
    counted = {"pool": [0, 0, 0], "newest": [0, 0, 0]}
    playing = [""] * NUM_ENVS
    reported = {"pool": 0.0, "newest": 0.0}
    for step in range(300):
        begun = [row for row in range(NUM_ENVS) if not playing[row]]
        drawn = rng.choice(names, len(begun)).tolist()
        league.begin(begun, drawn)
        for row, name in zip(begun, drawn, strict=True):
            playing[row] = name
        ended = [row for row in range(NUM_ENVS) if rng.random() < 0.4]
        outcomes = rng.integers(-1, 2, len(ended))
        league.end(ended, outcomes)
        for row, outcome in zip(ended, outcomes.tolist(), strict=True):
            kind = playing[row].removeprefix("caller:")
            if kind in counted:
                counted[kind][1 - outcome] += 1
            playing[row] = ""
        league.after_step(step * 10, agent)
        metrics = league.metrics()
        for kind in reported:
            reported[kind] += metrics.get(f"env_opponents/games/{kind}", 0.0)
    told = league.explain()
    assert told.results == {kind: tuple(counts) for kind, counts in counted.items()}
    assert reported == {kind: sum(counts) for kind, counts in counted.items()}
    assert told.num_aborted == 0
    seats = league._seats["pool"].curriculum
    assert seats.num_observed == sum(counted["pool"])
    # Results of those who have left are orphans; all others are somebody's.
    assert seats.num_observed - seats.num_orphaned >= seats.plays().sum() > 0


def test_metrics_are_those_since_the_last_call() -> None:
    league = league_of(small_agent())
    league.begin([0, 1], POOL[:2])
    league.end([0, 1], [1, 0])
    assert league.metrics() == {
        "env_opponents/games/pool": 2.0,
        "env_opponents/won/pool": 0.5,
        "env_opponents/drawn/pool": 0.5,
        "env_opponents/members/pool": 1.0,
    }
    assert league.metrics() == {"env_opponents/members/pool": 1.0}


def test_an_episode_whose_end_was_never_told_counts_for_nobody() -> None:
    league = league_of(small_agent())
    league.begin([0], ["caller:pool"])
    league.begin([0], ["weak"])
    league.end([0], [1])
    assert league.explain().num_aborted == 1
    assert league.explain().results == {}


def test_an_impossible_outcome_is_refused_before_any_is_counted() -> None:
    league = league_of(small_agent())
    league.begin([0, 1], POOL[:2])
    with pytest.raises(ConfigError, match="outcome"):
        league.end([0, 1], [1, 7])
    assert league.explain().results == {}


def test_a_past_self_is_kept_when_it_is_due_and_never_changes() -> None:
    agent = small_agent()
    league = league_of(agent, config=OpponentsConfig(snapshot_every_steps=100, pool_size=3))
    first = agent.weights()
    for step in (60, 120, 180, 240, 500):
        learn_a_little(agent)
        league.after_step(step, agent)
    members = {member.name: member for member in league._seats["pool"].members.values()}
    # The untrained self of the beginning has made room; steps 120, 240 and 500 were due.
    assert list(members) == ["step 120", "step 240", "step 500"]
    name = next(iter(first))
    torch.testing.assert_close(members["step 120"].weights[name], first[name] + 0.2)
    torch.testing.assert_close(members["step 500"].weights[name], first[name] + 0.5)


def test_one_who_has_left_plays_on_to_the_end_of_the_episode_and_is_then_let_go() -> None:
    agent = small_agent()
    config = OpponentsConfig(snapshot_every_steps=100, pool_size=1, deterministic=True)
    league = league_of(agent, config=config)
    league.begin([0, 1], POOL[:2])
    before = league.act(views(0))[:2]
    learn_a_little(agent)
    league.after_step(100, agent)
    np.testing.assert_array_equal(league.act(views(0))[:2], before)
    league.end([0], [1])
    league.begin([0], ["caller:pool"])
    after = league.act(views(0))[:2]
    assert not np.array_equal(after[0], before[0])
    np.testing.assert_allclose(after[1], before[1], rtol=1e-6)
    league.end([0, 1], [-1, 1])
    assert sorted(league._lineup.opponents) == ["pool/1"]
    # Both results of the first are counted, and credited to nobody.
    assert league.explain().results == {"pool": (2, 0, 1)}
    (seat,) = league.explain().seats["pool"]
    assert (seat.name, seat.num_games) == ("step 100", 1)


def test_the_newest_self_is_refreshed_in_episodes_in_flight_but_not_too_often() -> None:
    agent, seen = small_agent(), views(0)
    config = OpponentsConfig(deterministic=True)
    league = league_of(agent, "caller:newest", config=config)
    league.begin(ALL, ["caller:newest"] * NUM_ENVS)

    def follows() -> bool:
        expected = agent.act_batch(seen, deterministic=True)
        return bool(np.allclose(league.act(seen), expected, rtol=1e-5))

    assert follows()
    learn_a_little(agent)
    assert not follows()
    league.after_step(10, agent)
    assert follows()
    learn_a_little(agent)
    league.after_step(20, agent)
    assert not follows()
    league.after_step(10 + REFRESH_EVERY_STEPS, agent)
    assert follows()


def test_opponents_explore_each_by_itself_and_the_same_with_the_same_seed() -> None:
    def actions(seed: int) -> npt.NDArray[np.float32]:
        league = league_of(small_agent(), "caller:pool", "caller:newest", seed=seed)
        league.begin(ALL, ["caller:pool", "caller:newest"] * 3)
        seen = np.tile(views(0, 1), (NUM_ENVS, 1))
        return league.act(seen)

    first = actions(1)
    assert len(np.unique(first, axis=0)) == NUM_ENVS
    np.testing.assert_array_equal(first, actions(1))
    assert not np.array_equal(first, actions(2))


def test_no_global_generator_is_touched() -> None:
    state = torch.get_rng_state()
    league = league_of(small_agent())
    league.begin(ALL, POOL)
    league.act(views(0))
    assert torch.equal(torch.get_rng_state(), state)


def test_only_weights_are_kept_and_no_memory_of_the_learner() -> None:
    agent = small_agent()
    league = league_of(agent)
    saved = league.state()
    names = {name.rpartition("/")[2] for name in saved.arrays if name.startswith("members/")}
    assert names == set(agent.weights())


def test_the_newest_self_plays_while_the_archive_is_empty(tmp_path: Path) -> None:
    config = OpponentsConfig(archive=str(tmp_path / "archive"))
    league = league_of(small_agent(), "caller:archive", config=config)
    league.begin([0], ["caller:archive"])
    league.end([0], [1])
    assert league.explain().results == {"newest": (1, 0, 0)}
    assert "The archive is empty" in str(league.explain())


def test_games_against_the_archive_count_for_the_learners_rating(tmp_path: Path) -> None:
    agent, archive = small_agent(), Archive(tmp_path)
    rival = archive.add(small_member(1), origin="elsewhere")
    odd = archive.add(small_member(2, "dddqn"), origin="elsewhere")
    config = OpponentsConfig(snapshot_every_steps=100)
    named = f"caller:{rival}"
    league = league_of(
        agent, "caller:archive", named, config=config, archive=archive, origin="mine"
    )
    league.begin(ALL, ["caller:archive", named] * 3)
    league.end(ALL, [1] * NUM_ENVS)
    assert "discrete 8" in league.explain().skipped[odd]
    league.after_step(100, agent)
    metrics = league.metrics()
    assert metrics["env_opponents/games/archive"] == 3.0
    assert metrics["env_opponents/rating"] > 0.0
    assert archive.rating(rival).num_games == 0
    entered = league.enter_archive(agent, 100, tags=["final"])
    assert entered is not None
    assert archive.rating(entered).value == metrics["env_opponents/rating"]
    assert league.enter_archive(agent, 100, tags=["final"]) == entered


def test_an_archive_that_cannot_be_reached_stops_no_training(tmp_path: Path) -> None:
    agent, archive = small_agent(), Archive(tmp_path / "archive")
    archive.add(small_member(1), origin="elsewhere")
    league = league_of(agent, "caller:archive", archive=archive)
    league.begin(ALL, ["caller:archive"] * NUM_ENVS)
    league.end(ALL, [1] * NUM_ENVS)
    hidden = archive.folder.rename(tmp_path / "hidden")
    archive.folder.write_text("in the way")
    league.after_step(100, agent)
    assert league.metrics()["env_opponents/archive_trouble"] == 1.0
    assert "cannot be used" in str(league.explain())
    archive.folder.unlink()
    hidden.rename(archive.folder)
    league.after_step(200, agent)
    assert "env_opponents/archive_trouble" not in league.metrics()
    (learner,) = archive.ratings().known()
    assert archive.rating(learner).num_games == NUM_ENVS


def test_a_league_without_an_archive_enters_nobody() -> None:
    agent = small_agent()
    assert league_of(agent).enter_archive(agent, 0) is None
