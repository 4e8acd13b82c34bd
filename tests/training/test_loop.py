"""The loop: what is remembered is what was played, and a phase change is a barrier."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from stepladder.agents.base import VectorStep
from stepladder.agents.observations import Seen
from stepladder.agents.ppo.rollout import PLAYING_BIT
from stepladder.agents.replay.agent import ReplayAgent
from stepladder.agents.sac.config import SACConfig
from stepladder.curricula.phased.config import Phase, PhasedConfig
from stepladder.curricula.phased.settings import Mixed, Ramp
from stepladder.errors import ConfigError
from stepladder.games.hockey.actions import num_actions
from stepladder.games.hockey.game import HOCKEY_ENV as HOCKEY
from stepladder.games.hockey.game import mirrored_choices
from stepladder.games.hockey.vector_env import HockeyVectorEnv
from stepladder.games.hockey.world import NORMAL, TRAIN_DEFENSE
from stepladder.training.config import EvaluationConfig, TrainingConfig
from stepladder.training.loop import Trainer
from stepladder.training.session import Session
from stepladder.training.world import mirror_of
from training.training_scenes import DISCRETE, FOREIGN, LEDGE_PPO, REPLAY, SELF_PLAY, of_snapshot

GAMMA = 0.99

GOALS = {"mode": "TRAIN_DEFENSE", "opponent": "weak"}
"""Pucks that fly at the goal: some go in before time runs out, in each env at another time."""

PHASED = replace(
    SELF_PLAY,
    curriculum=PhasedConfig(
        phases=(
            Phase(name="first", episodes=6, settings=GOALS),
            SELF_PLAY.curriculum.all_phases()[1],
        )
    ),
    max_episode_steps=24,
)
"""A training whose second phase begins while episodes of the first are under way."""


@contextmanager
def begun(config: TrainingConfig) -> Iterator[Trainer]:
    """Give a trainer whose envs have begun."""
    trainer = Trainer(config)
    try:
        trainer.begin()
        yield trainer
    finally:
        trainer.close()


def memory_of(trainer: Trainer) -> Any:
    """Return the memory of an agent that has one."""
    assert isinstance(trainer.agent, ReplayAgent)
    return trainer.agent.memory


# What is remembered.


@dataclass
class Played:
    """One step of one env, as the loop has handed it on."""

    seen: npt.NDArray[np.float32]
    action: npt.NDArray[np.float32]
    reward: float
    terminated: bool
    truncated: bool
    next_seen: npt.NDArray[np.float32]


class Diary:
    """Keeps the episodes of every env, cut at endings and at phase changes."""

    def __init__(self, trainer: Trainer):
        self.episodes: list[list[Played]] = []
        self._running: dict[int, list[Played]] = {}
        self._agent: Any = trainer.agent
        self._remember = self._agent.remember
        self._agent.remember = self.write

    def write(self, step: VectorStep) -> None:
        """Write a step down, then let the agent have it."""
        seen: Any = step.observations
        next_seen: Any = step.next_observations
        actions = self._agent._remembered_actions(step.actions)
        for row in np.flatnonzero(step.is_playing).tolist():
            if row not in self._running:
                self._running[row] = []
                self.episodes.append(self._running[row])
            self._running[row].append(
                Played(
                    seen[row].copy(),
                    actions[row].copy(),
                    float(step.rewards[row]),
                    bool(step.terminated[row]),
                    bool(step.truncated[row]),
                    next_seen[row].copy(),
                )
            )
            if step.terminated[row] or step.truncated[row]:
                del self._running[row]
        self._remember(step)

    def cut(self) -> int:
        """Begin new episodes everywhere; return how many were under way."""
        num_cut, self._running = len(self._running), {}
        return num_cut

    def transitions(self, num_steps: int) -> npt.NDArray[np.float32]:
        """Return what a memory should hold, worked out one episode at a time."""
        rows: list[Any] = []
        for episode in self.episodes:
            is_over = episode[-1].terminated or episode[-1].truncated
            for first in range(len(episode)):
                part = episode[first : first + num_steps]
                if len(part) == num_steps or is_over:
                    rows.append(_row(part))
        return in_order(np.array(rows, dtype=np.float32))


def _row(part: list[Played]) -> npt.NDArray[np.float32]:
    last, total = part[-1], sum(GAMMA**age * step.reward for age, step in enumerate(part))
    discount = 0.0 if last.terminated else GAMMA ** len(part)
    numbers = [part[0].seen, last.next_seen, part[0].action, [total, discount]]
    return np.concatenate(numbers, dtype=np.float32)


def in_order(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return transitions in an order that depends on what was seen and done alone."""
    return rows[np.lexsort(rows[:, :-2].T)]


@pytest.mark.parametrize("num_steps", [1, 3])
@pytest.mark.parametrize("clears", [True, False])
def test_the_memory_holds_exactly_the_transitions_of_its_episodes(num_steps: int, clears: bool):
    agent = SACConfig(**{**REPLAY, "buffer_size": 2_000}, num_step_returns=num_steps)
    phases = tuple(Phase(name=name, episodes=6, settings=GOALS) for name in ("first", "second"))
    curriculum = PhasedConfig(phases=(phases[0], replace(phases[1], episodes=None)))
    config = replace(PHASED, agent=agent, curriculum=curriculum, clear_buffer=clears)
    with begun(config) as trainer:
        diary, num_phases = Diary(trainer), 0
        for _ in range(120):
            phase = trainer.phase
            trainer.advance()
            if trainer.phase != phase:
                num_phases += 1
                assert diary.cut() > 0
                if clears:
                    assert memory_of(trainer).size == 0
                    diary.episodes.clear()
        assert num_phases == 1
        expected, memory = diary.transitions(num_steps), memory_of(trainer)
        assert len(expected) > 100
        there = in_order(memory.floats[: memory.size].numpy())
        np.testing.assert_allclose(there, expected, rtol=1e-5, atol=1e-6)
        assert len(set(expected[:, -1].tolist())) > num_steps  # Some have terminated.
        assert any(episode[-1].truncated for episode in diary.episodes)


def test_rewards_are_scaled_for_the_agent_and_not_in_reports():
    with begun(replace(DISCRETE, reward_scale=0.5, env_kwargs=SHAPED)) as trainer:
        diary = Diary(trainer)
        for _ in range(30):
            trainer.advance()
        ended = [episode for episode in diary.episodes if episode[-1].truncated]
        learnt = sorted(sum(step.reward for step in episode) for episode in ended)
        assert ended
        assert np.any(learnt)
        assert sorted(trainer.episodes.returns) == pytest.approx([2.0 * total for total in learnt])


SHAPED = {"actions": "discrete", "fineness": 3, "direction_weight": 10.0}


def test_a_step_that_only_resets_is_not_counted():
    with begun(DISCRETE) as trainer:
        for _ in range(22):
            trainer.advance()
        # Four envs, cut off after 20 steps each: the 21st resets, the 22nd plays.
        assert trainer.num_steps == 4 * 21
        assert trainer.episodes.lengths == [20] * 4
        assert trainer.agent.num_steps == trainer.num_steps


# A phase change.


def until_the_next_phase(trainer: Trainer) -> None:
    """Advance until the phase has changed."""
    phase = trainer.phase
    for _ in range(200):
        trainer.advance()
        if trainer.phase != phase:
            return
    raise AssertionError("the phase has not changed")


def modes(trainer: Trainer) -> list[int]:
    """Return the mode that every env plays."""
    return trainer.world.envs.unwrapped.playing.records["mode"].tolist()


def test_all_envs_begin_the_new_phase_together():
    with begun(PHASED) as trainer:
        assert set(modes(trainer)) == {TRAIN_DEFENSE}
        until_the_next_phase(trainer)
        assert set(modes(trainer)) == {NORMAL}
        assert trainer.world.envs.unwrapped.worlds["steps"].tolist() == [0] * 4
        assert trainer._is_playing.all()
        assert set(trainer.world.opponents(np.arange(4))) <= {
            "weak",
            "caller:newest",
            "caller:pool",
        }
        before = trainer.num_steps
        trainer.advance()
        # All four play: none of them spends the step on a reset.
        assert trainer.num_steps == before + 4


def test_no_episode_of_the_old_phase_is_counted_in_the_new_one():
    with begun(PHASED) as trainer:
        until_the_next_phase(trainer)
        version = trainer.curriculum.plan.version
        records: list[Any] = []
        trainer.curriculum.add_listener(lambda batch: records.extend(batch.copy()))
        for _ in range(45):
            trainer.advance()
        assert records
        assert all(record["plan_version"] >= version for record in records)


def test_a_cleared_memory_warms_up_again_and_a_kept_one_does_not():
    agent = replace(PHASED.agent, warmup_steps=40)
    for clears in (True, False):
        config = replace(PHASED, agent=agent, clear_buffer_on={"second": clears})
        with begun(config) as trainer:
            until_the_next_phase(trainer)
            updates = trainer.num_updates
            assert updates > 0
            assert (memory_of(trainer).size == 0) is clears
            for _ in range(8):
                trainer.advance()
            assert (trainer.num_updates == updates) is clears
            for _ in range(8):
                trainer.advance()
            assert trainer.num_updates > updates


def test_a_rollout_under_way_ends_with_its_phase():
    config = replace(PHASED, agent=replace(LEDGE_PPO.agent, rollout_steps=4_000))
    with begun(config) as trainer:
        rollout: Any = trainer.agent
        until_the_next_phase(trainer)
        assert rollout.rollout.num_filled == [0]
        trainer.advance()
        assert rollout.rollout.num_filled == [1]
        assert rollout.rollout.has(PLAYING_BIT)[0].all()


# Settings that are drawn per episode.


def test_opponents_and_shaping_are_drawn_for_every_episode():
    phase = Phase(
        name="mixed",
        settings={
            "opponent": Mixed(("weak", "strong", "caller:newest")),
            "touch_weight": Ramp(start=1.0, end=0.0, ramp_episodes=20),
        },
    )
    config = replace(
        SELF_PLAY, num_envs=8, curriculum=PhasedConfig(phases=(phase,)), max_episode_steps=5
    )
    with begun(config) as trainer:
        seen: Counter[str] = Counter()
        weights: list[float] = []
        for _ in range(30):
            trainer.advance()
            begun_now = np.flatnonzero(trainer.world.has_begun())
            seen.update(trainer.world.opponents(begun_now))
            records = trainer.world.envs.unwrapped.playing.records
            weights += records["touch_weight"][begun_now].tolist()
        assert all(seen[name] > 3 for name in ("weak", "strong", "caller:newest"))
        assert len(set(weights)) > 2
        assert weights == sorted(weights, reverse=True)
        assert weights[-1] == 0.0


# The mirror.


def across(worlds: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return worlds as seen in a mirror along the rink."""
    turned = worlds.copy()
    for name in ("y", "angle", "vy", "spin", "facing_y"):
        turned["bodies"][name][:, :3] *= -1.0
    turned["launch_y"] *= -1.0
    return turned


MIRRORED = [{}, *({"actions": "discrete", "fineness": fineness} for fineness in (1, 3, 4, 5))]


@pytest.mark.parametrize("kwargs", MIRRORED)
def test_a_mirrored_transition_is_one_of_a_mirrored_game(kwargs: dict[str, Any]):
    agent = SACConfig() if not kwargs else DISCRETE.agent
    mirror = mirror_of(
        TrainingConfig(env=HOCKEY, env_kwargs=kwargs, agent=agent), torch.device("cpu")
    )
    assert mirror is not None
    settings: Any = {**kwargs, "players": "both", "closeness_weight": 1.0, "direction_weight": 1.0}
    game, image = (HockeyVectorEnv(64, **settings) for _ in range(2))
    flips = torch.ones(64, 1, dtype=torch.bool)

    def flipped(seen: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        there = Seen(torch.from_numpy(seen.copy()), torch.zeros(64, 0, dtype=torch.uint8))
        return mirror.seen(there, flips).numbers.numpy()

    def moved(actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        rows = actions.reshape(64, -1).astype(np.float32)
        there = mirror.actions(torch.from_numpy(rows), flips).numpy()
        return there.reshape(actions.shape).astype(actions.dtype)

    game.action_space.seed(1)
    game.reset(seed=3)
    image.reset(seed=3)
    is_same = []
    for _ in range(60):
        image.worlds[:] = across(game.worlds)
        actions: Any = game.action_space.sample()
        seen, rewards, *_ = game.step(actions)
        other, others, *_ = image.step({name: moved(part) for name, part in actions.items()})
        assert flipped(seen["player_one"]) is not seen["player_one"]
        off = [np.abs(flipped(seen[name]) - other[name]).max(1) for name in seen]
        is_same.append((np.max(off, axis=0) < 1e-4) & (np.abs(rewards - others) < 1e-4))
    # Where several contacts meet, the order in which they are solved is not mirrored.
    assert np.mean(is_same) > 0.98
    game.close()
    image.close()


@pytest.mark.parametrize("fineness", [1, 3, 4, 7])
def test_mirroring_a_choice_twice_gives_it_back(fineness: int):
    swaps = np.array(mirrored_choices(fineness))
    assert sorted(swaps.tolist()) == list(range(num_actions(fineness)))
    assert np.array_equal(swaps[swaps], np.arange(len(swaps)))
    assert not np.array_equal(swaps, np.arange(len(swaps)))


def test_only_hockey_has_a_mirror():
    assert mirror_of(LEDGE_PPO, torch.device("cpu")) is None
    assert mirror_of(FOREIGN, torch.device("cpu")) is None


# Evaluations and chance.


def test_an_evaluation_touches_neither_curriculum_nor_agent():
    with begun(SELF_PLAY) as trainer:
        session = Session(SELF_PLAY, trainer)
        for _ in range(30):
            trainer.advance()
        version = trainer.curriculum.plan.version
        before = of_snapshot(trainer.curriculum.snapshot()), trainer.snapshot(), trainer.num_steps
        random_before = trainer.agent.generator.get_state()
        session._evaluate()
        assert session.evaluation_steps > 0
        assert trainer.curriculum.plan.version == version
        assert of_snapshot(trainer.curriculum.snapshot()) == before[0]
        for one, two in zip(before[1], trainer.snapshot(), strict=True):
            assert of_snapshot(one) == of_snapshot(two)
        assert trainer.num_steps == before[2]
        assert torch.equal(trainer.agent.generator.get_state(), random_before)
        session.reporter.close()


def test_no_global_generator_is_touched():
    torch.manual_seed(5)
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002, it is the global one that is watched
    legacy: Any = np.random.get_state()  # noqa: NPY002
    before = torch.get_rng_state(), random.getstate()
    for config in (LEDGE_PPO, SELF_PLAY, DISCRETE, FOREIGN):
        with begun(config) as trainer:
            for _ in range(20):
                trainer.advance()
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    after: Any = np.random.get_state()  # noqa: NPY002
    assert legacy[0] == after[0]
    assert np.array_equal(legacy[1], after[1])


def test_parts_that_do_not_fit_are_refused_before_anything_begins():
    config = replace(FOREIGN, agent=SACConfig(**REPLAY), evaluation=EvaluationConfig(num_games=2))
    with pytest.raises(ConfigError, match="SAC needs actions that are numbers"):
        Trainer(config)
    with pytest.raises(ConfigError, match="cannot be made with env_kwargs"):
        Trainer(replace(FOREIGN, env_kwargs={"no_such": 1}))
