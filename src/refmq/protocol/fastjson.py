"""Reading the JSON dialect of fastjson, in which Java peers write bodies and configuration files.

It is JSON, and besides:

    deviation                        example                                         why it occurs
    -------------------------------  ----------------------------------------------  -----------------------------------
    numbers as keys                  ``{0:12,3:0}``                                  maps with integer keys
    objects as keys                  ``{{"queueId":2,"topic":"T"}:11}``              maps keyed by a message queue
    references                       ``{"$ref":"$.a.b[0]"}``, ``"@"``, ``".."``      one Java object at two places
    single quotes, bare words as     ``{'a':1,b:2,}``                                 never written by Java, but read by
    keys, a comma before the end                                                     it, so somebody may rely on it

Comments are not read. A reference stands for the value at its path: ``$`` is the document, ``.name`` and ``[index]``
step into it, a backslash in a name quotes the next character; ``@`` is the innermost object around the reference and
``..`` the one around that. References are resolved, not copied, so a document can be a graph; a reader that walks it
has to count its steps (``bodies.codec`` does), because a few shared objects can unfold to any size.

Limits: nesting, digits of a number, the number of values in a document, and of escapes in unusual strings.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from refmq.errors import WireError

DEPTH_MAX: Final = 64  # the deepest body has 8 levels
DIGITS_MAX: Final = 400  # the longest double written in full has 309
VALUES_MAX: Final = 500_000  # statistics of 60,000 queues; plain JSON and offset tables are read otherwise, see bodies
ESCAPES_MAX: Final = (
    100_000  # in strings that the standard library does not read: with single quotes, or with \\x escapes
)

_SPACE: Final = re.compile(r"[ \t\r\n\f\b]*")
_STRING: Final = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_PLAIN_STRING: Final = json.JSONDecoder(strict=False)
_CHUNK: Final = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_BARE_WORD: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_HEX: Final = re.compile(r"[0-9a-fA-F]+")
_ESCAPES: Final = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_CONSTANTS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_PATH_STEP: Final = re.compile(r"\.((?:[^.\[\\]|\\.)+)|\[([0-9]{1,9})\]")


@dataclass(slots=True, eq=False)
class JsonArray:
    """An array, and where it begins in the document, counted in bytes."""

    offset: int
    items: list[JsonValue] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class JsonObject:
    """An object: its members in their order. A key is a string, a number or, in maps keyed by objects, an object."""

    offset: int
    members: list[tuple[JsonValue, JsonValue]] = field(default_factory=list)

    def get(self, name: str) -> JsonValue:
        """The member ``name``, the last one if there are several, None if there is none."""
        return next((value for key, value in reversed(self.members) if key == name), None)


JsonValue: TypeAlias = "bool | int | float | str | JsonArray | JsonObject | None"


@dataclass(slots=True, eq=False)
class _Reference(JsonObject):
    """A ``{"$ref": path}`` before it is resolved, with the containers around it, outermost first."""

    path: str = ""
    around: tuple[JsonArray | JsonObject, ...] = ()


def parse(data: bytes, *, base: int = 0) -> JsonValue:
    """The value of a document. ``WireError`` with the byte offset (from ``base``) of the first thing that is wrong."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise WireError("JSON text", base + error.start, "UTF-8", "an invalid byte") from None
    return _Parser(data, base).document()


class _Parser:
    """One pass over the text; ``_at`` is the position.

    The bytes are looked at as Latin-1, one character for each, so that a position is a byte offset. All that matters
    to the grammar is ASCII; what stands between quotes is turned back into bytes and read as UTF-8.
    """

    __slots__ = ("_at", "_base", "_containers", "_escapes", "_positions", "_references", "_text", "_values")

    def __init__(self, data: bytes, base: int) -> None:
        self._text = data.decode("latin-1")
        self._base = base
        self._at = 0
        self._values = 0
        self._escapes = 0
        self._containers: list[JsonArray | JsonObject] = []
        self._references: list[tuple[_Reference, JsonArray | JsonObject, int, bool]] = []
        self._positions: dict[
            int, dict[str | None, int]
        ] = {}  # of members by name, for objects that paths lead through

    def document(self) -> JsonValue:
        value = self._value()
        if self._peek():
            raise self._error("the end of the text")
        if isinstance(value, _Reference):
            raise WireError("$ref", value.offset, "a path inside the document", repr(value.path[:40]))
        assert not self._containers, "what was entered was left"
        self._resolve_all(value)
        return value

    # Small pieces ------------------------------------------------------------------------------

    def _error(self, expected: str, at: int | None = None) -> WireError:
        at = self._at if at is None else at
        found = repr(self._text[at : at + 10]) if at < len(self._text) else "the end"
        return WireError("JSON text", self._base + at, expected, found)

    def _peek(self) -> str:
        """The next character that is not white space, or nothing at the end."""
        match = _SPACE.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return self._text[self._at : self._at + 1]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._error(repr(character))
        self._at += 1

    # Values ------------------------------------------------------------------------------------

    def _value(self) -> JsonValue:
        self._values += 1
        if self._values > VALUES_MAX:
            raise self._error(f"at most {VALUES_MAX} values")
        character = self._peek()
        if character in {'"', "'"}:
            return self._string(character)
        if character == "{":
            return self._object()
        if character == "[":
            return self._array()
        match = _NUMBER.match(self._text, self._at)
        if match is not None:
            return self._number(match)
        match = _BARE_WORD.match(self._text, self._at)
        if match is None or match.group() not in _CONSTANTS:
            raise self._error("a value")
        self._at = match.end()
        return _CONSTANTS[match.group()]

    def _number(self, match: re.Match[str]) -> int | float:
        text = match.group()
        if len(text) > DIGITS_MAX:
            raise self._error(f"a number of at most {DIGITS_MAX} characters")
        self._at = match.end()
        if match.group(1) is None and match.group(2) is None:
            return int(text)
        number = float(text)
        if number - number != 0:  # infinite
            raise self._error("a number that a double can hold", match.start())
        return number

    def _string(self, quote: str) -> str:
        start = self._at
        if quote == '"':
            match = _STRING.match(self._text, start)
            if match is not None:
                text = _utf8(match.group(1))
                if "\\" not in text:
                    self._at = match.end()
                    return text
                try:
                    text = _PLAIN_STRING.decode(f'"{text}"')
                except json.JSONDecodeError:
                    pass  # an escape only fastjson knows, or an invalid one: the loop below decides
                else:
                    self._at = match.end()
                    return self._joined([text], start)
        self._at += 1
        pieces: list[str] = []
        while True:
            match = _CHUNK[quote].match(self._text, self._at)
            assert match is not None
            pieces.append(_utf8(match.group()))
            self._at = match.end()
            if self._at == len(self._text):
                raise self._error("a closing quote")
            if self._text[self._at] == quote:
                self._at += 1
                return self._joined(pieces, start)
            pieces.append(self._escape())

    def _escape(self) -> str:
        assert self._text[self._at] == "\\", "only a backslash begins an escape"
        self._escapes += 1
        if self._escapes > ESCAPES_MAX:
            raise self._error(f"at most {ESCAPES_MAX} escapes outside plain strings")
        kind = self._text[self._at + 1 : self._at + 2]
        digits = {"u": 4, "x": 2}.get(kind)
        if digits is None:
            if kind not in _ESCAPES:
                raise self._error("a known escape")
            self._at += 2
            return _ESCAPES[kind]
        code = self._text[self._at + 2 : self._at + 2 + digits]
        if len(code) < digits or not _HEX.fullmatch(code):
            raise self._error(f"{digits} hexadecimal digits")
        self._at += 2 + digits
        return chr(int(code, 16))

    def _joined(self, pieces: list[str], start: int) -> str:
        """The string; two escapes that are the halves of one character become that character."""
        text = "".join(pieces)
        if _HALF_PAIR.search(text):
            try:
                return text.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError:
                raise self._error("text of whole characters", start) from None
        return text

    def _array(self) -> JsonArray:
        array = JsonArray(self._enter())
        self._containers.append(array)
        while self._peek() != "]":
            value = self._value()
            array.items.append(value)
            if isinstance(value, _Reference):
                self._references.append((value, array, len(array.items) - 1, False))
            if self._peek() != "]":
                self._expect(",")
        self._leave()
        return array

    def _object(self) -> JsonObject:
        result = JsonObject(self._enter())
        self._containers.append(result)
        while self._peek() != "}":
            key = self._key()
            self._expect(":")
            value = self._value()
            result.members.append((key, value))
            for part, is_key in ((key, True), (value, False)):
                if isinstance(part, _Reference):
                    self._references.append((part, result, len(result.members) - 1, is_key))
            if self._peek() != "}":
                self._expect(",")
        self._leave()
        match result.members:
            case [("$ref", str(path))]:
                return _Reference(result.offset, path=path, around=tuple(self._containers))
        return result

    def _key(self) -> JsonValue:
        match = _BARE_WORD.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
            return match.group()
        key = self._value()
        if key is None or isinstance(key, bool | JsonArray):
            raise self._error("a string, a number or an object before a colon")
        return key

    def _enter(self) -> int:
        if len(self._containers) >= DEPTH_MAX:
            raise self._error(f"at most {DEPTH_MAX} levels")
        self._at += 1
        return self._base + self._at - 1

    def _leave(self) -> None:
        assert self._text[self._at] in "]}", "a container ends at its bracket"
        self._at += 1
        self._containers.pop()

    # References --------------------------------------------------------------------------------

    def _resolve_all(self, root: JsonValue) -> None:
        for reference, holder, index, is_key in self._references:
            target = self._resolve(reference, root)
            if isinstance(holder, JsonArray):
                holder.items[index] = target
            else:
                key, value = holder.members[index]
                holder.members[index] = (target, value) if is_key else (key, target)

    def _resolve(self, reference: _Reference, root: JsonValue) -> JsonValue:
        path, around = reference.path, reference.around
        assert around, "a reference that is the whole document is refused"
        target: JsonValue
        if path == "@":
            target = around[-1]
        elif path == "..":
            target = around[-2] if len(around) > 1 else None
        else:
            target = self._walk(root, path)
        if target is None or isinstance(target, _Reference):
            raise WireError("$ref", reference.offset, "a path to a value that stands before it", repr(path[:40]))
        return target

    def _walk(self, root: JsonValue, path: str) -> JsonValue:
        """The value at a path such as ``$.a.b[0]``, or None when there is none."""
        if not path.startswith("$"):
            return None
        at, target = 1, root
        for _ in range(DEPTH_MAX):
            if at == len(path):
                return target
            match = _PATH_STEP.match(path, at)
            if match is None:
                return None
            at = match.end()
            name, index = match.group(1), match.group(2)
            if isinstance(target, JsonArray):
                target = target.items[int(index)] if index is not None and int(index) < len(target.items) else None
            elif isinstance(target, JsonObject):
                target = self._member(target, index if name is None else re.sub(r"\\(.)", r"\1", name))
            else:
                return None
        return None

    def _member(self, holder: JsonObject, name: str) -> JsonValue:
        positions = self._positions.get(id(holder))
        if positions is None:
            positions = {key_text(key): position for position, (key, _) in enumerate(holder.members)}
            self._positions[id(holder)] = positions
        position = positions.get(name)
        return None if position is None else holder.members[position][1]


def _utf8(text: str) -> str:
    """The real text of a stretch of the Latin-1 view."""
    return text if text.isascii() else text.encode("latin-1").decode()


def key_text(key: JsonValue) -> str | None:
    """A key as text: numbers and strings mean the same in fastjson's maps. None for an object."""
    return str(key) if isinstance(key, str | int | float) else None
