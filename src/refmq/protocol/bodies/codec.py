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
``VISITED_MAX``: sharing must not let a small document unfold without end.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum, IntEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from refmq.errors import UsageError, WireError
from refmq.model.ids import MessageQueue
from refmq.protocol._bytes import encode_utf8
from refmq.protocol.fastjson import VALUES_MAX, JsonArray, JsonObject, JsonValue, key_text, parse
from refmq.protocol.headers.codec import Int32, Range, Wire, camel_case
from refmq.protocol.json_text import quote, quote_ascii

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

VISITED_MAX: Final = 2 * VALUES_MAX
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_FLOAT: Final = re.compile(r"[+-]?[0-9]{1,400}(\.[0-9]{0,400})?([eE][+-]?[0-9]{1,3})?")

# Classes of the model that are also bodies: their fields with another name on the wire. Their numbers have 32 bits.
_MODEL_NAMES: Final[Mapping[type, Mapping[str, str]]] = {MessageQueue: {"broker": "brokerName"}}


class JsonStyle(Enum):
    """Which of the forms that peers understand is written."""

    STANDARD = "integer keys in quotes, so that every client can parse it"
    FASTJSON = "integer keys bare, as Java writes by default"
    ASCII = "integer keys in quotes, maps sorted, everything outside ASCII escaped: Java's routes from 4.9.4 on"


# The shape of a type: what the codec does with it. ------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Scalar:
    kind: type
    range: Range | None = None


@dataclass(frozen=True, slots=True)
class _EnumOf:
    type: type[IntEnum]


@dataclass(frozen=True, slots=True)
class _ListOf:
    item: _Shape


@dataclass(frozen=True, slots=True)
class _MapOf:
    key: _Shape
    value: _Shape


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    wire_name: str
    shape: _Shape
    required: bool


@dataclass(frozen=True, slots=True)
class _Bean:
    type: type[DataclassInstance]
    members: tuple[_Member, ...]


_Shape: TypeAlias = "_Scalar | _EnumOf | _ListOf | _MapOf | _Bean"

BodyT = TypeVar("BodyT", bound="DataclassInstance")


@cache
def _bean(body_type: type[DataclassInstance]) -> _Bean:
    assert is_dataclass(body_type), body_type
    hints = get_type_hints(body_type, include_extras=True)
    renamed = _MODEL_NAMES.get(body_type, {})
    members = []
    for field in fields(body_type):
        annotation = hints[field.name]
        shape, wire_name = _shape(Int32 if annotation is int and body_type in _MODEL_NAMES else annotation)
        members.append(
            _Member(
                name=field.name,
                wire_name=wire_name or renamed.get(field.name) or camel_case(field.name),
                shape=shape,
                required=field.default is MISSING and field.default_factory is MISSING,
            )
        )
    return _Bean(body_type, tuple(sorted(members, key=lambda member: member.wire_name)))


def _shape(annotation: Any) -> tuple[_Shape, str | None]:
    """The shape of an annotation, and the wire name if it carries one."""
    wire_name, limits = None, None
    while get_origin(annotation) in (Annotated, Union, types.UnionType):
        if get_origin(annotation) is Annotated:
            annotation, *notes = get_args(annotation)
            for note in notes:
                wire_name = note.name if isinstance(note, Wire) else wire_name
                limits = note if isinstance(note, Range) else limits
        else:
            (annotation,) = (member for member in get_args(annotation) if member is not type(None))
    origin, arguments = get_origin(annotation), get_args(annotation)
    shape: _Shape
    if origin is tuple:
        assert arguments[1] is Ellipsis
        shape = _ListOf(_shape(arguments[0])[0])
    elif origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        shape = _MapOf(_shape(arguments[0])[0], _shape(arguments[1])[0])
    elif is_dataclass(annotation):
        assert isinstance(annotation, type)
        shape = _bean(annotation)
    elif issubclass(annotation, IntEnum):
        shape = _EnumOf(annotation)
    else:
        assert annotation in (str, bool, float) or (annotation is int and limits is not None), annotation
        shape = _Scalar(annotation, limits)
    return shape, wire_name


# Writing ------------------------------------------------------------------------------------------


def encode_body(body: DataclassInstance, style: JsonStyle = JsonStyle.STANDARD) -> bytes:
    """The JSON of ``body``, without white space."""
    return encode_utf8(_written(_bean(type(body)), body, style), type(body).__name__)


def _written(shape: _Shape, value: Any, style: JsonStyle) -> str:
    match shape:
        case _Scalar():
            return _scalar_text(shape, value, style)
        case _EnumOf():
            return f'"{value.name}"'
        case _ListOf(item=item):
            return f"[{','.join(_written(item, element, style) for element in value)}]"
        case _Bean(members=members):
            parts = []
            for member in members:
                content = getattr(value, member.name)
                if content is not None:
                    parts.append(f'"{member.wire_name}":{_written(member.shape, content, style)}')
            return f"{{{','.join(parts)}}}"
        case _MapOf(key=key_shape, value=value_shape):
            entries = value.items()
            if style is JsonStyle.ASCII:
                entries = sorted(entries)
            return (
                f"{{{','.join(f'{_key(key_shape, k, style)}:{_written(value_shape, v, style)}' for k, v in entries)}}}"
            )


def _scalar_text(shape: _Scalar, value: Any, style: JsonStyle) -> str:
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


def _key(shape: _Shape, key: Any, style: JsonStyle) -> str:
    """A key. Objects stand bare in every style: quoting them would break the clients that split the text."""
    text = _written(shape, key, style)
    if isinstance(shape, _Scalar) and shape.kind is int and style is not JsonStyle.FASTJSON:
        return f'"{text}"'
    return text


# Reading ------------------------------------------------------------------------------------------


def decode_body(body_type: type[BodyT], data: bytes) -> BodyT:
    """The body that ``data`` holds. ``WireError`` names the member, from the top, and the offset of its object."""
    document = parse(data)
    if not isinstance(document, JsonObject):
        raise WireError("body", 0, "a JSON object", shown(document))
    return _Reader().bean(_bean(body_type), document, body_type.__name__)  # type: ignore[return-value] # built as it


class _Reader:
    """Reads one document; counts what it visits."""

    __slots__ = ("_visited",)

    def __init__(self) -> None:
        self._visited = 0

    def bean(self, shape: _Bean, value: JsonObject, path: str) -> DataclassInstance:
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

    def read(self, shape: _Shape, value: JsonValue, path: str, offset: int) -> Any:
        match shape:
            case _Scalar():
                return _scalar(shape, value, path, offset)
            case _EnumOf(type=enum):
                return _constant(enum, value, path, offset)
            case _Bean():
                if not isinstance(value, JsonObject):
                    raise WireError(path, offset, "an object", shown(value))
                return self.bean(shape, value, path)
            case _ListOf(item=item):
                if not isinstance(value, JsonArray):
                    raise WireError(path, offset, "an array", shown(value))
                self._visit(len(value.items), path, value.offset)
                return tuple(self.read(item, element, f"{path}[]", value.offset) for element in value.items)
            case _MapOf():
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

    def _read_key(self, shape: _Shape, key: JsonValue, path: str, offset: int) -> Any:
        """A key: an object may also come as a string that holds its JSON."""
        if isinstance(shape, _Bean) and isinstance(key, str):
            key = parse(key.encode(), base=offset)
        return self.read(shape, key, f"key of {path}", offset)

    def _visit(self, count: int, path: str, offset: int) -> None:
        self._visited += count
        if self._visited > VISITED_MAX:
            raise WireError(path, offset, f"at most {VISITED_MAX} values with all references followed", "more")


def _scalar(shape: _Scalar, value: JsonValue, path: str, offset: int) -> Any:
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


def _asked(shape: _Scalar) -> str:
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
