"""Draw the picture of the README: a staged curriculum at work on a pretend learner.

Run ``python docs/pictures/draw_stages.py`` to write stages.svg beside this file. The learner is
made up: practising a stage raises its success, and lifts the next stage a little.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from stepladder import Staged, Task
from stepladder.curricula import SEVEN_STAGES

NAMES = [stage.name for stage in SEVEN_STAGES.stages]
COLOURS = ("#2f6f8f", "#3f8f8a", "#5fa777", "#9ab85c", "#d9b44a", "#e08a4b", "#cf5b5b")
WIDTH, TOP, HEIGHT, LEFT = 860, 40, 220, 50


def play(num_episodes: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], Staged]:
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
        if episode % 10 == 0:
            shares.append(np.bincount(labels, weights=curriculum.probs(), minlength=len(NAMES)))
            successes.append([curriculum.stage_report(name).success_rate for name in NAMES])
    return np.array(shares), np.array(successes), curriculum


def points(xs: npt.NDArray[np.float64], ys: npt.NDArray[np.float64]) -> str:
    """Write coordinates as SVG wants them."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))


def draw(num_episodes: int = 1300) -> str:
    """Return the picture as SVG."""
    shares, successes, curriculum = play(num_episodes)
    xs = LEFT + np.linspace(0.0, WIDTH - LEFT - 110, len(shares))
    upper = np.cumsum(shares, axis=1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {TOP + HEIGHT + 50}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{TOP + HEIGHT + 50}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="15">What the envs practise: share of draws per '
        "stage; white line: success on the current stage</text>",
    ]
    for index, colour in enumerate(COLOURS):
        low = upper[:, index] - shares[:, index]
        outline = points(xs, TOP + HEIGHT * (1.0 - upper[:, index]))
        outline += " " + points(xs[::-1], TOP + HEIGHT * (1.0 - low[::-1]))
        parts.append(f'<polygon points="{outline}" fill="{colour}"/>')
        y = TOP + 14 + index * 20
        parts.append(
            f'<rect x="{WIDTH - 100}" y="{y - 10}" width="12" height="12" fill="{colour}"/>'
        )
        parts.append(f'<text x="{WIDTH - 82}" y="{y}">{NAMES[index]}</text>')
    current = np.argmax(shares, axis=1)
    line = TOP + HEIGHT * (1.0 - successes[np.arange(len(current)), current])
    parts.append(
        f'<polyline points="{points(xs, line)}" fill="none" stroke="#ffffff" stroke-width="2"/>'
    )
    for change in curriculum.history:
        x = LEFT + (WIDTH - LEFT - 110) * change.episode / num_episodes
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{TOP + HEIGHT}" stroke="#222222" '
            'stroke-dasharray="3 3"/>'
            f'<text x="{x:.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle" font-size="10">'
            f"{change.rules[0]}</text>"
        )
    parts.append(f'<text x="{LEFT}" y="{TOP + HEIGHT + 38}">{num_episodes} episodes →</text>')
    parts.append(f'<text x="14" y="{TOP + 10}">100 %</text>')
    parts.append(f'<text x="26" y="{TOP + HEIGHT}">0 %</text></svg>')
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("stages.svg").write_text(draw())
