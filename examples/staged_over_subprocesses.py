"""Learn to walk home, stage by stage, in eight processes that always agree on the stage.

A walker sees how far east and north its home lies and moves one field at a time, in a wind that
sometimes pushes it aside. The first stage starts next door, the last one far away, with too few
steps to get there by chance. A tabular Q-learner learns from all eight envs at once.

Each env is a `CurriculumEnv` in a worker process of Gymnasium's `AsyncVectorEnv`. None of them
holds a curriculum: they draw their tasks from one plan in shared memory, and the host, here,
advances the stage for all of them together.

Run it with ``make demo``, or ``python examples/staged_over_subprocesses.py --seconds 20``.
"""

import argparse
import time
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table

from stepladder import CurriculumEnv, CurriculumVectorEnv, Stage, Staged, Task

NUM_ENVS = 8
FARTHEST = 16
MOVES = np.array([(1, 0), (-1, 0), (0, 1), (0, -1)])
STAGES = (
    Stage(name="next door", threshold=0.90, min_episodes=300),
    Stage(name="in the street", threshold=0.90, min_episodes=600),
    Stage(name="across town", threshold=0.85, min_episodes=900),
    Stage(name="far away", threshold=0.80, min_episodes=1200),
)
DISTANCES = {
    "next door": (1, 2),
    "in the street": (3, 4, 5),
    "across town": (6, 7, 8, 9),
    "far away": (10, 11, 12, 13, 14),
}


class WalkHome(gym.Env[npt.NDArray[np.int64], np.int64]):
    """A walker at some distance from home; the task says how far."""

    observation_space = gym.spaces.Box(-FARTHEST, FARTHEST, (2,), np.int64)
    action_space = gym.spaces.Discrete(4)

    def set_task(self, task: Task) -> None:
        """Play this task from the next reset on."""
        self.distance = int(task.params["distance"])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.int64], dict[str, Any]]:
        """Stand at a random point at the task's distance from home."""
        super().reset(seed=seed)
        east = int(self.np_random.integers(0, self.distance + 1))
        signs = self.np_random.choice((-1, 1), size=2)
        self.offset = np.array([east, self.distance - east]) * signs
        self.steps_left = 2 * self.distance + 2
        return self.offset.copy(), {}

    def step(
        self, action: np.int64
    ) -> tuple[npt.NDArray[np.int64], float, bool, bool, dict[str, Any]]:
        """Move one field; the wind takes one move in ten."""
        if self.np_random.random() < 0.1:
            action = self.np_random.integers(4)
        self.offset = np.clip(self.offset + MOVES[action], -FARTHEST, FARTHEST)
        self.steps_left -= 1
        home = not self.offset.any()
        late = self.steps_left <= 0 and not home
        info = {"is_success": home} if home or late else {}
        return self.offset.copy(), float(home), home, late, info


class QLearner:
    """One table of values by offset from home, shared by all envs."""

    def __init__(self, seed: int) -> None:
        self.values = np.zeros((2 * FARTHEST + 1, 2 * FARTHEST + 1, 4))
        self.rng = np.random.default_rng(seed)

    def act(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Choose the best move of each row, one in twenty at random; ties at random."""
        values = self.values[offsets[:, 0], offsets[:, 1]]
        best = np.argmax(values + 1e-9 * self.rng.random(values.shape), axis=1)
        random = self.rng.integers(4, size=len(best))
        return np.where(self.rng.random(len(best)) < 0.05, random, best)

    def learn(self, old: Any, actions: Any, rewards: Any, new: Any, ended: Any) -> None:
        """Move each value towards the reward plus the discounted best of what follows."""
        targets = rewards + 0.95 * ~ended * self.values[new[:, 0], new[:, 1]].max(axis=1)
        index = (old[:, 0], old[:, 1], actions)
        self.values[index] += 0.1 * (targets - self.values[index])


def make_env() -> gym.Env[Any, Any]:
    """Make one env; every process calls this, and no curriculum comes along."""
    return CurriculumEnv(WalkHome(), enable_local_tracking=False)


def make_tasks() -> list[Task]:
    """Make one task per distance, labelled with its stage."""
    return [
        Task(f"{distance} fields", stage, {"distance": distance})
        for stage, distances in DISTANCES.items()
        for distance in distances
    ]


def picture(envs: CurriculumVectorEnv, curriculum: Staged, steps: int, seconds: float) -> Group:
    """Draw where every stage stands and what each env is drawing from."""
    table = Table(title=f"Staged curriculum over {NUM_ENVS} subprocess envs", expand=True)
    for column in ("stage", "", "success", "needs", "episodes", "needs"):
        table.add_column(column, no_wrap=True)
    for report in (curriculum.stage_report(stage.name) for stage in STAGES):
        bar = "█" * round(12 * report.success_rate)
        mark = {"completed": "✔", "current": "▶", "locked": " "}[report.status]
        table.add_row(
            f"{mark} {report.stage}",
            f"[green]{bar:<12}[/]",
            f"{report.success_rate:.2f}",
            f"{report.advancement_threshold:.2f}",
            str(report.episodes),
            str(report.min_episodes),
            style="bold" if report.status == "current" else "dim",
        )
    stages = envs.call_all("get_curriculum_stage")
    ratios = envs.call_all("get_mixing_ratio")
    agreed = sum(stage == curriculum.current_stage for stage in stages)
    status = (
        f"{agreed} of {NUM_ENVS} envs are on {curriculum.current_stage!r} and mix in "
        f"{ratios[0]:.0%} of the stage before · plan version {envs.check_agreement()} · "
        f"{curriculum.num_observed} episodes · {steps / max(seconds, 1e-9):,.0f} steps/s"
    )
    changes = "\n".join(str(change) for change in curriculum.history) or "no advancement yet"
    return Group(table, status, Panel(changes, title="advancements"))


def train(seconds: float, seed: int, console: Console) -> tuple[CurriculumVectorEnv, Staged]:
    """Train until the last stage is mastered or the time is up."""
    curriculum = Staged(make_tasks(), stages=STAGES, early=None, seed=seed)
    envs = CurriculumVectorEnv(AsyncVectorEnv([make_env] * NUM_ENVS), curriculum)
    learner = QLearner(seed)
    offsets, _ = envs.reset(seed=seed)
    just_reset = np.zeros(NUM_ENVS, dtype=bool)
    began, shown, steps = time.monotonic(), 0.0, 0
    with Live(console=console, auto_refresh=False) as live:
        while (elapsed := time.monotonic() - began) < seconds:
            actions = learner.act(offsets)
            new, rewards, terminated, truncated, _ = envs.step(actions)
            playing = ~just_reset  # the step after an ending only resets
            learner.learn(
                offsets[playing],
                actions[playing],
                rewards[playing],
                new[playing],
                terminated[playing],
            )
            offsets, just_reset = new, terminated | truncated
            steps += NUM_ENVS
            if elapsed - shown > 0.25:
                shown = elapsed
                live.update(picture(envs, curriculum, steps, elapsed), refresh=True)
                last = curriculum.stage_report(STAGES[-1].name)
                if not last.missing():
                    break
    return envs, curriculum


def main() -> None:
    """Train, then say what happened."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=25.0, help="stop after so many seconds")
    parser.add_argument("--seed", type=int, default=0, help="seed of tasks, envs and learner")
    arguments = parser.parse_args()
    console = Console()
    envs, curriculum = train(arguments.seconds, arguments.seed, console)
    counts = envs.counts
    console.print(str(curriculum.explain()))
    console.print(
        f"Started {counts.started} episodes: {counts.finished} finished and each observed once, "
        f"{counts.aborted} aborted, {counts.in_flight} being played. "
        f"Largest lag of a plan: {envs.staleness.largest} steps."
    )
    envs.close()


if __name__ == "__main__":
    main()
