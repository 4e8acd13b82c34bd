"""Changed snapshots of every curriculum of the contract, and of the meter that counts for it."""

from pathlib import Path
from typing import Any

import numpy as np

from contracts.test_curriculum_contract import CASES
from curricula.fake_learner import differences, live
from fuzz.changed_snapshots import change_snapshot
from fuzz.harness import playing_on
from stepladder.curricula import CurriculumMeter, Snapshot
from stepladder.errors import SnapshotError


class Fuzzer:
    """Restores a changed snapshot into a curriculum with another past, and plays on."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._curricula = [case.make() for case in CASES.values()]
        self._saved: list[Snapshot] = []
        self._meters = [CurriculumMeter(curriculum) for curriculum in self._curricula]
        for index, curriculum in enumerate(self._curricula):
            live(curriculum, 40 + 15 * (index % 7))
            if index % 3 == 0:
                curriculum.quarantine(1, int(curriculum.pool.generations[1]), "no such map")
                live(curriculum, 10)
            self._saved.append(curriculum.snapshot())
        self._counted = [meter.snapshot() for meter in self._meters]

    def run(self, rng: np.random.Generator) -> None:
        index = int(rng.integers(len(self._curricula)))
        curriculum, saved = self._curricula[index], self._saved[index]
        if rng.random() < 0.1:
            meter = self._meters[index]
            meter.restore(change_snapshot(self._counted[index], rng, self._folder))
            with playing_on():
                live(curriculum, 5)
                assert all(value == value for value in meter.metrics().values())
            return
        live(curriculum, int(rng.integers(3)))
        before = curriculum.snapshot()
        try:
            curriculum.restore(change_snapshot(saved, rng, self._folder))
        except SnapshotError:
            assert differences(before, curriculum.snapshot()) == []
            raise
        with playing_on():
            self._play_on(curriculum, saved)

    def _play_on(self, curriculum: Any, saved: Snapshot) -> None:
        try:
            live(curriculum, 25)
            probs = curriculum.probs()
            assert np.all(np.isfinite(probs) & (probs >= 0.0)), probs
            assert abs(probs.sum() - 1.0) < 1e-9, probs.sum()
            str(curriculum.explain())
            for slot in range(curriculum.pool.num_slots):
                str(curriculum.explain(slot))
            again = curriculum.snapshot()
            again.save(self._folder / "again.npz")
            curriculum.restore(again)
        finally:
            curriculum.restore(saved)
