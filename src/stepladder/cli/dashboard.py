"""``stepladder dashboard``: a local web page over finished and running runs."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from stepladder.cli.inputs.parsing import parse
from stepladder.cli.output import console
from stepladder.cli.output.dashboard_beside import needing_server
from stepladder.configs.checks import Within
from stepladder.configs.codec import Config
from stepladder.errors import ConfigError

USUAL_FOLDERS = (Path("runs"), Path("sweeps"))
"""Where runs and sweeps are looked for unless folders are named."""


@dataclass(frozen=True, kw_only=True)
class DashboardArguments(Config):
    """Open a local web page over runs: finished ones, and those that are being written.

    It reads the runs and changes nothing. Ctrl-C ends it. For example: stepladder dashboard
    runs/first runs/second
    """

    runs: tyro.conf.Positional[tuple[Path, ...]] = ()
    """Folders of runs or sweeps, or folders that hold such; by default runs and sweeps."""

    port: Annotated[int, Within(1, 65535)] | None = None
    """The port of the page; by default one that is free."""

    host: str = "127.0.0.1"
    """Address of this machine to listen at. Any but the default can be reached by others, so the
    page then needs a token, which is part of the address that is printed."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(DashboardArguments, argv, "dashboard")
    folders = arguments.runs or tuple(folder for folder in USUAL_FOLDERS if folder.is_dir())
    if not folders:
        raise ConfigError(
            "there is no folder runs here. Name folders of runs, or begin one: stepladder train"
        )
    server = needing_server().DashboardServer(folders, arguments.host, arguments.port)
    console.say(f"dashboard: {server.address}   (Ctrl-C ends it)")
    with contextlib.suppress(KeyboardInterrupt):
        server.serve()
    return 0
