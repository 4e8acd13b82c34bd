"""Advantages of the agent reach the curriculum in a training; who has none is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.ppo.rollout import ENDED_BIT, PLAYING_BIT
from stepladder.agents.sac.config import SACConfig
from stepladder.curricula import (
    AdvantageBanditConfig,
    LevelReplay,
    LevelReplayConfig,
    Phase,
    PhasedConfig,
)
from stepladder.errors import ConfigError
from stepladder.runs import RunReader
from stepladder.tasks import Task
from stepladder.training.config import TrainingConfig
from stepladder.training.loop import Trainer
from stepladder.training.starting import train
from training.own_env import TASKS, Corridor
from training.training_scenes import BANDIT, LEDGE_PPO, VALUE_LOSS

BY_VALUE_LOSS = LevelReplayConfig(scored_by="value_loss")


class Told(LevelReplay):
    """Writes down which scores it was given."""

    calls: list[Any]

    def report_scores(self, slots: Any, generations: Any, scores: Any) -> None:
        vars(self).setdefault("calls", []).append((slots, generations, scores))
        super().report_scores(slots, generations, scores)


@pytest.mark.parametrize("recurrent", [False, True])
def test_scores_are_the_mean_absolute_advantages_of_whole_episodes(
    recurrent: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(LevelReplayConfig, "curriculum_class", Told)
    config = replace(VALUE_LOSS, agent=replace(LEDGE_PPO.agent, recurrent=recurrent))
    trainer = Trainer(config)
    curriculum: Any = trainer.curriculum
    records: list[Any] = []
    curriculum.add_listener(lambda batch: records.extend(batch.copy()))
    rollouts: list[Any] = []
    report: Any = trainer.agent.on_rollout

    def keep(advantages: Any) -> None:
        rollout = trainer.agent.rollout  # type: ignore[attr-defined]
        flags = (rollout.has(flag).numpy() for flag in (PLAYING_BIT, ENDED_BIT))
        rollouts.append((advantages.copy(), *flags))
        report(advantages)

    trainer.agent.on_rollout = keep
    trainer.begin()
    for _ in range(12 * 10):
        trainer.advance()
    trainer.close()
    advantages, is_playing, ended = (np.concatenate(parts) for parts in zip(*rollouts, strict=True))
    expected: dict[int, list[float]] = {}
    for env_index in range(4):
        steps: list[float] = []
        for row in range(len(advantages)):
            if is_playing[row, env_index]:
                steps.append(abs(float(advantages[row, env_index])))
                if ended[row, env_index]:
                    expected.setdefault(env_index, []).append(float(np.mean(steps)))
                    steps = []
    by_env = {
        env_index: [record for record in records if record["env_index"] == env_index]
        for env_index in range(4)
    }
    told = [entry for call in curriculum.calls for entry in zip(*call, strict=True)]
    found = sorted(
        (int(record["slot"]), int(record["generation"]), score)
        for env_index, scores in expected.items()
        for record, score in zip(by_env[env_index], scores, strict=True)
    )
    assert len(told) == len(found) > 8
    np.testing.assert_allclose(sorted(told), found, rtol=1e-6)


def test_a_training_scores_every_task_of_an_own_env(tmp_path: Path):
    train(
        env=Corridor,
        tasks=TASKS,
        curriculum=LevelReplayConfig(scored_by="positive_value_loss"),
        agent=PPOConfig(hidden_sizes=(16,), rollout_steps=256, minibatch_size=64),
        num_envs=8,
        num_workers=0,
        total_steps=3_000,
        evaluation={"every_steps": None, "num_games": 2},
        run_folder=tmp_path / "run",
    )
    (explanation,) = RunReader(tmp_path / "run").events("explanation")
    assert "Tasks: 4 with a score" in explanation.text


def test_a_phase_takes_scores_while_it_is_in_force():
    phases = PhasedConfig(
        phases=(
            Phase(name="look", episodes=12),
            Phase(name="replay", curriculum=BY_VALUE_LOSS),
        )
    )
    config = replace(VALUE_LOSS, curriculum=phases)
    trainer = Trainer(config)
    trainer.begin()
    inner: Any = trainer.curriculum.inner_curricula()["replay"]
    while trainer.phase == "look":
        trainer.advance()
        assert inner.num_seen == 0
    reporter: Any = trainer._scores
    assert reporter.num_steps == 0
    assert trainer.agent.rollout.num_filled == [0]  # type: ignore[attr-defined]
    for _ in range(60):
        trainer.advance()
    trainer.close()
    assert inner.num_seen > 0


def test_other_curricula_have_no_reporter():
    trainer = Trainer(LEDGE_PPO)
    assert trainer.agent.on_rollout is None
    assert trainer.world.envs.tracker.reporter is None
    trainer.close()


@pytest.mark.parametrize("agent", [DDDQNConfig(), SACConfig()])
@pytest.mark.parametrize("scored_by", ["value_loss", "trainer"])
def test_agents_without_advantages_are_refused_before_anything_starts(agent: Any, scored_by: Any):
    with pytest.raises(ConfigError) as caught:
        TrainingConfig(agent=agent, curriculum=LevelReplayConfig(scored_by=scored_by))
    assert (
        f"curriculum.scored_by: {scored_by!r} needs an agent that gives advantages, such as PPO; "
        f"{agent.kind} gives none. Set it to 'deviation', or train with PPO." in str(caught.value)
    )


def test_a_bandit_needs_advantages_unless_it_goes_by_deviations():
    with pytest.raises(ConfigError, match=r"'advantage' needs an agent .*; DDDQN gives none"):
        TrainingConfig(agent=DDDQNConfig(), curriculum=AdvantageBanditConfig())
    by_deviation = AdvantageBanditConfig(scored_by="deviation")
    assert TrainingConfig(agent=DDDQNConfig(), curriculum=by_deviation).curriculum == by_deviation


def test_a_bandit_goes_by_the_advantages_of_its_training():
    trainer = Trainer(BANDIT)
    trainer.begin()
    for _ in range(100):
        trainer.advance()
    trainer.close()
    assert "Episodes are scored by advantage." in str(trainer.curriculum.explain())


def test_the_refusal_names_the_phase():
    phases = PhasedConfig(phases=(Phase(name="replay", curriculum=BY_VALUE_LOSS),))
    with pytest.raises(ConfigError, match=r"curriculum\.phases\[0\]\.curriculum\.scored_by"):
        TrainingConfig(agent=DDDQNConfig(), curriculum=phases)


def test_tasks_that_cannot_be_edited_are_refused_before_anything_starts():
    editing = LevelReplayConfig(editing=0.5)
    for tasks in ({"env": "stepladder/Hockey-v0"}, {"tasks": (Task("one"), Task("two"))}):
        with pytest.raises(ConfigError) as caught:
            TrainingConfig(curriculum=editing, **tasks)
        assert "curriculum.editing: tasks of ListSource cannot be edited" in str(caught.value)
    assert TrainingConfig(curriculum=editing).curriculum is editing
