"""Imports a module with its source changed. Must run before the module is imported: one process per mutant."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType


class _ChangedLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from its file, changed; never from or into the cache of compiled files."""

    change: Callable[[str], str]

    def get_code(self, fullname: str) -> object:  # type: ignore[override]  # the base says CodeType | None
        path = self.get_filename(fullname)
        source = self.change(self.get_data(path).decode())
        return compile(source, path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, change: Callable[[str], str]) -> None:
        self._module = module
        self._change = change

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        assert spec is not None and spec.origin is not None, f"{fullname} was not found"
        loader = _ChangedLoader(fullname, spec.origin)
        loader.change = self._change
        return importlib.util.spec_from_file_location(fullname, spec.origin, loader=loader)


def change_on_import(module: str, change: Callable[[str], str]) -> None:
    """From now on `module` is imported with `change` applied to its source."""
    assert module not in sys.modules, f"{module} is imported already"
    sys.meta_path.insert(0, _Finder(module, change))


def replacing(old: str, new: str) -> Callable[[str], str]:
    """A change of one place; the text must occur exactly once, or the mutant no longer fits the source."""

    def change(source: str) -> str:
        count = source.count(old)
        if count != 1:
            raise LookupError(f"the mutant does not fit its module any more: {old!r} occurs {count} times")
        return source.replace(old, new)

    return change


def replacing_in_function(function: str, old: str, new: str) -> Callable[[str], str]:
    """The same inside one function, in its syntax tree as `ast.unparse` prints it: `old` must occur there once."""

    def change(source: str) -> str:
        tree = ast.parse(source)
        holder, node = _find(tree, function)
        printed = ast.unparse(node)
        count = printed.count(old)
        if count != 1:
            raise LookupError(f"the mutant does not fit {function} any more: {old!r} occurs {count} times")
        holder.body[holder.body.index(node)] = ast.parse(printed.replace(old, new)).body[0]
        return ast.unparse(tree)

    return change


def _find(tree: ast.Module, function: str) -> tuple[ast.Module | ast.ClassDef, ast.stmt]:
    """The function of this qualified name, or the assignment to it, and what it stands in. Raises `LookupError`."""
    holder: ast.Module | ast.ClassDef = tree
    *classes, name = function.split(".")
    for class_name in classes:
        found = [node for node in holder.body if isinstance(node, ast.ClassDef) and node.name == class_name]
        if len(found) != 1:
            raise LookupError(f"the mutant does not fit its module any more: there is no class {class_name}")
        holder = found[0]
    for node in holder.body:
        if name in _names(node):
            return holder, node
    raise LookupError(f"the mutant does not fit its module any more: there is no function {function}")


def _names(node: ast.stmt) -> tuple[str, ...]:
    """What a statement gives a name to."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return (name,)
        case ast.Assign(targets=targets):
            return tuple(ast.unparse(target) for target in targets)
        case ast.AnnAssign(target=target):
            return (ast.unparse(target),)
    return ()
