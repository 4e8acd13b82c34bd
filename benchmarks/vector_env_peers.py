"""Other ways to run many envs: a plain loop, Gymnasium, Stable-Baselines3, PufferLib, EnvPool.

Each is built for a world and a number of envs and then stepped with actions drawn beforehand. One
env step is counted for each env in each call, whether the env was stepped or reset.

PufferLib's workers spin while they have nothing to do: at full speed for half a second after
their last step, then they look every 10 ms. On two cores, Gymnasium Async beside one that spins
ran at two thirds of its rate. So they are stopped by a signal between their turns. The
workers of all the others sleep by themselves.
"""

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from vector_env_worlds import World

NUM_ACTIONS = 64
"""Batches of actions that are drawn beforehand and used in turn."""

MOST_PROCESSES = 32
"""Envs up to which a library with one process per env is measured."""


@dataclass(frozen=True)
class Running:
    """Many envs that have been reset and can be stepped."""

    step: Callable[[Any], object]
    close: Callable[[], object]
    num_envs: int
    actions: Sequence[Any]
    """Batches of actions, to be used in turn."""

    stopped_when_idle: Sequence[int] = ()
    """Processes that must not run while others are measured."""

    def resume(self) -> None:
        """Let everything run."""
        for pid in self.stopped_when_idle:
            os.kill(pid, signal.SIGCONT)

    def pause(self) -> None:
        """Let nothing run that does not sleep by itself."""
        for pid in self.stopped_when_idle:
            os.kill(pid, signal.SIGSTOP)

    def end(self) -> None:
        """Close everything."""
        self.resume()
        self.close()


Build = Callable[[World, int], Running]


@dataclass(frozen=True)
class Peer:
    """One way to run many envs."""

    name: str
    build: Build
    package: str | None = None
    """What must be installed for it."""

    num_workers: int = 1
    """Worker processes, if there are at least as many envs."""

    has_process_per_env: bool = False
    has_few_worlds: bool = False
    """Whether it only has envs of its own."""

    def fits(self, world: World, num_envs: int) -> bool:
        """Whether it can be measured there, if it is installed."""
        if self.has_few_worlds and world.envpool_id is None:
            return False
        if self.has_process_per_env:
            return num_envs <= MOST_PROCESSES
        return num_envs >= self.num_workers

    @property
    def is_installed(self) -> bool:
        """Whether it can be measured here."""
        return self.package is None or find_spec(self.package) is not None


def drawn_actions(world: World, num_envs: int) -> npt.NDArray[np.int64]:
    """Draw actions at random, the same for every library: shape (NUM_ACTIONS, num_envs)."""
    env = world.make()
    assert isinstance(env.action_space, gym.spaces.Discrete)
    count = int(env.action_space.n)
    env.close()
    return np.random.default_rng(0).integers(count, size=(NUM_ACTIONS, num_envs))


def running(envs: gym.vector.VectorEnv[Any, Any, Any], world: World) -> Running:
    """Take a vector env of Gymnasium's kind into use."""
    envs.reset(seed=0)
    actions = list(drawn_actions(world, envs.num_envs))
    return Running(envs.step, envs.close, envs.num_envs, actions)


class PlainLoop:
    """What one writes without any library: a loop over envs that fills arrays, and resets.

    Like Gymnasium's vector envs, it resets an env in the step after its end. It copies nothing:
    the arrays that it returns are those that the next step fills.
    """

    def __init__(self, make: Callable[[], gym.Env[Any, Any]], num_envs: int):
        self.envs = [make() for _ in range(num_envs)]
        space = self.envs[0].observation_space
        self.observations = np.zeros((num_envs, *(space.shape or ())), space.dtype)
        self.rewards: npt.NDArray[np.float64] = np.zeros(num_envs)
        self.terminated: npt.NDArray[np.bool_] = np.zeros(num_envs, np.bool_)
        self.truncated: npt.NDArray[np.bool_] = np.zeros(num_envs, np.bool_)
        self.is_over = [False] * num_envs
        for index, env in enumerate(self.envs):
            self.observations[index], _ = env.reset(seed=index)

    def step(self, actions: npt.NDArray[np.int64]) -> Any:
        """Step every env, or reset it."""
        observations, rewards, is_over = self.observations, self.rewards, self.is_over
        terminated, truncated = self.terminated, self.truncated
        infos: dict[int, dict[str, Any]] = {}
        for index, env in enumerate(self.envs):
            if is_over[index]:
                observation, info = env.reset()
                reward, has_terminated, was_truncated = 0.0, False, False
            else:
                step = env.step(actions[index])
                observation, reward, has_terminated, was_truncated, info = step
            observations[index] = observation
            rewards[index] = reward
            terminated[index] = has_terminated
            truncated[index] = was_truncated
            is_over[index] = has_terminated or was_truncated
            if info:
                infos[index] = info
        return observations, rewards, terminated, truncated, infos

    def close(self) -> None:
        """Close every env."""
        for env in self.envs:
            env.close()


def build_plain_loop(world: World, num_envs: int) -> Running:
    """Run envs in a plain loop."""
    loop = PlainLoop(world.make, num_envs)
    return Running(loop.step, loop.close, num_envs, list(drawn_actions(world, num_envs)))


def build_single(world: World, num_envs: int) -> Running:
    """Run one env, nothing around it and nothing kept; `num_envs` is of no account."""
    env = world.make()
    env.reset(seed=0)

    def step(actions: list[Any]) -> None:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    # Several actions at a time, as many envs would take them, lest the clock be read each time.
    batch = 32
    drawn = drawn_actions(world, batch)
    return Running(step, env.close, batch, [list(actions) for actions in drawn])


def build_sync(world: World, num_envs: int) -> Running:
    """Run Gymnasium's loop."""
    return running(SyncVectorEnv([world.make] * num_envs), world)


def build_async(world: World, num_envs: int) -> Running:
    """Run Gymnasium's processes, with shared memory, as is its default."""
    return running(AsyncVectorEnv([world.make] * num_envs, context="fork"), world)


def build_sb3(world: World, num_envs: int, *, in_processes: bool) -> Running:
    """Run the loop or the processes of Stable-Baselines3."""
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    makers = [world.make] * num_envs
    envs = SubprocVecEnv(makers, "fork") if in_processes else DummyVecEnv(makers)
    envs.seed(0)
    envs.reset()
    return Running(envs.step, envs.close, num_envs, list(drawn_actions(world, num_envs)))


def build_puffer(world: World, num_envs: int, *, most_workers: int) -> Running:
    """Run PufferLib through its Gymnasium emulation, in the loop or with that many workers.

    Every worker must have as many envs as any other, so there may be fewer workers.
    """
    import pufferlib.emulation
    import pufferlib.vector

    def make(buf: Any = None, seed: int = 0) -> Any:
        return pufferlib.emulation.GymnasiumPufferEnv(env_creator=world.make, buf=buf, seed=seed)

    make_vector: Any = pufferlib.vector.make
    actions = list(drawn_actions(world, num_envs).astype(np.int32))
    if not most_workers:
        envs = make_vector(make, backend=pufferlib.vector.Serial, num_envs=num_envs)
        envs.reset(seed=0)
        return Running(envs.step, envs.close, num_envs, actions)
    envs = make_vector(
        make,
        backend=pufferlib.vector.Multiprocessing,
        num_envs=num_envs,
        num_workers=max(k for k in range(1, most_workers + 1) if num_envs % k == 0),
        # It counts cores in its own way, and may find fewer.
        overwork=True,
    )
    envs.reset(seed=0)

    def close() -> None:
        envs.close()
        for process in envs.processes:
            process.join(10.0)

    pids = [process.pid for process in envs.processes]
    return Running(envs.step, close, num_envs, actions, stopped_when_idle=pids)


def build_envpool(world: World, num_envs: int, *, num_threads: int) -> Running:
    """Run EnvPool's own version of a world, written in C++."""
    import envpool  # pyright: ignore[reportMissingImports]

    envs = envpool.make_gymnasium(world.envpool_id, num_envs=num_envs, num_threads=num_threads)
    envs.reset()
    actions = list(drawn_actions(world, num_envs).astype(np.int32))
    return Running(envs.step, envs.close, num_envs, actions)


def all_peers(num_cores: int) -> list[Peer]:
    """List the peers; a plain loop, which all are compared with, is not among them.

    PufferLib recommends a worker per core. Its main process spins as well, so with one worker
    fewer it is faster on few cores; both are measured.
    """
    puffer = partial(Peer, package="pufferlib")
    fewer = max(1, num_cores - 1)
    peers = [
        Peer("Gymnasium Sync", build_sync),
        Peer("Gymnasium Async", build_async, has_process_per_env=True),
        Peer("SB3 Dummy", partial(build_sb3, in_processes=False), "stable_baselines3"),
        Peer(
            "SB3 Subproc",
            partial(build_sb3, in_processes=True),
            "stable_baselines3",
            has_process_per_env=True,
        ),
        puffer("PufferLib Serial", partial(build_puffer, most_workers=0)),
        puffer(f"PufferLib {fewer}w", partial(build_puffer, most_workers=fewer)),
    ]
    if fewer != num_cores:
        name = f"PufferLib {num_cores}w"
        build = partial(build_puffer, most_workers=num_cores)
        peers.append(puffer(name, build, num_workers=num_cores))
    pool = partial(build_envpool, num_threads=num_cores)
    return [*peers, Peer("EnvPool (C++)", pool, "envpool", has_few_worlds=True)]
