"""RLlib's algorithms with a curriculum: over all env runners, through kills and checkpoints."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from cluster.nodes import make_staged
from cluster.ray_cluster import RayCluster
from stepladder.errors import ConfigError

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(120),
    # RLlib warns of its own use of what it has itself deprecated.
    pytest.mark.filterwarnings("ignore"),
]


def config_for(env: Any, **runners: Any) -> Any:
    from ray.rllib.algorithms.ppo import PPOConfig

    return (
        PPOConfig()
        .environment(env, env_config={"depth": 7})
        .env_runners(num_envs_per_env_runner=2, **runners)
        .training(train_batch_size_per_learner=300, minibatch_size=100, num_epochs=1)
    )


def pids_of_runners(algorithm: Any) -> set[int]:
    group = algorithm.env_runner_group
    return set(group.foreach_env_runner(lambda runner: os.getpid(), local_env_runner=False))


def test_one_curriculum_for_all_env_runners_through_a_kill_and_a_checkpoint(
    ray_cluster: RayCluster, tmp_path: Path
) -> None:
    from ray.rllib.algorithms.algorithm import Algorithm

    from cluster.rllib_envs import Corridor, make_lengths
    from stepladder.cluster.rllib import add_curriculum

    config = config_for(Corridor, num_env_runners=2).evaluation(
        evaluation_interval=1, evaluation_duration=2
    )
    algorithm: Any = add_curriculum(config, make_lengths).build_algo()
    try:
        results = algorithm.train()
        algorithm.channel.collect()
        counts = algorithm.channel.counts()
        # Those of evaluations are not among them.
        assert counts.finished == results["env_runners"]["num_episodes_lifetime"] > 20
        assert counts.aborted == 0
        # An env that has ended and is not reset yet plays nothing.
        assert counts.in_flight <= 4
        stats = results["env_curriculum_stats"]
        assert stats["total_completions"] == pytest.approx(counts.finished, abs=4)
        assert set(stats["per_label_samples"]) == {"short", "long"}
        assert results["overview"]["sampling_gini_coefficient"] >= 0.0

        before = pids_of_runners(algorithm)
        os.kill(before.pop(), signal.SIGKILL)
        ray_cluster.wait_until(
            lambda: bool(algorithm.train()) and len(pids_of_runners(algorithm) - before) == 1,
            "a new env runner",
        )
        algorithm.channel.collect()
        counts = algorithm.channel.counts()
        assert counts.finished == algorithm.channel.about()["num_observed"]
        # Of the two envs of the killed runner, whose rows the new one has now.
        assert counts.aborted <= 2
        assert counts.in_flight <= 4
        assert sum(board["num_envs"] for board in algorithm.channel.boards()) == 4
        algorithm.save_to_path(tmp_path)
        iteration = algorithm.training_iteration
        observed = algorithm.channel.about()["num_observed"]
        explained = str(algorithm.channel.explain())
    finally:
        algorithm.stop()

    restored: Any = Algorithm.from_checkpoint(str(tmp_path))
    try:
        assert restored.channel.about()["num_observed"] == observed
        assert str(restored.channel.explain()) == explained
        results = restored.train()
        assert results["training_iteration"] == 1 + iteration
        restored.channel.collect()
        assert restored.channel.about()["num_observed"] > observed
    finally:
        restored.stop()


def test_agents_of_one_env_play_one_task_together(ray_cluster: RayCluster) -> None:
    from cluster.rllib_envs import TwoCorridors, make_lengths
    from stepladder.cluster.rllib import add_curriculum

    config = config_for(TwoCorridors, num_env_runners=0).multi_agent(
        policies={"walker"}, policy_mapping_fn=lambda agent, *_, **__: "walker"
    )
    algorithm: Any = add_curriculum(config, make_lengths).build_algo()
    try:
        results = algorithm.train()
        algorithm.channel.collect()
        metrics = algorithm.channel.metrics()
        counts = algorithm.channel.counts()
        assert counts.finished == results["env_runners"]["num_episodes_lifetime"] > 5
        assert metrics["env_curriculum_stats/total_completions"] == counts.finished
        success = results["env_curriculum_stats"]["per_label_success"]["short"]
        assert 0.0 < success < 1.0
    finally:
        algorithm.stop()


def test_what_cannot_have_a_curriculum_says_why_and_starts_nothing(
    ray_cluster: RayCluster,
) -> None:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
    from ray.rllib.algorithms.ppo import PPO, PPOConfig

    from cluster.rllib_envs import Corridor, make_lengths
    from stepladder.cluster.rllib import add_curriculum

    def refused(config: Any, match: str, make: Any = make_lengths, **settings: Any) -> None:
        with pytest.raises(ConfigError, match=match):
            add_curriculum(config, make, **settings)

    refused("PPO", "expected an AlgorithmConfig of RLlib; got 'PPO'")
    refused(PPOConfig(), "this config has no env yet")
    refused(AlgorithmConfig().environment(Corridor), "this config belongs to no algorithm")
    old = PPOConfig().api_stack(
        enable_rl_module_and_learner=False, enable_env_runner_and_connector_v2=False
    )
    refused(old.environment(Corridor), "uses RLlib's old API stack")
    refused(config_for(Corridor), "must be a function that makes", make_staged())
    refused(
        config_for(Corridor, gym_env_vectorize_mode="async"),
        "gym_env_vectorize_mode is 'async'; expected 'sync'",
    )
    twice = add_curriculum(config_for(Corridor), make_lengths)
    refused(twice, "has a curriculum already")
    with pytest.raises(ConfigError, match="was not built by its own algorithm class"):
        twice.env(type("Context", (dict,), {"worker_index": 0})())
    hungry = config_for(Corridor, num_env_runners=50)
    with pytest.raises(ConfigError, match=r"needs 50 CPUs and the Ray cluster has 4, so it"):
        add_curriculum(hungry, make_lengths).build_algo()
    assert not ray_cluster.ray.util.list_named_actors(all_namespaces=True)
    assert PPOConfig().environment(Corridor).algo_class is PPO
