"""Compiled SQL92 expressions, as values.

Literals carry the type that decides how a property is read in a comparison: a 32-bit or 64-bit integer, a
double, a string or a Boolean.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class NumberType(Enum):
    """How wide a number is; a property compared with it is parsed as this type."""

    INT32 = "int"
    INT64 = "long"
    DOUBLE = "double"


@dataclass(frozen=True, slots=True)
class Number:
    value: int | float
    type: NumberType


@dataclass(frozen=True, slots=True)
class Text:
    value: str


@dataclass(frozen=True, slots=True)
class Bool:
    """TRUE, FALSE, or NULL as a Boolean (None)."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Property:
    name: str


@dataclass(frozen=True, slots=True)
class Negate:
    """Unary minus of something that is not a literal."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression


@dataclass(frozen=True, slots=True)
class And:
    """All operands of a chain, from left to right: a long chain must not become a deep tree."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """All operands of a chain, from left to right: a long chain must not become a deep tree."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Equal:
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Compare:
    """`operator` is one of < <= > >=."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class In:
    name: str
    values: frozenset[str]
    negated: bool


@dataclass(frozen=True, slots=True)
class HasText:
    """Whether a string contains, starts with or ends with another one: 5.x only. `operator` is the keyword."""

    operator: str
    operand: Expression
    text: str
    negated: bool


Expression: TypeAlias = (
    Number | Text | Bool | Property | Negate | Not | And | Or | Equal | Compare | IsNull | In | HasText
)

BOOLEAN: tuple[type, ...] = (Bool, Not, And, Or, Equal, Compare, IsNull, In, HasText)
"""What may stand where a truth value is needed, besides a bare property."""
