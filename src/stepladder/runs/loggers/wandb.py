"""Metrics and events to Weights & Biases, at once or to be sent later.

Called by `forwarder`. Needs the package ``wandb``.
"""

import os
from collections.abc import Mapping
from typing import Any, Literal, get_args

from stepladder.errors import ConfigError
from stepladder.runs.loggers.base import require_package

Mode = Literal["online", "offline", "disabled"]

STEP_METRIC = "metric/agent_step"
"""The x-axis of all charts. A metric and not W&B's own step, which drops all that goes backwards,
as a run does that continues from a checkpoint."""


class WandbLogger:
    """Sends each log to one run of Weights & Biases.

    Events are text under ``events/KIND``.

    Args:
        project: The project to send to.
        name: What the run is called there; W&B invents a name otherwise.
        config: Settings to show beside it; plain JSON.
        folder: Where W&B keeps its files; a folder ``wandb`` is made in it. The working directory
            by default.
        mode: ``"online"`` sends as it goes (log in first, with ``wandb login``), ``"offline"`` only
            writes files, which ``wandb sync`` sends later, ``"disabled"`` does nothing.
        quiet: Keep W&B's own messages off the console.

    Raises:
        ConfigError: The package is not installed, the mode is unknown, or wandb is not logged in.
    """

    def __init__(
        self,
        project: str,
        *,
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
        folder: str | os.PathLike[str] | None = None,
        mode: Mode = "online",
        quiet: bool = False,
    ):
        if mode not in get_args(Mode):
            raise ConfigError(f"mode must be one of {', '.join(get_args(Mode))}; got {mode!r}.")
        wandb = require_package("wandb", "wandb", "WandbLogger")
        if folder is not None:
            os.makedirs(folder, exist_ok=True)
        try:
            self._run = wandb.init(
                project=project,
                name=name,
                config=dict(config or {}),
                dir=None if folder is None else os.fspath(folder),
                mode=mode,
                # Without it a second logger in this process would write into the first one's run.
                reinit="create_new",
                settings=wandb.Settings(console="off", silent=quiet),
            )
        except wandb.Error as error:
            raise ConfigError(
                f"Weights & Biases cannot start a run ({error}). Log in with wandb login, or use "
                "the mode offline."
            ) from error
        self._run.define_metric(STEP_METRIC)
        self._run.define_metric("*", step_metric=STEP_METRIC)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Send the metrics of one step."""
        self._run.log({**metrics, STEP_METRIC: step})

    def event(self, step: int, kind: str, text: str) -> None:
        """Send one text."""
        self._run.log({f"events/{kind}": text, STEP_METRIC: step})

    def close(self) -> None:
        """Wait until W&B has taken everything."""
        self._run.finish()
