"""Changed snapshots of simulated learners, and changed files of graphs and scenarios."""

import json
from pathlib import Path

import numpy as np

from fuzz.changed_snapshots import change_snapshot
from fuzz.harness import playing_on
from fuzz.mutations import change_json_text
from stepladder.simulator import Epochwise, TaskDependencySimulator, TaskGraph

GRAPH = {"schema": 1, "parents": [[], [0], [0, 1]], "features": {"x": [0.0, 1.0, 2.0]}}


class Fuzzer:
    """Restores changed learners and goes on learning; reads changed graphs."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._learners = [
            TaskDependencySimulator(6),
            TaskDependencySimulator(6, dynamics=Epochwise()),
        ]
        for learner in self._learners:
            for node in (0, 1, 2, 0, 3, 0, 1):
                learner.learn([node])
        self._saved = [learner.snapshot() for learner in self._learners]

    def run(self, rng: np.random.Generator) -> None:
        if rng.random() < 0.4:
            self._read_graph(rng)
            return
        index = int(rng.integers(len(self._learners)))
        learner = self._learners[index]
        changed = change_snapshot(self._saved[index], rng, self._folder)
        try:
            learner.restore(changed)
            with playing_on():
                for _ in range(20):
                    learner.learn([int(rng.integers(6))])
                    skills = np.array(learner.P)
                    assert np.all(np.isfinite(skills) & (skills >= 0.0)), skills
                    assert np.all(skills <= 1.0 + 1e-9), skills
        finally:
            learner.restore(self._saved[index])

    def _read_graph(self, rng: np.random.Generator) -> None:
        path = self._folder / "graph.json"
        text = change_json_text(json.dumps(GRAPH), rng)
        path.write_bytes(text.encode(errors="surrogateescape"))
        learner = TaskDependencySimulator(TaskGraph.from_file(path))
        learner.learn([0])
