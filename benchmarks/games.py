"""How fast the built-in games run, in env steps/s, against Gymnasium's Sync CartPole.

The peer is `gymnasium.vector.SyncVectorEnv` of CartPole-v1 with as many envs, in the same run;
EnvPool's C++ CartPole is shown beside it where it is installed. All arms play random actions with
the settings of a user who sets nothing: a scripted opponent inside the batch, observations copied,
infos made, episodes reset.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import numpy as np
from harness import Arm, Report, interleave, parser

from stepladder import Uniform, make_vec
from stepladder.cores import usable_cores
from stepladder.games.ledge.source import LedgeLevels
from stepladder.tasks import Task

NUM_ACTIONS = 64
"""Batches of random actions, drawn beforehand and used in turn."""

BARS = {("Ledge", 128): 25.0, ("Ledge", 1024): 70.0, ("Hockey", 128): 7.0, ("Hockey", 1024): 14.0}
"""How many times faster than CartPole a game must be."""

ON_OFF_BAR = 0.98
"""With a curriculum, a game must keep so much of its speed."""


@dataclass(frozen=True)
class Effort:
    """How exactly to measure."""

    rounds: int
    seconds: float
    """Length of one arm's turn."""

    env_counts: tuple[int, ...]


QUICK = Effort(rounds=5, seconds=0.15, env_counts=(128, 1024))
FULL = Effort(rounds=9, seconds=0.4, env_counts=(1, 8, 128, 1024, 8192))

MOST_PEERS = 1024
"""CartPoles beyond this number are no faster, only slow to make."""


def steps_per_second(vec: Any, actions: Sequence[Any], num_envs: int, seconds: float) -> Arm:
    """Make an arm that steps for a moment and returns env steps per second."""

    def arm() -> float:
        num_steps, began = 0, time.perf_counter()
        while True:
            for action in actions:
                vec.step(action)
            num_steps += len(actions)
            took = time.perf_counter() - began
            if took > seconds:
                return num_steps * num_envs / took

    return arm


def arm_of(vec: Any, seconds: float) -> Arm:
    """Take a vector env into use."""
    vec.reset(seed=0)
    space = vec.action_space
    space.seed(0)
    num_actions = max(4, min(NUM_ACTIONS, 65536 // vec.num_envs))
    actions = [space.sample() for _ in range(num_actions)]
    return steps_per_second(vec, actions, vec.num_envs, seconds)


def build_sync(num_envs: int) -> Any:
    """Make Gymnasium's own loop over CartPoles."""
    return gym.make_vec("CartPole-v1", num_envs, vectorization_mode="sync")


def envpool_arm(num_envs: int, seconds: float) -> Arm:
    """Run EnvPool's CartPole, written in C++."""
    import envpool  # pyright: ignore[reportMissingImports]

    vec = envpool.make_gymnasium(
        "CartPole-v1", num_envs=num_envs, num_threads=min(num_envs, usable_cores())
    )
    vec.reset()
    rng = np.random.default_rng(0)
    actions = [rng.integers(2, size=num_envs).astype(np.int32) for _ in range(NUM_ACTIONS)]
    return steps_per_second(vec, actions, num_envs, seconds)


def hockey_tasks() -> list[Task]:
    """List a few tasks of hockey: every mode against both scripted opponents."""
    return [
        Task(f"{mode} {opponent}", mode, {"mode": mode, "opponent": opponent})
        for mode in ("NORMAL", "TRAIN_SHOOTING", "TRAIN_DEFENSE")
        for opponent in ("weak", "strong")
    ]


def ledge_tasks() -> list[Task]:
    """List a few levels of one stage."""
    levels = LedgeLevels(["medium"], per_stage=32)
    return [levels.get(index) for index in range(32)]


GAMES: dict[str, Callable[..., Any]] = {
    "Hockey": partial(make_vec, "stepladder/Hockey-v0"),
    "Ledge": partial(make_vec, "stepladder/Ledge-v0"),
}
TASKS: dict[str, Callable[[], Any]] = {
    "Hockey": hockey_tasks,
    "Ledge": ledge_tasks,
}


def measure_speed(report: Report, num_envs: int, effort: Effort) -> None:
    """Measure both games beside CartPole."""
    vecs = {name: build(num_envs) for name, build in GAMES.items()}
    arms = {name: arm_of(vec, effort.seconds) for name, vec in vecs.items()}
    peer = build_sync(min(num_envs, MOST_PEERS))
    arms["CartPole"] = arm_of(peer, effort.seconds)
    if find_spec("envpool") is not None:
        arms["EnvPool"] = envpool_arm(num_envs, effort.seconds)
    rates = interleave(arms, effort.rounds)
    for name in GAMES:
        report.add(
            f"{name}, {num_envs} envs, against Sync CartPole",
            rates[name] / 1e6,
            "M steps/s",
            peer=rates["CartPole"] / 1e6,
            at_least=BARS.get((name, num_envs)),
        )
    if "EnvPool" in rates:
        report.add(
            f"EnvPool CartPole, {num_envs} envs, against Sync CartPole",
            rates["EnvPool"] / 1e6,
            "M steps/s",
            peer=rates["CartPole"] / 1e6,
        )
    for vec in (*vecs.values(), peer):
        vec.close()


def measure_curriculum(report: Report, num_envs: int, effort: Effort) -> None:
    """Measure what a curriculum costs: the same tasks drawn from a plan, or fixed per env."""
    for name, build in GAMES.items():
        tasks = TASKS[name]()
        plain = build(num_envs)
        plain.set_tasks([tasks[index % len(tasks)] for index in range(num_envs)])
        taught = build(num_envs, curriculum=Uniform(tasks, seed=0))
        silent = build(
            num_envs, curriculum=Uniform(tasks, seed=0), env_kwargs={"task_infos": False}
        )
        vecs = {"off": plain, "on": taught, "silent": silent}
        rates = interleave(
            {arm: arm_of(vec, effort.seconds) for arm, vec in vecs.items()}, effort.rounds
        )
        for arm, what in (("on", ""), ("silent", " (task_infos=False)")):
            report.add(
                f"{name}, {num_envs} envs, Uniform on{what} against off",
                rates[arm] / 1e6,
                "M steps/s",
                peer=rates["off"] / 1e6,
                at_least=ON_OFF_BAR,
            )
        for vec in vecs.values():
            vec.close()


def measure_threads(report: Report, num_envs: int, effort: Effort) -> None:
    """Measure what the second core brings."""
    for name, build in GAMES.items():
        vecs = [build(num_envs, env_kwargs={"num_threads": count}) for count in (1, usable_cores())]
        rates = interleave(
            {str(index): arm_of(vec, effort.seconds) for index, vec in enumerate(vecs)},
            effort.rounds,
        )
        report.add(
            f"{name}, {num_envs} envs, {usable_cores()} threads against 1",
            rates["1"] / 1e6,
            "M steps/s",
            peer=rates["0"] / 1e6,
        )
        for vec in vecs:
            vec.close()


def main() -> None:
    """Measure everything."""
    arguments = parser(__doc__ or "").parse_args()
    effort = QUICK if arguments.quick else FULL
    title = (__doc__ or "").splitlines()[0]
    report = Report(title, as_json=arguments.json)
    for num_envs in effort.env_counts:
        measure_speed(report, num_envs, effort)
    for num_envs in (128, 1024):
        measure_curriculum(report, num_envs, effort)
    for num_envs in (128, 1024):
        measure_threads(report, num_envs, effort)


if __name__ == "__main__":
    main()
