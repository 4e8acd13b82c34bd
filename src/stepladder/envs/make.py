"""Make a vector env from envs and a curriculum, in one call.

Combines the other modules of this folder: each env in a `CurriculumEnv`, all of them in a
`WorkerVectorEnv` with the number of workers that is fastest (`worker_count`), that in a
`CurriculumVectorEnv`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy as shallow_copy
from functools import partial
from typing import Any, Literal, Unpack, cast, overload

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.vector import AutoresetMode, VectorEnv

from stepladder.configs.checks import MAX_ENVS, require_integer
from stepladder.curricula.base import Curriculum
from stepladder.envs.curriculum_env import CurriculumEnv
from stepladder.envs.ids import find_env
from stepladder.envs.parallel import as_gymnasium
from stepladder.envs.types import Arguments, EnvFunction, GymEnv
from stepladder.envs.vector import CurriculumVectorEnv
from stepladder.envs.workers.arguments import (
    ObservationMode,
    OnDeath,
    StartMethod,
    WorkerArguments,
    WorkerSettings,
)
from stepladder.envs.workers.vector_env import WorkerVectorEnv
from stepladder.envs.workers.worker_count import choose_num_workers
from stepladder.errors import ConfigError
from stepladder.games.batch import GameVectorEnv
from stepladder.games.single import GameEnv

OneEnv = str | EnvSpec | EnvFunction
"""An id or ``module:function`` (`find_env`), a spec, or a function that makes an env."""

Envs = OneEnv | Sequence[OneEnv]
"""The same for all envs, or one for each."""

MaybeGame = str | EnvSpec | type[GameEnv]
"""What may be one of the games that are stepped as a batch."""

EnvWrapper = Callable[[GymEnv], GymEnv]
"""Takes an env and returns one."""


class VectorEnvSettings(WorkerArguments, total=False):
    """Settings of `make_vec` that do not depend on whether there is a curriculum."""

    num_workers: int | Literal["auto"]
    env_kwargs: Arguments | None
    wrappers: Sequence[EnvWrapper]


@overload
def make_vec(
    env: MaybeGame,
    num_envs: int | None = None,
    *,
    curriculum: None = None,
    **settings: Unpack[VectorEnvSettings],
) -> WorkerVectorEnv | GameVectorEnv: ...
@overload
def make_vec(
    env: EnvFunction | Sequence[OneEnv],
    num_envs: int | None = None,
    *,
    curriculum: None = None,
    **settings: Unpack[VectorEnvSettings],
) -> WorkerVectorEnv: ...
@overload
def make_vec(
    env: Envs,
    num_envs: int | None = None,
    *,
    curriculum: None = None,
    **settings: Unpack[VectorEnvSettings],
) -> WorkerVectorEnv | GameVectorEnv: ...
@overload
def make_vec(
    env: Envs,
    num_envs: int | None = None,
    *,
    curriculum: Curriculum,
    curriculum_env: Arguments | None = None,
    check_interval_episodes: int | None = None,
    max_failed_share: float = 0.5,
    **settings: Unpack[VectorEnvSettings],
) -> CurriculumVectorEnv: ...
@overload
def make_vec(
    env: Envs,
    num_envs: int | None = None,
    *,
    curriculum: Curriculum | None,
    curriculum_env: Arguments | None = None,
    check_interval_episodes: int | None = None,
    max_failed_share: float = 0.5,
    **settings: Unpack[VectorEnvSettings],
) -> WorkerVectorEnv | GameVectorEnv | CurriculumVectorEnv: ...
def make_vec(
    env: Envs,
    num_envs: int | None = None,
    *,
    curriculum: Curriculum | None = None,
    curriculum_env: Arguments | None = None,
    num_workers: int | Literal["auto"] = "auto",
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    num_batches: int = 1,
    parent_steps: bool = True,
    start_method: StartMethod | None = None,
    on_worker_death: OnDeath = "restart",
    timeout_s: float | None = 300.0,
    copy: bool = True,
    observation_mode: ObservationMode = "same",
    env_kwargs: Arguments | None = None,
    wrappers: Sequence[EnvWrapper] = (),
    check_interval_episodes: int | None = None,
    max_failed_share: float = 0.5,
) -> WorkerVectorEnv | GameVectorEnv | CurriculumVectorEnv:
    """Make a vector env that steps its envs in this process and in workers at the same time.

    The built-in games are one batch instead, stepped by threads of this process, unless the
    arguments ask for workers or wrappers around single envs. Such a batch (`GameVectorEnv`) has no
    calls in two parts (``step_async``); an id may name a game or another env, and its result is
    typed as either.

    Args:
        env: A registered id, which may name the module that registers it (``module:id``), its spec,
            a function that makes an env or its name (``module:function``); or a list with one per
            env. A PettingZoo parallel env becomes a ``ParallelAsEnv``.
        num_envs: How many; needed unless there is one per env.
        curriculum: Chooses what every env plays. Envs that are not in a `CurriculumEnv` yet are put
            into one.
        curriculum_env: Settings of that `CurriculumEnv`, such as ``success_key`` or ``deliver``.
        num_workers: Processes beside this one, at most ``num_envs - 1``. 0 is a plain loop in this
            process. ``"auto"`` tries a few envs for a moment and takes the faster of none and one
            per core beside this process's own; those envs are closed before the real ones are made.
        autoreset_mode: When an env that has ended is reset.
        num_batches: Parts that `send` and `recv` step separately; 2 lets a policy compute actions
            for one half while the other half is stepped.
        parent_steps: Whether this process steps its share of the envs too.
        start_method: How workers are started; None is the default of the platform.
        on_worker_death: ``"restart"`` goes on with a new worker, whose envs end their episodes as
            truncated; ``"raise"`` raises.
        timeout_s: How long one env may take for a step or reset; None is without a limit.
        copy: Whether observations are copied for the user; without, the next step changes them.
        observation_mode: Whether observation spaces of all envs must be the same, or may differ in
            their bounds; or a tuple of the batched and the single observation space to use.
        env_kwargs: Arguments for an env that is made from its id.
        wrappers: Put around each env, in this order, inside its `CurriculumEnv`.
        check_interval_episodes: For stages: episodes between checks, over all envs together.
        max_failed_share: Share of tasks that may turn out unbuildable before a step raises.

    Returns:
        A `WorkerVectorEnv`, or the `GameVectorEnv` of a game; with a curriculum, a
        `CurriculumVectorEnv` around it.

    Raises:
        ConfigError: An argument is wrong.
    """
    if num_workers is None or (isinstance(num_workers, str) and num_workers != "auto"):
        raise ConfigError(f"num_workers must be an integer or 'auto'; got {num_workers!r}.")
    if curriculum is None and (curriculum_env, check_interval_episodes) != (None, None):
        name = "check_interval_episodes" if curriculum_env is None else "curriculum_env"
        raise ConfigError(f"{name} was given without a curriculum. Give both or neither.")
    settings = WorkerSettings(
        autoreset_mode=autoreset_mode,
        num_batches=num_batches,
        parent_steps=parent_steps,
        start_method=start_method,
        on_worker_death=on_worker_death,
        timeout_s=timeout_s,
        copy=copy,
        observation_mode=observation_mode,
    )
    functions = env_functions(env, num_envs, env_kwargs, wrappers)
    # Before any env is made for the trial.
    settings.check_counts(len(functions), num_workers)
    vec: WorkerVectorEnv | GameVectorEnv | None = None
    try:
        is_plain = num_workers in (0, "auto") and num_batches == 1 and not wrappers
        batched = batched_entry(env) if is_plain and curriculum_env is None else None
        if batched is None:
            vec = _with_workers(functions, curriculum, curriculum_env, num_workers, settings)
        else:
            arguments = dict(env_kwargs or {})
            vec = batched(len(functions), autoreset_mode=autoreset_mode, copy=copy, **arguments)
        vec.spec = _spec_of(env, env_kwargs)
        if curriculum is None:
            return vec
        return CurriculumVectorEnv(
            vec,
            curriculum,
            check_interval_episodes=check_interval_episodes,
            max_failed_share=max_failed_share,
        )
    except BaseException:
        if vec is not None:
            vec.close()
        raise


def _with_workers(
    functions: list[EnvFunction],
    curriculum: Curriculum | None,
    curriculum_env: Arguments | None,
    num_workers: int | Literal["auto"],
    settings: WorkerSettings,
) -> WorkerVectorEnv:
    """Make the vector env that steps; with a curriculum, each env in a `CurriculumEnv`."""
    if curriculum is not None:
        if not isinstance(cast("object", curriculum), Curriculum):
            raise ConfigError(
                f"expected a curriculum; got {curriculum!r}. Make one of your tasks first, such as "
                "Uniform(tasks)."
            )
        options = dict(curriculum_env or {})
        functions = [partial(with_curriculum, function, options) for function in functions]
    if num_workers == "auto":
        num_workers = choose_num_workers(functions, curriculum, settings)
    return WorkerVectorEnv(functions, num_workers=num_workers, **vars(settings))


def batched_entry(env: Envs) -> "Callable[..., GameVectorEnv] | None":
    """Return what makes a batch of an env that is stepped as one; None for all other envs."""
    found = find_env(env) if isinstance(env, str) else env
    kwargs: Arguments = {}
    maker: Any = None
    if isinstance(found, type):
        maker = getattr(found, "vector_class", found)
    elif isinstance(found, EnvSpec):
        maker, kwargs = found.vector_entry_point, found.kwargs
    if isinstance(maker, str):
        maker = load_env_creator(maker)
    return partial(maker, **kwargs) if getattr(maker, "is_batched", False) else None


def env_functions(
    env: Envs,
    num_envs: int | None,
    env_kwargs: Arguments | None = None,
    wrappers: Sequence[EnvWrapper] = (),
) -> list[EnvFunction]:
    """Return one function per env that makes it."""
    if not isinstance(wrappers, Sequence) or not all(map(callable, wrappers)):
        raise ConfigError(
            f"wrappers must be a list of functions that each take an env; got {wrappers!r}."
        )
    if env_kwargs is not None and not isinstance(env_kwargs, Mapping):
        raise ConfigError(f"env_kwargs must be a dict of arguments; got {env_kwargs!r}.")
    if isinstance(env, Iterable) and not isinstance(env, str | EnvSpec):
        each = list(env)
        if num_envs is not None and num_envs != len(each):
            raise ConfigError(
                f"num_envs is {num_envs} and {len(each)} envs were listed. Leave num_envs out."
            )
    elif num_envs is None:
        raise ConfigError("num_envs is missing. Say how many envs to make, such as num_envs=8.")
    else:
        require_integer("num_envs", num_envs, 1, MAX_ENVS)
        each = [env] * int(num_envs)
    if not each:
        raise ConfigError("the list of envs is empty. List at least one.")
    return [partial(_made, _function(one, env_kwargs), tuple(wrappers)) for one in each]


def _spec_of(env: Envs, env_kwargs: Arguments | None) -> EnvSpec | None:
    """Return what all envs were made from, if that is one id or spec."""
    found = find_env(env) if isinstance(env, str) else env
    if not isinstance(found, EnvSpec):
        return None
    spec = shallow_copy(found)
    spec.kwargs = {**found.kwargs, **(env_kwargs or {})}
    return spec


def _function(env: object, env_kwargs: Arguments | None) -> EnvFunction:
    """Return a function that makes an env of what the user gave."""
    if isinstance(env, str | EnvSpec):
        # Here, not in a worker: a spawned one does not have what was registered here.
        found = find_env(env) if isinstance(env, str) else env
        make = partial(gym.make, found) if isinstance(found, EnvSpec) else found
        return partial(make, **(env_kwargs or {}))
    if not callable(env):
        raise ConfigError(
            f"expected an env id, a function that makes an env, or a list of these; got {env!r}. "
            "An env itself cannot be copied: pass a function that makes it."
        )
    if env_kwargs is not None:
        raise ConfigError(
            "env_kwargs was given with functions, which take none. Put them into the functions."
        )
    return cast("EnvFunction", env)


def _made(function: EnvFunction, wrappers: tuple[EnvWrapper, ...]) -> GymEnv:
    """Make an env and put its wrappers around it; a parallel env becomes one Gymnasium env."""
    env = as_gymnasium(function(), wrappers)
    if isinstance(env, VectorEnv) or not hasattr(env, "observation_space"):
        name = getattr(function, "__name__", "the function given")
        raise ConfigError(
            f"{name} should make an env and returned {env!r}. Return one env, wrappers included."
        )
    return env


def with_curriculum(function: EnvFunction, options: Arguments) -> GymEnv:
    """Make an env and put it into a `CurriculumEnv`, unless it is in one."""
    env = made = function()
    while isinstance(env, gym.Wrapper):
        if isinstance(env, CurriculumEnv):
            if options:
                raise ConfigError(
                    "curriculum_env was given, but the env is in a CurriculumEnv already. Give "
                    "the settings there."
                )
            return made
        env = env.env
    return CurriculumEnv(made, enable_local_tracking=False, **options)
