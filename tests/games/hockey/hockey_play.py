"""One hockey world to arrange by hand, many worlds to play at once, and recorded moments."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Floats
from stepladder.compiled import compiled
from stepladder.games.hockey.physics import step_world
from stepladder.games.hockey.rink import (
    CORNER_X,
    CORNER_Y,
    NUM_CORNERS,
    PLAYER_ONE,
    PLAYER_TWO,
    PUCK,
    RACKET,
)
from stepladder.games.hockey.rules import closeness, direction, judge, reward, touch
from stepladder.games.hockey.views import as_views, recall_view, write_view
from stepladder.games.hockey.world import HockeyWorld, clear_world, turn_to
from stepladder.records import Records

EXCERPT = Path(__file__).parents[2] / "data" / "hockey_excerpt.npz"
STILL = (0.0, 0.0, 0.0, 0.0)
STATE = ("x", "y", "angle", "vx", "vy", "spin")


@compiled
def play(worlds: Records[HockeyWorld], controls: Floats, chase: float, track: Floats) -> None:
    """Play all worlds, each until its first goal, and write down all bodies after every step.

    Args:
        worlds: Changed in place.
        controls: Shape ``(num_steps, num_worlds, 8)``.
        chase: How strongly rackets are drawn to the puck, on top of the controls.
        track: Shape ``(num_steps, num_worlds, 3, 6)``; the six numbers are those of `STATE`.
    """
    row = np.zeros(8)
    for step in range(len(controls)):
        for index in range(len(worlds)):
            world = worlds[index]
            puck = world.bodies[PUCK]
            if world.winner == 0:
                for place in range(8):
                    row[place] = controls[step, index, place]
                if chase != 0.0:
                    for player in range(2):
                        racket, side = world.bodies[1 + player], 1.0 - 2.0 * player
                        row[4 * player] += chase * side * np.sign(puck.x - racket.x)
                        row[4 * player + 1] += chase * side * np.sign(puck.y - racket.y)
                for place in range(8):
                    row[place] = min(max(row[place], -1.0), 1.0)
                step_world(world, row)
            for body in range(3):
                moved = world.bodies[body]
                track[step, index, body, 0] = moved.x
                track[step, index, body, 1] = moved.y
                track[step, index, body, 2] = moved.angle
                track[step, index, body, 3] = moved.vx
                track[step, index, body, 4] = moved.vy
                track[step, index, body, 5] = moved.spin


@compiled
def judge_all(worlds: Records[HockeyWorld], judged: Floats) -> None:
    """Write both rewards, then player one's closeness, touch and direction, of every world."""
    for index in range(len(worlds)):
        world = worlds[index]
        judged[index, 0], judged[index, 1] = reward(world, PLAYER_ONE), reward(world, PLAYER_TWO)
        judged[index, 2], judged[index, 3] = closeness(world, PLAYER_ONE), touch(world, PLAYER_ONE)
        judged[index, 4] = direction(world, PLAYER_ONE)


def played(worlds: Records[HockeyWorld], controls: Floats, chase: float = 0.0) -> Floats:
    """Play worlds and return the track of all bodies."""
    track = np.zeros((len(controls), len(worlds), 3, 6))
    play(worlds, controls, chase, track)
    return track


class Rink:
    """One world, arranged and played by hand. It begins with both players at their goals."""

    def __init__(self, *, keep_mode: bool = True, mode: int = 0):
        self.worlds: Any = HockeyWorld.zeros()
        clear_world(self.worlds[0])
        self.world: Any = self.worlds[0]
        self.world["keep_mode"], self.world["mode"] = keep_mode, mode
        self.place(PLAYER_ONE, -3.0, 0.0)
        self.place(PLAYER_TWO, 3.0, 0.0)

    def __getitem__(self, index: int) -> Any:
        return self.worlds["bodies"][0][index]

    def place(
        self,
        index: int,
        x: float,
        y: float,
        vx: float = 0.0,
        vy: float = 0.0,
        *,
        angle: float = 0.0,
        spin: float = 0.0,
    ) -> None:
        """Put a body somewhere, moving and turned."""
        body = self[index]
        body["x"], body["y"], body["vx"], body["vy"], body["spin"] = x, y, vx, vy, spin
        if index != PUCK:
            turn_to(body, 1.0 if index == PLAYER_ONE else -1.0, angle)

    def step(
        self,
        one: tuple[float, ...] = STILL,
        two: tuple[float, ...] = STILL,
        *,
        times: int = 1,
    ) -> None:
        """Take steps with the same controls."""
        played(self.worlds, np.tile(np.array([*one, *two], float), (times, 1, 1)))

    def judge(self) -> tuple[bool, bool]:
        """Say whether the game has been ended by a goal, or by the time limit."""
        return judge(self.world)

    def view(self, player: int) -> npt.NDArray[np.float32]:
        """Return what a player sees."""
        row = np.zeros(18, np.float32)
        write_view(self.world, player, as_views(row[None])[0])
        return row


@cache
def excerpt() -> dict[str, Any]:
    """Return the recorded games that the tests have."""
    with np.load(EXCERPT) as file:
        return {name: file[name] for name in file.files}


def recalled(rows: npt.NDArray[np.int64]) -> Records[HockeyWorld]:
    """Make worlds in the states of recorded rows, with what was hidden in them."""
    data = excerpt()
    worlds = HockeyWorld.zeros(len(rows))
    episodes = data["episode"][rows]
    for world, view in zip(worlds, as_views(data["obs"][rows].astype(np.float64)), strict=True):
        recall_view(world, view)
    bodies = worlds["bodies"]
    bodies["spin"][:, PUCK] = data["puck_spin"][rows]
    bodies["touching"][:, PLAYER_ONE] = data["contact"][rows] & 1
    bodies["touching"][:, PLAYER_TWO] = data["contact"][rows] >> 1 & 1
    launches = np.where(data["step"][rows, None] == 0, data["ep_init_puck_dv"][episodes], 0.0)
    worlds["launch_x"], worlds["launch_y"] = launches.T
    worlds["keep_mode"] = data["ep_keep_mode"][episodes]
    worlds["mode"] = data["mode"][rows]
    return worlds


def outline(track: Floats) -> Floats:
    """Return points along both rackets' edges, shape ``(..., 2, num_points, 2)``."""
    count = NUM_CORNERS[RACKET]
    corners = np.stack([CORNER_X[RACKET, : count + 1], CORNER_Y[RACKET, : count + 1]], axis=1)
    shares = np.linspace(0.0, 1.0, 5)[None, :, None]
    points = (corners[:-1, None] + shares * np.diff(corners, axis=0)[:, None]).reshape(-1, 2)
    sides = np.array([1.0, -1.0])
    cos = (sides * np.cos(track[..., 1:3, 2]))[..., None]
    sin = (sides * np.sin(track[..., 1:3, 2]))[..., None]
    x = track[..., 1:3, 0, None] + cos * points[:, 0] - sin * points[:, 1]
    y = track[..., 1:3, 1, None] + sin * points[:, 0] + cos * points[:, 1]
    return np.stack([x, y], axis=-1)
