"""Changed checkpoints of trainings: any file of one, with its seal as it was or made to fit."""

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import torch

from fuzz.changed_snapshots import change_snapshot
from fuzz.harness import playing_on
from fuzz.mutations import change_array, change_bytes, change_json_text
from stepladder.curricula import Snapshot
from stepladder.errors import DivergenceError, StepladderError
from stepladder.training import checkpoints, train
from stepladder.training.checkpoints.folder import MANIFEST
from stepladder.training.loop import Trainer
from stepladder.training.session import Session
from training.training_scenes import TRAININGS


class Fuzzer:
    """Restores changed checkpoints into a training, and trains on."""

    def __init__(self, folder: Path):
        torch.set_num_threads(1)
        self._changed = folder / "changed"
        self._originals: list[Path] = []
        self._sessions: list[Session] = []
        self._saved: list[Any] = []
        for index, config in enumerate(TRAININGS.values()):
            train(config, run_folder=folder / f"run{index}")
            self._originals.append(checkpoints.find(folder / f"run{index}")[-1])
            trainer = Trainer(config)
            self._sessions.append(Session(config, trainer))
            trainer.begin()
            self._saved.append(checkpoints.load(self._originals[-1]))
            self._sessions[-1].restore(self._saved[-1])

    def run(self, rng: np.random.Generator) -> None:
        index = int(rng.integers(len(self._sessions)))
        session = self._sessions[index]
        shutil.rmtree(self._changed, ignore_errors=True)
        shutil.copytree(self._originals[index], self._changed)
        self._change(rng)
        # Everything is read before anything is touched.
        checkpoint = checkpoints.load(self._changed)
        try:
            session.restore(checkpoint)
            # Weights that are finite and huge can be trained with until that is noticed.
            with playing_on(), suppress(DivergenceError):
                self._train_on(session)
        finally:
            try:
                session.restore(self._saved[index])
            except StepladderError as error:
                raise AssertionError("what was saved is refused after a case") from error

    @staticmethod
    def _train_on(session: Session) -> None:
        for _ in range(30):
            session.trainer.advance()
        for name, tensor in session.trainer.agent.state().tensors.items():
            if tensor.is_floating_point():
                assert torch.isfinite(tensor).all(), name

    def _change(self, rng: np.random.Generator) -> None:
        files = sorted(path for path in self._changed.iterdir() if path.name != MANIFEST)
        path = files[int(rng.integers(len(files)))]
        kind = rng.random()
        if kind < 0.1:
            path.write_bytes(change_bytes(path.read_bytes(), rng))
            return
        if kind < 0.2:
            manifest = self._changed / MANIFEST
            text = change_json_text(manifest.read_text(), rng)
            manifest.write_bytes(text.encode(errors="surrogateescape"))
            return
        if kind < 0.3:
            path.write_bytes(change_bytes(path.read_bytes(), rng))
        elif path.suffix == ".npz":
            change_snapshot(Snapshot.load(path), rng, self._changed.parent).save(path)
        else:
            _change_tensors(path, rng)
        self._seal(path)

    def _seal(self, path: Path) -> None:
        """Make the manifest say what a changed file is, as an attacker would."""
        manifest = self._changed / MANIFEST
        document = json.loads(manifest.read_text())
        data = path.read_bytes()
        seal = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        document["files"][path.name] = seal
        manifest.write_text(json.dumps(document))


def _change_tensors(path: Path, rng: np.random.Generator) -> None:
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    about = header.get("__metadata__", {})
    if about and rng.random() < 0.2:
        name = sorted(about)[int(rng.integers(len(about)))]
        change: Callable[[str], str] = lambda text: change_json_text(text, rng)  # noqa: E731
        try:
            # What is no text at all cannot be written as metadata.
            text = change(about[name]).encode(errors="replace").decode()
            about = {**about, name: text}
        except ValueError:
            about = {**about, name: "x"}
    tensors = dict(safetensors.numpy.load(data))
    names = sorted(tensors)
    name = names[int(rng.integers(len(names)))]
    kind = rng.random()
    if kind < 0.1:
        del tensors[name]
    elif kind < 0.9:
        changed = change_array(tensors[name], rng)
        tensors[name] = changed if changed.dtype.kind in "biuf" else tensors[name]
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    path.write_bytes(safetensors.numpy.save(tensors, about))
