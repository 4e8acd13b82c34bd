from pathlib import Path

import pytest

from stepladder.games.hockey.game import HOCKEY_ENV as HOCKEY
from stepladder.training.opponents.archive import Archive
from stepladder.training.opponents.tournament import in_turn, round_robin
from training.opponents.small_agents import small_member


def test_outcomes_are_mixed_evenly_and_none_is_lost() -> None:
    outcomes = in_turn(6, 3, 3)
    assert [outcomes.count(kind) for kind in (1, 0, -1)] == [6, 3, 3]
    assert outcomes[:4].count(1) == outcomes[4:8].count(1) == 2
    assert in_turn(0, 0, 0) == []


@pytest.mark.slow
def test_everybody_plays_everybody_and_the_baselines_and_is_rated(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    one, two = (archive.add(small_member(seed), origin="run") for seed in (1, 2))
    odd = archive.add(small_member(3, "dddqn"), origin="run")
    done = round_robin(archive, env=HOCKEY, num_games=2, seed=7)
    pairs = {frozenset((games.one, games.two)) for games in done.games}
    assert pairs == {
        frozenset(pair)
        for pair in [(one, two)] + [(a, b) for a in (one, two) for b in ("weak", "strong")]
    }
    assert all(len(games.outcomes) == 2 for games in done.games)
    assert "discrete 8" in done.skipped[odd]
    ratings = archive.ratings()
    assert {name: ratings[name].num_games for name in (one, two, "weak", "strong")} == {
        one: 6,
        two: 6,
        "weak": 4,
        "strong": 4,
    }
    again = round_robin(archive, env=HOCKEY, num_games=2, seed=7)
    assert again.games == done.games


def test_choices_play_where_actions_are_choices(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    ids = [archive.add(small_member(1, kind), origin="run") for kind in ("dddqn", "ppo_choices")]
    done = round_robin(archive, ids, env=HOCKEY, num_games=2, env_kwargs={"actions": "discrete"})
    assert len(done.games) == 5
    assert done.skipped == {}


def test_an_empty_archive_has_an_empty_tournament(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "none")
    assert round_robin(archive, env=HOCKEY).games == ()
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("damage", ["weights.safetensors", "agent.json"])
def test_a_damaged_agent_does_not_stop_the_others(damage: str, tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    one, two = (archive.add(small_member(seed), origin="run") for seed in (1, 2))
    (tmp_path / one / damage).write_bytes(b"")
    done = round_robin(archive, env=HOCKEY, num_games=2)
    assert {games.one for games in done.games} == {two}
    assert one in done.skipped
