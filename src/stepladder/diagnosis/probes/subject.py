"""The env that is examined: makes it as a training would, and gives it tasks.

Used by all probes. Nothing is caught here; `child` tells what code of the user raises.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium.wrappers import TimeLimit

from stepladder.agents.spaces import space_to_json
from stepladder.curricula.base import Curriculum
from stepladder.diagnosis.evidence import Made
from stepladder.diagnosis.machine import memory_held_by
from stepladder.envs.delivery import Delivery
from stepladder.envs.ids import game_of
from stepladder.envs.make import batched_entry, env_functions, make_vec
from stepladder.envs.parallel import as_gymnasium
from stepladder.envs.types import GymEnv, ResetResult
from stepladder.errors import ConfigError
from stepladder.tasks import Pool, Source, Task
from stepladder.training.config import TrainingConfig

MOST_TASKS = 8
"""Tasks that are played: the first and the last of each label, in turn."""

MOST_LISTED = 10_000
"""Tasks among which they are looked for."""


@dataclass
class Subject:
    """An env with its tasks, as a config names them."""

    config: TrainingConfig
    seconds: float
    """For which probes that can be short go on."""

    num_episodes: int
    """Episodes of random play."""

    source: Source = field(init=False)
    tasks: tuple[Task | None, ...] = field(init=False)
    """The tasks that are played; None stands for the env as it is."""

    def __post_init__(self) -> None:
        self.config = self.config.imported()
        self.settings = self.config.env_settings()
        self.source = self.config.task_source()
        self.has_tasks = bool(self.config.tasks) or self.config.own_source() is not None
        self.tasks = tuple(some_tasks(self.source)) if self.has_tasks else (None,)
        self.kwargs, self.wrappers = self._arguments()
        self.memory: set[str] = set()

    def _arguments(self) -> tuple[dict[str, Any], tuple[Any, ...]]:
        config, game = self.config, game_of(self.config.env)
        kwargs = {**game.training_arguments(config.agent.gamma), **config.env_kwargs}
        if kwargs.get("players") == "both" and game.opponents:
            # Both are played only where games are stepped as a batch.
            del kwargs["players"]
        limit, wrappers = config.max_episode_steps, self.settings.wrappers
        if limit is not None and game.time_limit_argument is not None:
            kwargs.setdefault(game.time_limit_argument, limit)
        elif limit is not None:
            wrappers = (*wrappers, partial(_limited, num_steps=limit))
        return kwargs, wrappers

    @property
    def is_batched(self) -> bool:
        """Whether a training steps these envs as one batch, in this process."""
        is_plain = not self.wrappers and not self.settings.curriculum_env()
        return (
            is_plain and not self.config.num_workers and batched_entry(self.config.env) is not None
        )

    def make(self) -> "SubjectEnv":
        """Make one env."""
        (function,) = env_functions(self.config.env, 1, self.kwargs or None, self.wrappers)
        player = SubjectEnv(function(), self)
        self.memory |= memory_held_by([os.getpid()])
        return player

    def make_curriculum(self) -> Curriculum:
        """Make the curriculum of the config over the tasks."""
        pool = self.config.curriculum.editable(self.source)
        if self.config.capacity is not None:
            pool = Pool(pool, self.config.capacity, self.config.seed)  # type: ignore[reportArgumentType]
        return self.config.curriculum.make(pool, seed=self.config.seed)

    def make_vec(self, num_envs: int, num_workers: int, timeout_s: float) -> Any:
        """Make a vector env with the curriculum."""
        options: Mapping[str, Any] = self.settings.curriculum_env()
        if not self.has_tasks:
            options = {**options, "deliver": _as_it_is, "build_errors": ()}
        return make_vec(
            self.config.env,
            num_envs,
            curriculum=self.make_curriculum(),
            num_workers=num_workers,
            env_kwargs=self.kwargs or None,
            wrappers=self.wrappers,
            curriculum_env=options or None,
            timeout_s=timeout_s,
        )

    def prepare(self) -> bool:
        """Let curriculum and channel compile what they need, with an env that is none.

        Returns:
            Whether the curriculum needs to know which episodes succeeded.
        """
        curriculum = self.make_curriculum()
        options = {"deliver": _as_it_is, "missing_success_is_failure": True}
        vec = make_vec(_Nothing, 2, curriculum=curriculum, num_workers=0, curriculum_env=options)
        try:
            vec.reset(seed=0)
            for _ in range(3):
                vec.step(vec.action_space.sample())
        finally:
            vec.close()
        curriculum.draw_batch(2)
        return curriculum.legend().needs_success

    def describe(self) -> Made:
        """Make an env twice, and say what it is."""
        self.make().close()
        began = time.perf_counter()
        player = self.make()
        seconds = time.perf_counter() - began
        spec = player.env.spec
        spaces = {"observation": player.env.observation_space, "action": player.env.action_space}
        refused = (_refused(name, space) for name, space in spaces.items())
        player.close()
        return Made(
            seconds=seconds,
            has_tasks=self.has_tasks,
            labels=tuple(self.source.labels()) if self.has_tasks else (),
            num_tasks=self.source.num_tasks if self.has_tasks else None,
            declares_randomness=bool(spec is not None and spec.nondeterministic),
            is_batched=self.is_batched,
            unsupported=tuple(text for text in refused if text),
        )


class SubjectEnv:
    """One env that plays tasks."""

    def __init__(self, env: GymEnv, subject: Subject):
        self.env = env
        self._delivery = Delivery(env, subject.settings.deliver) if subject.has_tasks else None

    def begin(self, task: Task | None, seed: int | None) -> ResetResult:
        """Begin an episode."""
        if task is None or self._delivery is None:
            return self.env.reset(seed=seed)
        return self._delivery.reset(task, seed, None)

    def close(self) -> None:
        """Close the env."""
        self.env.close()


class _Nothing(gym.Env[Any, Any]):
    """Ends at once."""

    observation_space = action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: Any) -> Any:
        return 0, 0.0, True, False, {}


def some_tasks(source: Source) -> Sequence[Task]:
    """Return a few tasks, different ones: of every label in turn, the first and the last."""
    count = min(source.num_tasks or MOST_LISTED, MOST_LISTED)
    by_label: dict[str, list[int]] = {}
    for task_id in range(count):
        by_label.setdefault(source.label(task_id), []).append(task_id)
    ends = [ids[0] for ids in by_label.values()] + [ids[-1] for ids in by_label.values()]
    spread = [int(place * (count - 1) / (MOST_TASKS - 1)) for place in range(MOST_TASKS)]
    chosen = list(dict.fromkeys([*ends[:MOST_TASKS], *spread]))[:MOST_TASKS]
    return [source.get(task_id) for task_id in chosen]


def _refused(name: str, space: Any) -> str:
    """Return why the agents here cannot learn in a space; empty if they can."""
    try:
        space_to_json(space)
    except ConfigError as error:
        return f"the {name} space: {error}"
    return ""


def _limited(env: Any, num_steps: int) -> Any:
    return TimeLimit(as_gymnasium(env), max_episode_steps=num_steps)


def _as_it_is(env: Any, task: Any) -> None:
    """Deliver the only task of an env without tasks: do nothing."""
