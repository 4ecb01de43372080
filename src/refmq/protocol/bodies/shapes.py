"""What the codec of bodies does with a type: the shape of a class, worked out once from its annotations."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

from refmq.model.ids import MessageQueue
from refmq.protocol.headers.codec import Int32, Range, Wire, camel_case

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Classes of the model that are also bodies: their fields with another name on the wire. Their numbers have 32 bits.
_MODEL_NAMES: Final[Mapping[type, Mapping[str, str]]] = {MessageQueue: {"broker": "brokerName"}}


@dataclass(frozen=True, slots=True)
class Scalar:
    kind: type
    range: Range | None = None


@dataclass(frozen=True, slots=True)
class EnumOf:
    type: type[IntEnum]


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Shape


@dataclass(frozen=True, slots=True)
class MapOf:
    key: Shape
    value: Shape


@dataclass(frozen=True, slots=True)
class BeanMember:
    name: str
    wire_name: str
    shape: Shape
    required: bool


@dataclass(frozen=True, slots=True)
class Bean:
    type: type[DataclassInstance]
    members: tuple[BeanMember, ...]


Shape: TypeAlias = "Scalar | EnumOf | ListOf | MapOf | Bean"


@cache
def bean_shape(body_type: type[DataclassInstance]) -> Bean:
    assert is_dataclass(body_type), body_type
    hints = get_type_hints(body_type, include_extras=True)
    renamed = _MODEL_NAMES.get(body_type, {})
    members = []
    for field in fields(body_type):
        annotation = hints[field.name]
        shape, wire_name = _shape_of(Int32 if annotation is int and body_type in _MODEL_NAMES else annotation)
        members.append(
            BeanMember(
                name=field.name,
                wire_name=wire_name or renamed.get(field.name) or camel_case(field.name),
                shape=shape,
                required=field.default is MISSING and field.default_factory is MISSING,
            )
        )
    return Bean(body_type, tuple(sorted(members, key=lambda member: member.wire_name)))


def _shape_of(annotation: Any) -> tuple[Shape, str | None]:
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
    shape: Shape
    if origin is tuple:
        assert arguments[1] is Ellipsis
        shape = ListOf(_shape_of(arguments[0])[0])
    elif origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        shape = MapOf(_shape_of(arguments[0])[0], _shape_of(arguments[1])[0])
    elif is_dataclass(annotation):
        assert isinstance(annotation, type)
        shape = bean_shape(annotation)
    elif issubclass(annotation, IntEnum):
        shape = EnumOf(annotation)
    else:
        assert annotation in (str, bool, float) or (annotation is int and limits is not None), annotation
        shape = Scalar(annotation, limits)
    return shape, wire_name
