"""What an agent takes back from a file is checked first, and a refusal changes nothing."""

import math
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from agents.small_worlds import KINDS, Noise, copied, live, make, same_state
from stepladder.agents.base import Agent, AgentState
from stepladder.agents.player import make_player
from stepladder.agents.saved_values import (
    NumberSpec,
    TensorSpec,
    check_generator,
    check_rng,
    check_state,
)
from stepladder.errors import SnapshotError

NAN, INF = math.nan, math.inf


@cache
def living(kind: str, seed: int, num_steps: int) -> tuple[Agent, AgentState]:
    """Return an agent in the middle of its life, and its state."""
    agent = make(kind, seed=seed)
    live(agent, Noise(4, seed), num_steps)
    return agent, copied(agent.state())


def saved(kind: str) -> AgentState:
    """Return the state of an agent, to be damaged."""
    state = living(kind, 0, 14)[1]
    return copied(AgentState(deepcopy(state.numbers), state.tensors))


def refuse(kind: str, state: AgentState, words: str = ".") -> None:
    """Require that a state is refused and changes nothing."""
    agent, before = living(kind, 3, 13)
    with pytest.raises(SnapshotError, match=words) as caught:
        agent.restore(state)
    assert "\n" not in str(caught.value)
    assert same_state(agent.state(), before)


@pytest.mark.parametrize("kind", KINDS)
def test_no_tensor_may_have_a_number_that_is_not_finite(kind: str):
    state = saved(kind)
    for name, tensor in state.tensors.items():
        if tensor.is_floating_point() and tensor.numel():
            for bad in (NAN, INF, -INF):
                damaged = copied(state)
                damaged.tensors[name].view(-1)[-1] = bad
                refuse(kind, damaged, r"is (nan|inf|-inf); expected a finite number")


@pytest.mark.parametrize("kind", KINDS)
def test_every_tensor_has_its_shape_and_type(kind: str):
    state = saved(kind)
    for name, tensor in state.tensors.items():
        if name.startswith("losses/"):
            continue
        for other in (tensor[None], tensor.to(torch.float16), torch.zeros(3, 5)):
            damaged = copied(state)
            damaged.tensors[name] = other
            refuse(kind, damaged)
        damaged = copied(state)
        del damaged.tensors[name]
        refuse(kind, damaged)


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_of_its_kind_and_in_range(kind: str):
    state = saved(kind)
    plain = ["num_steps", "num_updates", "updates_due", "num_steps_since_clear", "log_temperature"]
    for name in [*plain, "was_given_weights", "rng"]:
        if name in state.numbers:
            for bad in (-1e9, 10**400, "7", None, NAN, [], {}, 1j):
                damaged = AgentState({**state.numbers, name: bad}, state.tensors)
                refuse(kind, damaged, name)


@pytest.mark.parametrize("kind", KINDS)
def test_the_plain_numbers_of_parts_are_checked(kind: str):
    state = saved(kind)
    for part, structure in state.numbers["structure"].items():
        for index, (key, value) in enumerate(structure["pairs"]):
            if isinstance(value, dict):
                continue
            for bad in (-1, 10**400, "1", None, True, NAN):
                pairs = [*structure["pairs"]]
                pairs[index] = [key, bad]
                numbers = dict(state.numbers["structure"])
                numbers[part] = {"pairs": pairs}
                damaged = AgentState({**state.numbers, "structure": numbers}, state.tensors)
                refuse(kind, damaged, f"{part}/{key}")


def changed(kind: str, name: str, place: Any, value: float) -> AgentState:
    """Return a state with one number changed."""
    state = saved(kind)
    (full,) = [key for key in state.tensors if key.startswith(name)]
    state.tensors[full][place] = value
    return state


@pytest.mark.parametrize(
    ("kind", "name", "place", "value"),
    [
        # Actions are places in tables of values.
        ("dddqn", "memory/floats", (0, 6), 3.0),
        ("dddqn", "memory/floats", (0, 6), -1.0),
        ("dddqn", "memory/floats", (0, 8), 1.5),
        ("dddqn, prioritised, 3 steps", "transitions/actions", (0, 0, 0), 5.0),
        ("dddqn, prioritised, 3 steps", "transitions/num_pending", 0, 3),
        ("dddqn, prioritised, 3 steps", "transitions/num_pending", 0, -1),
        ("dddqn, prioritised, 3 steps", "priorities/leaves", 0, -1.0),
        ("dddqn, prioritised, 3 steps", "priorities/leaves", 0, 0.0),
        ("dddqn, prioritised, 3 steps", "priorities/leaves", 63, 1.0),
        ("dddqn, prioritised, 3 steps", "priorities/leaves", 0, 1e300),
        ("dddqn", "optimiser/squares", 0, -1.0),
        ("dddqn", "optimiser/num_steps", (), -1.0),
        ("sac, pink, 2 steps", "noise/clock", 0, 10),
        ("sac, pink, 2 steps", "noise/clock", 0, -1),
        ("sac", "weights/actor.encoder.spread", 0, 0.0),
        ("sac", "weights/actor.encoder.moments", 0, -1.0),
        ("ppo", "rollout/actions", (0, 0), 3),
        ("ppo", "rollout/actions", (0, 0), -1),
    ],
)
def test_values_stay_within_what_they_stand_for(kind: str, name: str, place: Any, value: float):
    refuse(kind, changed(kind, name, place, value), "expected")


def test_a_ring_that_is_not_full_has_its_head_behind_its_last_row():
    state = saved("dddqn")
    pairs = dict(state.numbers["structure"]["memory"]["pairs"])
    assert pairs["head"] == pairs["size"] < 64
    pairs["head"] -= 1
    state.numbers["structure"]["memory"] = {"pairs": list(pairs.items())}
    refuse("dddqn", state, "memory/head is")


@pytest.mark.parametrize("kind", ["dddqn", "sac", "ppo", "ppo, recurrent"])
def test_a_policy_that_is_not_finite_is_not_played_with(kind: str):
    agent = make(kind)
    weights = agent.weights()
    name = list(weights)[-1]
    weights[name].view(-1)[0] = NAN
    with pytest.raises(SnapshotError, match=rf"{name}\[0.*\] is nan"):
        make_player(agent.description(), weights, 2)
    player = make_player(agent.description(), agent.weights(), 2)
    with pytest.raises(SnapshotError, match=rf"{name}\[0.*\] is nan"):
        player.load_weights(weights)
    with pytest.raises(SnapshotError, match=rf"{name}\[0.*\] is nan"):
        agent.load_weights(weights)


def test_a_player_takes_no_memory_back_that_is_not_finite():
    agent = make("ppo, recurrent")
    player = make_player(agent.description(), agent.weights(), 2)
    state = player.state()
    state["memory"][0, 0] = INF
    with pytest.raises(SnapshotError, match=r"memory\[0, 0\] is inf"):
        player.restore(state)


def test_generators_are_tried_before_they_are_used():
    generator = torch.Generator().manual_seed(1)
    good = generator.get_state()
    check_generator(good, generator)
    for bad in (None, good.float(), good[None], torch.zeros_like(good), ~good):
        with pytest.raises(SnapshotError, match="generator"):
            check_generator(bad, generator)
    # Torch keeps the second of two normal numbers, as its bits.
    torch.randn(1, generator=generator)
    kept = generator.get_state()
    kept[5024:5032] = torch.tensor([0, 0, 0, 0, 0, 0, 248, 127], dtype=torch.uint8)
    with pytest.raises(SnapshotError, match="would draw nan"):
        check_generator(kept, generator)


def test_numpy_generators_are_tried_too():
    good = np.random.default_rng(1).bit_generator.state
    check_rng(good)
    wrong: list[dict[str, Any]] = [
        {"bit_generator": "MT19937"},
        {"uinteger": -1},
        {"has_uint32": 7},
        {"state": {"state": 2**200, "inc": 1}},
        {"state": {"state": 1, "inc": 2}},
    ]
    for bad in (None, {}, *({**good, **change} for change in wrong)):
        with pytest.raises(SnapshotError, match="rng"):
            check_rng(bad)


def test_a_description_names_what_is_wrong():
    spec = TensorSpec(name="x", shape=(2, 2), dtype=torch.float32, low=0.0, high=torch.ones(2))
    spec.check(torch.tensor([[0.0, 1.0], [0.5, 0.25]]))
    for value, words in (
        (3, "x must be a tensor; got 3"),
        (torch.zeros(2), r"x has the shape \[2\] and the type float32; expected \[2, 2\]"),
        (torch.full((2, 2), 2.0), r"x\[0, 0\] is 2.0; expected a number from 0 to 1"),
        (torch.tensor([[0.0, NAN], [0.5, 2.0]]), r"x\[0, 1\] is nan; expected a finite number"),
    ):  # fmt: skip
        with pytest.raises(SnapshotError, match=words):
            spec.check(value)
    with pytest.raises(SnapshotError, match="n is an integer of 1329 bits; expected"):
        NumberSpec(name="n").check(10**400)
    with pytest.raises(SnapshotError, match="n is missing"):
        check_state({}, [NumberSpec(name="n")])
    with pytest.raises(SnapshotError, match="'m' is not known"):
        check_state({"n": 1, "m": 2}, [NumberSpec(name="n")])
