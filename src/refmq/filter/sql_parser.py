"""SQL92 subscriptions: from text to an expression.

    selector    := or                                   what follows a complete expression is ignored
    or          := and ( OR and )*
    and         := equality ( AND equality )*
    equality    := comparison ( = comparison | <> comparison | IS NULL | IS NOT NULL )*
    comparison  := unary ( < unary | <= unary | > unary | >= unary
                         | [NOT] BETWEEN unary AND unary | [NOT] IN ( string, ... )
                         | [NOT] CONTAINS string | [NOT] STARTSWITH string | [NOT] ENDSWITH string )*
    unary       := + unary | - unary | NOT unary | primary
    primary     := literal | identifier | ( or )

NOT and the unary minus bind tighter than a comparison: `NOT a = 1` means `(NOT a) = 1`. The rules that make an
expression illegal although it parses are those of RocketMQ's filter module, 4.9.8, oddities included (`0.0`
is illegal; `TRUE = 1` is, `1 = TRUE` is not), because a subscription must mean the same everywhere. The last line of
a comparison is that of 5.x. Its words are not keywords elsewhere, so every expression of 4.9.8 keeps its meaning,
except that the words after a complete operand were ignored there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from refmq.filter.sql_ast import (
    BOOLEAN,
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
from refmq.filter.sql_lexer import Lexer, SqlSyntaxError
from refmq.filter.work import DEPTH_MAX, TERMS_MAX, terms_and_depth

__all__ = ["DEPTH_MAX", "EXPRESSION_LENGTH_MAX", "SqlSyntaxError", "compile_expression"]

EXPRESSION_LENGTH_MAX = 32 * 1024
"""Longer than any property string can carry; keeps a hostile subscription from costing much."""

TOKENS_MAX = 2 * TERMS_MAX
"""Words and signs of one expression, so that one that is too long is given up soon."""

_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1
_COMPARISONS = frozenset({"<", "<=", ">", ">="})
_TEXT_TESTS = frozenset({"CONTAINS", "STARTSWITH", "ENDSWITH"})


def compile_expression(text: str) -> Expression:
    """The expression in `text`; raises `SqlSyntaxError` with the position of the first mistake."""
    if len(text) > EXPRESSION_LENGTH_MAX:
        raise SqlSyntaxError(EXPRESSION_LENGTH_MAX, f"the expression is longer than {EXPRESSION_LENGTH_MAX} characters")
    parser = _Parser(text)
    expression = parser.parse_or()
    parser.lexer.peek()  # one token ahead is read and must be legal, as upstream's parser does
    assert parser._depth == 0, "what was entered was left"
    _require_boolean(expression, 0)
    terms, depth = terms_and_depth(expression)
    if terms > TERMS_MAX:
        raise SqlSyntaxError(0, f"the expression has {terms} parts, more than {TERMS_MAX}")
    if depth > DEPTH_MAX:
        raise SqlSyntaxError(0, f"the parts of the expression are nested deeper than {DEPTH_MAX}")
    return expression


class _Parser:
    """Recursive descent; one method for each line of the grammar."""

    def __init__(self, text: str) -> None:
        self.lexer = Lexer(text, TOKENS_MAX)
        self._depth = 0

    def parse_or(self) -> Expression:
        operands = self._chain("OR", self.parse_and)
        return operands[0] if len(operands) == 1 else Or(operands)

    def parse_and(self) -> Expression:
        operands = self._chain("AND", self.parse_equality)
        return operands[0] if len(operands) == 1 else And(operands)

    def _chain(self, keyword: str, operand: Callable[[], Expression]) -> tuple[Expression, ...]:
        operands = [operand()]
        while self._accept("keyword", keyword):
            position = self.lexer.peek().position
            operands.append(_require_boolean(operand(), position))
            _require_boolean(operands[0], position)
        return tuple(operands)

    def parse_equality(self) -> Expression:
        left = self.parse_comparison()
        for _ in range(DEPTH_MAX):
            position = self.lexer.peek().position
            if self._accept("symbol", "="):
                left = _equal(left, self.parse_comparison(), position)
            elif self._accept("symbol", "<>"):
                left = Not(_equal(left, self.parse_comparison(), position))
            elif self._accept("keyword", "IS"):
                negated = self._accept("keyword", "NOT")
                self._expect("keyword", "NULL")
                left = IsNull(left, negated)
            else:
                return left
        raise SqlSyntaxError(self.lexer.peek().position, f"more than {DEPTH_MAX} comparisons in a row")

    def parse_comparison(self) -> Expression:
        left = self.parse_unary()
        while True:
            token = self.lexer.peek()
            if token.kind == "symbol" and token.text in _COMPARISONS:
                self.lexer.next()
                left = _compare(token.text, left, self.parse_unary(), token.position)
            elif token.kind == "keyword" and token.text in ("NOT", "BETWEEN", "IN"):
                left = self._between_or_in(left)
            elif self._is_text_test():
                left = self._text_test(left, negated=False)
            else:
                return left

    def _between_or_in(self, left: Expression) -> Expression:
        position = self.lexer.peek().position
        negated = self._accept("keyword", "NOT")
        if self._accept("keyword", "BETWEEN"):
            low = self.parse_unary()
            self._expect("keyword", "AND")
            return _between(left, low, self.parse_unary(), negated, position)
        if negated and self._is_text_test():
            return self._text_test(left, negated=True)
        self._expect("keyword", "IN")
        if not isinstance(left, Property):
            raise SqlSyntaxError(position, "the left side of IN must be a property")
        self._expect("symbol", "(")
        values = [self._expect_kind("string")]
        while self._accept("symbol", ","):
            values.append(self._expect_kind("string"))
        self._expect("symbol", ")")
        return In(left.name, frozenset(values), negated)

    def _is_text_test(self) -> bool:
        token = self.lexer.peek()
        return token.kind == "identifier" and token.text.upper() in _TEXT_TESTS

    def _text_test(self, left: Expression, *, negated: bool) -> Expression:
        operator = self.lexer.next().text.upper()
        assert operator in _TEXT_TESTS, "whoever asks for a text test has seen its name"
        return HasText(operator, left, self._expect_kind("string"), negated)

    def parse_unary(self) -> Expression:
        self._depth += 1
        token = self.lexer.peek()
        if self._depth > DEPTH_MAX:
            raise SqlSyntaxError(token.position, f"the expression is nested deeper than {DEPTH_MAX}")
        try:
            if self._accept("symbol", "+"):
                return self.parse_unary()
            if self._accept("symbol", "-"):
                return _negate(self.parse_unary())
            if self._accept("keyword", "NOT"):
                return Not(_require_boolean(self.parse_unary(), token.position))
            return self._primary()
        finally:
            self._depth -= 1

    def _primary(self) -> Expression:
        token = self.lexer.next()
        match token.kind, token.text:
            case "identifier", name:
                return Property(name)
            case "string", text:
                return Text(text)
            case "integer", digits:
                return _integer(digits, token.position)
            case "float", digits:
                return _float(digits, token.position)
            case "keyword", "TRUE" | "FALSE" | "NULL" as word:
                return Bool({"TRUE": True, "FALSE": False, "NULL": None}[word])
            case "symbol", "(":
                inside = self.parse_or()
                self._expect("symbol", ")")
                return inside
        raise SqlSyntaxError(token.position, f"expected a value but found {token.text or 'the end'!r}")

    def _accept(self, kind: str, text: str) -> bool:
        token = self.lexer.peek()
        if token.kind == kind and token.text == text:
            self.lexer.next()
            return True
        return False

    def _expect(self, kind: str, text: str) -> None:
        token = self.lexer.peek()
        if not self._accept(kind, text):
            raise SqlSyntaxError(token.position, f"expected {text} but found {token.text or 'the end'!r}")

    def _expect_kind(self, kind: str) -> str:
        token = self.lexer.next()
        if token.kind != kind:
            raise SqlSyntaxError(token.position, f"expected a {kind} but found {token.text or 'the end'!r}")
        return token.text


def _integer(digits: str, position: int) -> Number:
    value = int(digits.rstrip("lL"))
    assert value >= 0, "a sign is an operator"
    if value > _INT64_MAX:
        raise SqlSyntaxError(position, f"{digits} does not fit in 64 bits")
    return Number(value, NumberType.INT32 if value <= _INT32_MAX else NumberType.INT64)


def _float(digits: str, position: int) -> Number:
    value = float(digits)
    if value == 0.0 or math.isinf(value):
        raise SqlSyntaxError(position, f"{digits} is outside the range of a double")
    return Number(value, NumberType.DOUBLE)


def _negate(operand: Expression) -> Expression:
    if not isinstance(operand, Number):
        return Negate(operand)
    # 2147483648 is a 64-bit literal whose negation fits 32 bits: RocketMQ keeps the wider type.
    return Number(-operand.value, operand.type)


def _require_boolean(expression: Expression, position: int) -> Expression:
    if not isinstance(expression, (*BOOLEAN, Property)):
        raise SqlSyntaxError(position, "expected a truth value")
    return expression


def _equal(left: Expression, right: Expression, position: int) -> Expression:
    for side in (left, right):
        if side == Bool(None):
            raise SqlSyntaxError(position, "NULL cannot be compared; use IS NULL")
    if isinstance(left, Bool) and isinstance(right, (Number, Text)):
        raise SqlSyntaxError(position, "a truth value cannot be compared with a number or a string")
    return Equal(left, right)


def _compare(operator: str, left: Expression, right: Expression, position: int) -> Expression:
    assert operator in _COMPARISONS
    for side in (left, right):
        if not isinstance(side, (Number, Property, Negate)):
            raise SqlSyntaxError(position, f"{operator} needs numbers or properties")
    return Compare(operator, left, right)


def _between(left: Expression, low: Expression, high: Expression, negated: bool, position: int) -> Expression:
    if negated:
        return Or((_compare("<", left, low, position), _compare(">", left, high, position)))
    if isinstance(low, Number) and isinstance(high, Number) and high.value < low.value:
        raise SqlSyntaxError(position, "the upper bound of BETWEEN is below the lower one")
    return And((_compare(">=", left, low, position), _compare("<=", left, high, position)))
