"""How long the dashboard takes for a run of 1,000,000 episodes and 100,000 tasks.

The run is made up here and written by the product's own writer into a temporary folder: metrics of
2,000 epochs with two families of 100 labels, a table of all tasks now and then, a record per
episode, evaluations and changes of stage. Then every question of every page is asked, as the server
would ask it, and every page is opened in a headless Chromium, if there is one. A page is measured
until the last chart within reach of its window is drawn.
"""

import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from harness import Report, parser

from stepladder.dashboard.answers import answer
from stepladder.dashboard.run_index import RunIndex
from stepladder.dashboard.server.serving import DashboardServer
from stepladder.plans.record import RECORD_DTYPE
from stepladder.runs import Run

NUM_EPISODES, NUM_TASKS, NUM_EPOCHS, NUM_LABELS = 1_000_000, 100_000, 2_000, 100
EPISODE_STEPS = 100
TABLE_EPOCHS, EVALUATION_EPOCHS, NUM_STAGES = 100, 10, 5
BAR_S = 1.0
TITLE = "How long the dashboard takes for a run of 1,000,000 episodes and 100,000 tasks"
STATS = "env_curriculum_stats"
RUN, OTHER = "large", "small"


def make_run(folder: Path, num_episodes: int, num_tasks: int, num_epochs: int) -> None:
    """Write a training in which one stage after the other is learned."""
    rng = np.random.default_rng(0)
    labels = [f"label-{number}" for number in range(NUM_LABELS)]
    per_stage = NUM_LABELS // NUM_STAGES
    stages = [
        {"name": f"stage-{k}", "labels": labels[k * per_stage : (k + 1) * per_stage]}
        for k in range(NUM_STAGES)
    ]
    per_epoch = num_episodes // num_epochs
    total = num_episodes * EPISODE_STEPS
    config = {
        "env": "made up",
        "total_steps": total,
        "curriculum": {"type": "staged", "stages": stages, "threshold": 0.75},
    }
    centres = np.linspace(0.0, 1.0, NUM_LABELS)
    of_task = np.arange(num_tasks) * NUM_LABELS // num_tasks
    columns: dict[str, Any] = {
        "task": [f"task-{number}" for number in range(num_tasks)],
        "label": [labels[label] for label in of_task.tolist()],
    }
    with Run.create(folder, kind="training", config=config, seed=0) as run:
        for epoch in range(1, num_epochs + 1):
            step, done = epoch * per_epoch * EPISODE_STEPS, epoch / num_epochs
            success = 1.0 / (1.0 + np.exp(-(1.2 * done - centres) * 12.0))
            probs = np.exp(-(((1.1 * done - centres) / 0.2) ** 2)) + 0.02
            probs /= probs.sum()
            run.log(step, metrics(epoch, success, probs, labels, per_epoch, rng))
            run.log_records(records(rng, per_epoch, num_tasks, epoch))
            if epoch % TABLE_EPOCHS == 0:
                own = rng.random(num_tasks)
                numbers = {"prob": own / own.sum(), "success": success[of_task], "score": own}
                plays = rng.integers(0, 100, num_tasks).astype(np.float64)
                run.log_tasks(step, {**columns, **numbers, "samples": plays})
            if epoch % EVALUATION_EPOCHS == 0:
                run.event(step, "evaluation", "held-out episodes", evaluation(success, labels))
            if epoch % (num_epochs // NUM_STAGES) == 0 and epoch < num_epochs:
                at = epoch * NUM_STAGES // num_epochs
                change = {"from_stage": f"stage-{at - 1}", "to_stage": f"stage-{at}"}
                run.event(step, "stage_advanced", "success 0.80 after 300 episodes", change)


def metrics(
    epoch: int,
    success: np.ndarray[Any, Any],
    probs: np.ndarray[Any, Any],
    labels: list[str],
    plays: int,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Return what is logged at the end of an epoch."""
    found = {
        f"{STATS}/stage": float(np.searchsorted(-success, -0.75) * NUM_STAGES // NUM_LABELS),
        f"{STATS}/total_completions": float(epoch * plays),
        "env_info/curriculum_success": float(success @ probs),
        "overview/steps_per_second": 10_000.0 + float(rng.normal(0.0, 200.0)),
        "overview/reward": float(success @ probs + rng.normal(0.0, 0.02)),
    }
    found |= {f"losses/loss-{k}": float(value) for k, value in enumerate(rng.random(30))}
    for k, label in enumerate(labels):
        found[f"{STATS}/per_label_success/{label}"] = float(success[k])
        found[f"{STATS}/per_label_samples/{label}"] = float(rng.poisson(plays * probs[k]))
    return found


def records(
    rng: np.random.Generator, count: int, num_tasks: int, epoch: int
) -> np.ndarray[Any, Any]:
    """Return the records of an epoch."""
    found = np.zeros(count, dtype=RECORD_DTYPE)
    found["slot"] = rng.integers(0, num_tasks, count)
    found["episode_index"] = epoch
    found["success"] = rng.random(count) < 0.5
    found["length"] = EPISODE_STEPS
    return found


def evaluation(success: np.ndarray[Any, Any], labels: list[str]) -> dict[str, Any]:
    """Return the scores of an evaluation, per stage and of all."""
    parts = [
        {"name": f"stage-{k}", "rate": {"value": v, "low": v - 0.05, "high": v + 0.05}}
        for k, v in enumerate(success.reshape(NUM_STAGES, -1).mean(axis=1).tolist())
    ]
    mean = float(success.mean())
    whole = {"name": "all", "rate": {"value": mean, "low": mean - 0.02, "high": mean + 0.02}}
    return {"way": "drawn", "total": {**whole, "parts": parts}}


def questions() -> dict[str, tuple[str, Mapping[str, str]]]:
    """Return every question of every page, with the words that a page sends."""
    of_run = {"run": RUN}
    both = urlencode([("run", RUN), ("run", OTHER)])
    playing = {"question": json.dumps({"scenario": "chain-30", "curriculum": "frontier"})}
    found: dict[str, tuple[str, Mapping[str, str]]] = {
        "overview": ("overview", {}),
        "difference of configs": ("difference", {"runs": both}),
        "draws by task": ("draws", {**of_run, "by": "task"}),
        "one metric": ("series", {**of_run, "name": "overview/reward"}),
        "success per label": ("family", {**of_run, "of": "success"}),
        "draws per label": ("family", {**of_run, "of": "samples"}),
        "find a task": ("practice", {**of_run, "find": "task-99999"}),
        "find an event": ("events", {**of_run, "find": "stage"}),
        "sweeps": ("sweeps", {}),
        "what can be played": ("playground", playing),
    }
    found |= {
        name: (name, of_run)
        for name in (
            *("axes", "draws", "events", "films", "held-out", "judged", "labels", "marks"),
            *("metrics", "practice", "settings", "story", "timeline"),
        )
    }
    found |= {
        f"play {curve}": ("play", {**playing, "curve": curve})
        for curve in ("chosen", "uniform", "oracle")
    }
    return found


def seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the median time of some rounds after one that is not measured."""
    taken: list[float] = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[1:])


def time_questions(report: Report, index: RunIndex, rounds: int) -> None:
    """Ask everything in turn."""
    for number, (title, (name, words)) in enumerate(sorted(questions().items())):
        # Courses are kept: another seed each time, or nothing would be played.
        seeds = iter(range(1_000 * number, 1_000 * (number + 1)))

        def ask(name: str = name, words: Mapping[str, str] = words, seeds: Any = seeds) -> object:
            if name == "play":
                asked = {**json.loads(words["question"]), "seed": next(seeds)}
                words = {**words, "question": json.dumps(asked)}
            return json.dumps(answer(index, name, words))

        report.add(f"question: {title}", seconds(ask, rounds), "s", at_most=BAR_S)


def time_pages(report: Report, folders: list[Path], rounds: int) -> None:
    """Open every page in Chromium, until its charts are drawn."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "dashboard"))
    from browser import Browser, browsing  # pyright: ignore[reportMissingImports]

    both = urlencode([("run", RUN), ("run", OTHER)])
    pages = {
        "overview": "#/",
        "run": f"#/run?{urlencode({'run': RUN})}",
        "several": f"#/several?{urlencode({'runs': both})}",
        "compare": f"#/compare?{urlencode({'runs': both})}",
        "playground": "#/playground?scenario=chain-30",
        "sweeps": "#/sweeps",
    }
    server = DashboardServer(folders)
    serving = threading.Thread(target=server.serve)
    serving.start()
    try:
        with tempfile.TemporaryDirectory() as profile, browsing(Path(profile) / "p") as browser:
            for name, place in pages.items():

                def open_page(browser: Browser = browser, place: str = place) -> None:
                    browser.open(server.address + place)
                    browser.ask(DRAWN)

                taken = seconds(open_page, rounds)
                report.add(f"page: {name}", taken, "s", at_most=BAR_S)
    finally:
        server.stop()
        serving.join(10.0)


DRAWN = """
// Until nothing has been asked or drawn for two looks; they count.
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const state = () => [performance.getEntriesByType("resource").length,
  document.querySelectorAll("canvas").length, document.documentElement.dataset.played];
let before = String(state());
for (let quiet = 0; quiet < 2; ) {
  await pause(25);
  const now = String(state());
  quiet = now === before ? quiet + 1 : 0;
  before = now;
}
"""


def main() -> None:
    """Make the run and report all figures."""
    flags = parser(TITLE)
    flags.add_argument("--no-browser", action="store_true", help="leave the pages out")
    arguments = flags.parse_args()
    report = Report(TITLE, as_json=arguments.json)
    num_epochs = NUM_EPOCHS // 10 if arguments.quick else NUM_EPOCHS
    rounds = 2 if arguments.quick else 5
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        began = time.perf_counter()
        make_run(folder / RUN, NUM_EPISODES, NUM_TASKS, num_epochs)
        make_run(folder / OTHER, 10_000, 1_000, 100)
        size = sum(file.stat().st_size for file in (folder / RUN).rglob("*") if file.is_file())
        report.note(
            f"{NUM_EPISODES:,} episodes, {NUM_TASKS:,} tasks, {num_epochs:,} epochs: "
            f"{size / 1e6:.0f} MB, written in {time.perf_counter() - began:.0f} s; "
            f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        )
        time_questions(report, RunIndex([folder]), rounds)
        if not arguments.no_browser:
            time_pages(report, [folder], rounds)


if __name__ == "__main__":
    main()
