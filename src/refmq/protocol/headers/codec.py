"""From the fields of a header class to the ext fields of a command and back.

A header class is a frozen dataclass. Each of its fields is one ext field:

    annotation      text on the wire                            refused when reading
    --------------  ------------------------------------------  ---------------------------------------
    ``str``         itself                                      -
    ``Int32``       decimal                                     not a number, outside 32 bits
    ``Int64``       decimal                                     not a number, outside 64 bits
    ``bool``        ``true`` or ``false``                       - (``true`` in any case is true, all else false)
    ``T | None``    absent for None                             as T

The wire name is the field's name in camel case (``queue_id`` is ``queueId``) unless ``Annotated`` with a ``Wire``.
A field without a default must be there; an absent one with a default takes it; unknown ext fields are ignored, because
every newer client sends some. An empty number counts as absent.

Java only logs a missing mandatory field and stumbles over it later; the answer is code 1 either way. Our error names
the field and the offset of its value in the frame; the offset of a missing one is that of the header.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

from refmq.errors import UsageError, WireError
from refmq.protocol._bytes import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN
from refmq.protocol.command import RemotingCommand
from refmq.protocol.frame import PREFIX_SIZE, field_offset

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

DIGITS_MAX: Final = 20
_INTEGER: Final = re.compile(rf"[+-]?[0-9]{{1,{DIGITS_MAX}}}")


@dataclass(frozen=True, slots=True)
class Wire:
    """The name of a field on the wire, where it is not its Python name in camel case."""

    name: str


@dataclass(frozen=True, slots=True)
class Range:
    """What a number on the wire may be."""

    bits: int
    low: int
    high: int


Int32 = Annotated[int, Range(32, INT32_MIN, INT32_MAX)]
Int64 = Annotated[int, Range(64, INT64_MIN, INT64_MAX)]

HeaderT = TypeVar("HeaderT", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """How one field of a header class is read and written."""

    name: str
    wire_name: str
    kind: type
    range: Range | None
    required: bool


def encode_header(header: DataclassInstance, *, names: Mapping[str, str] | None = None) -> dict[str, str]:
    """The ext fields of ``header``. ``names`` replaces wire names, as the one-letter form of a send does."""
    written = {}
    for plan in header_plan(type(header)):
        value = getattr(header, plan.name)
        if value is None:
            continue
        wire_name = plan.wire_name if names is None else names[plan.wire_name]
        if plan.kind is bool:
            written[wire_name] = "true" if value else "false"
        elif plan.range is not None:
            if not plan.range.low <= value <= plan.range.high:
                raise UsageError(f"{plan.wire_name} must be a {plan.range.bits}-bit integer; {value} does not fit.")
            written[wire_name] = str(int(value))
        else:
            written[wire_name] = value
    return written


def decode_header(
    header_type: type[HeaderT], command: RemotingCommand, *, names: Mapping[str, str] | None = None
) -> HeaderT:
    """The header that the ext fields of ``command`` hold. ``WireError`` names the field that is missing or wrong."""
    given = command.fields
    values: dict[str, object] = {}
    for plan in header_plan(header_type):
        wire_name = plan.wire_name if names is None else names[plan.wire_name]
        text = given.get(wire_name)
        if text is None or (not text and plan.range is not None):
            if plan.required:
                raise WireError(f"extFields.{wire_name}", PREFIX_SIZE, "given", "missing")
        elif plan.kind is bool:
            values[plan.name] = text.lower() == "true"
        elif plan.range is not None:
            number = _integer(text, plan.range)
            if number is None:
                expected = f"a {plan.range.bits}-bit integer"
                raise WireError(f"extFields.{wire_name}", field_offset(command, wire_name), expected, repr(text[:24]))
            values[plan.name] = number
        else:
            values[plan.name] = text
    return header_type(**values)


def _integer(text: str, limits: Range) -> int | None:
    """The number that a text stands for, or None."""
    # Most numbers are a few digits, which is quicker to see than to match.
    if (text.isdigit() and text.isascii() and len(text) <= DIGITS_MAX) or _INTEGER.fullmatch(text):
        number = int(text)
        if limits.low <= number <= limits.high:
            return number
    return None


@cache
def header_plan(header_type: type[DataclassInstance]) -> tuple[FieldPlan, ...]:
    """The fields of a header class in their order. Fails on a class that the codec cannot carry."""
    assert is_dataclass(header_type), header_type
    hints = get_type_hints(header_type, include_extras=True)
    return tuple(
        _field_plan(field.name, hints[field.name], required=field.default is MISSING) for field in fields(header_type)
    )


def _field_plan(name: str, annotation: Any, *, required: bool) -> FieldPlan:
    wire_name = camel_case(name)
    limits = None
    kind = annotation
    # An annotation is a type, perhaps wrapped (in any order) in `| None` and in Annotated with a Wire or a Range.
    while get_origin(kind) in (Annotated, Union, types.UnionType):
        if get_origin(kind) is Annotated:
            kind, *notes = get_args(kind)
            for note in notes:
                if isinstance(note, Wire):
                    wire_name = note.name
                elif isinstance(note, Range):
                    limits = note
        else:
            (kind,) = (member for member in get_args(kind) if member is not type(None))
    assert kind in (str, bool) or (kind is int and limits is not None), (
        f"{name}: the codec has no form for {annotation}"
    )
    return FieldPlan(name=name, wire_name=wire_name, kind=kind, range=limits, required=required)


def camel_case(name: str) -> str:
    """
    >>> camel_case("suggest_which_broker_id")
    'suggestWhichBrokerId'
    """
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
