"""How fast many envs run: `make_vec` against a plain loop and every other vector env, in steps/s.

The peer of every figure is a bare Python loop over the same envs, which copies nothing and checks
nothing, unless its name says otherwise: ``against N x single`` is the rate of one env times the
cores, ``against Sync`` is Gymnasium's loop, ``against its plain loop`` is ``num_workers=0``.
All arms of a cell are built first and then measured in turns of a fraction of a second. Libraries
with a process per env are measured up to 32 envs. PufferLib, MiniGrid and EnvPool are left out
where they are not installed.
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

from harness import Arm, Report, interleave, parser
from vector_env_peers import (
    Build,
    Peer,
    Running,
    all_peers,
    build_plain_loop,
    build_single,
    drawn_actions,
    running,
)
from vector_env_picture import throughput_figure
from vector_env_worlds import BUSY_100, CART_POLE, WITH_TASKS, WORLDS, World

from stepladder import Uniform, make_vec
from stepladder.cores import usable_cores
from stepladder.tasks import ListSource

ENV_COUNTS = (1, 2, 4, 8, 32, 128, 256)
NOISE = 0.03
"""Two arms that do the same may differ by so much."""

OURS_PLAIN = "Stepladder num_workers=0"
OURS, LOOP, SINGLE, SYNC = "Stepladder", "plain loop", "single env", "Gymnasium Sync"
IN_PICTURE = {
    "CartPole": "CartPole",
    "busy 100 us": "100 \N{MICRO SIGN}s a step",
    "busy 1 ms": "1 ms a step",
    "MiniGrid": "MiniGrid",
    "shows 84x84x4": "no work, shows 28 kB",
}
"""Worlds that are drawn, and what they are called there."""

THINK_US = 50.0
"""How long a policy thinks about one env."""


@dataclass(frozen=True)
class Effort:
    """How exactly to measure."""

    rounds: int
    seconds: float
    """Length of one arm's turn."""

    is_quick: bool


QUICK = Effort(rounds=4, seconds=0.06, is_quick=True)
FULL = Effort(rounds=5, seconds=0.15, is_quick=False)


# Measuring.


def ours(num_workers: int | Literal["auto"], **settings: Any) -> Build:
    """Make a builder of our vector env."""

    def build(world: World, num_envs: int) -> Running:
        return running(make_vec(world.make, num_envs, num_workers=num_workers, **settings), world)

    return build


def turn(envs: Running, seconds: float) -> Arm:
    """Make an arm that steps for a moment and returns env steps per second."""
    actions = cycle(envs.actions)

    def steps_per_s(seconds: float) -> float:
        step, count = envs.step, 0
        began = time.perf_counter()
        while (elapsed := time.perf_counter() - began) < seconds:
            step(next(actions))
            count += 1
        return count * envs.num_envs / elapsed

    def arm() -> float:
        envs.resume()
        # Workers that slept or were stopped wake up, and find a core, outside the measurement.
        steps_per_s(seconds / 4)
        rate = steps_per_s(seconds)
        envs.pause()
        return rate

    return arm


def measure(
    builds: Mapping[str, Build], world: World, num_envs: int, effort: Effort
) -> dict[str, float]:
    """Build everything, measure in turns, close everything; return env steps per second."""
    with ExitStack() as stack:
        arms: dict[str, Arm] = {}
        for name, build in builds.items():
            envs = build(world, num_envs)
            stack.callback(envs.end)
            envs.pause()
            arms[name] = turn(envs, effort.seconds)
        return interleave(arms, effort.rounds)


# The cells: a world and a number of envs.


def arms_of(
    world: World, num_envs: int, peers: Iterable[Peer], num_cores: int, effort: Effort
) -> dict[str, Build]:
    """List what is measured in a cell."""
    builds: dict[str, Build] = {LOOP: build_plain_loop, OURS: ours("auto")}
    if world is BUSY_100 or not effort.is_quick:
        builds[SINGLE] = build_single
    if world is CART_POLE or not effort.is_quick:
        builds[OURS_PLAIN] = ours(0)
    if not effort.is_quick and num_envs > 1 and num_cores > 1:
        workers = min(num_cores, num_envs) - 1
        builds[f"{OURS} num_workers={workers}"] = ours(workers)
    if world.shows_much:
        builds[f"{OURS} copy=False"] = ours("auto", copy=False)
    # Roughly, all peers are measured once in the two worlds that have bars.
    has_all = not effort.is_quick or (num_envs == 8 and world in (CART_POLE, BUSY_100))
    for peer in peers:
        if (has_all or peer.name == SYNC) and peer.fits(world, num_envs):
            builds[peer.name] = peer.build
    return builds


def report_cell(
    report: Report, world: World, num_envs: int, rates: Mapping[str, float], num_cores: int
) -> None:
    """Report a cell, with the bars that apply there."""
    where = f"{world.name}, {num_envs} env{'' if num_envs == 1 else 's'}"
    loop, mine = rates[LOOP], rates[OURS]
    report.add(f"{where}, {LOOP}", loop, "steps/s")
    for name, rate in rates.items():
        if name != LOOP:
            report.add(f"{where}, {name}", rate, "steps/s", peer=loop)
    if world is BUSY_100:
        report.add(
            f"{where}, {OURS} against {num_cores} x single",
            mine,
            "steps/s",
            peer=num_cores * rates[SINGLE],
            at_least=0.9 if num_envs >= 4 else None,
        )
    if world is CART_POLE:
        report.add(
            f"{where}, {OURS} against Sync",
            mine,
            "steps/s",
            peer=rates[SYNC],
            at_least=1.3 if num_envs >= 8 else 1.0,
        )
        report.add(
            f"{where}, {OURS} against its plain loop",
            mine,
            "steps/s",
            peer=rates[OURS_PLAIN],
            at_least=1.0 - NOISE,
        )


def drawn(world: World, num_envs: int, rates: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return a cell for the picture; of PufferLib's two numbers of workers the better one."""
    shown: dict[str, float] = {}
    for name, rate in rates.items():
        if name == SINGLE or name.startswith(f"{OURS} "):
            continue
        is_puffer = name.startswith("PufferLib") and name != "PufferLib Serial"
        library = "PufferLib workers" if is_puffer else name
        shown[library] = max(rate, shown.get(library, 0.0))
    where = {"world": IN_PICTURE[world.name], "num_envs": num_envs}
    return [{**where, "library": name, "steps_per_s": rate} for name, rate in shown.items()]


def env_counts(world: World, effort: Effort) -> Sequence[int]:
    """Return the numbers of envs to measure; roughly, those that have bars, or 8."""
    if not effort.is_quick or world is CART_POLE:
        return ENV_COUNTS
    return (4, 8, 32, 128) if world is BUSY_100 else (8,)


# What a curriculum adds, and what thinking meanwhile saves.


def curriculum_figures(report: Report, num_cores: int, effort: Effort) -> None:
    """Measure the same vector env with a curriculum and without."""
    num_envs = 8
    workers = min(num_cores, num_envs) - 1

    def build_taught(world: World, num_envs: int) -> Running:
        envs = make_vec(
            world.make,
            num_envs,
            num_workers=workers,
            curriculum=Uniform(ListSource.numbered(1_000)),
            curriculum_env={"return_threshold": 100.0},
        )
        return running(envs, world)

    for world in WITH_TASKS:
        # A difference of 2 % needs more turns than the others do.
        finer = Effort(3 * effort.rounds, effort.seconds, effort.is_quick)
        arms = {"off": ours(workers), "on": build_taught}
        rates = measure(arms, world, num_envs, finer)
        report.add(
            f"{world.name}, {num_envs} envs, curriculum on against off",
            rates["on"],
            "steps/s",
            peer=rates["off"],
            at_least=0.98,
        )


def spin(seconds: float) -> None:
    """Think on this core."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def thinking(think: Callable[[float], None], num_batches: int, num_workers: int) -> Build:
    """Make a builder of our vector env with a policy that takes its time.

    With two batches, one half of the envs steps while the policy thinks about the other half.
    """

    def build(world: World, num_envs: int) -> Running:
        envs: Any = make_vec(world.make, num_envs, num_workers=num_workers, num_batches=num_batches)
        envs.reset(seed=0)
        actions = list(drawn_actions(world, num_envs))
        batches = list(enumerate(envs.batches))

        def step(all_actions: Any) -> None:
            if num_batches == 1:
                think(num_envs * THINK_US * 1e-6)
                envs.step(all_actions)
                return
            for index, rows in batches:
                envs.recv(index)
                think((rows.stop - rows.start) * THINK_US * 1e-6)
                envs.send(all_actions[rows], index)

        if num_batches > 1:
            for index, rows in batches:
                envs.send(actions[0][rows], index)
        return Running(step, envs.close, num_envs, actions)

    return build


def thinking_figures(report: Report, num_cores: int, effort: Effort) -> None:
    """Measure send and recv in two batches against step, with a policy that thinks."""
    num_envs = 32
    workers = min(num_cores, num_envs) - 1
    for where, think in (("on this core", spin), ("elsewhere", time.sleep)):
        builds = {
            "step": thinking(think, 1, workers),
            "send and recv": thinking(think, 2, workers),
        }
        rates = measure(builds, BUSY_100, num_envs, effort)
        report.add(
            f"send/recv against step, {num_envs} envs, policy {where}",
            rates["send and recv"],
            "steps/s",
            peer=rates["step"],
        )


def installed(things: Iterable[Any]) -> list[Any]:
    """Return the worlds or peers that can be measured here; say which cannot."""
    found = [thing for thing in things if thing.is_installed]
    for thing in things:
        if thing not in found:
            print(f"left out: {thing.name}, {thing.package} is not installed", file=sys.stderr)
    return found


def main() -> None:
    """Measure everything."""
    options = parser(__doc__ or "")
    names = [world.name for world in WORLDS]
    options.add_argument("--picture", type=Path, help="SVG or PNG file to draw the rates into")
    options.add_argument("--worlds", nargs="+", choices=names, help="nothing but these worlds")
    options.add_argument("--num-envs", nargs="+", type=int, help="only these numbers of envs")
    arguments = options.parse_args()
    effort = QUICK if arguments.quick else FULL
    num_cores = usable_cores()
    report = Report(
        f"Env steps per second on {num_cores} cores: Stepladder's make_vec against a plain loop, "
        "Gymnasium, Stable-Baselines3, PufferLib and EnvPool.",
        as_json=arguments.json,
    )
    chosen = arguments.worlds or names
    peers = installed(all_peers(num_cores))
    rows: list[dict[str, Any]] = []
    for world in installed([world for world in WORLDS if world.name in chosen]):
        for num_envs in arguments.num_envs or env_counts(world, effort):
            builds = arms_of(world, num_envs, peers, num_cores, effort)
            rates = measure(builds, world, num_envs, effort)
            report_cell(report, world, num_envs, rates, num_cores)
            rows += drawn(world, num_envs, rates) if world.name in IN_PICTURE else []
    if arguments.worlds is None:
        curriculum_figures(report, num_cores, effort)
        thinking_figures(report, num_cores, effort)
    if arguments.picture is not None:
        throughput_figure(rows, num_cores=num_cores).save(arguments.picture)


if __name__ == "__main__":
    main()
