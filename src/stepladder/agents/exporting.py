"""A policy as one graph, for programs without this library: TorchScript and ONNX.

From raw observations, as an env gives them, to the best action, as the env takes it: layout, codes,
normaliser and network are all inside. `training.policies` gives it a policy and a place.
"""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from gymnasium.spaces import Dict
from gymnasium.vector.utils import batch_space
from torch import nn

from stepladder.agents.observations import Encoder, Layout, Seen
from stepladder.agents.policy import Policy
from stepladder.errors import ConfigError, shown
from stepladder.files import replacing

Format = Literal["torchscript", "onnx"]

EXPORT_FORMATS: dict[str, Format] = {".onnx": "onnx", ".pt": "torchscript", ".ts": "torchscript"}
"""Which format the end of a file's name stands for."""

NEEDED = ("onnx", "onnxscript")
"""Packages that torch's exporter to ONNX needs; of the extra `export`."""

NOTE = "stepladder.json"
"""Where a file says what goes in and what comes out: an extra file of TorchScript, a metadata entry
of ONNX."""

OBSERVATION, MEMORY, EPISODE_START = "observation", "memory", "episode_start"
ACTION, NEXT_MEMORY = "action", "next_memory"
"""Names of what goes in and what comes out. Of a dict, each part is ``observation/KEY``."""

NUM_TRACED, NUM_TRIED = 2, 5
"""Rows of the example that a graph is made with, and of the one that it is tried with."""


class PolicyGraph(nn.Module):
    """A policy whose inputs and outputs are plain tensors, each with a row per env.

    The inputs are the observation, or the parts of a dict in the order of its space, with an axis
    for frames after the rows if several are seen at once. A policy that remembers also takes its
    memory and whether an episode begins, and returns its next memory.

    Args:
        policy: The policy, on the CPU.
        layout: Of what it sees.
    """

    def __init__(self, policy: Policy, layout: Layout):
        super().__init__()
        self.policy = policy
        for module in policy.modules():
            if isinstance(module, Encoder):
                module.is_exported = True
        observation_space = layout.space
        self._space, self._layout = observation_space, layout
        self._keys = [*observation_space] if isinstance(observation_space, Dict) else [""]
        self._first = policy.first_memory(1)
        self.has_memory = self._first.numel() > 0

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Return the best actions, and the next memory where there is one."""
        parts = inputs[: len(self._keys)]
        seen = seen_of(self._layout, dict(zip(self._keys, parts, strict=True)))
        if not self.has_memory:
            rows = parts[0].reshape(parts[0].shape[0], -1)[:, :0]
            return self.policy.best_actions(seen, rows.to(self._first.dtype))[0]
        memory, begins = inputs[len(self._keys) :]
        begins = begins.reshape(-1, *[1] * (memory.ndim - 1))
        return self.policy.best_actions(seen, memory.masked_fill(begins, 0))

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs, in order."""
        names = [f"{OBSERVATION}/{key}" if key else OBSERVATION for key in self._keys]
        return names + ([MEMORY, EPISODE_START] if self.has_memory else [])

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs, in order."""
        return [ACTION, NEXT_MEMORY] if self.has_memory else [ACTION]

    def example(self, num_rows: int) -> tuple[torch.Tensor, ...]:
        """Return inputs that can occur."""
        space = batch_space(self._space, num_rows)
        space.seed(0)
        sample: Any = space.sample()
        parts = list(sample.values()) if isinstance(self._space, Dict) else [sample]
        inputs = [torch.from_numpy(np.ascontiguousarray(part)) for part in parts]
        if self._layout.frame_stack > 1:
            inputs = [torch.stack([part] * self._layout.frame_stack, dim=1) for part in inputs]
        if self.has_memory:
            memory = self._first.expand(num_rows, *self._first.shape[1:]).clone()
            inputs += [memory, torch.zeros(num_rows, dtype=torch.bool)]
        return tuple(inputs)

    def note(self) -> str:
        """Return what goes in and what comes out, as JSON; every shape begins with the rows."""
        example = self.example(1)
        with torch.inference_mode():
            results = self(*example)
        results = results if isinstance(results, tuple) else (results,)
        return json.dumps(
            {
                "inputs": _described(self.input_names, example),
                "outputs": _described(self.output_names, results),
            }
        )


def seen_of(layout: Layout, parts: dict[str, torch.Tensor]) -> Seen:
    """Return observations as a network takes them: `Layout.to_seen`, in torch alone.

    Args:
        layout: Of the observations.
        parts: By key, each with a row per env; under "" what is not a dict. Where several frames
            are seen at once, a second axis holds them, the oldest first.
    """
    lead = 1 if layout.frame_stack == 1 else 2
    rows = {
        key: part.flatten(lead) if part.ndim > lead else part[..., None]
        for key, part in parts.items()
    }
    nothing = next(iter(rows.values()))[..., :0]
    numbers = [nothing.to(torch.float32)]
    numbers += [rows[part.key].to(torch.float32) for part in layout.numbers]
    codes = [nothing.to(torch.int64)]
    codes += [
        rows[part.key].to(torch.int64) - torch.as_tensor(part.start).reshape(-1)
        for part in layout.codes
    ]
    return Seen(torch.cat(numbers, dim=-1).flatten(1), torch.cat(codes, dim=-1).flatten(1))


def export(policy: Policy, layout: Layout, path: Path, form: Format) -> None:
    """Write a policy as a graph, in place of an older file.

    Args:
        policy: The policy, on the CPU.
        layout: Of what it sees.
        path: The file.
        form: Of the file.

    Raises:
        ConfigError: A package is missing, or this policy cannot be exported.
        OSError: The file cannot be written.
    """
    graph = PolicyGraph(policy, layout).eval()
    if form == "torchscript":
        _write_torchscript(graph, path)
    else:
        _write_onnx(graph, path)


def form_of(path: Path, form: str | None) -> Format:
    """Return the format of a file: as given, or by the end of its name.

    Raises:
        ConfigError: There is no such format, or the name says nothing.
    """
    if form in EXPORT_FORMATS.values():
        return cast("Format", form)
    if form is not None:
        raise ConfigError(f"format must be 'torchscript' or 'onnx'; got {shown(form)}.")
    if path.suffix.lower() not in EXPORT_FORMATS:
        raise ConfigError(
            f"{path} must end in {', '.join(EXPORT_FORMATS)}, which says "
            "in which format it is written; rename it, or give format='torchscript' or "
            "format='onnx'."
        )
    return EXPORT_FORMATS[path.suffix.lower()]


def _write_torchscript(graph: PolicyGraph, path: Path) -> None:
    with _without_notices(), torch.no_grad():
        traced: Any = torch.jit.trace(graph, graph.example(NUM_TRACED), check_trace=False)
        example = graph.example(NUM_TRIED)
        for made, wanted in zip(_flat(traced(*example)), _flat(graph(*example)), strict=True):
            if not torch.allclose(made, wanted):
                raise ConfigError(
                    f"{type(graph.policy).__name__} cannot be exported to TorchScript: its "
                    "best_actions takes other steps for other observations. Write it without "
                    "branches that depend on values."
                )
        with replacing(path) as file:
            torch.jit.save(traced, file, _extra_files={NOTE: graph.note()})


def _write_onnx(graph: PolicyGraph, path: Path) -> None:
    for package in NEEDED:
        if find_spec(package) is None:
            raise ConfigError(
                f"an export to ONNX needs the package {package}, which is not installed. Install "
                "it with: pip install 'stepladder[export]'"
            )
    rows = torch.export.Dim("rows", min=1)
    example = graph.example(NUM_TRACED)
    with _without_notices(), torch.no_grad():
        program: Any = torch.onnx.export(
            graph,
            example,
            input_names=graph.input_names,
            output_names=graph.output_names,
            # One argument with stars, which holds all inputs.
            dynamic_shapes=(tuple({0: rows} for _ in example),),
            dynamo=True,
            verbose=False,
        )
    model = program.model_proto
    entry = model.metadata_props.add()
    entry.key, entry.value = NOTE, graph.note()
    with replacing(path) as file:
        file.write(model.SerializeToString())


@contextmanager
def _without_notices() -> Iterator[None]:
    """Silence what torch says of its own parts: TorchScript is deprecated, torchvision missing.

    It also warns of constants and of branches; a branch that matters is found by a trial.
    """
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)


def _flat(results: Any) -> tuple[torch.Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)


def _described(names: list[str], tensors: tuple[torch.Tensor, ...]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": ["rows", *tensor.shape[1:]],
        }
        for name, tensor in zip(names, tensors, strict=True)
    ]
