r"""TLA+ values as TLC prints them, read into Python values.

| printed                       | read as                                          |
|-------------------------------|--------------------------------------------------|
| `7`, `TRUE`, `"text"`, `m1`   | int, bool, str, ModelValue                       |
| `<<1, 2>>`                    | tuple                                            |
| `{1, 2}`, `1..3`              | frozenset                                        |
| `[a |-> 1, b |-> 2]`          | TlaFunction with the strings "a" and "b" as keys |
| `(m1 :> 1 @@ m2 :> 2)`        | TlaFunction with the printed keys                |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias


class ModelValue(str):
    """A model constant that equals nothing but itself."""

    __slots__ = ()


@dataclass(frozen=True)
class TlaFunction(Mapping["TlaValue", "TlaValue"]):
    """A function or a record: keys in the order in which TLC printed them."""

    items_: tuple[tuple[TlaValue, TlaValue], ...]

    def __post_init__(self) -> None:
        assert len({key for key, _ in self.items_}) == len(self.items_), "a function has one value for each key"

    def __getitem__(self, key: TlaValue) -> TlaValue:
        for known, value in self.items_:
            if known == key:
                return value
        raise KeyError(key)

    def __iter__(self) -> Iterator[TlaValue]:
        return (key for key, _ in self.items_)

    def __len__(self) -> int:
        return len(self.items_)

    def __hash__(self) -> int:
        return hash(frozenset(self.items_))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TlaFunction) and frozenset(self.items_) == frozenset(other.items_)


TlaValue: TypeAlias = "int | bool | str | tuple[TlaValue, ...] | frozenset[TlaValue] | TlaFunction"

TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|<<|>>|\|->|:>|@@|\.\.|-?\d+|\w+|[\[\]{}(),])')


class ValueReader:
    """A reader of one printed value, by recursive descent."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        position = 0
        end = len(text.rstrip())
        while position < end:
            match = TOKEN.match(text, position)
            if match is None:
                raise ValueError(f"cannot read the value at {text[position : position + 20]!r}")
            self.tokens.append(match[1])
            position = match.end()
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if token == "" or (expected and token != expected):
            raise ValueError(f"expected {expected or 'a value'} but found {token or 'the end'}")
        self.at += 1
        return token

    def sequence(self, closing: str) -> list[TlaValue]:
        found: list[TlaValue] = []
        while self.peek() != closing:
            if found:
                self.take(",")
            found.append(self.value())
        self.take(closing)
        return found

    def value(self) -> TlaValue:
        token = self.take()
        match token:
            case "<<":
                return tuple(self.sequence(">>"))
            case "{":
                return frozenset(self.sequence("}"))
            case "[":
                return self.record()
            case "(":
                return self.function()
            case "TRUE" | "FALSE":
                return token == "TRUE"
        if token.startswith('"'):
            return re.sub(r"\\(.)", r"\1", token[1:-1])
        if re.fullmatch(r"-?\d+", token):
            if self.peek() == "..":
                self.take()
                return frozenset(range(int(token), int(self.take()) + 1))
            return int(token)
        return ModelValue(token)

    def record(self) -> TlaFunction:
        items: list[tuple[TlaValue, TlaValue]] = []
        while self.peek() != "]":
            if items:
                self.take(",")
            name = self.take()
            self.take("|->")
            items.append((name, self.value()))
        self.take("]")
        return TlaFunction(tuple(items))

    def function(self) -> TlaFunction:
        items: list[tuple[TlaValue, TlaValue]] = []
        while True:
            key = self.value()
            self.take(":>")
            items.append((key, self.value()))
            if self.peek() != "@@":
                break
            self.take("@@")
        self.take(")")
        return TlaFunction(tuple(items))


def parse_value(text: str) -> TlaValue:
    """Read one printed value. ValueError when it is not one."""
    reader = ValueReader(text)
    value = reader.value()
    if reader.peek():
        raise ValueError(f"unexpected {reader.peek()!r} after the value")
    return value


def show(value: TlaValue) -> str:
    """The value in the notation of TLA+, sets in a stable order."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case ModelValue():
            return str(value)
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case tuple():
            return "<<" + ", ".join(show(item) for item in value) + ">>"
        case frozenset():
            return "{" + ", ".join(sorted((show(item) for item in value), key=natural)) + "}"
        case TlaFunction():
            if all(type(key) is str for key in value):
                return "[" + ", ".join(f"{key} |-> {show(item)}" for key, item in value.items()) + "]"
            return "(" + " @@ ".join(f"{show(key)} :> {show(item)}" for key, item in value.items()) + ")"
    return str(value)


def natural(text: str) -> tuple[int, str]:
    """Sort numbers by value and everything else by text."""
    return (int(text), "") if re.fullmatch(r"-?\d+", text) else (0, text)


def to_json(value: TlaValue) -> object:
    """The value as JSON data: functions become objects, sets sorted lists."""
    match value:
        case tuple():
            return [to_json(item) for item in value]
        case frozenset():
            return [to_json(item) for item in sorted(value, key=lambda item: natural(show(item)))]
        case TlaFunction():
            return {str(key) if isinstance(key, str) else show(key): to_json(item) for key, item in value.items()}
        case ModelValue():
            return str(value)
    return value
