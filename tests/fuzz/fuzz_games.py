"""Changed snapshots of games in mid-flight, with and without a curriculum."""

from pathlib import Path
from typing import Any

import numpy as np

from fuzz.changed_snapshots import change_snapshot
from fuzz.harness import playing_on
from games.game_cases import make_batch, random_actions
from games.game_curricula import batch, evicting, phases, quick_stages
from stepladder.curricula import Snapshot


def finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(finite(part) for part in value.values())
    return bool(np.isfinite(value).all())


def in_space(vec: Any, observations: Any) -> bool:
    return vec.observation_space.contains(observations)


class Fuzzer:
    """Restores changed games and steps them."""

    def __init__(self, folder: Path):
        self._folder = folder
        rng = np.random.default_rng(0)
        self._alone = [
            make_batch(case, 5, num_threads=1) for case in ("hockey", "hockey both", "ledge")
        ]
        self._led = [
            batch(game, make(game), 4)
            for game in ("ledge", "hockey")
            for make in (quick_stages, phases, evicting)
        ]
        self._saved: list[Snapshot] = []
        for vec in (*self._alone, *self._led):
            vec.reset(seed=3)
            for _ in range(23):
                vec.step(random_actions(vec, rng))
            is_led = vec in self._led
            self._saved.append(vec.snapshot(in_flight=True) if is_led else vec.snapshot())

    def run(self, rng: np.random.Generator) -> None:
        vecs = [*self._alone, *self._led]
        index = int(rng.integers(len(vecs)))
        vec, is_led = vecs[index], index >= len(self._alone)
        changed = change_snapshot(self._saved[index], rng, self._folder)
        try:
            goes_on = vec.restore(changed, in_flight=True) if is_led else vec.restore(changed)
            with playing_on():
                # Envs that were saved before their first reset still need it.
                if (is_led and not goes_on) or not vec.unwrapped.has_begun:
                    vec.reset()
                for _ in range(30):
                    observations, rewards, *_ = vec.step(random_actions(vec, rng))
                    assert finite(observations), observations
                    assert finite(rewards), rewards
                    assert in_space(vec, observations), observations
        finally:
            saved = self._saved[index]
            vec.restore(saved, in_flight=True) if is_led else vec.restore(saved)
