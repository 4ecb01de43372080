"""Tokens of an SQL92 subscription, produced on demand.

    keyword     NOT AND OR BETWEEN IN TRUE FALSE NULL IS        any case
    identifier  [A-Za-z_$][A-Za-z0-9_$]*                        a property name, case matters
    string      '...'  with '' for one quote
    integer     0 | [1-9][0-9]* [lL]?
    float       digits . digits* exp? | . digits exp? | digits exp
    symbol      = <> < <= > >= ( ) , + -
    skipped     blank, tab, CR, LF, FF, -- to the line's end, /* ... */

On demand matters: RocketMQ's parser reads one token beyond a complete expression and ignores the rest, so an
illegal character far after it is not an error, and clients may rely on such expressions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

KEYWORDS: Final = frozenset({"NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS"})

_SKIP = re.compile(r"(?:[ \t\r\n\f]|--[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_TOKEN = re.compile(
    r"(?P<float>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)"
    r"|(?P<integer>0|[1-9][0-9]*[lL]?)"
    r"|(?P<word>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<string>'(?:[^']|'')*')"
    r"|(?P<symbol><>|<=|>=|[=<>(),+\-])"
)


class SqlSyntaxError(Exception):
    """The expression cannot be compiled. `position` counts characters from the start of the expression."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(position, reason)
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason} at character {self.position}"


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is keyword, identifier, string, integer, float, symbol or end; `text` is normalised."""

    kind: str
    text: str
    position: int


class Lexer:
    """A cursor over the expression that looks exactly one token ahead."""

    def __init__(self, text: str, tokens_max: int) -> None:
        self._text = text
        self._left = tokens_max
        self._at = 0
        self._ahead: Token | None = None

    def peek(self) -> Token:
        if self._ahead is None:
            self._ahead = self._read()
        return self._ahead

    def next(self) -> Token:
        token = self.peek()
        self._ahead = None
        return token

    def _read(self) -> Token:
        self._left -= 1
        if self._left < 0:
            raise SqlSyntaxError(self._at, "the expression has too many words")
        skipped = _SKIP.match(self._text, self._at)
        assert skipped is not None
        start = skipped.end()
        if start == len(self._text):
            self._at = start
            return Token("end", "", start)
        found = _TOKEN.match(self._text, start)
        if found is None:
            what = "an unterminated string" if self._text[start] == "'" else f"the character {self._text[start]!r}"
            raise SqlSyntaxError(start, f"{what} is not part of the language")
        self._at = found.end()
        assert self._at > start, "a token has a character at least: reading goes on"
        text = found.group()
        match found.lastgroup:
            case "word" if text.upper() in KEYWORDS:
                return Token("keyword", text.upper(), start)
            case "word":
                return Token("identifier", text, start)
            case "string":
                return Token("string", text[1:-1].replace("''", "'"), start)
            case kind:
                assert kind is not None
                return Token(kind, text, start)
