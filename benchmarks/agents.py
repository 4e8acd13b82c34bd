"""How well our agents learn, in return of the final policy, against Stable-Baselines3's.

The peer has the settings that the RL Baselines3 Zoo has tuned for it; ours are translated from
them: same networks, same env steps, same updates per env step. DDDQN stands against DQN, without
priorities and longer returns. Every seed trains from scratch, and the final policy plays the same
episodes without exploring, begun from the same seeds on both sides. It holds where the 95 %
intervals of the mean over seeds overlap, or ours is better. A ratio is between gains over random
play, because returns may be negative.

Shorter than in the Zoo, for the sake of time: on LunarLander DQN (60 %) and PPO (33 %), on Pendulum
SAC (40 %). Different from it: PPO has no state-dependent exploration on Pendulum, and its clip does
not shrink on CartPole. LunarLander is left out where Box2D is not installed. Ten seeds take 2 to 3
hours of one core; seconds are those of one core that a training takes, and no bar is on them.
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import stable_baselines3
import torch
from agents_contests import CONTESTS, OURS, Contest
from harness import Figure, parser
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import DummyVecEnv

from stepladder.agents.base import VectorStep, make_agent
from stepladder.agents.player import make_player
from stepladder.stats.interval import mean_interval

Act = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
"""A policy that does not explore: actions of a batch of observations."""

SIDES = ("ours", "SB3")
SEEDS_APART = 1_000
"""Envs of different training seeds are seeded this far apart."""

FIRST_EPISODE_SEED = 1_000_000
"""Seed of the first episode of an evaluation; the others follow."""


# Training and playing.


def train_ours(contest: Contest, num_steps: int, seed: int, num_rows: int) -> Act:
    """Train our agent as `stepladder.training` does; return how it plays that many rows."""
    envs = gym.make_vec(contest.env, contest.num_envs, vectorization_mode="sync")
    agent = make_agent(
        OURS[contest.algorithm](contest, num_steps),
        envs.single_observation_space,
        envs.single_action_space,
        contest.num_envs,
        seed=seed,
    )
    seen, _ = envs.reset(seed=SEEDS_APART * seed)
    is_playing = np.ones(contest.num_envs, dtype=np.bool_)
    while agent.num_steps < num_steps:
        actions = agent.act_batch(seen)
        after, rewards, terminated, truncated, _ = envs.step(actions)
        agent.remember(VectorStep(seen, actions, rewards, terminated, truncated, after, is_playing))
        # The peer saves its updates up and does them in bursts; its settings are tuned for that.
        if agent.num_steps % contest.settings.get("train_freq", 1) == 0:
            agent.learn()
        # Envs reset in the step after an ending, which belongs to no episode.
        seen, is_playing = after, ~(terminated | truncated)
    envs.close()
    return make_player(agent.description(), agent.weights(), num_rows).act_batch


def train_sb3(contest: Contest, num_steps: int, seed: int, num_rows: int) -> Act:
    """Train the peer; return how it plays any number of rows."""
    envs = DummyVecEnv([lambda: gym.make(contest.env)] * contest.num_envs)
    settings = dict(contest.settings)
    if contest.is_annealed:
        settings["learning_rate"] = LinearSchedule(settings["learning_rate"], 0.0, 1.0)
    make: type[BaseAlgorithm] = getattr(stable_baselines3, contest.algorithm)
    made: Any = make(
        "MlpPolicy",
        envs,
        policy_kwargs={"net_arch": list(contest.widths)},
        seed=seed,
        device="cpu",
        **settings,
    )
    envs.seed(SEEDS_APART * seed)
    made.learn(num_steps)
    envs.close()
    return lambda seen: made.predict(seen, deterministic=True)[0]


TRAIN: dict[str, Callable[[Contest, int, int, int], Act]] = {"ours": train_ours, "SB3": train_sb3}


def evaluate(env: str, act: Act, num_episodes: int) -> list[float]:
    """Play episodes side by side; return the return of each."""
    envs = gym.make_vec(env, num_episodes, vectorization_mode="sync")
    seen, _ = envs.reset(seed=FIRST_EPISODE_SEED)
    returns, is_playing = np.zeros(num_episodes), np.ones(num_episodes, dtype=np.bool_)
    while is_playing.any():
        seen, rewards, terminated, truncated, _ = envs.step(act(seen))
        returns += np.where(is_playing, rewards, 0.0)
        is_playing &= ~(terminated | truncated)
    envs.close()
    return returns.tolist()


# The work, in parts that any process can do.


class Item(NamedTuple):
    """One training and the evaluation of what came of it."""

    contest: int
    side: str
    seed: int
    num_steps: int
    num_episodes: int


class Result(NamedTuple):
    """What came of an item."""

    item: Item
    returns: list[float]
    """Of each episode."""

    seconds: float
    """Of the one core that the training took."""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        parts = self.item._asdict() | {"contest": CONTESTS[self.item.contest].name}
        return parts | {"returns": self.returns, "seconds": self.seconds}


def work(item: Item) -> Result:
    """Train and evaluate, with one thread."""
    torch.set_num_threads(1)
    contest, began = CONTESTS[item.contest], time.process_time()
    act = TRAIN[item.side](contest, item.num_steps, item.seed, item.num_episodes)
    seconds = time.process_time() - began
    return Result(item, evaluate(contest.env, act, item.num_episodes), seconds)


# What is reported.


@dataclass(frozen=True)
class Comparison(Figure):
    """A figure with the intervals of both sides."""

    interval: tuple[float, float] = (0.0, 0.0)
    peer_interval: tuple[float, float] = (0.0, 0.0)
    num_seeds: int = 0
    seconds: float = 0.0
    """Of one core that a training took, on average."""

    peer_seconds: float = 0.0

    def __str__(self) -> str:
        low, high = self.interval
        peer_low, peer_high = self.peer_interval
        ratio = "" if self.ratio is None else f"  ratio {self.ratio:6.3f}"
        return (
            f"{self.name:<36} {self.value:8.1f} [{low:.1f}, {high:.1f}]  "
            f"peer {self.peer:8.1f} [{peer_low:.1f}, {peer_high:.1f}]{ratio}  "
            f"bar {self.bar}: {'holds' if self.holds else 'MISSED'}  "
            f"({self.num_seeds} seeds; {self.seconds:.0f} s, peer {self.peer_seconds:.0f} s)"
        )


def compare(contest: Contest, results: list[Result]) -> Comparison:
    """Put both sides of a contest beside each other."""
    means: dict[str, list[float]] = {
        side: [float(np.mean(each.returns)) for each in results if each.item.side == side]
        for side in SIDES
    }
    seconds = {
        side: float(np.mean([each.seconds for each in results if each.item.side == side]))
        for side in SIDES
    }
    mean, low, high = mean_interval(means["ours"])
    peer, peer_low, peer_high = mean_interval(means["SB3"])
    gain, peer_gain = mean - contest.random_return, peer - contest.random_return
    return Comparison(
        name=f"{contest.name}, final policy",
        value=mean,
        unit="return",
        peer=peer,
        # Next to a peer that has learnt nothing, no ratio means anything.
        ratio=gain / peer_gain if peer_gain > 0 else None,
        bar=f">= {peer_low:.1f} within its interval",
        holds=high >= peer_low,
        interval=(low, high),
        peer_interval=(peer_low, peer_high),
        num_seeds=len(means["ours"]),
        seconds=seconds["ours"],
        peer_seconds=seconds["SB3"],
    )


def run(items: list[Item], num_jobs: int, out: Path | None, as_json: bool) -> None:
    """Do all items; say how each went, and compare a contest as soon as its last one is done."""
    earlier = kept(out)
    others = [result for result in earlier if result.item not in items]
    results = [result for result in earlier if result.item in items]
    for index in dict.fromkeys(item.contest for item in items):
        tell_if_complete(index, items, results, as_json)
    done = {result.item for result in results}
    left = [item for item in items if item not in done]
    with multiprocessing.get_context("spawn").Pool(num_jobs) as pool:
        for result in pool.imap_unordered(work, left):
            results.append(result)
            item, contest = result.item, CONTESTS[result.item.contest]
            print(
                f"[{len(results)}/{len(items)}] {contest.name}, {item.side}, seed {item.seed}: "
                f"{np.mean(result.returns):.1f} in {result.seconds:.0f} s",
                file=sys.stderr,
                flush=True,
            )
            if out is not None:
                out.write_text(json.dumps([each.to_json() for each in [*others, *results]]))
            tell_if_complete(item.contest, items, results, as_json)


def tell_if_complete(index: int, items: list[Item], results: list[Result], as_json: bool) -> None:
    """Compare a contest, if all of it is done."""
    same = [each for each in results if each.item.contest == index]
    if len(same) == sum(each.contest == index for each in items):
        figure = compare(CONTESTS[index], same)
        print(json.dumps(asdict(figure)) if as_json else str(figure), flush=True)


def kept(out: Path | None) -> list[Result]:
    """Return what an earlier run has kept."""
    if out is None or not out.exists():
        return []
    indices = {contest.name: index for index, contest in enumerate(CONTESTS)}
    return [
        Result(
            Item(
                indices[entry["contest"]],
                entry["side"],
                entry["seed"],
                entry["num_steps"],
                entry["num_episodes"],
            ),
            entry["returns"],
            entry["seconds"],
        )
        for entry in json.loads(out.read_text())
        if entry["contest"] in indices
    ]


def chosen(only: list[str] | None) -> list[int]:
    """Return which contests are wanted and possible."""
    found: list[int] = []
    for index, contest in enumerate(CONTESTS):
        if only and not any(name.lower() in contest.name.lower() for name in only):
            continue
        if contest.env.startswith("LunarLander") and find_spec("Box2D") is None:
            print(f"{contest.name} is left out: Box2D is not installed.", file=sys.stderr)
            continue
        found.append(index)
    return found


def arguments() -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__ or "")
    made.add_argument("--seeds", type=int, metavar="N", help="trainings per side; 10, quick 2")
    made.add_argument(
        "--only", action="append", metavar="NAME", help='part of a name such as "CartPole-v1 PPO"'
    )
    made.add_argument("--jobs", type=int, default=1, metavar="N", help="processes; 1")
    made.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="keep all returns there, as JSON; what it holds already is not done again",
    )
    return made.parse_args()


def main() -> None:
    """Compare everything."""
    given = arguments()
    if not given.json:
        print((__doc__ or "").splitlines()[0], flush=True)
    num_seeds = given.seeds or (2 if given.quick else 10)
    indices = chosen(given.only)
    items = [
        Item(
            index,
            side,
            seed,
            CONTESTS[index].quick_steps if given.quick else CONTESTS[index].num_steps,
            5 if given.quick else 20,
        )
        for index in indices
        for seed in range(num_seeds)
        for side in SIDES
    ]
    run(items, given.jobs, given.out, given.json)


if __name__ == "__main__":
    main()
