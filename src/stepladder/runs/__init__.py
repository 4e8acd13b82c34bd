"""What is kept: one folder per run, with a SQLite database, checkpoints and loggers beside it.

A simulation or a training writes through `RunWriter`; the dashboard, the report and the commands
read through `RunReader`, also while the run is being written and after its process was killed.
`Run` is what scripts and notebooks use.
"""

from stepladder.runs.loggers import ConsoleLogger, Logger, TensorBoardLogger, WandbLogger
from stepladder.runs.reader import Event, RunReader
from stepladder.runs.run import Run
from stepladder.runs.run_table import RunTable
from stepladder.runs.run_writer import RunWriter

__all__ = [
    "ConsoleLogger",
    "Event",
    "Logger",
    "Run",
    "RunReader",
    "RunTable",
    "RunWriter",
    "TensorBoardLogger",
    "WandbLogger",
]
