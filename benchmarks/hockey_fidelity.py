"""How faithful the built-in hockey is: beside recorded games and matches of the original.

Four measures. A: one step from every recorded moment, by what happens in it. B: many steps with the
recorded actions. C: whole episodes from their start. D: thousands of matches between the scripted
players. Bars are the pass marks that came with the recordings; a limit on a match measure is that
mark or three standard errors (of the recorded sample and ours together), whichever is wider.

Positions are in micrometres, velocities in micrometres per second: a million is a metre.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import hockey_matches
import numpy as np
import numpy.typing as npt
from harness import Figure, Report, parser
from hockey_recordings import (
    EXCERPT,
    HOLD_COLUMNS,
    ONE_STATIC,
    ONE_TWO,
    POSITION_COLUMNS,
    PUCK_ONE,
    PUCK_TWO,
    PUCK_WALL,
    RECORDINGS,
    TWO_STATIC,
    VELOCITY_COLUMNS,
    Recording,
    judge,
    load,
    positions,
    recall,
    step,
    velocities,
)

from stepladder.arrays import Floats
from stepladder.games.hockey.world import HockeyWorld
from stepladder.records import Records

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

MILLION = 1e6
REWARD_TOLERANCE = 1e-4
"""A reward agrees if it is off by less: the closeness to the puck is part of it."""

DRIFT_BARS = {10: 1e-3, 25: 5e-3, 50: 2e-2}
SCENARIOS = {
    "free flight": ("i_slide",),
    "wall hits": ("i_wall0", "i_wall1", "i_wall2", "i_wall3", "i_goal"),
    "racket hits": ("i_hit_still_keep0", "i_puck_into_racket_keep0", "i_racket_around"),
    "catching": ("i_hit_still_keep1", "i_puck_into_racket_keep1"),
    "holding and shooting": ("i_shoot",),
    "rackets against walls": ("i_racket_wall",),
    "turning and the centre zone": ("i_rotate", "i_centre"),
    "racket against racket": ("i_racket_racket",),
}


POOLED = (0.408, 0.440, 0.152)
"""Wins, draws and losses of the original's strong player against the weak one, in 4,000 matches."""


class FidelityReport(Report):
    """A report whose figures may also be held to a band around the peer's."""

    def compare(self, name: str, value: float, unit: str, peer: float, band: float) -> None:
        """Report a figure that must be no farther than `band` from its peer."""
        holds = abs(value - peer) <= band
        figure = Figure(name, value, unit, peer, value / peer, f"peer ± {band:.3g}", bool(holds))
        self.figures.append(figure)
        print(json.dumps(asdict(figure)) if self.as_json else str(figure), flush=True)


def classes_of(recording: Recording, rows: Ints) -> dict[str, Bools]:
    """Sort steps by what happens in them."""
    contacts = recording.contacts[rows + 1]
    held = recording.views[rows][:, HOLD_COLUMNS].max(axis=1) > 1
    meets_racket = (contacts & (PUCK_ONE | PUCK_TWO) > 0) & ~held
    meets_wall = (contacts & PUCK_WALL > 0) & ~held & ~meets_racket
    pucks = held | meets_racket | meets_wall
    rackets_meet = (contacts & ONE_TWO > 0) & ~pucks
    static = (contacts & (ONE_STATIC | TWO_STATIC) > 0) & ~pucks & ~rackets_meet
    return {
        "free flight": ~(pucks | rackets_meet | static),
        "puck meets racket": meets_racket,
        "puck held": held,
        "puck meets wall": meets_wall,
        "racket meets wall only": static,
    }


def report_one_step(report: FidelityReport, recording: Recording) -> None:
    """Measure A: errors of one step."""
    rows = recording.moves
    worlds = recall(recording, rows)
    step(worlds, recording.actions[rows])
    after = recording.views[rows + 1]
    position = np.abs(positions(worlds) - after[:, POSITION_COLUMNS]).max(axis=1)
    velocity = np.abs(velocities(worlds) - after[:, VELOCITY_COLUMNS]).max(axis=1)
    for name, members in classes_of(recording, rows).items():
        if not members.any():
            continue
        bars: dict[tuple[str, int], float]
        bars = {("position", 99): 1e-3, ("velocity", 99): 0.05}
        if name == "free flight":
            bars = {("position", 99): 1e-5, ("velocity", 99): 1e-5}
        elif name == "puck meets wall":
            bars = {("position", 99): 2e-3, ("velocity", 99): 0.1}
        elif name == "racket meets wall only":
            bars = {("position", 50): 1e-3, ("position", 90): 0.02}
        report.add(f"A {name}, steps", float(members.sum()), "steps")
        for what, errors, unit in (("position", position, "um"), ("velocity", velocity, "um/s")):
            for percent in (50, 90, 99):
                value = float(np.percentile(errors[members], percent)) * MILLION
                bar = bars.get((what, percent))
                limit = None if bar is None else bar * MILLION
                report.add(f"A {name}, {what} error, {percent} %", value, unit, at_most=limit)
    report_exact(report, recording, rows, worlds)


def report_exact(
    report: FidelityReport, recording: Recording, rows: Ints, worlds: Records[HockeyWorld]
) -> None:
    """Measure A, continued: counters, rewards and reward terms."""
    holds = worlds["bodies"]["hold"][:, 1:3]
    counters = (holds == recording.views[rows + 1][:, HOLD_COLUMNS]).all(axis=1)
    rewards, _ = judge(worlds)
    agree = (np.abs(rewards - recording.rewards[rows]) < REWARD_TOLERANCE).all(axis=1)
    winners = worlds["winner"] == recording.winners[rows]
    report.add("A hold counters exact", float(counters.mean()), "share", at_least=0.999)
    report.add("A goals exact", float(winners.mean()), "share", at_least=0.999)
    report.add("A rewards exact", float(agree.mean()), "share", at_least=0.999)
    recalled = recall(recording, rows + 1)
    recalled["mode"] = recording.modes[rows]
    _, terms = judge(recalled)
    worst = float(np.abs(terms - recording.terms[rows]).max())
    report.add("A reward terms of the same state, worst", worst * MILLION, "millionths", at_most=10)


def drift(recording: Recording, rows: Ints, num_steps: int) -> tuple[Floats, Floats]:
    """Play on from given rows; return how far the puck and the worse racket are off then."""
    worlds = recall(recording, rows)
    for offset in range(num_steps):
        step(worlds, recording.actions[rows + offset])
    off = positions(worlds) - recording.views[rows + num_steps][:, POSITION_COLUMNS]
    distances = np.hypot(off[:, ::2], off[:, 1::2])
    return distances[:, 2], distances[:, :2].max(axis=1)


def report_drift(report: FidelityReport, recording: Recording, num_starts: int) -> None:
    """Measure B: how errors grow over steps with the recorded actions."""
    rng = np.random.default_rng(0)
    is_game = np.array([not group.startswith("i_") for group in recording.groups])
    left = recording.lengths[recording.episodes] - recording.steps
    for num_steps, bar in DRIFT_BARS.items():
        rows = np.flatnonzero(is_game[recording.episodes] & (left >= num_steps))
        if len(rows) > num_starts:
            rows = rng.choice(rows, num_starts, replace=False)
        for what, errors in zip(
            ("puck", "worse racket"), drift(recording, rows, num_steps), strict=True
        ):
            name = f"B {what} after {num_steps} steps, error,"
            median, high = np.percentile(errors, (50, 90)) * MILLION
            report.add(f"{name} median", float(median), "um", at_most=bar * MILLION)
            report.add(f"{name} 90 %", float(high), "um")
    for scenario, groups in SCENARIOS.items():
        for num_steps, bar in DRIFT_BARS.items():
            chosen = np.isin(recording.groups, groups) & (recording.lengths >= num_steps)
            if not chosen.any():
                continue
            errors = np.maximum(*drift(recording, recording.starts[chosen], num_steps))
            name = f"B {scenario}, {num_steps} steps, median"
            value = float(np.median(errors)) * MILLION
            report.add(name, value, "um", at_most=bar * MILLION)


def report_replay(report: FidelityReport, recording: Recording) -> None:
    """Measure C: whole episodes with the recorded actions."""
    is_game = np.array([not group.startswith("i_") for group in recording.groups])
    same_winner, same_length = [], []
    for episode in np.flatnonzero(is_game):
        start, length = recording.starts[episode], int(recording.lengths[episode])
        world = recall(recording, np.array([start]))
        ended = length
        for offset in range(length):
            step(world, recording.actions[start + offset : start + offset + 1])
            if world["winner"][0] != 0:
                ended = offset + 1
                break
        same_winner.append(world["winner"][0] == recording.outcomes[episode])
        same_length.append(abs(ended - length) <= 1)
    report.add("C episodes replayed", float(len(same_winner)), "episodes")
    report.add("C same winner", float(np.mean(same_winner)), "share", at_least=0.8)
    report.add("C length within 1", float(np.mean(same_length)), "share", at_least=0.8)


def report_matches(report: FidelityReport, num_matches: int) -> None:
    """Measure D: matches between the scripted players."""
    played: dict[str, Floats] = {}
    for pairing in hockey_matches.PAIRINGS:
        outcomes = hockey_matches.play(pairing, num_matches, as_original=True)
        played[pairing.name] = outcomes
        values, deviations = hockey_matches.measure(outcomes)
        error = deviations * np.sqrt(0.5 / pairing.matches_per_set + 1.0 / num_matches)
        marks = hockey_matches.TOLERANCES
        bands = np.where(marks == 0.0, 3.0 * error, marks * np.abs(pairing.pooled))
        for name, value, peer, band, mark, one_error in zip(
            hockey_matches.MEASURES, values, pairing.pooled, bands, marks, error, strict=True
        ):
            name = f"D {pairing.name}, {name}"
            if np.isnan(band):
                report.add(name, float(value), "", peer=float(peer))
            else:
                report.compare(name, float(value), "", float(peer), float(band))
            if mark != 0.0:
                # The table is of few matches: how much of a difference is chance belongs beside it.
                off = float((value - peer) / one_error)
                report.add(f"{name}, off by", off, "std. errors")
    # Both seatings together, as wins, draws and losses of the strong player.
    strong = played["NORMAL strong-weak"][:, :3].mean(axis=0)
    strong = (strong + played["NORMAL weak-strong"][:, 2::-1].mean(axis=0)) / 2
    for name, value, peer in zip(("win", "draw", "loss"), strong, POOLED, strict=True):
        band = 3.0 * np.sqrt(peer * (1 - peer) * (1 / 4000 + 0.5 / num_matches))
        report.compare(f"D strong against weak, {name}", float(value), "", peer, float(band))
    for pairing in hockey_matches.PAIRINGS:
        if pairing.mode != hockey_matches.NORMAL:
            outcomes = hockey_matches.play(pairing, num_matches, as_original=False)
            values, _ = hockey_matches.measure(outcomes)
            for name, value, peer in zip(
                ("win", "draw", "loss"), values[:3], pairing.pooled[:3], strict=True
            ):
                name = f"D {pairing.name} from our own starts, {name}"
                report.add(name, float(value), "", peer=float(peer))


def main() -> None:
    """Run the whole comparison."""
    made: argparse.ArgumentParser = parser("Compare the built-in hockey with the original.")
    made.add_argument("--data", type=Path, default=RECORDINGS, help="file of recorded games")
    arguments = made.parse_args()
    path: Path = arguments.data
    if not path.exists():
        if path != RECORDINGS:
            made.error(f"--data: no file {path}; expected recordings such as {EXCERPT}.")
        path = EXCERPT
    title = "Built-in hockey beside recorded games and scripted matches of the original (Box2D)."
    report = FidelityReport(title, as_json=arguments.json)
    if path == EXCERPT and not arguments.json:
        print("The recordings are not there; measures A to C use the excerpt that the tests have.")
    recording = load(path)
    report_one_step(report, recording)
    report_drift(report, recording, 2_000 if arguments.quick else 10_000)
    report_replay(report, recording)
    report_matches(report, 4_000 if arguments.quick else 20_000)


if __name__ == "__main__":
    main()
