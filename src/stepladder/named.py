"""Code of the user by its name: a class, a function or a list of a module, as ``module:name``.

Configs and runs hold names, never code; here a name becomes what it stands for, and back. Used for
envs (`envs.ids`), wrappers, ways to deliver a task, and tasks. Finding a name imports its module,
which runs code. That is right for a name that the user has typed; for a name from a file,
`runs.trust` asks first.
"""

import sys
from collections.abc import Callable
from functools import partial, reduce
from importlib import import_module
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from stepladder.errors import ConfigError, shown

MAIN = "__main__"

MODULE_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What the code of a module raises that is wrong."""

_given: dict[str, Any] = {}
"""What this process was given, by the name that stands for it."""


def module_of(text: str) -> str | None:
    """Return the module that a name is imported from; None if the text names none.

    Example:
        >>> module_of("minigrid:MiniGrid-Empty-5x5-v0"), module_of("CartPole-v1")
        ('minigrid', None)
    """
    module, colon, _ = text.partition(":")
    return module if colon else None


def is_named(value: Any) -> str | None:
    """Refuse what is no text of the form ``module:name``; a limit of a config's field."""
    module, colon, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if colon and name and all(part.isidentifier() for part in module.split(".")):
        return None
    return f"must be module:name, such as my_worlds:make; got {shown(value)}. Correct it."


def name_of(thing: Any, refusal: str) -> str:
    """Return the name that stands for a class, a function or an object in configs and runs.

    It is found under its name again in this process; another process imports its module. What was
    defined in a notebook or inside a function must be given again there.

    Args:
        thing: What is named; a text is its own name.
        refusal: Begins the message, such as "env must be an id or a function".

    Raises:
        ConfigError: It has no name.
    """
    if isinstance(thing, str):
        return thing
    made: Any = cast("Any", thing).func if isinstance(thing, partial) else thing
    if not callable(made) or not hasattr(made, "__qualname__"):
        raise ConfigError(f"{refusal}; got {shown(cast('object', thing))}.")
    name = f"{_module_of(made)}:{made.__qualname__}"
    if "<" in name or made is not thing:
        # Many functions can have such a name; each gets its own.
        numbered = (f"{name}#{number}" for number in count(1))
        name = next(one for one in numbered if _given.get(one, thing) is thing)
    _given[name] = thing
    return name


def _module_of(made: Any) -> str:
    """Return the module under which another process can import what was made here."""
    if made.__module__ != MAIN:
        return made.__module__
    main = sys.modules[MAIN]
    spec, path = getattr(main, "__spec__", None), Path(getattr(main, "__file__", None) or "")
    if spec is not None:
        return spec.name
    # A script can be imported under the name of its file, from its folder.
    return path.stem if path.suffix == ".py" and path.stem.isidentifier() else MAIN


def give(name: str, thing: Any) -> None:
    """Let a name stand for something in this process."""
    _given[name] = thing


def given(name: str) -> Any:
    """Return what a name was given for in this process; None if it was not."""
    return _given.get(name)


def find(text: str, purpose: str) -> Any:
    """Return what a name stands for.

    Args:
        text: Such as ``package.module:make_env``.
        purpose: What it is for, as in "a function that makes an env".

    Raises:
        ConfigError: The module cannot be imported, or there is nothing of this name.
    """
    if text in _given:
        return _given[text]
    module, colon, name = text.partition(":")
    if not colon or not name:
        raise ConfigError(f"{text!r} has no module. Write module:name, with {purpose}.")
    found = attribute(imported(module), name)
    if found is None and was_local(text):
        raise ConfigError(
            f"{text!r} was defined in a notebook or a function, and cannot be found from here. Put "
            "it into a module."
        )
    if found is None:
        raise ConfigError(f"{module} has no {name!r}. Name {purpose}.")
    return found


def find_function(text: str, purpose: str) -> Callable[..., Any]:
    """Return the function or class that a name stands for; raises as `find` does."""
    found = find(text, purpose)
    if not callable(found):
        raise ConfigError(f"{text} is {shown(found)}, which is no function. Name {purpose}.")
    return found


def was_local(text: str) -> bool:
    """Whether a name stands for something that only the process which named it has."""
    module, _, name = text.partition(":")
    return module == MAIN or "<" in name or "#" in name


def attribute(module: ModuleType | None, name: str) -> Any:
    """Return what a module has under a name with dots; None if nothing."""
    return reduce(lambda found, part: getattr(found, part, None), name.split("."), module)


def imported(module: str) -> ModuleType:
    """Import a module by its name.

    Raises:
        ConfigError: There is no such module, or it raises an error while it is imported.
    """
    if not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(
            f"{module!r} is not the name of a module. Write it as in an import: package.module."
        )
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"the module {module!r} cannot be imported: {error}. Correct its name, or start in "
            "the folder that holds it."
        ) from error
    except MODULE_ERRORS as error:
        raise ConfigError(
            f"the module {module!r} cannot be imported: {type(error).__name__}: {error}. Fix its "
            "code."
        ) from error
