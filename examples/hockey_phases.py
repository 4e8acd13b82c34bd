"""Learn laser hockey in phases: shooting, then the weak opponent, then both, 1,024 games at once.

A thousand variants of one small policy play at the same time, against opponents that live in the
same compiled batch; the next generation is made from those that did better (evolution strategies,
as in Salimans and others 2017). The phases are those of a published agent: mode and opponent are
drawn for each episode. In the end the policy plays the scripted opponents, and then itself.

Run it with ``python examples/hockey_phases.py --seconds 20``.
"""

import argparse
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder import Phase, Phased, Task, make_vec
from stepladder.curricula import Mixed

Floats = npt.NDArray[np.floating[Any]]

NUM_ENVS = 1024
NUM_CONTROLS = 4
NOISE = 0.3
RATE = 1.0
MOMENTUM = 0.8
SHAPING = {"direction_weight": 50.0}
"""A little reward for every step in which the puck flies towards the other's goal."""

TASKS = [
    Task("shooting", "shooting", {"mode": "TRAIN_SHOOTING", "opponent": "none", **SHAPING}),
    Task("game", "game", {"mode": "NORMAL", "opponent": "weak", **SHAPING}),
]
WINDOW = 5_000
"""Episodes that success is taken over. All games of a generation begin together, so that the last
to end are draws: a short window would see only those."""

PHASES = (
    Phase(name="shooting", mixture={"shooting": 1.0}, episodes=5_000, window_episodes=WINDOW),
    Phase(name="weak", mixture={"game": 1.0}, episodes=60_000, window_episodes=WINDOW),
    Phase(
        name="weak and strong",
        mixture={"game": 0.9, "shooting": 0.1},
        settings={"opponent": Mixed(("weak", "strong"), (0.5, 0.5))},
        window_episodes=WINDOW,
    ),
)


def features(seen: Floats) -> Floats:
    """Return what the policy looks at: itself, the way to the puck, and what to do with it."""
    me, puck = seen[:, 0:6], seen[:, 12:16]
    way = puck[:, 0:2] - me[:, 0:2]
    near = np.clip(3.0 * way, -1.0, 1.0)
    has_it = (seen[:, 16:17] > 0).astype(np.float32)
    is_late = (seen[:, 16:17] < 8).astype(np.float32)
    aim = has_it * np.concatenate([me[:, 1:3], seen[:, 7:8], is_late], axis=1)
    columns = [me / 3.0, way, near, puck / 5.0, has_it, aim, np.ones_like(has_it)]
    return np.concatenate(columns, axis=1)


def act(weights: Floats, seen: Floats) -> Floats:
    """Choose four numbers in every env, each with weights of its own."""
    return np.tanh(np.matmul(features(seen)[:, None, :], weights)[:, 0])


def play(envs: Any, weights: Floats) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], int]:
    """Play one game in every env; return returns, winners and env steps."""
    seen, _ = envs.reset()
    returns, is_playing = np.zeros(envs.num_envs), np.ones(envs.num_envs, dtype=bool)
    winners, num_steps = np.zeros(envs.num_envs, dtype=np.int64), 0
    while is_playing.any():
        seen, rewards, terminated, truncated, infos = envs.step(act(weights, seen))
        returns += rewards * is_playing
        if "winner" in infos:
            winners += infos["winner"] * is_playing
        is_playing &= ~(terminated | truncated)
        num_steps += envs.num_envs
    return returns, winners, num_steps


def match(mean: Floats, opponent: str, num_games: int = 512) -> str:
    """Return how the policy fares against a scripted opponent."""
    envs = make_vec("stepladder/Hockey-v0", num_games, env_kwargs={"opponent": opponent})
    envs.reset(seed=10_000)
    _, winners, _ = play(envs, np.broadcast_to(mean, (num_games, *mean.shape)))
    envs.close()
    return f"won {(winners > 0).mean():.2f}, lost {(winners < 0).mean():.2f}"


def match_itself(mean: Floats, num_games: int = 512) -> str:
    """Let the policy play both sides: both players' views come with every step."""
    envs = make_vec("stepladder/Hockey-v0", num_games, env_kwargs={"players": "both"})
    seen, _ = envs.reset(seed=20_000)
    weights = np.broadcast_to(mean, (num_games, *mean.shape))
    winners, is_playing = np.zeros(num_games), np.ones(num_games, dtype=bool)
    while is_playing.any():
        actions = {player: act(weights, seen[player]) for player in seen}
        seen, _, terminated, truncated, infos = envs.step(actions)
        winners += infos.get("winner", 0) * is_playing
        is_playing &= ~(terminated | truncated)
    envs.close()
    return f"player one won {(winners > 0).mean():.2f}, player two {(winners < 0).mean():.2f}"


def main() -> None:
    """Learn for a while, then play."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to learn")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    curriculum = Phased(TASKS, phases=PHASES, seed=arguments.seed)
    envs = make_vec("stepladder/Hockey-v0", NUM_ENVS, curriculum=curriculum)
    seen, _ = envs.reset(seed=arguments.seed)
    rng = np.random.default_rng(arguments.seed)
    mean: Floats = np.zeros((features(seen).shape[1], NUM_CONTROLS), dtype=np.float32)
    drift: Floats = np.zeros_like(mean)
    began, num_steps, generation = time.perf_counter(), 0, 0
    while time.perf_counter() - began < arguments.seconds:
        half = rng.standard_normal((NUM_ENVS // 2, *mean.shape), dtype=np.float32)
        noise = np.concatenate([half, -half])
        returns, winners, played = play(envs, mean + NOISE * noise)
        ranks = (returns.argsort().argsort() / NUM_ENVS - 0.5).astype(np.float32)
        drift = MOMENTUM * drift + np.tensordot(ranks, noise, 1) / (NUM_ENVS * NOISE)
        mean += RATE * drift
        num_steps, generation = num_steps + played, generation + 1
        if generation % 10 == 0:
            seconds = time.perf_counter() - began
            print(
                f"{seconds:5.1f} s  {num_steps / 1e6:5.1f} M steps  "
                f"phase {curriculum.current_phase:<15} variants won {(winners > 0).mean():.2f}, "
                f"lost {(winners < 0).mean():.2f}"
            )
    print(curriculum.explain())
    counts = envs.counts
    print(
        f"Started {counts.started} games: {counts.finished} finished and each observed once, "
        f"{counts.aborted} aborted: a generation ends with its last game, and envs that have begun "
        "another one by then are reset."
    )
    envs.close()
    for opponent in ("weak", "strong"):
        print(f"Against the {opponent} opponent: {match(mean, opponent)}")
    print(f"Against itself: {match_itself(mean)}")


if __name__ == "__main__":
    main()
