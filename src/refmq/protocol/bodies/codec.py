"""Between body classes and their JSON.

A body class is a frozen dataclass. Its fields are the members of the JSON object, under their names in camel case
(``queue_id`` is ``queueId``) unless ``Annotated`` with a ``Wire``:

    annotation           written                                  read besides
    -------------------  ---------------------------------------  ---------------------------------------------
    ``str``              string                                   number, boolean: their text
    ``Int32, Int64``     number                                   numeric string
    ``float``            number with a point                      integer, numeric string
    ``bool``             ``true``, ``false``                      the words as strings in any case, 1 and 0
    an enum              name of the constant                     name in any case, or ordinal
    a body class         object
    ``tuple[T, ...]``    array
    ``Mapping[K, V]``    object, see below
    ``T | None``         left out for None                        null

Members are written in the order of their names, as fastjson does, and maps in their own order. A member that is absent
or null takes the default of its field; unknown members are ignored. The keys of a map are strings, integers or body
classes. What a key looks like on the wire is a matter of ``JsonStyle``.

A document may hold references (see ``fastjson``), so reading counts the values it has visited and gives up at
``VISITED_MAX``: sharing must not let a small document unfold endlessly.
"""

from __future__ import annotations

import re
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from refmq.errors import UsageError, WireError
from refmq.protocol._bytes import encode_utf8
from refmq.protocol.bodies.quick import NotPlain, read_plain
from refmq.protocol.bodies.shapes import Bean, EnumOf, ListOf, MapOf, Scalar, Shape, bean_shape
from refmq.protocol.fastjson import VALUES_MAX, JsonArray, JsonObject, JsonValue, key_text, parse
from refmq.protocol.json_text import quote, quote_ascii

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

VISITED_MAX: Final = 2 * VALUES_MAX
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_FLOAT: Final = re.compile(r"[+-]?[0-9]{1,400}(\.[0-9]{0,400})?([eE][+-]?[0-9]{1,3})?")


class JsonStyle(Enum):
    """Which of the forms that peers understand is written."""

    STANDARD = "integer keys in quotes, so that every client can parse it"
    FASTJSON = "integer keys bare, as Java writes by default"
    ASCII = "integer keys in quotes, maps sorted, everything outside ASCII escaped: Java's routes from 4.9.4 on"


BodyT = TypeVar("BodyT", bound="DataclassInstance")


# Writing ------------------------------------------------------------------------------------------


def encode_body(body: DataclassInstance, style: JsonStyle = JsonStyle.STANDARD) -> bytes:
    """The JSON of ``body``, without white space."""
    return encode_utf8(_written(bean_shape(type(body)), body, style), type(body).__name__)


def _written(shape: Shape, value: Any, style: JsonStyle) -> str:
    match shape:
        case Scalar():
            return _scalar_text(shape, value, style)
        case EnumOf():
            return f'"{value.name}"'
        case ListOf(item=item):
            return f"[{','.join(_written(item, element, style) for element in value)}]"
        case Bean(members=members):
            parts = []
            for member in members:
                content = getattr(value, member.name)
                if content is not None:
                    parts.append(f'"{member.wire_name}":{_written(member.shape, content, style)}')
            return f"{{{','.join(parts)}}}"
        case MapOf(key=key_shape, value=value_shape):
            entries = value.items()
            if style is JsonStyle.ASCII:
                entries = sorted(entries)
            return (
                f"{{{','.join(f'{_key(key_shape, k, style)}:{_written(value_shape, v, style)}' for k, v in entries)}}}"
            )


def _scalar_text(shape: Scalar, value: Any, style: JsonStyle) -> str:
    if shape.kind is str:
        return quote_ascii(value) if style is JsonStyle.ASCII else quote(value)
    if shape.kind is bool:
        return "true" if value else "false"
    if shape.range is None:
        number = float(value)
        if number - number != 0:
            raise UsageError(f"{value} has no form in JSON.")
        return repr(number)
    if not shape.range.low <= value <= shape.range.high:
        raise UsageError(f"{value} is not a {shape.range.bits}-bit integer.")
    return str(int(value))


def _key(shape: Shape, key: Any, style: JsonStyle) -> str:
    """A key. Objects stand bare in every style: quoting them would break the clients that split the text."""
    text = _written(shape, key, style)
    if isinstance(shape, Scalar) and shape.kind is int and style is not JsonStyle.FASTJSON:
        return f'"{text}"'
    return text


# Reading ------------------------------------------------------------------------------------------


def decode_body(body_type: type[BodyT], data: bytes, *, bytes_max: int | None = None) -> BodyT:
    """The body that ``data`` holds. ``WireError`` names the member, from the top, and the offset of its object.

    Reading time grows with the size of the body: about a second for a hostile one of 2 MiB. A server that reads bodies
    from strangers passes ``bytes_max``.
    """
    if bytes_max is not None and len(data) > bytes_max:
        raise WireError("body", 0, f"at most {bytes_max} bytes", len(data))
    try:
        body = read_plain(bean_shape(body_type), data)
    except NotPlain:
        body = read_carefully(bean_shape(body_type), data)
    return body  # type: ignore[return-value] # the shape is made from the type


def read_carefully(shape: Bean, data: bytes) -> DataclassInstance:
    """The body, whatever dialect it is in, or the error that says what is wrong with it."""
    document = parse(data)
    if not isinstance(document, JsonObject):
        raise WireError("body", 0, "a JSON object", shown(document))
    return _Reader().bean(shape, document, shape.type.__name__)


class _Reader:
    """Reads one document; counts what it visits."""

    __slots__ = ("_visited",)

    def __init__(self) -> None:
        self._visited = 0

    def bean(self, shape: Bean, value: JsonObject, path: str) -> DataclassInstance:
        given = {key: content for key, content in value.members if isinstance(key, str)}
        self._visit(len(value.members), path, value.offset)
        values = {}
        for member in shape.members:
            content = given.get(member.wire_name)
            if content is not None:
                values[member.name] = self.read(member.shape, content, f"{path}.{member.wire_name}", value.offset)
            elif member.required:
                raise WireError(f"{path}.{member.wire_name}", value.offset, "given", "missing")
        return shape.type(**values)

    def read(self, shape: Shape, value: JsonValue, path: str, offset: int) -> Any:
        match shape:
            case Scalar():
                return _scalar(shape, value, path, offset)
            case EnumOf(type=enum):
                return _constant(enum, value, path, offset)
            case Bean():
                if not isinstance(value, JsonObject):
                    raise WireError(path, offset, "an object", shown(value))
                return self.bean(shape, value, path)
            case ListOf(item=item):
                if not isinstance(value, JsonArray):
                    raise WireError(path, offset, "an array", shown(value))
                self._visit(len(value.items), path, value.offset)
                return tuple(self.read(item, element, f"{path}[]", value.offset) for element in value.items)
            case MapOf():
                if not isinstance(value, JsonObject):
                    raise WireError(path, offset, "an object", shown(value))
                self._visit(len(value.members), path, value.offset)
                return {
                    self._read_key(shape.key, key, path, value.offset): self.read(
                        shape.value, content, f"{path}.{key_text(key) or '{}'}", value.offset
                    )
                    for key, content in value.members
                    if content is not None
                }

    def _read_key(self, shape: Shape, key: JsonValue, path: str, offset: int) -> Any:
        """A key: an object may also come as a string that holds its JSON."""
        if isinstance(shape, Bean) and isinstance(key, str):
            key = parse(key.encode(), base=offset)
        return self.read(shape, key, f"key of {path}", offset)

    def _visit(self, count: int, path: str, offset: int) -> None:
        self._visited += count
        if self._visited > VISITED_MAX:
            raise WireError(path, offset, f"at most {VISITED_MAX} values with all references followed", "more")


def _scalar(shape: Scalar, value: JsonValue, path: str, offset: int) -> Any:
    found: object = None
    if shape.kind is str:
        found = ("true" if value else "false") if isinstance(value, bool) else key_text(value)
    elif shape.kind is bool:
        if isinstance(value, bool):
            found = value
        else:
            found = {"true": True, "1": True, "false": False, "0": False}.get((key_text(value) or "").lower())
    elif isinstance(value, bool):
        found = None
    elif shape.kind is float:
        text = key_text(value) or ""
        found = float(text) if isinstance(value, float) or _FLOAT.fullmatch(text) else None
        if isinstance(found, float) and found - found != 0:
            found = None
    elif shape.range is not None:
        number = value if isinstance(value, int) else _whole(value)
        found = number if number is not None and shape.range.low <= number <= shape.range.high else None
    if found is None:
        raise WireError(path, offset, _asked(shape), shown(value))
    return found


def _whole(value: JsonValue) -> int | None:
    """The integer that a string or a double stands for, if it does."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


def _asked(shape: Scalar) -> str:
    if shape.range is not None:
        return f"a {shape.range.bits}-bit integer"
    return {str: "a string", bool: "true or false", float: "a number"}[shape.kind]


def _constant(enum: type[IntEnum], value: JsonValue, path: str, offset: int) -> IntEnum:
    if isinstance(value, str):
        for constant in enum:
            if constant.name == value.upper():
                return constant
    elif isinstance(value, int) and not isinstance(value, bool):
        for constant in enum:
            if constant == value:
                return constant
    raise WireError(path, offset, f"one of {', '.join(constant.name for constant in enum)}", shown(value))


def shown(value: JsonValue) -> str:
    """``value`` for an error message: short, whatever a peer has sent."""
    match value:
        case JsonObject():
            return "an object"
        case JsonArray():
            return "an array"
        case _:
            return repr(value)[:40]
