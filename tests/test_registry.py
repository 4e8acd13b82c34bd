import sys
from pathlib import Path
from typing import Any

import pytest

from stepladder.errors import ConfigError
from stepladder.registry import Registry


def require_class(name: str, entry: Any) -> None:
    if not isinstance(entry, type):
        raise ConfigError(f"{name} must be a class; got {entry!r}.")


def made() -> Registry[type]:
    return Registry("colours", require_class, {"path": "pathlib:Path"})


def installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: str, module: str = ""
) -> None:
    """Put a package with entry points on the path, as an installer would."""
    info = tmp_path / "shades-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shades\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)
    (tmp_path / "shades.py").write_text(module)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "shades", raising=False)


def test_built_in_entry_is_imported_when_asked_for() -> None:
    assert made()["path"] is Path


def test_decorated_class_has_a_name() -> None:
    registry = made()

    @registry.register("red")
    class Red:
        pass

    assert registry["red"] is Red
    assert registry.names() == ("path", "red")
    assert "red" in registry


def test_notebook_cell_may_run_again_but_a_taken_name_is_refused() -> None:
    registry = made()

    def cell() -> type:
        @registry.register("red")
        class Red:
            pass

        return Red

    cell()
    assert registry["red"] is not cell.__class__
    second = cell()
    assert registry["red"] is second
    with pytest.raises(ConfigError, match="already have an entry 'red'"):
        registry.register("red")(int)
    with pytest.raises(ConfigError, match="already have an entry 'path'"):
        registry.register("path")(int)


def test_unsuitable_entry_is_refused() -> None:
    with pytest.raises(ConfigError, match="red must be a class"):
        made().register("red")("no class")


def test_installed_package_adds_its_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(
        tmp_path, monkeypatch, "[stepladder.colours]\nblue = shades:Blue\n", "class Blue: pass\n"
    )
    registry = made()
    assert registry.names() == ("path", "blue")
    assert "shades" not in sys.modules
    assert registry["blue"].__name__ == "Blue"


def test_broken_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, "[stepladder.colours]\nblue = shades:Blue\n", "1 / 0\n")
    with pytest.raises(ConfigError, match=r"'shades:Blue'.*ZeroDivisionError"):
        made()["blue"]


@pytest.mark.parametrize("name", ["green", 3, None])
def test_unknown_name_lists_what_there_is(name: Any) -> None:
    with pytest.raises(ConfigError, match="there are path"):
        made()[name]
