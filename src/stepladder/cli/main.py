"""The command ``stepladder``: finds the verb, runs it, prints each error as one line.

Top of the package. The module of a verb is imported only when that verb is used, so that
``stepladder --help`` loads nothing heavy.
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
    "new": "Write a small project: an env with tasks, a training and tests.",
    "simulate": "Try a curriculum on a simulated learner.",
    "compare": "Compare curricula on simulated learners, over several seeds.",
    "sweep": "Search for good settings of a curriculum.",
    "calibrate": "Fit a simulated learner to trainings, to try other curricula on it.",
    "train": "Train an agent, or resume a training.",
    "eval": "Evaluate a policy on tasks and games that it was not trained on.",
    "doctor": "Say what is wrong with an env, a config or a run, and how to fix it.",
    "explain": "Explain why a run practises the tasks that it practises.",
    "dashboard": "Show runs, also running ones, on a local web page.",
    "report": "Make one HTML page with plots of one or more runs.",
    "tune": "Measure which numbers of envs and workers are fastest on this machine.",
    "watch": "Play an env, a level or the env of a run, in a window or into a film.",
    "play": "Play a game by hand, against a trained policy.",
    "completion": "Print a script that completes commands and flags in a shell.",
}
"""Every verb and what it does; each has a module of its name here, with `main(argv)`."""

HELP = f"""usage: stepladder COMMAND [OPTIONS]

Curricula for reinforcement learning: decide which task an agent practises next,
and find out in seconds whether the idea can work.

commands:
{chr(10).join(f"  {verb:<{max(map(len, VERBS))}}  {text}" for verb, text in VERBS.items())}

  -h, --help     Show this help; after a command, its options.
  -V, --version  Show the version."""

BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 2, 130, 141
"""Exit codes, as shells use them: the last two are 128 plus the number of the signal."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; return the exit code.

    Args:
        argv: Everything after ``stepladder``; by default the arguments of this process.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A question mark for each character that the terminal cannot show, instead of an error.
            stream.reconfigure(errors="replace")
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe, as head does. Python must not flush into it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except StepladderError as error:
        # Imported here: what a run needs is heavy, and most commands end well.
        from stepladder.runs.reasons import notes_of

        notes = notes_of(error)
        return fail(f"{error} ({'; '.join(notes)})" if notes else str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return fail(f"{where}{error.strerror or error}.")
    return code


def fail(text: str) -> int:
    """Print an error on standard error; return the exit code.

    The text becomes one line, unless it is a list: a sentence and an indented line per problem.
    """
    lines = text.splitlines()
    is_list = len(lines) > 2 and all(line.startswith("  ") for line in lines[1:])
    print(f"stepladder: {visible(text if is_list else ' '.join(text.split()))}", file=sys.stderr)
    return BAD_INPUT


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(HELP)
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


if __name__ == "__main__":
    sys.exit(main())
