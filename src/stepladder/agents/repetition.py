"""An update that is done again and again: on a GPU it is recorded once and then played back.

Used by agents that learn from a memory. Their updates are a hundred small kernels, and launching
them one by one takes longer than computing them.
"""

from collections.abc import Callable

import torch

Figures = dict[str, torch.Tensor]

NUM_TRIALS = 3
"""Updates done the ordinary way before recording: the first ones still allocate."""


class Repetition:
    """Calls an update; on a GPU, from the fourth time on, by playing back a recording.

    Args:
        update: Does one update. It must read and write the same tensors every time, and draw only
            from `generator`.
        device: Where it computes.
        generator: What it draws from.
    """

    def __init__(
        self, update: Callable[[], Figures], device: torch.device, generator: torch.Generator
    ):
        self._update, self._device, self._generator = update, device, generator
        self._num_trials = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._figures: Figures = {}

    def __call__(self) -> Figures:
        """Do one update; return its figures, which the next one may overwrite."""
        if self._device.type != "cuda":
            return self._update()
        # Streams and recordings belong to the current device, which need not be the agent's.
        with torch.cuda.device(self._device):
            return self._repeated()

    def _repeated(self) -> Figures:
        if self._graph is None:
            if self._num_trials < NUM_TRIALS:
                self._num_trials += 1
                return self._tried()
            self._record()
        assert self._graph is not None
        self._graph.replay()
        return self._figures

    def _tried(self) -> Figures:
        """Do an update beside the main stream, as recording will."""
        stream = torch.cuda.Stream(self._device)
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            figures = self._update()
        torch.cuda.current_stream(self._device).wait_stream(stream)
        return figures

    def _record(self) -> None:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        # Recording computes nothing; the playback that follows is the update.
        with torch.cuda.graph(graph):
            self._figures = self._update()
        self._graph = graph
