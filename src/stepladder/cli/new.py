"""``stepladder new``: write a small project with an env, its tasks, a training and tests.

The files lie beside this module, in ``project``, with names that end in ``.template``. They are a
project named my_env; another name replaces this one, in texts and in paths.
"""

import keyword
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import tyro

from stepladder.cli.inputs.parsing import parse
from stepladder.cli.output import console
from stepladder.configs.codec import Config
from stepladder.errors import ConfigError, shown

TEMPLATES = Path(__file__).with_name("project")
SUFFIX = ".template"
MODULE, CLASS, PACKAGE = "my_env", "MyEnv", "my-env"
"""The names that the templates have."""

MOST_LETTERS = 40
TAKEN = {"config", "runs", "tests", "train"}
"""Names of other things in the project."""


@dataclass(frozen=True, kw_only=True)
class NewArguments(Config):
    """Write a small project: an env, its tasks, a config, a training script and tests.

    All of it works as it is. Replace the env by your own, and keep the tests.
    """

    name: tyro.conf.Positional[str]
    """Name of the project, of its folder and of its Python module, such as my_env."""

    into: Path = Path()
    """Folder that the project's folder is made in; this one by default."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(NewArguments, argv, "new")
    folder = arguments.into / arguments.name
    written = write_project(arguments.name, folder)
    console.say(f"{folder}: {len(written)} files")
    for path in written:
        console.say(f"  {path}")
    console.say("next:")
    for line in (
        f"cd {folder}",
        "python -m pytest                                  # needs pytest",
        "stepladder train config.yaml --trust --out runs/a # --trust: the config names your code",
        "stepladder explain runs/a                         # why each stage stands where it does",
    ):
        console.say(f"  {line}")
    return 0


def write_project(name: str, folder: Path) -> list[Path]:
    """Write a project; return its files, relative to the folder.

    Args:
        name: Of the Python module.
        folder: Must not exist yet.

    Raises:
        ConfigError: The name cannot be that of a module, or the folder exists.
    """
    _require_name(name)
    texts = {
        Path(_renamed(str(path.relative_to(TEMPLATES)).removesuffix(SUFFIX), name)): _renamed(
            path.read_text(encoding="utf-8"), name
        )
        for path in sorted(TEMPLATES.rglob(f"*{SUFFIX}"))
    }
    try:
        folder.mkdir()
    except FileExistsError as error:
        raise ConfigError(
            f"there is already something at {folder}, and nothing is replaced. Choose another "
            "name, or remove it."
        ) from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConfigError(
            f"{folder.parent} is not a folder. Make it first, or choose another --into."
        ) from error
    try:
        for path, text in texts.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except BaseException:
        # Half a project would be in the way of the next attempt.
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return list(texts)


def _renamed(text: str, name: str) -> str:
    """Return a text of the templates with the names of another project."""
    words = [word for word in name.split("_") if word]
    kind = "".join(map(str.capitalize, words)).removesuffix("Env") + "Env"
    for old, new in ((MODULE, name), (CLASS, kind), (PACKAGE, "-".join(words))):
        text = text.replace(old, new)
    return text


def _require_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or len(name) > MOST_LETTERS:
        problem = f"must be of lower-case letters, digits and _, at most {MOST_LETTERS}"
    elif keyword.iskeyword(name) or name in TAKEN:
        problem = "must be a name that Python and the project do not use themselves"
    elif name in sys.stdlib_module_names or find_spec(name) is not None:
        problem = "must not be the name of a module that can be imported already"
    else:
        return
    raise ConfigError(f"the name of a project {problem}; got {shown(name)}. Try my_env.")
