"""Scripted matches: what the original's players achieve against each other, there and here.

`hockey_fidelity` compares them. The original's figures are those of two disjoint sets of seeds, as
recorded together with the file of trajectories (hockey_reference.md, measure D): package hockey 2.6
on Box2D 2.3.10, 1,000 matches a set for weak against strong, 500 for the others.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stepladder.compiled import compiled
from stepladder.games.dice import Dice
from stepladder.games.hockey.opponents import STRONG_GAIN, WEAK_GAIN, act
from stepladder.games.hockey.physics import step_world
from stepladder.games.hockey.rink import PLAYER_ONE, PLAYER_TWO
from stepladder.games.hockey.rules import judge, reset_world, reward
from stepladder.games.hockey.task import DEFENSE_SPEED, TaskRecord
from stepladder.games.hockey.world import (
    CAUGHT,
    NORMAL,
    TRAIN_DEFENSE,
    TRAIN_SHOOTING,
    HockeyWorld,
)
from stepladder.records import Records

MEASURES = (
    "win",
    "draw",
    "loss",
    "length",
    "goals per 1,000 steps",
    "share of steps one holds",
    "share of steps two holds",
    "catches of one per 1,000 steps",
    "catches of two per 1,000 steps",
    "return of one",
)
TOLERANCES = np.array([0.0, 0.0, 0.0, 0.03, 0.08, 0.05, 0.05, np.nan, np.nan, np.nan])
"""The proposed marks: how far each may be off, as a share of the original's. 0 stands for three
standard errors; for NaN no mark was proposed."""

# Columns of one match's outcome.
WIN, DRAW, LOSS, LENGTH, HELD_ONE, HELD_TWO, CAUGHT_ONE, CAUGHT_TWO, RETURN = range(9)


@dataclass(frozen=True)
class Pairing:
    """Two scripted players, and what became of their matches in the original."""

    name: str
    mode: int
    gain_one: float
    gain_two: float
    matches_per_set: int
    first: tuple[float, ...]
    """By `MEASURES`, of the first set of seeds."""

    second: tuple[float, ...]

    @property
    def pooled(self) -> npt.NDArray[np.float64]:
        """Both sets together."""
        return (np.array(self.first) + np.array(self.second)) / 2


def _pairing(name: str, mode: int, players: str, matches: int, *sets: tuple[float, ...]) -> Pairing:
    gains = [{"weak": WEAK_GAIN, "strong": STRONG_GAIN}[player] for player in players.split("-")]
    return Pairing(f"{name} {players}", mode, gains[0], gains[1], matches, sets[0], sets[1])


PAIRINGS = (
    _pairing(
        *("NORMAL", NORMAL, "weak-strong", 1000),
        (0.153, 0.452, 0.395, 172.7, 3.17, 0.086, 0.157, 8.7, 15.9, -8.07),
        (0.133, 0.438, 0.429, 171.3, 3.28, 0.088, 0.156, 8.9, 15.8, -8.59),
    ),
    _pairing(
        *("NORMAL", NORMAL, "strong-weak", 1000),
        (0.396, 0.431, 0.173, 168.6, 3.37, 0.158, 0.089, 15.9, 9.0, -1.75),
        (0.413, 0.440, 0.147, 170.5, 3.29, 0.160, 0.087, 16.1, 8.8, -1.50),
    ),
    _pairing(
        *("NORMAL", NORMAL, "weak-weak", 500),
        (0.210, 0.568, 0.222, 189.6, 2.28, 0.130, 0.129, 13.1, 12.9, -4.88),
        (0.170, 0.604, 0.226, 192.0, 2.06, 0.131, 0.133, 13.2, 13.4, -5.33),
    ),
    _pairing(
        *("NORMAL", NORMAL, "strong-strong", 500),
        (0.312, 0.336, 0.352, 147.3, 4.51, 0.100, 0.107, 10.0, 10.8, -4.56),
        (0.316, 0.378, 0.306, 153.3, 4.06, 0.100, 0.104, 10.1, 10.5, -4.12),
    ),
    _pairing(
        *("SHOOTING", TRAIN_SHOOTING, "weak-weak", 500),
        (0.346, 0.598, 0.056, 67.3, 5.97, 0.212, 0.107, 21.6, 11.6, -4.91),
        (0.348, 0.592, 0.060, 67.1, 6.08, 0.205, 0.101, 20.9, 10.9, -5.14),
    ),
    _pairing(
        *("SHOOTING", TRAIN_SHOOTING, "strong-weak", 500),
        (0.212, 0.748, 0.040, 72.6, 3.47, 0.200, 0.051, 20.6, 5.4, -4.70),
        (0.240, 0.720, 0.040, 71.8, 3.90, 0.209, 0.053, 21.5, 5.7, -4.11),
    ),
    _pairing(
        *("DEFENSE", TRAIN_DEFENSE, "weak-weak", 500),
        (0.272, 0.486, 0.242, 53.0, 9.70, 0.184, 0.092, 19.1, 9.4, -4.57),
        (0.296, 0.456, 0.248, 52.8, 10.30, 0.184, 0.093, 19.2, 9.6, -4.42),
    ),
    _pairing(
        *("DEFENSE", TRAIN_DEFENSE, "strong-strong", 500),
        (0.204, 0.684, 0.112, 70.9, 4.45, 0.187, 0.068, 18.9, 7.0, -5.19),
        (0.208, 0.696, 0.096, 70.6, 4.31, 0.183, 0.069, 18.6, 7.1, -4.77),
    ),
)


@compiled
def _play_match(
    world: HockeyWorld,
    gains: tuple[float, float],
    dice: Dice,
    index: int,
    controls: npt.NDArray[np.float64],
    outcome: npt.NDArray[np.float64],
) -> None:
    """Play one match, which has been begun, and write what became of it."""
    over = False
    while not over:
        act(world, PLAYER_ONE, gains[0], dice, index, controls)
        act(world, PLAYER_TWO, gains[1], dice, index, controls)
        step_world(world, controls)
        terminated, truncated = judge(world)
        over = terminated or truncated
        for other in range(2):
            hold = world.bodies[1 + other].hold
            outcome[HELD_ONE + other] += hold > 0
            outcome[CAUGHT_ONE + other] += hold == CAUGHT
        outcome[RETURN] += reward(world, PLAYER_ONE)
    outcome[DRAW - world.winner] = 1.0
    outcome[LENGTH] = world.steps


@compiled
def _play(
    worlds: Records[HockeyWorld],
    tasks: Records[TaskRecord],
    gains: tuple[float, float],
    dice: Dice,
    outcomes: npt.NDArray[np.float64],
) -> None:
    controls = np.zeros(8)
    world = worlds[0]
    for index in range(len(dice)):
        side = -1.0 if index % 2 else 1.0
        reset_world(world, tasks[0], side, dice, index)
        _play_match(world, gains, dice, index, controls, outcomes[index])


def play(
    pairing: Pairing, num_matches: int, *, as_original: bool, seed: int = 0
) -> npt.NDArray[np.float64]:
    """Play a pairing's matches; return their outcomes, one row each.

    Args:
        pairing: Who plays, in which mode.
        num_matches: How many.
        as_original: Whether player two of the training modes starts wherever the original puts it.
        seed: Of all matches together.
    """
    dice = np.random.default_rng(seed).integers(2**63, size=num_matches).astype(np.uint64)
    outcomes = np.zeros((num_matches, 9))
    gains = (pairing.gain_one, pairing.gain_two)
    task = TaskRecord.zeros()
    task["mode"][0], task["keep_mode"][0] = pairing.mode, 1
    task["original_starts"][0] = as_original
    task["puck_speed"][0] = DEFENSE_SPEED if pairing.mode == TRAIN_DEFENSE else 0.0
    _play(HockeyWorld.zeros(), task, gains, dice, outcomes)
    return outcomes


def measure(
    outcomes: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return what `MEASURES` names, and the standard deviation of a single match around each."""
    lengths = outcomes[:, LENGTH]
    goals = outcomes[:, WIN] + outcomes[:, LOSS]
    rates = [1000 * goals, outcomes[:, HELD_ONE], outcomes[:, HELD_TWO]]
    rates += [1000 * outcomes[:, CAUGHT_ONE], 1000 * outcomes[:, CAUGHT_TWO]]
    values, deviations = [], []
    for column in (WIN, DRAW, LOSS, LENGTH):
        values.append(outcomes[:, column].mean())
        deviations.append(outcomes[:, column].std())
    for counts in rates:
        rate = counts.sum() / lengths.sum()
        values.append(rate)
        deviations.append((counts - rate * lengths).std() / lengths.mean())
    values.append(outcomes[:, RETURN].mean())
    deviations.append(outcomes[:, RETURN].std())
    return np.array(values), np.array(deviations)
