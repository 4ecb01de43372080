"""What an SQL92 expression says of a message: TRUE, FALSE, NULL, or an error that counts as no match.

Properties are strings or missing. A comparison with a literal reads the property as the literal's type; a
property that cannot be read that way is an evaluation error, unless AND or OR never got that far.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TypeAlias, assert_never

from refmq.filter.sql_ast import (
    And,
    Bool,
    Compare,
    Equal,
    Expression,
    HasText,
    In,
    IsNull,
    Negate,
    Not,
    Number,
    NumberType,
    Or,
    Property,
    Text,
)

Truth: TypeAlias = bool | None
"""Three-valued: None is NULL."""

Value: TypeAlias = Number | Text | bool | None

_INTEGER = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)
_DOUBLE = re.compile(
    r"[\x00-\x20]*[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)[\x00-\x20]*\Z", re.ASCII
)
_JAVA_BLANKS = "".join(map(chr, range(0x21)))
"""What Java trims: every character up to the blank."""
_DIGITS_MAX = 20
"""No 64-bit number has more; avoids converting a hostile property."""


class EvaluationError(Exception):
    """A property cannot be read as the type that the expression needs. The message does not match."""


def matches(expression: Expression, properties: Mapping[str, str]) -> bool:
    """Whether a message with these properties is wanted: only TRUE is yes."""
    try:
        return evaluate(expression, properties) is True
    except EvaluationError:
        return False


def evaluate(expression: Expression, properties: Mapping[str, str]) -> Truth:
    """The truth value of the expression. A bare property is never TRUE, whatever it holds."""
    value = _value(expression, properties)
    if isinstance(value, (Number, Text)):
        return False
    return value


def _value(expression: Expression, properties: Mapping[str, str]) -> Value:
    match expression:
        case Number() | Text():
            return expression
        case Bool(value):
            return value
        case Property(name):
            found = properties.get(name)
            return None if found is None else Text(found)
        case Negate(operand):
            value_ = _value(operand, properties)
            return Number(-value_.value, value_.type) if isinstance(value_, Number) else None
        case Not(operand):
            truth = evaluate(operand, properties)
            return None if truth is None else not truth
        case And(operands):
            return _and(operands, properties)
        case Or(operands):
            return _or(operands, properties)
        case Equal(left, right):
            return _equal(_value(left, properties), _value(right, properties))
        case Compare(operator, left, right):
            return _compare(operator, _value(left, properties), _value(right, properties))
        case IsNull(operand, negated):
            return (_value(operand, properties) is None) != negated
        case In(name, values, negated):
            found = properties.get(name)
            return None if found is None else (found in values) != negated
        case HasText(operator, operand, text, negated):
            return _has_text(operator, _value(operand, properties), text, negated)
        case _:
            assert_never(expression)


def _and(operands: tuple[Expression, ...], properties: Mapping[str, str]) -> Truth:
    """The first FALSE decides and hides errors after it; otherwise one NULL makes it NULL."""
    result: Truth = True
    for operand in operands:
        truth = evaluate(operand, properties)
        if truth is False:
            return False
        if truth is None:
            result = None
    return result


def _or(operands: tuple[Expression, ...], properties: Mapping[str, str]) -> Truth:
    """The first TRUE decides and hides errors after it; otherwise one NULL makes it NULL."""
    result: Truth = False
    for operand in operands:
        truth = evaluate(operand, properties)
        if truth is True:
            return True
        if truth is None:
            result = None
    return result


def _has_text(operator: str, value: Value, text: str, negated: bool) -> bool:
    """FALSE for anything but a string, and for the empty text, negated or not. (ComparisonExpression, 5.3.3.)"""
    if not isinstance(value, Text) or not text:
        return False
    match operator:
        case "CONTAINS":
            found = text in value.value
        case "STARTSWITH":
            found = value.value.startswith(text)
        case _:
            assert operator == "ENDSWITH"
            found = value.value.endswith(text)
    return found != negated


def _equal(left: Value, right: Value) -> Truth:
    if left is None and right is None:
        return True
    if left is None:
        return None
    if right is None:
        return False
    if isinstance(left, Text) and isinstance(right, Text):
        return left.value == right.value
    return _typed_order(left, right) == 0


def _compare(operator: str, left: Value, right: Value) -> Truth:
    if left is None or right is None:
        return None
    if isinstance(left, Text) and isinstance(right, Text):
        order = _order(_double(left.value), _double(right.value))
    else:
        order = _typed_order(left, right)
    match operator:
        case "<":
            return order < 0
        case "<=":
            return order <= 0
        case ">":
            return order > 0
        case _:
            assert operator == ">="
            return order >= 0


def _typed_order(left: Value, right: Value) -> int:
    """-1, 0 or 1. Values of types that cannot be brought together count as "left is smaller"."""
    match left, right:
        case Text(text), Number(value, type_):
            return _order(_read(text, type_), value)
        case Number(value, type_), Text(text):
            return _order(value, _read(text, type_))
        case Number(a), Number(b):
            return _order(a, b)
        case Text(text), bool(truth):
            return _order(text.lower() == "true", truth)
        case bool(), Text():
            raise EvaluationError("a truth value cannot be compared with a string")
        case bool(a), bool(b):
            return _order(a, b)
        case _:
            return -1


def _order(left: float, right: float) -> int:
    """As Java orders boxed doubles: NaN equals NaN and is above everything, integers compare exactly."""
    left_nan, right_nan = math.isnan(left), math.isnan(right)
    if left_nan or right_nan:
        return int(left_nan) - int(right_nan)
    return (left > right) - (left < right)


def _read(text: str, type_: NumberType) -> int | float:
    if type_ is NumberType.DOUBLE:
        return _double(text)
    bits = 31 if type_ is NumberType.INT32 else 63
    digits = text.lstrip("+-").lstrip("0")
    if not _INTEGER.match(text) or len(digits) > _DIGITS_MAX:
        raise EvaluationError(f"{text[:40]!r} is not an integer")
    value = int(digits or "0") * (-1 if text.startswith("-") else 1)
    if not -(2**bits) <= value < 2**bits:
        raise EvaluationError(f"{text[:40]!r} does not fit in {bits + 1} bits")
    return value


def _double(text: str) -> float:
    if not _DOUBLE.match(text):
        raise EvaluationError(f"{text[:40]!r} is not a number")
    return float(text.strip(_JAVA_BLANKS).rstrip("fFdD"))
