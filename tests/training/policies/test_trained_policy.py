"""A trained policy: it predicts for one env and for many, remembers, and survives a file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import stepladder
from agents.saved_policies import MIXED, SPACES, looks, saved, stacked
from agents.small_worlds import KINDS, SEEN
from stepladder import TrainedPolicy, load_policy, train
from stepladder.agents.player import make_player
from stepladder.errors import ConfigError, SnapshotError
from training.training_scenes import FOREIGN, LEDGE_PPO


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_one_env_and_many_get_the_actions_of_a_player(kind: str, space: Any) -> None:
    one = saved(kind, space)
    policy, player = TrainedPolicy(one), make_player(one.description, one.weights, 3)
    rows, state, states = looks(space, 3), None, [None] * 3
    for _ in range(3):
        wanted = player.act_batch(stacked(rows))
        actions, state = policy.predict(stacked(rows), state)
        np.testing.assert_array_equal(actions, wanted)
        for index, row in enumerate(rows):
            action, states[index] = policy.predict(row, states[index])
            assert policy.action_space.contains(action)
            np.testing.assert_allclose(action, wanted[index], rtol=1e-5)
    assert policy.is_recurrent == ("recurrent" in kind) == (state is not None)


@pytest.mark.parametrize("kind", ["ppo", "ppo, recurrent", "dddqn"])
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_past_frames_are_in_the_state(kind: str, space: Any) -> None:
    one = saved(kind, space, frame_stack=3)
    policy, player = TrainedPolicy(one), make_player(one.description, one.weights, 2)
    looked, state = looks(space, 8), None
    for index in range(4):
        rows, begins = stacked(looked[2 * index : 2 * index + 2]), np.array([False, index == 2])
        player.begin(begins)
        actions, state = policy.predict(rows, state, begins)
        np.testing.assert_array_equal(actions, player.act_batch(rows))
    with pytest.raises(ConfigError, match="a tuple of arrays of shapes"):
        policy.predict(rows, (np.zeros((2, 8)),))


def test_an_episode_that_begins_is_told_by_its_flag() -> None:
    policy = TrainedPolicy(saved("ppo, recurrent"))
    rows = stacked(looks(SEEN, 2))
    _, fresh = policy.predict(rows)
    _, later = policy.predict(rows, fresh, np.array([False, False]))
    _, mixed = policy.predict(rows, fresh, np.array([True, False]))
    assert fresh is not None
    assert later is not None
    assert mixed is not None
    np.testing.assert_array_equal(mixed[0][0], fresh[0][0])
    np.testing.assert_array_equal(mixed[0][1], later[0][1])
    assert not np.array_equal(later[0], fresh[0])
    # One flag does for one env, as Stable-Baselines3 passes it.
    _, again = policy.predict(rows[0], (fresh[0][:1],), True)
    assert again is not None
    np.testing.assert_allclose(again[0], fresh[0][:1], rtol=1e-6)


def test_drawn_actions_differ_and_one_seed_draws_the_same() -> None:
    rows = np.zeros((64, 3), dtype=np.float32)
    before = torch.get_rng_state()
    drawn = [
        TrainedPolicy(saved("ppo"), seed=seed).predict(rows, deterministic=False)[0].tolist()
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 3
    assert torch.equal(before, torch.get_rng_state())


SEEN_MIXED = looks(MIXED, 1)[0]


@pytest.mark.parametrize(
    ("space", "observation", "said"),
    [
        (SEEN, np.zeros(4), r"shape \[4\]; expected \[3\] for one env, or \['rows', 3\] for many"),
        (SEEN, np.zeros((2, 3, 1)), r"the observation has shape \[2, 3, 1\]"),
        (SEEN, [0.0, np.nan, 0.0], r"has nan at \[0, 1\]; expected a finite number"),
        (SEEN, ["a", "b", "c"], r"is of type <U1; expected float32"),
        (SEEN, [[1.0], [1.0, 2.0]], "makes no array"),
        (SEEN, None, r"the observation has shape \[\]"),
        (MIXED, np.zeros(3), "must be a dict of 'big', 'many', 'place', 'tiles', 'x'; got array"),
        (MIXED, {"big": 1}, r"must be a dict of .* got \['big'\]"),
        (MIXED, {**SEEN_MIXED, "place": 7}, r"'place' has 7 at \[0\]; expected a number within"),
        (MIXED, {**SEEN_MIXED, "many": [0, 0]}, r"'many' has 0 at \[0, 0\]; expected"),
        (MIXED, {**SEEN_MIXED, "place": 2.5}, "'place' is of type float64; expected int64"),
        (MIXED, {**SEEN_MIXED, "place": [2, 3]}, "different numbers of rows: {'big': 1"),
    ],
)
def test_an_observation_of_another_env_is_refused(space: Any, observation: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        TrainedPolicy(saved("ppo", space)).predict(observation)


@pytest.mark.parametrize(
    ("state", "begins", "said"),
    [
        (7, None, r"a tuple of arrays of shapes \[\[1, 8\]\]; got 7"),
        ((np.zeros((2, 8)),), None, r"of shapes \[\[1, 8\]\]; got \[\[2, 8\]\]"),
        ((np.full((1, 8), np.inf),), None, r"the state is not finite at \[0, 0\]"),
        ((np.zeros((1, 8)),), [True, False], "episode_start has 2 entries; expected 1"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(state: Any, begins: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        TrainedPolicy(saved("ppo, recurrent")).predict(np.zeros(3), state, begins)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    policy = TrainedPolicy(saved("sac", MIXED))
    path = policy.save(tmp_path / "new" / "mine")
    assert path == tmp_path / "new" / "mine.safetensors"
    rows = stacked(looks(MIXED, 4))
    for again in (TrainedPolicy.load(tmp_path / "new" / "mine"), load_policy(path)):
        np.testing.assert_array_equal(again.predict(rows)[0], policy.predict(rows)[0])
        assert (again.agent, again.step, again.run_folder) == ("SAC", None, None)
        assert again.observation_space == MIXED
    assert repr(policy) == "TrainedPolicy(SAC)"
    with pytest.raises(ConfigError, match=r"ends in \.safetensors; got '.*mine\.pt'\. Rename it"):
        policy.save(tmp_path / "mine.pt")
    with pytest.raises(SnapshotError, match="there is nothing of this name"):
        TrainedPolicy.load(tmp_path / "other")


def test_a_training_returns_what_its_run_holds(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    result = train(LEDGE_PPO, run_folder=folder, total_steps=128)
    policy, loaded = result.policy, stepladder.load_policy(folder)
    assert policy.step == loaded.step == result.total_steps
    assert policy.run_folder == loaded.run_folder == folder
    assert repr(loaded) == f"TrainedPolicy(PPO, step {result.total_steps:,}, {folder})"
    rows = stacked(looks(policy.observation_space, 3))
    for one, two in zip(policy.predict(rows), loaded.predict(rows), strict=True):
        np.testing.assert_array_equal(one, two)
    weights = max(folder.glob("checkpoints/step-*/weights.safetensors"))
    for inner in map(load_policy, (weights, weights.parent)):
        assert (inner.run_folder, inner.step) == (folder, result.total_steps)
    # Without a run too.
    alone = train(FOREIGN, total_steps=48).policy
    assert (alone.agent, alone.step, alone.run_folder) == ("DDDQN", None, None)
    assert alone.predict(np.zeros(4))[0] in (0, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"which": "worst"}, "which must be 'last' or 'best'; got 'worst'"),
        ({"step": -1}, "step must be an integer of at least 0; got -1"),
        ({"step": 3, "which": "best"}, "step=3 and which='best' were given"),
        ({"step": 3}, "is not a run, so it has no checkpoint 3 to choose"),
        ({"device": "gpu"}, "device must be 'cpu', 'cuda', 'cuda:1' or 'auto'; got 'gpu'"),
    ],
)
def test_a_policy_that_cannot_be_chosen_is_refused(
    tmp_path: Path, arguments: dict[str, Any], said: str
) -> None:
    path = TrainedPolicy(saved("ppo")).save(tmp_path / "mine")
    with pytest.raises(ConfigError, match=said):
        load_policy(path, **arguments)
