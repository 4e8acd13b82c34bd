"""Flags of the verbs that make a run: where the run is kept, and where else it is logged.

Base of the arguments of ``simulate`` and ``train``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from stepladder.errors import ConfigError
from stepladder.runs import Logger, TensorBoardLogger, WandbLogger
from stepladder.runs.run_folder import holds_run
from stepladder.runs.seeds import holds_seeds


@dataclass(frozen=True, kw_only=True)
class RunFlags:
    """Where a run is kept, and where else it is logged."""

    out: Path | None = None
    """Folder for the run. By default a new folder in runs/, named after what is run and its
    seed."""

    no_keep: bool = False
    """Keep nothing: no run folder is written."""

    overwrite: bool = False
    """Replace the run in the folder if there is one."""

    dashboard: bool = False
    """Also show the run on a local web page while it is being made; its address is printed."""

    tensorboard: bool = False
    """Also write event files for TensorBoard, into a folder tensorboard beside the run."""

    wandb: str | None = None
    """Also log to this Weights & Biases project; none by default."""

    wandb_mode: Literal["online", "offline", "disabled"] = "online"
    """online sends to Weights & Biases at once, offline writes a folder wandb beside the run, to
    be sent later."""

    def folder(self, name: str) -> Path | None:
        """Return the folder of the run, or None with ``--no-keep``; nothing is written yet.

        Args:
            name: Name of the folder unless `out` is given.

        Raises:
            ConfigError: The folder holds a run, or a flag contradicts ``--no-keep``.
        """
        if self.no_keep:
            for flag in ("out", "overwrite", "keep_records", "dashboard", "tensorboard", "wandb"):
                if getattr(self, flag, None):
                    text = flag.replace("_", "-")
                    raise ConfigError(f"--{text} needs a run; leave out --no-keep.")
            return None
        folder = self.free_folder(name)
        if holds_run(folder) and not self.overwrite:
            raise ConfigError(
                f"{folder} holds a run already. Choose another folder with --out, or replace the "
                "run with --overwrite."
            )
        return folder

    def free_folder(self, name: str) -> Path:
        """Return `out`, or a folder in runs/ of this name that does not exist yet."""
        if self.out is not None:
            return self.out
        folder, number = Path("runs", name), 1
        while folder.exists() and not self.overwrite:
            number += 1
            folder = Path("runs", f"{name}-{number}")
        return folder

    def only_flags(self) -> "RunFlags":
        """Return these flags without the settings of what is run."""
        return RunFlags(**{one.name: getattr(self, one.name) for one in fields(RunFlags)})

    def loggers(self, folder: Path, about: Mapping[str, Any]) -> list[Logger]:
        """Return the further loggers of a run with these settings."""
        loggers: list[Logger] = []
        is_seed = holds_seeds(folder.parent)
        if self.tensorboard:
            curves = folder.parent / "tensorboard" / folder.name
            if self.overwrite:
                # TensorBoard would show the curves of the old and the new run as one.
                for old in curves.glob("events.out.tfevents.*"):
                    old.unlink()
            loggers.append(TensorBoardLogger(curves))
        if self.wandb is not None:
            loggers.append(
                WandbLogger(
                    self.wandb,
                    name=f"{folder.parent.name}-{folder.name}" if is_seed else folder.name,
                    config=dict(about),
                    folder=folder.parent,
                    mode=self.wandb_mode,
                    quiet=True,
                )
            )
        return loggers
