"""Changed levels: texts, files in a folder, and tasks with odd parameters."""

from pathlib import Path

import numpy as np

from fuzz.harness import playing_on
from fuzz.mutations import change_bytes, change_json
from games.game_cases import EASY, random_actions
from stepladder.games import LedgeVectorEnv
from stepladder.games.ledge.level import Level
from stepladder.tasks import FolderSource, Task

PARAMS = {"level": EASY, "time_limit": 40, "stage": "simple"}


class Fuzzer:
    """Parses changed levels and plays them."""

    def __init__(self, folder: Path):
        self._folder = folder / "levels" / "one"
        self._folder.mkdir(parents=True)
        self._vec = LedgeVectorEnv(2, num_threads=1, shaping=True)
        self._texts = [EASY.encode(), Level.parse(EASY).text.encode()]

    def run(self, rng: np.random.Generator) -> None:
        kind = rng.random()
        if kind < 0.3:
            params = change_json(PARAMS, rng)
            task = Task("changed", params=params if isinstance(params, dict) else {"level": params})
        else:
            data = self._texts[int(rng.integers(len(self._texts)))]
            for _ in range(int(rng.integers(1, 5))):
                data = change_bytes(data, rng)
            if kind < 0.5:
                (self._folder / "level.txt").write_bytes(data)
                task = FolderSource(self._folder.parent).get(0)
            else:
                task = Task("changed", params={"level": data.decode(errors="replace")})
        self._vec.set_tasks([task, task])
        with playing_on():
            self._vec.reset(seed=1)
            for _ in range(60):
                observations, rewards, *_ = self._vec.step(random_actions(self._vec, rng))
                assert self._vec.observation_space.contains(observations)
                assert np.isfinite(rewards).all()
