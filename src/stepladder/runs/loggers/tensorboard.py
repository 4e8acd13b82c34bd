"""Metrics and events as a TensorBoard event file.

Called by `forwarder`. Needs the package ``tensorboard``, and neither TensorFlow nor torch.
"""

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepladder.runs.loggers.base import require_package

FORMAT = "brain.Event:2"
"""What the first entry of every event file says, and readers look for."""


class TensorBoardLogger:
    """Writes one event file, which ``tensorboard --logdir FOLDER`` shows.

    Metrics become scalars under their own names, events become texts under ``events/KIND``. A value
    is kept with the precision of a 32-bit float.

    Args:
        folder: Where to put the file; made if missing. An older file in it is left alone, and
            TensorBoard shows both as one.

    Raises:
        ConfigError: The package is not installed.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        def load(module: str) -> Any:
            return require_package(f"tensorboard.{module}", "tensorboard", "TensorBoardLogger")

        self._event_type = load("compat.proto.event_pb2").Event
        self._summary_type = load("compat.proto.summary_pb2").Summary
        self._string_type = load("compat.proto.types_pb2").DT_STRING
        record_writer = load("summary.writer.record_writer").RecordWriter
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        # Nanoseconds, so that a run which is resumed within a second gets a file of its own.
        stamp = f"{time.time():.9f}.{socket.gethostname()}.{os.getpid()}"
        self._records = record_writer((path / f"events.out.tfevents.{stamp}").open("xb"))
        self._write(file_version=FORMAT)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write one entry with all metrics."""
        summary = self._summary_type()
        for name, value in metrics.items():
            summary.value.add(tag=name, simple_value=value)
        self._write(step=step, summary=summary)

    def event(self, step: int, kind: str, text: str) -> None:
        """Write one text."""
        summary = self._summary_type()
        value = summary.value.add(tag=f"events/{kind}")
        value.metadata.plugin_data.plugin_name = "text"
        value.tensor.dtype = self._string_type
        value.tensor.string_val.append(text.encode())
        value.tensor.tensor_shape.dim.add(size=1)
        self._write(step=step, summary=summary)

    def close(self) -> None:
        """Close the file."""
        self._records.close()

    def _write(self, **content: Any) -> None:
        event = self._event_type(wall_time=time.time(), **content)
        self._records.write(event.SerializeToString())
        self._records.flush()
