"""Names of code: what a run keeps of a class or a function, and how it is found again."""

import sys
from functools import partial
from types import ModuleType, SimpleNamespace

import pytest

from stepladder import named
from stepladder.errors import ConfigError


def wrap() -> None:
    """Stand for a function of the user's own."""


def test_a_function_is_found_under_the_name_of_its_module() -> None:
    name = named.name_of(wrap, "must be a function")
    assert name == f"{__name__}:wrap"
    assert named.find_function(name, "a function") is wrap
    assert named.name_of(name, "must be a function") == name
    with pytest.raises(ConfigError, match="must be a function; got 3"):
        named.name_of(3, "must be a function")


def test_what_has_no_name_of_its_own_gets_a_number() -> None:
    short = partial(wrap)
    name = named.name_of(short, "")
    assert named.was_local(name)
    assert named.find(name, "a function") is short
    with pytest.raises(ConfigError, match="was defined in a notebook or a function"):
        named.find(f"{__name__}:nobody.<locals>.Gone", "a class")


@pytest.mark.parametrize(
    ("file", "spec", "module"),
    [
        ("/somewhere/mine.py", None, "mine"),
        ("/somewhere/my-script.py", None, "__main__"),
        (None, None, "__main__"),
        ("/somewhere/package/tool.py", "package.tool", "package.tool"),
    ],
)
def test_what_a_script_defines_is_named_as_another_process_can_import_it(
    monkeypatch: pytest.MonkeyPatch, file: str | None, spec: str | None, module: str
) -> None:
    main = ModuleType("__main__")
    vars(main).update(__file__=file, __spec__=spec and SimpleNamespace(name=spec))
    monkeypatch.setitem(sys.modules, "__main__", main)
    mine = type("Mine", (), {"__module__": "__main__"})
    assert named.name_of(mine, "") == f"{module}:Mine"
    assert named.find(f"{module}:Mine", "a class") is mine


def test_a_module_that_fails_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str) -> None:
        raise SyntaxError("invalid syntax (mine.py, line 3)")

    monkeypatch.setattr(named, "import_module", fails)
    with pytest.raises(ConfigError, match=r"SyntaxError: invalid syntax .* Fix its code\."):
        named.find("mine:x", "anything")
