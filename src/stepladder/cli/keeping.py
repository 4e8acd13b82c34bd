"""Flags of every verb that makes a run: where it is kept, and who else is told of it.

Base of the arguments of ``simulate`` and ``train``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from stepladder.errors import ConfigError
from stepladder.runs import Logger, TensorBoardLogger, WandbLogger
from stepladder.runs.run_folder import holds_run


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """Where a run is kept, and who else is told of it."""

    out: Path | None = None
    """Folder to keep the run in. By default one in runs, called after what is run and its seed,
    with a number behind it where that is taken."""

    keep: bool = True
    """Whether to keep the run at all; --no-keep leaves nothing behind."""

    overwrite: bool = False
    """Whether to replace a run that is there already."""

    tensorboard: bool = False
    """Whether to write for TensorBoard as well, into a folder tensorboard beside the run."""

    wandb: str | None = None
    """Project of Weights & Biases to send the run to as well."""

    wandb_mode: Literal["online", "offline", "disabled"] = "online"
    """Whether it is sent at once, or kept in a folder wandb beside the run, to be sent later."""

    def folder(self, name: str) -> Path | None:
        """Return where the run goes. Nothing is written yet, so a mistake costs nothing.

        Args:
            name: What the run is called unless `out` says otherwise.

        Raises:
            ConfigError: Something else is there, or a flag needs a run and none is kept.
        """
        if not self.keep:
            for flag in ("out", "overwrite", "keep_records", "tensorboard", "wandb"):
                if getattr(self, flag, None):
                    text = flag.replace("_", "-")
                    raise ConfigError(f"--{text} needs a run; leave out --no-keep.")
            return None
        folder = self.out
        if folder is None:
            folder, number = Path("runs", name), 1
            while folder.exists() and not self.overwrite:
                number += 1
                folder = Path("runs", f"{name}-{number}")
        if holds_run(folder) and not self.overwrite:
            raise ConfigError(
                f"{folder} holds a run already. Choose another folder with --out, or replace the "
                "run with --overwrite."
            )
        return folder

    def loggers(self, folder: Path, about: Mapping[str, Any]) -> list[Logger]:
        """Return who else is told, given the settings of the run."""
        loggers: list[Logger] = []
        if self.tensorboard:
            curves = folder.parent / "tensorboard" / folder.name
            if self.overwrite:
                # TensorBoard would show the curves of both runs as one.
                for old in curves.glob("events.out.tfevents.*"):
                    old.unlink()
            loggers.append(TensorBoardLogger(curves))
        if self.wandb is not None:
            loggers.append(
                WandbLogger(
                    self.wandb,
                    name=folder.name,
                    config=dict(about),
                    folder=folder.parent,
                    mode=self.wandb_mode,
                    quiet=True,
                )
            )
        return loggers
