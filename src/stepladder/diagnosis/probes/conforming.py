"""What Gymnasium's own checker says about an env.

One of the probes. The checker stops at its first assertion; so that the type of an observation does
not hide all else, observations are first brought to the type that their space declares, if only
that is wrong (`checks.spaces` tells of it).
"""

import re
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils.env_checker import check_env

from stepladder.diagnosis.evidence import Conformity
from stepladder.diagnosis.probes.subject import Subject, SubjectEnv
from stepladder.tasks import Task

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class _AlwaysTheTask(gym.Wrapper[Any, Any, Any, Any]):
    """Gives the env its task before each reset, as the curriculum would, and casts observations."""

    def __init__(self, player: SubjectEnv, task: Task | None, casts: bool):
        super().__init__(player.env)
        self._player, self._task, self._casts = player, task, casts

    @property
    def unwrapped(self) -> Any:
        """This env: what is below it cannot be reset without a task."""
        return self

    @property
    def _np_random(self) -> Any:
        return self.env.unwrapped._np_random

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        seen, info = self._player.begin(self._task, seed)
        return self._cast(seen), info

    def step(self, action: Any) -> Any:
        seen, *rest = self.env.step(action)
        return (self._cast(seen), *rest)

    def _cast(self, seen: Any) -> Any:
        space = self.env.observation_space
        if not self._casts or not isinstance(space, Box):
            return seen
        return np.asarray(seen).astype(space.dtype)


def probe(subject: Subject, casts: bool) -> Conformity:
    """Let Gymnasium check the env with its first task."""
    player = subject.make()
    failure: str | None = None
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                check_env(
                    _AlwaysTheTask(player, subject.tasks[0], casts),
                    skip_render_check=True,
                    skip_close_check=True,
                )
            except (AssertionError, gym.error.Error) as error:
                failure = _plain(str(error))
    finally:
        player.close()
    texts = [_plain(str(one.message)) for one in caught if one.category is not DeprecationWarning]
    return Conformity(warnings=tuple(dict.fromkeys(texts)), failure=failure, was_cast=casts)


def _plain(text: str) -> str:
    return " ".join(_COLOUR.sub("", text).removeprefix("WARN: ").split())
