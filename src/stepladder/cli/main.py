"""The command ``stepladder``: finds the verb, runs it, turns what goes wrong into one line.

Top of the house. A verb's file is imported when it is asked for, so that ``stepladder --help``
waits for nothing heavy.
"""

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from stepladder import __version__
from stepladder.errors import StepladderError
from stepladder.visible import visible

VERBS = {
    "simulate": "Try a curriculum on a simulated learner.",
    "compare": "Measure curricula on scenarios, over seeds, against the oracle.",
    "sweep": "Find good settings of a curriculum, by a grid or a search.",
    "train": "Train an agent; stop it, and go on.",
    "eval": "Measure how well a policy plays what it was not trained on.",
    "explain": "Say why the tasks of a run stand where they do.",
    "report": "Make one HTML page with plots of one run or several.",
    "tune": "Find out how many envs and workers are fastest on this machine.",
    "watch": "Play an env, a level or a run's env, in a window or into a film.",
}
"""Every verb and what it does; each has a file of its name here, with `main(argv)`."""

BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 2, 130, 141
"""Exit codes: as most commands have them, the last two being 128 and the signal's number."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; return the exit code.

    Args:
        argv: Everything after the command's name; by default what the process was given.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    _be_lenient()
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has gone, as head does. Nothing may be flushed into the pipe at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except (StepladderError, OSError) as error:
        return fail(_in_words(error))
    return code


def fail(text: str) -> int:
    """Say on standard error what is wrong; return the exit code.

    It is one line, unless it is a list: a sentence and, indented, a line for each problem.
    """
    lines = text.splitlines()
    is_list = len(lines) > 2 and all(line.startswith("  ") for line in lines[1:])
    print(f"stepladder: {visible(text if is_list else ' '.join(text.split()))}", file=sys.stderr)
    return BAD_INPUT


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_help())
        return 0
    verb, *rest = arguments
    if verb in ("-V", "--version"):
        print(f"stepladder {__version__}")
        return 0
    if verb not in VERBS:
        return fail(f"there is no command {verb!r}; there are {', '.join(VERBS)}.")
    try:
        module = import_module(f"stepladder.cli.{verb}")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("docstring_parser", "rich", "tyro"):
            raise
        return fail(
            f"the commands need the package {package}, which is not installed. "
            "Install it with: pip install 'stepladder[cli]'"
        )
    try:
        return module.main(rest)
    except SystemExit as leaving:
        # The help has been printed.
        return int(leaving.code or 0)


def _help() -> str:
    width = max(map(len, VERBS))
    return "\n".join(
        [
            "usage: stepladder COMMAND [OPTIONS]",
            "",
            "Decides what a reinforcement-learning agent practises next, and finds out in seconds",
            "whether the idea can work.",
            "",
            "commands:",
            *(f"  {verb:<{width}}  {text}" for verb, text in VERBS.items()),
            "",
            "  -h, --help     Show this, or the options of a command.",
            "  -V, --version  Show the version.",
        ]
    )


def _be_lenient() -> None:
    """Show a question mark for what a terminal cannot show, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, StepladderError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}."
    # Here, not above: what a run needs is heavy, and most commands end well.
    from stepladder.runs.reasons import notes_of

    notes = notes_of(error)
    return f"{error} ({'; '.join(notes)})" if notes else str(error)


if __name__ == "__main__":
    sys.exit(main())
