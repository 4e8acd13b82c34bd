"""Recorded games of the original hockey, and how the game here plays on from any of their moments.

`hockey_fidelity` compares the two. A recording holds what player one saw before every step, both
players' actions, and what was hidden: the puck's spin and who was touching it.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Floats
from stepladder.compiled import compiled
from stepladder.games.hockey.physics import step_world
from stepladder.games.hockey.rink import PLAYER_ONE, PLAYER_TWO, PUCK
from stepladder.games.hockey.rules import closeness, direction, reward, touch
from stepladder.games.hockey.views import HockeyView, as_views, recall_view
from stepladder.games.hockey.world import HockeyWorld
from stepladder.records import Records

Ints = npt.NDArray[np.int64]

ROOT = Path(__file__).resolve().parents[1]
RECORDINGS = ROOT.parent / "shared" / "data" / "hockey_reference.npz"
EXCERPT = ROOT / "tests" / "data" / "hockey_excerpt.npz"

# Bits of a step's contacts.
PUCK_ONE, PUCK_TWO, PUCK_WALL, ONE_STATIC, TWO_STATIC, ONE_TWO = 1, 2, 4, 8, 16, 32


@dataclass(frozen=True)
class Recording:
    """All episodes, row after row; the last row of an episode is only looked at."""

    views: Floats
    actions: Floats
    spins: Floats
    contacts: Ints
    """Of the step that led to a row; bits 1 and 2 say who was touching the puck then."""

    launches: Floats
    """Change of the puck's velocity that the step from a row brings, beside what is held."""

    rewards: Floats
    """Of both players, for the step from a row."""

    terms: Floats
    """Closeness, touch and direction of player one, for the step from a row."""

    winners: Ints
    episodes: Ints
    steps: Ints
    modes: Ints
    keep_modes: Ints
    starts: Ints
    """First row of each episode."""

    lengths: Ints
    outcomes: Ints
    """Who won each episode."""

    groups: npt.NDArray[np.str_]
    """Name of each episode's group."""

    @property
    def moves(self) -> Ints:
        """Rows from which a step was taken."""
        return np.flatnonzero(self.steps < self.lengths[self.episodes])


def load(path: Path) -> Recording:
    """Read a file of recordings."""
    with np.load(path) as file:
        data = {name: file[name] for name in file.files}
    episodes = data["episode"].astype(np.int64)
    first = data["step"] == 0
    terms = [data["closeness"], data["touch"], data["direction"]]
    return Recording(
        views=data["obs"].astype(np.float64),
        actions=data["actions"].astype(np.float64),
        spins=data["puck_spin"].astype(np.float64),
        contacts=data["contact"].astype(np.int64),
        launches=np.where(first[:, None], data["ep_init_puck_dv"][episodes], 0.0),
        rewards=np.stack([data["rewards"], data["rewards_two"]], axis=1).astype(np.float64),
        terms=np.stack(terms, axis=1).astype(np.float64),
        winners=data["winner"].astype(np.int64),
        episodes=episodes,
        steps=data["step"].astype(np.int64),
        modes=data["mode"].astype(np.int64),
        keep_modes=data["ep_keep_mode"][episodes].astype(np.int64),
        starts=np.flatnonzero(first),
        lengths=data["ep_len"].astype(np.int64),
        outcomes=data["ep_winner"].astype(np.int64),
        groups=data["group_names"][data["ep_group"]],
    )


@compiled
def _recall(
    world: HockeyWorld, view: HockeyView, spin: float, contact: int, launch: Floats
) -> None:
    recall_view(world, view)
    world.bodies[PUCK].spin = spin
    world.bodies[PLAYER_ONE].touching = contact & 1
    world.bodies[PLAYER_TWO].touching = contact >> 1 & 1
    world.launch_x, world.launch_y = launch[0], launch[1]


@compiled
def _recall_all(
    worlds: Records[HockeyWorld],
    views: Records[HockeyView],
    spins: Floats,
    contacts: Ints,
    launches: Floats,
    modes: Ints,
    keep_modes: Ints,
) -> None:
    for index in range(len(worlds)):
        world = worlds[index]
        _recall(world, views[index], spins[index], contacts[index], launches[index])
        world.mode, world.keep_mode = modes[index], keep_modes[index]


@compiled
def _step_all(worlds: Records[HockeyWorld], actions: Floats) -> None:
    for index in range(len(worlds)):
        step_world(worlds[index], actions[index])


@compiled
def _judge_all(worlds: Records[HockeyWorld], rewards: Floats, terms: Floats) -> None:
    for index in range(len(worlds)):
        world = worlds[index]
        rewards[index, 0], rewards[index, 1] = reward(world, PLAYER_ONE), reward(world, PLAYER_TWO)
        terms[index, 0] = closeness(world, PLAYER_ONE)
        terms[index, 1] = touch(world, PLAYER_ONE)
        terms[index, 2] = direction(world, PLAYER_ONE)


def recall(recording: Recording, rows: Ints) -> Records[HockeyWorld]:
    """Make worlds in the states of the given rows, with what was hidden in them."""
    worlds = HockeyWorld.zeros(len(rows))
    _recall_all(
        worlds,
        as_views(recording.views[rows]),
        recording.spins[rows],
        recording.contacts[rows],
        recording.launches[rows],
        recording.modes[rows],
        recording.keep_modes[rows],
    )
    return worlds


def step(worlds: Records[HockeyWorld], actions: Floats) -> None:
    """Take one step in every world."""
    _step_all(worlds, actions)


def judge(worlds: Records[HockeyWorld]) -> tuple[Floats, Floats]:
    """Return both players' rewards, and player one's closeness, touch and direction."""
    rewards, terms = np.zeros((len(worlds), 2)), np.zeros((len(worlds), 3))
    _judge_all(worlds, rewards, terms)
    return rewards, terms


def positions(worlds: Records[HockeyWorld]) -> Floats:
    """Return x and y of player one, player two and the puck, shape ``(num_worlds, 6)``."""
    bodies = worlds["bodies"][:, [PLAYER_ONE, PLAYER_TWO, PUCK]]
    return np.stack([bodies["x"], bodies["y"]], axis=2).reshape(len(worlds), 6)


def velocities(worlds: Records[HockeyWorld]) -> Floats:
    """Return vx and vy of player one, player two and the puck, shape ``(num_worlds, 6)``."""
    bodies = worlds["bodies"][:, [PLAYER_ONE, PLAYER_TWO, PUCK]]
    return np.stack([bodies["vx"], bodies["vy"]], axis=2).reshape(len(worlds), 6)


POSITION_COLUMNS = [0, 1, 6, 7, 12, 13]
VELOCITY_COLUMNS = [3, 4, 9, 10, 14, 15]
HOLD_COLUMNS = [16, 17]
