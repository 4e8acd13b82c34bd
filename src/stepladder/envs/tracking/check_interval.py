"""How often a curriculum with stages considers advancement, as a user sets it on envs.

Used by `curriculum_env`, for an env that tracks by itself, and by `tracker` and `sb3`.
"""

from stepladder.curricula.base import Curriculum
from stepladder.errors import ConfigError


def check_interval_of(
    check_interval_episodes: int | None, check_advancement_freq: int | None
) -> int | None:
    """Return the episodes between two checks of stages, given under either of its names.

    ``check_advancement_freq`` is the name in the published wrappers `CurriculumEnv` and
    `CurriculumVecEnvWrapper`. Only the two classes with these names accept it.
    """
    if check_advancement_freq is None:
        return check_interval_episodes
    if check_interval_episodes is not None:
        raise ConfigError(
            f"check_interval_episodes={check_interval_episodes} and "
            f"check_advancement_freq={check_advancement_freq} are two names of one setting. Pass "
            "check_interval_episodes only."
        )
    return check_advancement_freq


def apply_check_interval(curriculum: Curriculum, check_interval_episodes: int | None) -> None:
    """Set how often advancement is considered, on a curriculum that has stages."""
    if check_interval_episodes is None:
        return
    setter = getattr(curriculum, "set_check_interval_episodes", None)
    if setter is None:
        raise ConfigError(
            f"check_interval_episodes={check_interval_episodes} was given, but "
            f"{type(curriculum).__name__} has no stages to advance. Leave it out."
        )
    setter(check_interval_episodes)
