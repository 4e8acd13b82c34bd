"""How a training is begun: its config, weights from elsewhere, and the older function."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stepladder.errors import ConfigError, RunError, SnapshotError
from stepladder.runs import RunReader
from stepladder.training import checkpoints, starting
from stepladder.training.config import load_config
from stepladder.training.loop import Trainer
from stepladder.training.starting import changed, train, train_single_run
from training.training_scenes import DISCRETE, FOREIGN, LEDGE_PPO, SELF_PLAY

SHORT = replace(FOREIGN, total_steps=150)


def test_the_same_seed_gives_the_same_training_and_another_does_not():
    one, two, other = (train(SHORT, seed=seed) for seed in (1, 1, 2))
    assert not np.isnan(one.mean_reward)
    assert one.evaluation_results == two.evaluation_results
    assert (one.mean_reward, one.total_episodes) == (two.mean_reward, two.total_episodes)
    assert (one.mean_reward, one.total_episodes) != (other.mean_reward, other.total_episodes)


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    result = train(SHORT)
    assert result.run_folder is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("num_envs", [1, 5])
def test_one_env_and_many_are_trained_alike(num_envs: int):
    agent = replace(SHORT.agent, num_step_returns=1)
    result = train(SHORT, num_envs=num_envs, device="cpu", agent=agent)
    assert 150 <= result.total_steps < 150 + num_envs
    # An eighth of an update for every step after a warm-up of 16.
    assert result.total_gradient_steps == int(0.125 * (result.total_steps - 16))


# Configs.


def test_a_config_may_be_its_json_or_a_file(tmp_path: Path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SHORT.to_json()))
    assert changed(SHORT.to_json()) == changed(path) == changed(SHORT) == SHORT
    assert changed(None) == load_config("ledge")
    assert changed(SHORT, num_envs=7, seed=None).num_envs == 7


def test_an_unknown_setting_is_refused_and_nothing_begun(tmp_path: Path):
    with pytest.raises(ConfigError, match="no setting 'nonsense'"):
        train(SHORT, nonsense=1, run_folder=tmp_path / "run")
    with pytest.raises(ConfigError, match="run_folder"):
        train(SHORT, loggers=lambda config: [])
    with pytest.raises(ConfigError, match="cannot be found"):
        train(SHORT, env="NoSuch-v0", run_folder=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_there_is_replaced_only_when_asked(tmp_path: Path):
    train(SHORT, run_folder=tmp_path / "run")
    with pytest.raises(RunError):
        train(SHORT, run_folder=tmp_path / "run")
    train(SHORT, run_folder=tmp_path / "run", overwrite=True, seed=5)
    assert RunReader(tmp_path / "run").seed == 5


# Weights from elsewhere.


def test_an_agent_begins_with_the_weights_of_another(tmp_path: Path):
    train(DISCRETE, run_folder=tmp_path / "first", total_steps=200)
    weights = checkpoints.read_policy(tmp_path / "first").weights
    trainer = Trainer(replace(DISCRETE, seed=9))
    starting._begin_with(trainer, tmp_path / "first")
    own = trainer.agent.weights()
    assert all(torch.equal(own[name], weights[name]) for name in weights)
    trainer.close()
    result = train(DISCRETE, initial_weights=tmp_path / "first", total_steps=64)
    assert result.total_steps >= 64


def test_weights_of_another_kind_or_size_are_refused_and_nothing_begun(tmp_path: Path):
    train(DISCRETE, run_folder=tmp_path / "first", total_steps=64)
    settings: Any = {"initial_weights": tmp_path / "first", "run_folder": tmp_path / "second"}
    with pytest.raises(SnapshotError, match="whose type is 'DDDQN'"):
        train(LEDGE_PPO, **settings)
    with pytest.raises(SnapshotError, match=r"cannot begin with: .* has the shape"):
        train(DISCRETE, agent=replace(DISCRETE.agent, hidden_sizes=(9,)), **settings)
    kwargs = {**DISCRETE.env_kwargs, "fineness": 4}
    with pytest.raises(SnapshotError, match="whose action_space"):
        train(DISCRETE, env_kwargs=kwargs, **settings)
    assert not (tmp_path / "second").exists()


def test_the_archive_gets_whoever_has_finished_and_once(tmp_path: Path):
    opponents = replace(SELF_PLAY.opponents, archive=str(tmp_path / "archive"))
    config = replace(SELF_PLAY, opponents=opponents, total_steps=128)
    train(config, run_folder=tmp_path / "run")

    def entries() -> int:
        return len(list((tmp_path / "archive").rglob("*.safetensors")))

    assert entries() == 1
    starting.resume(tmp_path / "run")
    assert entries() == 1


# The older function.


def older_config(tmp_path: Path) -> Path:
    """Write a config in the older schema, as small as it can be."""
    phases = [
        {
            "name": name,
            "episodes": 4,
            "environment": {"mode": mode, "keep_mode": True},
            "opponent": {"type": opponent, "weight": 1.0},
            "reward_shaping": None,
        }
        for name, mode, opponent in (
            ("shooting", "TRAIN_SHOOTING", "none"),
            ("normal", "NORMAL", "basic_weak"),
        )
    ]
    document = {
        "curriculum": {"phases": phases},
        "hyperparameters": {"learning_rate": 1e-3, "batch_size": 8},
        "training": {
            "warmup_steps": 10,
            "max_episode_steps": 12,
            "updates_per_step": 1,
            "train_freq": 8,
        },
        "agent": {"type": "DDDQN", "hyperparameters": {"hidden_dim": [8], "buffer_size": 500}},
    }
    path = tmp_path / "older.json"
    path.write_text(json.dumps(document))
    return path


FIELDS = {
    "run_name",
    "final_reward",
    "mean_reward",
    "total_episodes",
    "total_steps",
    "total_gradient_steps",
    "evaluation_results",
}


def test_the_older_function_takes_its_config_and_returns_its_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    result = train_single_run(
        older_config(tmp_path),
        base_output_dir=tmp_path / "runs",
        run_name="mine",
        verbose=False,
        eval_freq_steps=None,
        eval_num_games=2,
        eval_weak_opponent=False,
        device="cpu",
        num_envs=2,
    )
    assert result.keys() == FIELDS
    assert result["run_name"] == "mine"
    assert 8 <= result["total_episodes"] < 8 + 2
    assert result["total_gradient_steps"] > 0
    assert isinstance(result["final_reward"], float)
    assert "strong" in json.dumps(result["evaluation_results"])
    assert "weak" not in json.dumps(result["evaluation_results"])
    assert RunReader(tmp_path / "runs" / "mine").status == "finished"
    assert capsys.readouterr().out == ""


def test_the_older_function_names_runs_by_itself_and_prints_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    first = train_single_run(
        older_config(tmp_path), tmp_path / "runs", eval_num_games=2, device="cpu"
    )
    second = train_single_run(
        older_config(tmp_path),
        tmp_path / "runs",
        eval_num_games=2,
        device="cpu",
        checkpoint_path=tmp_path / "runs" / first["run_name"],
    )
    assert first["run_name"] != second["run_name"]
    assert first["run_name"].startswith("DDDQN_lr0.001_h8_")
    assert first["run_name"].endswith("_vec1")
    assert "normal" in capsys.readouterr().out
