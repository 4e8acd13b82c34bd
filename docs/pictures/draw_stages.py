"""Draw the picture of the README: a staged curriculum at work on a pretend learner.

Run ``python docs/pictures/draw_stages.py`` to write stages.svg beside this file. The learner is
made up: practising a stage raises its success, and lifts the next stage a little.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from stepladder import Staged, Task
from stepladder.curricula import SEVEN_STAGES
from stepladder.pictures.course import course_figure
from stepladder.pictures.figure import Figure

NAMES = [stage.name for stage in SEVEN_STAGES.stages]
EPISODES_PER_POINT = 10

Table = npt.NDArray[np.float64]
"""A row per point in time, a column per stage."""


def play(num_episodes: int) -> tuple[Table, Table, Staged]:
    """Return the share and the success of every stage over time."""
    tasks = [Task(f"{name} {number}", name) for name in NAMES for number in range(5)]
    curriculum = Staged(tasks, SEVEN_STAGES, seed=1)
    labels = curriculum.pool.label_indices
    skill, rng = np.full(len(NAMES), 0.05), np.random.default_rng(1)
    shares, successes = [], []
    for episode in range(num_episodes):
        draw = curriculum.draw_one()
        stage = int(labels[draw.slot])
        curriculum.report(draw, float(rng.random() < skill[stage]))
        skill[stage] += 0.012 * (1.0 - skill[stage])
        if stage + 1 < len(NAMES):
            skill[stage + 1] += 0.002 * (0.9 - skill[stage + 1])
        if episode % EPISODES_PER_POINT == 0:
            shares.append(np.bincount(labels, weights=curriculum.probs(), minlength=len(NAMES)))
            successes.append(skill.copy())
    return np.array(shares), np.array(successes), curriculum


def draw(num_episodes: int = 1300) -> Figure:
    """Return the picture."""
    shares, successes, curriculum = play(num_episodes)
    episodes = np.arange(len(shares)) * EPISODES_PER_POINT
    return course_figure(
        {name: (episodes, shares[:, stage]) for stage, name in enumerate(NAMES)},
        {name: (episodes, successes[:, stage]) for stage, name in enumerate(NAMES)},
        title="A staged curriculum: what the envs practise, and what the learner can do",
        changes=[(change.episode, change.rules[0]) for change in curriculum.history],
        unit="episodes",
    )


if __name__ == "__main__":
    draw().save(Path(__file__).with_name("stages.svg"))
