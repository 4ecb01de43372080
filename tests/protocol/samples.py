"""One sample of each header and body class with every field set, the same in every run."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from enum import IntEnum
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from refmq.protocol import headers
from refmq.protocol.headers.codec import Range, header_plan

HEADERS = [
    name
    for name, value in sorted(vars(headers).items())
    if dataclasses.is_dataclass(value) and name.endswith(("Request", "Response"))
]
# Texts of which Java accepts only some.
TEXTS = {"topicFilterType": "MULTI_TAG", "boundaryType": "UPPER", "b": "BQ=="}


def sample_header(header_type: Any) -> Any:
    """A header with every field set to a value that tells it from the others."""
    values: dict[str, Any] = {}
    for number, plan in enumerate(header_plan(header_type), start=1):
        if plan.kind is bool:
            values[plan.name] = True
        elif plan.range is not None:
            values[plan.name] = number + (2**40 if plan.range.bits == 64 else 0)
        else:
            values[plan.name] = TEXTS.get(plan.wire_name, f"{plan.wire_name} é\x01")
    if header_type is headers.EndTransactionRequest:
        values["commit_or_rollback"] = headers.TRANSACTION_COMMIT
    return header_type(**values)


def sample_body(body_type: Any) -> Any:
    """A body with every member set, lists and maps with one entry each."""
    hints = get_type_hints(body_type, include_extras=True)
    values = {
        field.name: _sample(hints[field.name], field.name, number)
        for number, field in enumerate(dataclasses.fields(body_type), start=1)
    }
    for derived in ("min_time_stamp_str", "max_time_stamp_str", "consume_time_stamp_str"):
        if derived in values:  # Java makes these from the numbers, in its own time zone
            values[derived] = None
    return body_type(**values)


def _sample(annotation: Any, name: str, number: int) -> Any:
    bits = 32
    while get_origin(annotation) in (Annotated, Union, types.UnionType):
        if get_origin(annotation) is Annotated:
            annotation, *notes = get_args(annotation)
            bits = next((note.bits for note in notes if isinstance(note, Range)), bits)
        else:
            (annotation,) = (member for member in get_args(annotation) if member is not type(None))
    if get_origin(annotation) is tuple:
        return (_sample(get_args(annotation)[0], name, number),)
    if get_origin(annotation) is Mapping:
        key, value = get_args(annotation)
        return {_sample(key, f"{name} key", number): _sample(value, name, number + 1)}
    if dataclasses.is_dataclass(annotation):
        return sample_body(annotation)
    if annotation is bool:
        return True
    if annotation is int:
        return number + (2**40 if bits == 64 else 0)
    if annotation is float:
        return number + 0.5
    if issubclass(annotation, IntEnum):
        return list(annotation)[1]
    return "BQ==" if name == "bit_set" else f"{name} é\x01"
