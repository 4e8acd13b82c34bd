"""One meaning per name: no public class, and no constant that another module imports, has two."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import stepladder

SOURCE = Path(stepladder.__file__).parent
ONE_PER_METHOD = {"Constants", "Method", "Settings", "State"}
"""Every curriculum has one of each, which its kernels take; their modules import no other's."""


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax tree of every module, by its name."""
    return {
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): ast.parse(path.read_text())
        for path in sorted(SOURCE.rglob("*.py"))
    }


def top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Return statements of a module, those of its conditions too."""
    for node in tree.body:
        yield from node.body if isinstance(node, ast.If) else [node]


def assigned(node: ast.stmt) -> Iterator[str]:
    """Return names that a statement gives a value; type variables are local to their module."""
    if isinstance(node, ast.Assign) and "TypeVar(" not in ast.unparse(node.value):
        targets = [one for target in node.targets for one in getattr(target, "elts", [target])]
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    else:
        return
    yield from (one.id for one in targets if isinstance(one, ast.Name))


def imported() -> set[tuple[str, str]]:
    """Return the module and the name of everything that one module takes from another."""
    found = set()
    for tree in trees().values():
        modules = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    found.add((node.module, alias.name))
                    modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found.add((modules.get(node.value.id), node.attr))
    return found


def repeated(homes: dict[str, set[str]], allowed: set[str]) -> dict[str, list[str]]:
    return {
        name: sorted(modules)
        for name, modules in homes.items()
        if len(modules) > 1 and not name.startswith("_") and name not in allowed
    }


def test_no_public_class_name_has_two_meanings():
    homes = defaultdict(set)
    for module, tree in trees().items():
        for node in top_level(tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name].add(module)
    assert len(homes) > 400
    assert repeated(homes, ONE_PER_METHOD) == {}


def test_no_constant_that_other_modules_import_has_two_meanings():
    homes = defaultdict(set)
    for module, tree in trees().items():
        for node in top_level(tree):
            for name in assigned(node):
                homes[name].add(module)
    taken = imported()
    shared = {
        name: modules
        for name, modules in homes.items()
        if any((module, name) in taken for module in modules)
    }
    assert len(shared) > 200
    assert repeated(shared, {"logger"}) == {}
