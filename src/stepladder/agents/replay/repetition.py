"""An update that is repeated: on a GPU it is recorded once as a CUDA graph and then replayed.

Used by all agents. Their updates, autograd and optimiser included, are about a hundred small
kernels; launching these one by one takes longer than computing them. The precision of products is
chosen here too, so that nothing outside an agent's own work changes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from stepladder.agents.config import Precision

Figures = dict[str, torch.Tensor]

NUM_TRIALS = 3
"""Updates without a graph before recording: the first ones still allocate memory."""


class Repetition:
    """Calls an update; on a GPU, from the fourth call on, by replaying a CUDA graph.

    Args:
        update: Does one update. It must read and write the same tensors every time, must not wait
            for the device, and may draw random numbers only from `generator`.
        device: Where it computes.
        generator: Source of its random numbers.
        precision: Of products on a GPU.
        is_recorded: Whether it may be recorded.
    """

    def __init__(
        self,
        update: Callable[[], Figures],
        device: torch.device,
        generator: torch.Generator,
        precision: Precision,
        is_recorded: bool = True,
    ):
        self._update, self._device, self._generator = update, device, generator
        self._precision: Precision = precision
        self._is_recorded = is_recorded and device.type == "cuda"
        self._num_trials = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._figures: Figures = {}

    def __call__(self) -> Figures:
        """Do one update; return its figures, which the next one may overwrite."""
        if self._device.type != "cuda":
            return self._update()
        if not self._is_recorded:
            with products(self._precision):
                return self._update()
        # Streams and graphs belong to the current device, which may differ from the agent's.
        with torch.cuda.device(self._device):
            return self._replayed()

    def _replayed(self) -> Figures:
        if self._graph is None:
            if self._num_trials < NUM_TRIALS:
                self._num_trials += 1
                return self._on_side_stream()
            self._record()
        assert self._graph is not None
        self._graph.replay()
        return self._figures

    def _on_side_stream(self) -> Figures:
        """Do an update on a stream other than the main one, as recording requires."""
        stream = torch.cuda.Stream(self._device)
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream), products(self._precision):
            figures = self._update()
        torch.cuda.current_stream(self._device).wait_stream(stream)
        return figures

    def _record(self) -> None:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        # Recording computes nothing; the replay that follows is the update.
        with torch.cuda.graph(graph), products(self._precision):
            self._figures = self._update()
        self._graph = graph


@contextmanager
def products(precision: Precision) -> Iterator[None]:
    """Compute products on a GPU with a precision; a graph keeps the one it is recorded with."""
    # Torch's types do not know the setting of the second one.
    matrices: Any = torch.backends.cuda.matmul
    convolutions: Any = torch.backends.cudnn
    before = matrices.allow_tf32, convolutions.allow_tf32
    matrices.allow_tf32 = convolutions.allow_tf32 = precision == "tf32"
    try:
        yield
    finally:
        matrices.allow_tf32, convolutions.allow_tf32 = before
