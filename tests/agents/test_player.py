"""Somebody who plays but does not learn."""

from typing import Any

import numpy as np
import pytest
import torch

from agents.small_worlds import CHOICES, KINDS, Noise, live, make
from stepladder.agents.player import Player, make_player
from stepladder.errors import SnapshotError

RNG = np.random.default_rng(0)


def views(num_rows: int) -> Any:
    """Return what is seen in so many rows."""
    return RNG.uniform(-1.0, 1.0, (num_rows, 3)).astype(np.float32)


def player_of(kind: str, num_rows: int, seed: int = 0) -> Player:
    """Return a player who has learnt a little."""
    agent = make(kind)
    live(agent, Noise(4), 14)
    return make_player(agent.description(), agent.weights(), num_rows, seed=seed)


@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_rows_gets_possible_actions(kind: str):
    for num_rows in (1, 7):
        player = player_of(kind, num_rows)
        for deterministic in (True, False):
            actions = player.act_batch(views(num_rows), deterministic)
            assert len(actions) == num_rows
            assert all(KINDS[kind][1].contains(action) for action in actions)


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_plays_as_all_do(kind: str):
    player, single = player_of(kind, 5), player_of(kind, 1)
    for _ in range(4):
        seen = views(5)
        actions = player.act_batch(seen)
        np.testing.assert_allclose(actions[2], single.act_batch(seen[2:3])[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_some_rows_alone_leave_the_others_as_they_were(kind: str):
    player, other = player_of(kind, 5), player_of(kind, 5)
    first, second = views(5), views(5)
    whole = player.act_batch(first)
    parts = [
        other.act_batch(first[rows], rows=rows) for rows in (np.array([0, 3]), np.array([1, 2, 4]))
    ]
    np.testing.assert_allclose(parts[0], whole[[0, 3]], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(parts[1], whole[[1, 2, 4]], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        player.act_batch(second), other.act_batch(second), rtol=1e-5, atol=1e-6
    )


def test_a_new_episode_begins_without_a_past_and_others_keep_theirs():
    player, fresh, same = (player_of("ppo, recurrent", 4) for _ in range(3))
    seen, then = views(4), views(4)
    for one in (player, same):
        one.act_batch(seen)
    player.begin(np.array([True, False, False, False]))
    memories = []
    for one in (player, fresh, same):
        one.act_batch(then)
        memories.append(one.state()["memory"])
    assert torch.allclose(memories[0][0], memories[1][0], atol=1e-6)
    assert torch.allclose(memories[0][1:], memories[2][1:], atol=1e-6)
    assert not torch.allclose(memories[1], memories[2], atol=1e-3)
    player.begin()
    assert (player.state()["memory"] == 0.0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_player_plays_on_exactly(kind: str):
    player, other = player_of(kind, 4), player_of(kind, 4, seed=5)
    player.act_batch(views(4), deterministic=False)
    other.restore(player.state())
    for _ in range(3):
        seen = views(4)
        assert np.array_equal(
            player.act_batch(seen, deterministic=False), other.act_batch(seen, deterministic=False)
        )


def test_other_weights_take_effect_and_the_past_stays():
    player, seen = player_of("ppo, recurrent", 4), views(4)
    player.act_batch(seen)
    past = player.state()["memory"]
    weights = {
        name: tensor + 1.0 for name, tensor in make("ppo, recurrent", seed=5).weights().items()
    }
    player.load_weights(weights)
    assert torch.equal(player.state()["memory"], past)
    assert torch.equal(player.policy.state_dict()["values.bias"], weights["values.bias"])


def test_a_player_of_choices_explores_as_little_as_its_agent_in_the_end():
    agent = make("dddqn", epsilon_final=0.3)
    player = make_player(agent.description(), agent.weights(), 2_000)
    seen = np.zeros((2_000, 3), dtype=np.float32)
    best = player.act_batch(seen)[0]
    share = np.mean(player.act_batch(seen, deterministic=False) != best)
    # Of three actions, two are others: 0.3 * 2/3.
    assert share == pytest.approx(0.2, abs=0.05)


@pytest.mark.parametrize("kind", ["dddqn", "sac", "ppo"])
def test_what_does_not_go_together_is_refused(kind: str):
    agent = make(kind)
    description, weights = agent.description(), agent.weights()
    name = next(iter(weights))
    wrong: list[tuple[Any, Any]] = [
        ({}, weights),
        (description, {}),
        (description, {**weights, name: torch.zeros(3, 77)}),
        ({**description, "config": {"type": "nobody"}}, weights),
        ({**description, "action_space": {"space": "ring"}}, weights),
        ({**description, "observation_space": make("sac").description()["action_space"]}, weights),
    ]
    for bad, tensors in wrong:
        with pytest.raises(SnapshotError):
            make_player(bad, tensors, 2)
    with pytest.raises(SnapshotError, match="does not fit"):
        player_of("ppo, recurrent", 2).restore(make_player(description, weights, 3).state())
    assert CHOICES.n == 3
