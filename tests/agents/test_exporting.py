"""Policies as graphs: they act as in this library, in programs without it."""

import json
import os
import subprocess
import sys
import warnings
from importlib import util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from agents.saved_policies import MIXED, SPACES, looks, saved, stacked
from agents.small_worlds import KINDS, SEEN
from stepladder import TrainedPolicy
from stepladder.agents.policy import Policy
from stepladder.errors import ConfigError

ALONE = """
    import sys, warnings
    import numpy as np
    import torch
    assert "stepladder" not in sys.modules
    warnings.simplefilter("ignore")  # torch calls its own format old
    graph = torch.jit.load("policy.pt")
    inputs = np.load("inputs.npz")
    seen, memory = torch.from_numpy(inputs["seen"]), torch.zeros(4, 8)
    for step, begins in enumerate(torch.from_numpy(inputs["begins"])):
        actions, memory = graph(seen[step], memory, begins)
        print(*actions.tolist())
"""
"""A program that knows nothing of this library."""


def loaded(path: Path) -> tuple[Any, dict[str, Any]]:
    """Return a graph of TorchScript, and what it says of itself."""
    files = {"stepladder.json": ""}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.load(str(path), _extra_files=files), json.loads(files["stepladder.json"])


def parts_of(rows: Any) -> list[Any]:
    return list(rows.values()) if isinstance(rows, dict) else [rows]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_a_graph_acts_as_its_policy_for_any_number_of_envs(
    kind: str, space: Any, tmp_path: Path
) -> None:
    policy = TrainedPolicy(saved(kind, space))
    graph, note = loaded(policy.export(tmp_path / "policy.pt"))
    for num_rows in (1, 7):
        rows = stacked(looks(space, num_rows))
        wanted, state = policy.predict(rows)
        inputs = [torch.from_numpy(part) for part in parts_of(rows)]
        assert [one["shape"][1:] for one in note["inputs"]][: len(inputs)] == [
            list(part.shape[1:]) for part in inputs
        ]
        if state is not None:
            inputs += [torch.full((num_rows, 8), torch.nan), torch.ones(num_rows, dtype=torch.bool)]
        result = graph(*inputs)
        actions, memory = result if isinstance(result, tuple) else (result, None)
        np.testing.assert_allclose(actions.numpy(), wanted, rtol=1e-5)
        assert str(actions.numpy().dtype) == note["outputs"][0]["dtype"] == str(wanted.dtype)
        if state is not None:
            np.testing.assert_allclose(memory.numpy(), state[0], rtol=1e-5, atol=1e-7)
    seen = ["observation"] if space is SEEN else [f"observation/{key}" for key in space]
    also = ["memory", "episode_start"] if policy.is_recurrent else []
    assert [one["name"] for one in note["inputs"]] == seen + also


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_frames_are_an_axis_of_a_graph(space: Any, tmp_path: Path) -> None:
    policy = TrainedPolicy(saved("ppo", space, frame_stack=2))
    graph, _ = loaded(policy.export(tmp_path / "policy.pt"))
    old, new = (stacked(looks(space, 6)[first::2]) for first in (0, 1))
    _, state = policy.predict(old)
    wanted, _ = policy.predict(new, state)
    both = zip(parts_of(old), parts_of(new), strict=True)
    found = graph(*(torch.from_numpy(np.stack(frames, axis=1)) for frames in both))
    np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.processes
@pytest.mark.timeout(90)
def test_a_program_without_this_library_plays_the_same(tmp_path: Path) -> None:
    policy = TrainedPolicy(saved("ppo, recurrent"))
    policy.export(tmp_path / "policy.pt")
    rng = np.random.default_rng(0)
    seen = rng.uniform(-1.0, 1.0, (6, 4, 3)).astype(np.float32)
    begins = rng.random((6, 4)) < 0.3
    np.savez(tmp_path / "inputs.npz", seen=seen, begins=begins)
    wanted, state = list[list[int]](), None
    for step in range(6):
        actions, state = policy.predict(seen[step], state, begins[step])
        wanted.append(actions.tolist())
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(line[4:] for line in ALONE.splitlines())],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=80,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [list(map(int, line.split())) for line in done.stdout.splitlines()] == wanted


@pytest.mark.slow
@pytest.mark.timeout(110)
@pytest.mark.parametrize("kind", ["ppo, recurrent", "sac"])
def test_onnx_plays_the_same(kind: str, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    policy = TrainedPolicy(saved(kind, MIXED))
    path = policy.export(tmp_path / "policy", format="onnx")
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    rows = stacked(looks(MIXED, 5))
    inputs = {f"observation/{key}": part for key, part in rows.items()}
    if policy.is_recurrent:
        inputs["memory"] = np.ones((5, 8), dtype=np.float32)
        inputs["episode_start"] = np.array([True, False, True, False, True])
    wanted, state = policy.predict(rows, (inputs.get("memory"),), inputs.get("episode_start"))
    actions, *memory = session.run(None, inputs)
    np.testing.assert_allclose(actions, wanted, rtol=1e-4, atol=1e-6)
    if state is not None:
        np.testing.assert_allclose(memory[0], state[0], rtol=1e-4, atol=1e-6)
    note = json.loads(session.get_modelmeta().custom_metadata_map["stepladder.json"])
    assert [one["name"] for one in note["inputs"]] == [one.name for one in session.get_inputs()]
    assert [one["name"] for one in note["outputs"]] == [one.name for one in session.get_outputs()]


# What cannot be exported.


def test_a_missing_package_is_named_with_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = util.find_spec
    monkeypatch.setattr(
        "stepladder.agents.exporting.find_spec",
        lambda name: None if name == "onnxscript" else find("json"),
    )
    with pytest.raises(ConfigError, match=r"needs the package onnxscript.*'stepladder\[export\]'"):
        TrainedPolicy(saved("ppo")).export(tmp_path / "policy.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "form", "said"),
    [
        ("policy.tflite", None, r"policy\.tflite must end in \.onnx, \.pt, \.ts"),
        ("policy", None, "must end in"),
        ("policy.pt", "tflite", "format must be 'torchscript' or 'onnx'; got 'tflite'"),
    ],
)
def test_an_unknown_format_is_refused(tmp_path: Path, name: str, form: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        TrainedPolicy(saved("ppo")).export(tmp_path / name, form)


class Plain(Policy):
    """A policy of another package that has no `best_actions`."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def act(self, seen: Any, memory: Any, generator: Any, deterministic: bool) -> Any:
        return np.zeros(len(seen.numbers), dtype=np.int64), memory


class Branching(Plain):
    """One whose steps depend on what it sees."""

    def best_actions(self, seen: Any, memory: Any) -> Any:
        sums = seen.numbers.sum(1).clone()
        return (sums if len(sums) == 2 else -sums), memory


@pytest.mark.parametrize(
    ("kind", "said"),
    [(Plain, "Plain cannot be exported: it has no best_actions"), (Branching, "Branching cannot")],
)
def test_a_policy_that_no_graph_stands_for_is_refused(
    kind: type[Policy], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = TrainedPolicy(saved("ppo"))
    made = SimpleNamespace(policy=kind())
    home = "stepladder.training.policies.trained_policy.make_player"
    monkeypatch.setattr(home, lambda *_, **__: made)
    (tmp_path / "policy.pt").write_text("as before")
    with pytest.raises(ConfigError, match=said):
        policy.export(tmp_path / "policy.pt")
    assert (tmp_path / "policy.pt").read_text() == "as before"
