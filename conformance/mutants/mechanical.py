"""Mutants by rule, from the syntax tree of a module.

| rule      | what it does                                                        |
|-----------|---------------------------------------------------------------------|
| drop      | leaves out a call that stands for its effect: a flush, a write, ... |
| swap      | exchanges two neighbouring statements that both are calls           |
| compare   | < for <=, == for !=, and back                                       |
| constant  | one more or one less                                                |
| guard     | an `if` that never holds, or always                                 |
| boolean   | `and` for `or`, and back                                            |
| loop      | `continue` for `break`, and back                                    |
| keep      | leaves out an assignment to an attribute: the state stays as it was |
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parent.parent.parent / "src"

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@dataclass(frozen=True, slots=True)
class Mechanical:
    """One place of one module and the rule that changes it."""

    module: str
    number: int
    rule: str
    line: int
    text: str
    """The line as it stands in the source."""

    @property
    def name(self) -> str:
        return f"{self.module.rpartition('.')[2]}:{self.number}"


def source_of(module: str) -> str:
    return (SOURCES / (module.replace(".", "/") + ".py")).read_text()


def mutants_of(module: str) -> list[Mechanical]:
    """All mutants of a module, in the order of its text."""
    source = source_of(module)
    lines = source.splitlines()
    found = []
    for number, (rule, node, _) in enumerate(_places(ast.parse(source))):
        line = getattr(node, "lineno", 0)
        found.append(Mechanical(module, number, rule, line, lines[line - 1].strip() if line else ""))
    return found


def changed(source: str, number: int) -> str:
    """The source with place `number` changed."""
    tree = ast.parse(source)
    for position, (_, _, change) in enumerate(_places(tree)):
        if position == number:
            change()
            return ast.unparse(ast.fix_missing_locations(tree))
    raise LookupError(f"there is no place {number}")


_Place = tuple[str, ast.AST, Callable[[], None]]


def _places(tree: ast.Module) -> Iterator[_Place]:
    """Every place that can be changed and what changes it. Nothing is changed while this is walked."""
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in function.body
        for node in (function, *ast.walk(statement))
    }
    for node in ast.walk(tree):
        if id(node) in inside:
            yield from _in_block(node)
            yield from _in_expression(node)


def _in_block(node: ast.AST) -> Iterator[_Place]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if not isinstance(block, list):
            continue
        for position, statement in enumerate(block):
            if _is_effect(statement):
                yield "drop", statement, _setter(block, position, ast.Pass())
                if position + 1 < len(block) and _is_effect(block[position + 1]):
                    yield "swap", statement, _swapper(block, position)
            elif isinstance(statement, ast.Assign | ast.AugAssign) and _is_attribute(statement):
                yield "keep", statement, _setter(block, position, ast.Pass())
            elif isinstance(statement, ast.Break):
                yield "loop", statement, _setter(block, position, ast.Continue())
            elif isinstance(statement, ast.Continue):
                yield "loop", statement, _setter(block, position, ast.Break())
            elif isinstance(statement, ast.If):
                for value in (False, True):
                    yield "guard", statement, _attribute_setter(statement, "test", ast.Constant(value))


def _in_expression(node: ast.AST) -> Iterator[_Place]:
    if isinstance(node, ast.Compare):
        for position, operator in enumerate(node.ops):
            other = _COMPARISONS.get(type(operator))
            if other is not None:
                yield "compare", node, _setter(node.ops, position, other())
    elif isinstance(node, ast.BoolOp):
        yield "boolean", node, _attribute_setter(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        for step in (1, -1):
            yield "constant", node, _attribute_setter(node, "value", node.value + step)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield "constant", node, _attribute_setter(node, "op", ast.Sub() if isinstance(node.op, ast.Add) else ast.Add())


def _is_effect(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call | ast.Await)


def _is_attribute(statement: ast.Assign | ast.AugAssign) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return all(isinstance(target, ast.Attribute | ast.Subscript) for target in targets)


def _setter(items: Any, position: int, value: ast.AST) -> Callable[[], None]:
    def change() -> None:
        items[position] = value

    return change


def _swapper(items: Any, position: int) -> Callable[[], None]:
    def change() -> None:
        items[position], items[position + 1] = copy.copy(items[position + 1]), copy.copy(items[position])

    return change


def _attribute_setter(node: ast.AST, name: str, value: object) -> Callable[[], None]:
    def change() -> None:
        setattr(node, name, value)

    return change
