"""How fast training goes, in env steps/s, against Stable-Baselines3's DQN, SAC and PPO.

Both sides play our hockey (the peer through our adapter) with the same networks, batches, memories,
updates per env step and torch threads, on the CPU. Three figures for each number of envs: the envs
alone, stepped with fixed actions; acting in them; training, with all learning. That both sides do
the same number of updates is counted, and printed beside where our time goes.

With ``--device cuda`` only our side is measured, and Stable-Baselines3 need not be installed: SAC
in hockey, PPO with and without memory on Ledge. There, learning goes on while the envs step, and
"act" includes waiting for it.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import Any

import torch
from harness import Arm, Report, interleave, parser
from training_contests import CONTESTS, GPU_CONTESTS, HOCKEY, Contest, Ours

BAR = 2.0
"""How many times faster than the peer acting and training must be."""

ANCESTOR = {1: 2_328.0, 4: 3_319.0, 8: 5_661.0}
"""Env steps/s that this project's ancestor claimed for hockey, with a GPU, by envs; what it trained
there, it does not say."""

SLACK = 0.05
"""Updates of a short measurement may differ by so much: bursts do not end with it."""


@dataclass(frozen=True)
class Effort:
    """How exactly to measure."""

    rounds: int
    seconds: float
    """Length of a turn of stepping or acting."""

    is_quick: bool


QUICK = Effort(rounds=3, seconds=0.04, is_quick=True)
FULL = Effort(rounds=7, seconds=0.25, is_quick=False)


# Measuring.


def repeated(work: Callable[[], None], num_envs: int, seconds: float) -> Arm:
    """Make an arm that does one step of all envs again and again; env steps per second."""

    def arm() -> float:
        count, began = 0, time.perf_counter()
        while (took := time.perf_counter() - began) < seconds:
            for _ in range(4):
                work()
            count += 4
        return count * num_envs / took

    return arm


def trained(side: Any, num_steps: int) -> Arm:
    """Make an arm that trains for a turn; env steps per second."""

    def arm() -> float:
        before, began = side.counts()[0], time.perf_counter()
        side.train(num_steps)
        return (side.counts()[0] - before) / (time.perf_counter() - began)

    return arm


def add(report: Report, name: str, rates: dict[str, float], bar: float | None) -> None:
    """Report one figure beside the peer's, if there is a peer; only then is there a bar."""
    peer = rates.get("peer")
    report.add(name, rates["ours"], "steps/s", peer=peer, at_least=None if peer is None else bar)


def parts(report: Report, sides: dict[str, Any], algorithm: str, effort: Effort) -> None:
    """Measure the envs alone, and acting in them."""
    num_envs = sides["ours"].num_envs
    for what, work, bar in (("env only", "step", None), ("act + env", "act", BAR)):
        arms = {
            name: repeated(getattr(side, work), num_envs, effort.seconds)
            for name, side in sides.items()
        }
        rates = interleave(arms, effort.rounds)
        add(report, f"{algorithm}, {envs(num_envs)}, {what}", rates, bar)


def training(
    report: Report, sides: dict[str, Any], contest: Contest, num_steps: int, effort: Effort
) -> float:
    """Measure training, and report where the time goes; return our env steps per second."""
    before = {name: side.counts() for name, side in sides.items()}
    sides["ours"].forget_seconds()
    arms = {name: trained(side, num_steps) for name, side in sides.items()}
    rates = interleave(arms, effort.rounds)
    name = f"{contest.name}, {envs(sides['ours'].num_envs)}"
    add(report, name, rates, BAR)
    updates = {side: ratio(sides[side].counts(), before[side]) for side in sides}
    account(report, name, sides["ours"], updates)
    return rates["ours"]


def ratio(now: tuple[int, int], before: tuple[int, int]) -> float:
    """Return updates per thousand env steps."""
    return 1_000 * (now[1] - before[1]) / (now[0] - before[0])


def account(report: Report, name: str, ours: Ours, updates: dict[str, float]) -> None:
    """Print where our time went, and how many updates both sides did."""
    seconds = asdict(ours.trainer.seconds)
    whole = sum(seconds.values())
    shares = {part: spent / whole for part, spent in seconds.items()}
    if report.as_json:
        print(json.dumps({"name": name, "shares": shares, "updates_per_1000": updates}), flush=True)
    else:
        where = ", ".join(f"{part} {share:.0%}" for part, share in shares.items())
        counted = ", ".join(f"{side} {count:.1f}" for side, count in updates.items())
        print(f"    our time: {where}; updates per 1,000 env steps: {counted}", flush=True)
    peer = updates.get("peer", updates["ours"])
    if abs(updates["ours"] - peer) > SLACK * peer:
        raise SystemExit(f"{name}: the sides do not learn equally often: {updates}")


def envs(count: int) -> str:
    """Return a number of envs in words."""
    return f"{count} env{'' if count == 1 else 's'}"


# The cells: settings and a number of envs.


def measure(
    report: Report, contest: Contest, num_envs: int, effort: Effort, device: str, algorithm: str
) -> None:
    """Build both sides and measure them in turns.

    Args:
        report: Where figures go.
        contest: The settings.
        num_envs: Envs.
        effort: How exactly.
        device: Ours; the peer plays hockey on the CPU.
        algorithm: What to call the parts; nothing leaves them out.
    """
    num_steps = contest.turn_steps(num_envs, is_quick=effort.is_quick)
    config = contest.config(num_envs, num_steps, device)
    has_peer = device == "cpu" and contest.env == HOCKEY
    with ExitStack() as stack:
        sides: dict[str, Any] = {"ours": Ours(config)}
        stack.callback(sides["ours"].close)
        if has_peer and find_spec("stable_baselines3") is not None:
            # Loaded here: a machine with a GPU need not have it.
            from training_peers import Peer

            sides["peer"] = Peer(config)
            stack.callback(sides["peer"].close)
        if algorithm:
            parts(report, sides, algorithm, effort)
        rate = training(report, sides, contest, num_steps, effort)
    bar = ANCESTOR.get(num_envs) if has_peer else contest.bar
    if bar is not None:
        report.add(f"{contest.name}, {envs(num_envs)}, by itself", rate, "steps/s", at_least=bar)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    options = parser(__doc__ or "")
    options.add_argument("--device", default="cpu", help="cpu, or cuda: without a peer")
    options.add_argument("--only", nargs="+", choices=list(CONTESTS), help="only these algorithms")
    options.add_argument("--num-envs", nargs="+", type=int, help="only these numbers of envs")
    options.add_argument("--rounds", type=int, help="turns of each side; 7, quick 3")
    options.add_argument("--threads", type=int, help="of torch, for both sides")
    return options.parse_args()


def main() -> None:
    """Measure everything."""
    given = arguments()
    effort = QUICK if given.quick else FULL
    if given.rounds is not None:
        effort = replace(effort, rounds=given.rounds)
    if given.threads is not None:
        torch.set_num_threads(given.threads)
    is_cpu = given.device == "cpu"
    if is_cpu and find_spec("stable_baselines3") is None:
        print("left out: the peer, stable_baselines3 is not installed", file=sys.stderr)
    report = Report(
        f"{(__doc__ or '').splitlines()[0]} Device {given.device}, "
        f"{torch.get_num_threads()} torch threads.",
        as_json=given.json,
    )
    contests = CONTESTS if is_cpu else GPU_CONTESTS
    if given.only is not None and not contests.keys() & set(given.only):
        raise SystemExit(f"--only must name one of {', '.join(contests)} with --device cuda")
    for algorithm, (settings, counts) in contests.items():
        if given.only is not None and algorithm not in given.only:
            continue
        for num_envs in given.num_envs or counts:
            for contest in settings:
                called = algorithm if contest is settings[0] else ""
                measure(report, contest, num_envs, effort, given.device, called)


if __name__ == "__main__":
    main()
