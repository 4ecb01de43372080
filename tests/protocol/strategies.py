"""Hypothesis strategies for the values of the protocol, shared by the tests of its modules."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from enum import IntEnum
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from refmq.protocol.command import LanguageCode, RemotingCommand, SerializeType
from refmq.protocol.headers.codec import FieldPlan, Range, header_plan

int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def commands(serialize_type: SerializeType | None = None) -> st.SearchStrategy[RemotingCommand]:
    """Any command that its own serialization can carry without loss."""
    if serialize_type is None:
        return commands(SerializeType.JSON) | commands(SerializeType.ROCKETMQ)
    languages = st.sampled_from(LanguageCode)
    if serialize_type is SerializeType.JSON:
        return st.builds(
            RemotingCommand,
            code=int32,
            opaque=int32,
            flag=int32,
            language=languages,
            version=int32,
            remark=st.none() | text,
            ext_fields=st.none() | st.dictionaries(text, text, max_size=4),
            body=st.binary(max_size=40),
            serialize_type=st.just(serialize_type),
        )
    # A binary header knows neither an empty string nor an empty map.
    return st.builds(
        RemotingCommand,
        code=int16,
        opaque=int32,
        flag=int32,
        language=languages,
        version=int16,
        remark=st.none() | names,
        ext_fields=st.none() | st.dictionaries(names, names, min_size=1, max_size=4),
        body=st.binary(max_size=40),
        serialize_type=st.just(serialize_type),
    )


def _field_values(plan: FieldPlan, *, optional: bool) -> st.SearchStrategy[Any]:
    values: st.SearchStrategy[Any]
    if plan.kind is bool:
        values = st.booleans()
    elif plan.range is not None:
        values = st.integers(plan.range.low, plan.range.high)
    else:
        values = text
    return st.none() | values if optional else values


def headers_of(header_type: Any) -> st.SearchStrategy[Any]:
    """Any header of a class of ``refmq.protocol.headers``."""
    nullable = {field.name for field in dataclasses.fields(header_type) if field.default is None}
    return st.builds(
        header_type,
        **{plan.name: _field_values(plan, optional=plan.name in nullable) for plan in header_plan(header_type)},
    )


def _values(annotation: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that bodies are made of."""
    limits = None
    optional = False
    while get_origin(annotation) in (Annotated, Union, types.UnionType):
        if get_origin(annotation) is Annotated:
            annotation, *notes = get_args(annotation)
            limits = next((note for note in notes if isinstance(note, Range)), limits)
        else:
            optional = True
            (annotation,) = (member for member in get_args(annotation) if member is not type(None))
    strategy: st.SearchStrategy[Any]
    if get_origin(annotation) is tuple:
        strategy = st.lists(_values(get_args(annotation)[0]), max_size=2).map(tuple)
    elif get_origin(annotation) is Mapping:
        key, value = get_args(annotation)
        strategy = st.dictionaries(_values(key), _values(value), max_size=2)
    elif dataclasses.is_dataclass(annotation):
        strategy = bodies_of(annotation)
    elif limits is not None:
        strategy = st.integers(limits.low, limits.high)
    elif issubclass(annotation, IntEnum):
        strategy = st.sampled_from(annotation)
    else:
        plain: dict[Any, st.SearchStrategy[Any]] = {
            str: text,
            int: int32,  # in MessageQueue, which is a class of the model
            bool: st.booleans(),
            float: st.floats(allow_nan=False, allow_infinity=False),
        }
        strategy = plain[annotation]
    return st.none() | strategy if optional else strategy


def bodies_of(body_type: Any) -> st.SearchStrategy[Any]:
    """Any body of a class of ``refmq.protocol.bodies``."""
    hints = get_type_hints(body_type, include_extras=True)
    return st.builds(body_type, **{field.name: _values(hints[field.name]) for field in dataclasses.fields(body_type)})
