"""Adds a curriculum to a config of RLlib: the one call that a user needs.

    config = PPOConfig().environment("FrozenLake-v1").env_runners(num_env_runners=4)
    add_curriculum(config, lambda: Staged(tasks, stages=STAGES), deliver=change_map)
    algorithm = config.build_algo()

Every episode of every env runner then plays a task of one curriculum; see `algorithm`.
"""

from collections.abc import Callable
from typing import Any

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.tune.registry import get_trainable_cls

from stepladder.cluster.rllib.algorithm import with_curriculum
from stepladder.cluster.rllib.env_maker import EnvMaker
from stepladder.curricula.base import Curriculum
from stepladder.envs.delivery import Deliver
from stepladder.errors import ConfigError, shown


def add_curriculum(
    config: AlgorithmConfig,
    make_curriculum: Callable[[], Curriculum],
    *,
    deliver: Deliver = "auto",
    success_key: str | None = None,
    return_threshold: float | None = None,
    missing_success_is_failure: bool = False,
    seed_episodes: bool = False,
    envs_per_node: int | None = None,
    **channel_settings: Any,
) -> AlgorithmConfig:
    """Let all env runners of an algorithm play the tasks of one curriculum.

    Call it last: after ``environment``, ``env_runners`` and ``evaluation``. Evaluations play the
    env as it is, without the curriculum, unless their config names another env.

    Args:
        config: Of the new API stack. Changed in place.
        make_curriculum: Makes the curriculum, in an actor of its own.
        deliver: How a task reaches the env, as of `CurriculumEnv`; so are the next four.
        success_key: Info key that holds success.
        return_threshold: Return from which an episode without such a key is a success.
        missing_success_is_failure: Whether an episode without any signal is a failure.
        seed_episodes: Whether the env is seeded again for each episode.
        envs_per_node: Envs that can be played on one machine at the same time; by default all.
        **channel_settings: Arguments of `RayChannel`.

    Returns:
        The config.

    Raises:
        ConfigError: The config cannot have a curriculum. Then nothing has changed.
    """
    _check(config)
    if not callable(make_curriculum):
        raise ConfigError(
            f"make_curriculum must be a function that makes the curriculum; got "
            f"{shown(make_curriculum)}. Pass, for example, lambda: Auto(tasks)."
        )
    per_runner = int(config.num_envs_per_env_runner or 1)
    num_envs = max(1, config.num_env_runners or 0) * per_runner
    maker = EnvMaker(
        config.env,
        make_curriculum,
        {
            "deliver": deliver,
            "success_key": success_key,
            "return_threshold": return_threshold,
            "missing_success_is_failure": missing_success_is_failure,
            "seed_episodes": seed_episodes,
        },
        # One runner more: a new one may begin before the old one is known to be gone.
        {"envs_per_node": envs_per_node or num_envs + per_runner, **channel_settings},
        per_runner,
    )
    own = config.algo_class
    algorithm: Any = get_trainable_cls(own) if isinstance(own, str) else own
    config.evaluation_config = {"env": config.env, **(config.evaluation_config or {})}
    config.env = maker
    config.algo_class = with_curriculum(algorithm)
    return config


def _check(config: Any) -> None:
    if not isinstance(config, AlgorithmConfig):
        raise ConfigError(
            f"expected an AlgorithmConfig of RLlib; got {shown(config)}. Make one first, such as "
            "PPOConfig().environment('FrozenLake-v1')."
        )
    if not (config.enable_env_runner_and_connector_v2 and config.enable_rl_module_and_learner):
        raise ConfigError(
            "this config uses RLlib's old API stack. Switch to the new one: config.api_stack("
            "enable_rl_module_and_learner=True, enable_env_runner_and_connector_v2=True)."
        )
    if isinstance(config.env, EnvMaker):
        raise ConfigError("this config has a curriculum already. Make a new config for another.")
    if not config.env:
        raise ConfigError("this config has no env yet. Call config.environment(...) first.")
    if config.algo_class is None:
        raise ConfigError(
            "this config belongs to no algorithm. Use that of one, such as PPOConfig()."
        )
    mode = getattr(config.gym_env_vectorize_mode, "value", config.gym_env_vectorize_mode)
    if str(mode).lower() != "sync":
        raise ConfigError(
            f"gym_env_vectorize_mode is {mode!r}; expected 'sync'. Envs in processes of their own "
            "have no connection to Ray; use more env runners instead."
        )
