"""Checkpoints and processes: kills in the middle of a save, full disks, folders one may not use."""

import os
import random
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch

from runs.scenes import as_nobody, in_a_fork
from stepladder.curricula import Snapshot
from stepladder.errors import RunError
from stepladder.runs import Run, RunReader
from stepladder.training.checkpoints import find, load, load_newest, save
from sync.rig import forked, receive
from training.checkpoints.checkpoint_scenes import create, make_checkpoint, save_steps

pytestmark = [
    pytest.mark.processes,
    pytest.mark.timeout(60),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

NUM_KILLS = 12
SIZE = 10_000
"""Rows in the memory of the agent, so that a kill finds a file half written."""


def train_for_ever(pipe: Connection, folder: Path) -> None:
    """Go on with a run from its newest checkpoint, and save after every step."""
    torch.set_num_threads(1)  # The threads of the parent are not here.
    if find(folder):
        checkpoint, refused = load_newest(folder)
        run, step = Run.resume(folder, checkpoint=checkpoint.name), checkpoint.step
        logged = RunReader(folder).metric("reward")[0].tolist()
        pipe.send((step, refused, logged == list(range(1, step + 1))))
    else:
        run, step = create(folder), 0
        pipe.send((0, [], True))
    while True:
        step += 1
        run.log(step, {"reward": float(step)})
        save(run, make_checkpoint(step, SIZE), curriculum=Snapshot({"stage": step}))
        pipe.send(step)


def last_said(pipe: Connection, before: int) -> int:
    """Return the last step that is said to be safe."""
    while pipe.poll():
        try:
            before = pipe.recv()
        except EOFError:
            break
    return before


def test_a_kill_in_the_middle_of_a_save_leaves_the_older_ones_whole(tmp_path: Path) -> None:
    folder, safe, num_left = tmp_path / "run", 0, 0
    for _ in range(NUM_KILLS):
        with forked(train_for_ever, folder) as (process, pipe):
            began, refused, is_in_step = receive(pipe)
            # Every checkpoint that there was is whole, and the run stands where it stands.
            assert (refused, is_in_step) == ([], True)
            assert began >= safe
            safe = last_said(pipe, began)
            if began == 0:
                safe = receive(pipe)
            time.sleep(random.uniform(0.0, 0.06))
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            process.join(30)
            safe = last_said(pipe, safe)
        for checkpoint in map(load, find(folder)):
            tensors = make_checkpoint(checkpoint.step, SIZE).agent.tensors
            for name, tensor in tensors.items():
                assert torch.equal(checkpoint.agent.tensors[name], tensor)
        assert load_newest(folder)[0].step >= safe
        parent = folder / "checkpoints"
        num_left += len([path for path in parent.iterdir() if path.name.endswith(".part")])
    # Otherwise nothing was interrupted, and nothing tested.
    assert safe > 0
    assert num_left > 0
    with Run.resume(folder, checkpoint=load_newest(folder)[0].name) as run:
        save_steps(run, 10**6)
    left = [path.name for path in reversed(find(folder))]
    assert len(left) == 2
    assert RunReader(folder).checkpoints() == left
    # A folder and a file for each, and nothing of all the others.
    assert sorted(path.name.split(".")[0] for path in parent.iterdir()) == sorted(left * 2)


def test_a_full_disk_leaves_the_older_ones_whole(tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def fill_the_disk() -> list[Any]:
        torch.set_num_threads(1)
        said: list[Any] = []
        with create(folder) as run:
            save_steps(run, 10)
            # No file may grow any further than this, which is what a full disk looks like.
            _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))
            try:
                save(run, make_checkpoint(20, SIZE), curriculum=None)
            except RunError as error:
                said.append(str(error))
            said.append(sorted(path.name for path in (folder / "checkpoints").iterdir()))
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            save(run, make_checkpoint(30, SIZE), curriculum=None)
        return said

    said, left = in_a_fork(fill_the_disk)
    assert said.startswith(f"the run {folder} cannot be used (weights.safetensors cannot be writ")
    assert "\n" not in said
    assert left == ["step-000000000010", "step-000000000010.1.npz"]
    assert [load(path).step for path in find(folder)] == [30, 10]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that anybody may write to, unlike pytest's own."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o777)
    yield path
    for entry in [path, *path.rglob("*")]:
        if entry.is_dir():
            entry.chmod(0o777)
    shutil.rmtree(path)


def test_a_folder_that_may_not_be_written_is_told_in_one_line(open_folder: Path) -> None:
    folder = open_folder / "run"

    def save_where_nobody_may() -> list[Any]:
        with create(folder) as run:
            save_steps(run, 10)
            (folder / "checkpoints").chmod(0o555)
            try:
                save_steps(run, 20)
            except RunError as error:
                return [str(error), load_newest(folder)[0].step]
        return []

    said, step = as_nobody(save_where_nobody_may)
    assert said.startswith(f"the run {folder} cannot be used (")
    assert "Permission denied" in said
    assert step == 10


def test_checkpoints_in_a_read_only_folder_can_be_read(open_folder: Path) -> None:
    folder = open_folder / "run"
    with create(folder) as run:
        save_steps(run, 10, 20)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert as_nobody(lambda: load_newest(folder)[0].step) == 20
    (find(folder)[0] / "envs.npz").chmod(0o000)
    step, refused = as_nobody(lambda: (load_newest(folder)[0].step, load_newest(folder)[1]))
    assert step == 10
    assert "Permission denied" in refused[0]
