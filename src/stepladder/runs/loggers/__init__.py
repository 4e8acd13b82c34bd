"""Where else a run's metrics and events go: the console, TensorBoard, Weights & Biases.

Beside the database, never instead of it. `RunWriter` hands everything to `forwarder`, which
calls each logger from a thread of its own.
"""

from stepladder.runs.loggers.base import Logger
from stepladder.runs.loggers.console import ConsoleLogger
from stepladder.runs.loggers.tensorboard import TensorBoardLogger
from stepladder.runs.loggers.wandb import WandbLogger

__all__ = ["ConsoleLogger", "Logger", "TensorBoardLogger", "WandbLogger"]
