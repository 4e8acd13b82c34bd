"""The memory: a ring of transitions, and what is drawn from it."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete

from stepladder.agents.observations import Layout
from stepladder.agents.replay.memory import Replay, Rows
from stepladder.agents.replay.mirror import Mirror
from stepladder.agents.vision.config import VisionConfig

CPU = torch.device("cpu")
LAYOUT = Layout(Dict({"own": Box(-1.0, 1.0, (2,), np.float32), "way": Discrete(200)}))


def rows(*names: int) -> Rows:
    """Return transitions in which every number tells which one it is."""
    name = np.array(names, dtype=np.float32)
    column = name[:, None]
    return Rows(
        numbers=np.hstack([column, -column]),
        codes=column.astype(np.uint8),
        actions=column + 0.25,
        rewards=name + 0.5,
        discounts=(name + 0.75) / 128.0,
        next_numbers=np.hstack([column + 1.0, -column - 1.0]),
        next_codes=(column + 1.0).astype(np.uint8),
    )


def made(capacity: int = 5, mirror: Mirror | None = None) -> Replay:
    """Make an empty memory."""
    return Replay(LAYOUT, 1, capacity, CPU, mirror)


def chance(seed: int = 0) -> torch.Generator:
    """Return a generator."""
    return torch.Generator().manual_seed(seed)


def names_in(memory: Replay) -> list[float]:
    """Return which transitions are there, by place, and check that each is whole."""
    sample = memory.at(torch.arange(memory.size), chance())
    name = sample.rewards - 0.5
    assert torch.equal(sample.seen.numbers, torch.stack([name, -name], 1))
    assert torch.equal(sample.seen.codes[:, 0].float(), name)
    assert torch.equal(sample.actions[:, 0], name + 0.25)
    assert torch.equal(sample.discounts, (name + 0.75) / 128.0)
    assert torch.equal(sample.next_seen.numbers, torch.stack([name + 1.0, -name - 1.0], 1))
    assert torch.equal(sample.next_seen.codes[:, 0].float(), name + 1.0)
    return name.tolist()


def test_the_oldest_make_room():
    memory = made()
    assert memory.add(rows(1, 2, 3)).tolist() == [0, 1, 2]
    assert names_in(memory) == [1, 2, 3]
    assert memory.add(rows(4, 5, 6)).tolist() == [3, 4, 0]
    assert names_in(memory) == [6, 2, 3, 4, 5]
    assert (memory.size, memory.head) == (5, 1)


def test_of_more_than_fit_the_latest_stay():
    memory = made()
    memory.add(rows(1, 2))
    memory.add(rows(*range(3, 16)))
    assert sorted(names_in(memory)) == [11, 12, 13, 14, 15]
    memory.add(rows(16))
    assert sorted(names_in(memory)) == [12, 13, 14, 15, 16]


def test_every_transition_is_as_likely_as_any_other_and_nothing_else_is_drawn():
    memory = made(100)
    memory.add(rows(*range(1, 8)))
    places = memory.draw(7_000, chance())
    counts = torch.bincount(places, minlength=100)
    assert counts[7:].sum() == 0
    # Of 1000 expected each, with a spread of 29.
    assert (counts[:7] - 1_000).abs().max() < 120


def test_what_was_cleared_is_gone():
    memory = made()
    memory.add(rows(1, 2, 3))
    memory.clear()
    assert memory.size == 0
    memory.add(rows(7))
    assert names_in(memory) == [7]
    assert memory.draw(50, chance()).max() == 0


@pytest.mark.parametrize("num_added", [3, 5, 12])
def test_a_memory_comes_back_as_it_was(num_added: int):
    memory, other = made(), made()
    memory.add(rows(*range(1, num_added + 1)))
    other.add(rows(*range(20, 25)))
    other.load_state_dict(memory.state_dict())
    assert names_in(other) == names_in(memory)
    for one in (memory, other):
        one.add(rows(50, 51))
    assert names_in(other) == names_in(memory)
    assert torch.equal(memory.draw(9, chance(1)), other.draw(9, chance(1)))


def test_what_does_not_fit_is_refused():
    memory = made(8)
    memory.add(rows(*range(1, 8)))
    state: dict[str, Any] = memory.state_dict()
    with pytest.raises(ValueError, match="size is 7; expected an integer from 0 to 5"):
        made(5).load_state_dict(state)
    with pytest.raises(ValueError, match=r"floats has the shape \[7, 7\]"):
        Replay(LAYOUT, 2, 8, CPU).load_state_dict(state)


@pytest.mark.parametrize("frame_stack", [1, 3])
def test_frames_that_both_observations_have_are_stored_once(frame_stack: int):
    space = Dict({"own": Box(-1.0, 1.0, (2,), np.float32), "way": Discrete(200)})
    layout = Layout(space, VisionConfig(), frame_stack)
    once = Replay(layout, 1, 6, CPU, is_single_step=True)
    twice = Replay(layout, 1, 6, CPU, is_single_step=False)
    rng, frames = np.random.default_rng(0), frame_stack + 1
    for _ in range(3):
        numbers = rng.normal(size=(4, frames, 2)).astype(np.float32)
        codes = rng.integers(0, 200, (4, frames, 1), dtype=np.uint8)
        column = rng.normal(size=(4, 1)).astype(np.float32)
        added = Rows(
            numbers[:, :-1].reshape(4, -1), codes[:, :-1].reshape(4, -1), column, column[:, 0],
            np.ones(4, np.float32), numbers[:, 1:].reshape(4, -1), codes[:, 1:].reshape(4, -1),
        )  # fmt: skip
        once.add(added)
        twice.add(added)
    places = torch.arange(6)
    got, expected = once.at(places, chance()), twice.at(places, chance())
    for one, other in ((got.seen, expected.seen), (got.next_seen, expected.next_seen)):
        assert torch.equal(one.numbers, other.numbers)
        assert torch.equal(one.codes, other.codes)
    assert torch.equal(got.actions, expected.actions)
    assert once.codes.shape[1] == frame_stack + 1
    assert twice.codes.shape[1] == 2 * frame_stack
    other = Replay(layout, 1, 6, CPU, is_single_step=True)
    other.load_state_dict(once.state_dict())
    assert torch.equal(other.at(places, chance()).next_seen.numbers, expected.next_seen.numbers)


# The mirror.


def test_half_of_all_samples_are_mirrored_whole():
    mirror = Mirror([1.0, -1.0], action_signs=[-1.0])
    memory = made(mirror=mirror)
    memory.add(rows(3))
    sample = memory.at(torch.zeros(400, dtype=torch.long), chance())
    is_flipped = sample.seen.numbers[:, 1] > 0
    assert 140 < int(is_flipped.sum()) < 260
    expected = torch.where(is_flipped, -3.25, 3.25)
    assert torch.equal(sample.actions[:, 0], expected)
    assert torch.equal(sample.next_seen.numbers[:, 1] > 0, is_flipped)
    assert (sample.next_seen.numbers[:, 0] == 4.0).all()
    assert (sample.rewards == 3.5).all()
    assert (sample.seen.codes == 3).all()


def test_choices_become_others_in_the_mirror():
    mirror = Mirror([1.0, 1.0], action_swaps=[0, 2, 1])
    actions = torch.tensor([[0.0], [1.0], [2.0], [1.0]])
    flips = torch.tensor([[True], [True], [True], [False]])
    assert mirror.actions(actions, flips)[:, 0].tolist() == [0.0, 2.0, 1.0, 1.0]


def test_actions_without_a_side_stay_in_the_mirror():
    actions = torch.tensor([[0.5]])
    assert torch.equal(Mirror([1.0]).actions(actions, torch.tensor([[True]])), actions)
