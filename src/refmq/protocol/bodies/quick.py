"""A fast path for bodies that are plain JSON, as most are.

The standard library parses them many times faster than ``fastjson`` does, but it knows neither the dialect nor the
position of a value. So this reader accepts only what has exactly one meaning: JSON without references, every value of
exactly the type its field asks for. Of the dialect it knows bare integer keys, which it quotes before parsing: files
and bodies with offsets are full of them. Anything else, right or wrong, it leaves to the careful reader in ``codec``,
which gives the same values for what is read here, and the errors.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, Never

from refmq.protocol.bodies.shapes import Bean, ListOf, MapOf, Scalar, Shape

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

VALUES_MAX: Final = 2_000_000  # a frame of 16 MiB holds that many of the shortest real entries, `{0:12}`
STRINGS_MAX: Final = 500_000  # in a document whose keys are put in quotes: the table of offsets of as many groups
_HALF_PAIR: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_INTEGER_KEY: Final = re.compile(r"-?[0-9]{1,19}")
_STRING: Final = re.compile(r'("(?:[^"\\]++|\\.)*+")', re.DOTALL)  # possessive: no backtracking
# In the form that Java writes, so that there is one text for a number.
_BARE_KEY: Final = re.compile(r"([{,][ \t\r\n]*+)(-?[1-9][0-9]{0,18}|0)(?=[ \t\r\n]*+:)")


class NotPlain(Exception):
    """The document needs the careful reader."""


def _no_constant(text: str) -> Never:
    raise NotPlain


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, strict=False)


def read_plain(shape: Bean, data: bytes) -> DataclassInstance:
    """The body, if ``data`` is plain. Otherwise ``NotPlain``."""
    # A value takes a separator or a bracket, so this bounds their number, and with it the memory, before any is made.
    if sum(data.count(mark) for mark in (b",", b":", b"[", b"{")) > VALUES_MAX:
        raise NotPlain
    if b'"$ref"' in data or _HALF_PAIR.search(data):
        raise NotPlain
    try:
        text = data.decode()
        try:
            document: object = _DECODER.decode(text)
        except json.JSONDecodeError:
            if data.count(b'"') > 2 * STRINGS_MAX:
                raise NotPlain from None
            document = _DECODER.decode(_with_quoted_keys(text))
    except (ValueError, RecursionError):
        raise NotPlain from None
    return _bean(shape, document)


def _with_quoted_keys(text: str) -> str:
    """``text`` with its bare integer keys in quotes. Every second piece is a string and stays as it is."""
    pieces = _STRING.split(text)
    pieces[::2] = [_BARE_KEY.sub(r'\1"\2"', piece) for piece in pieces[::2]]
    return "".join(pieces)


def _bean(shape: Bean, value: object) -> DataclassInstance:
    if type(value) is not dict:
        raise NotPlain
    values = {}
    for member in shape.members:
        content = value.get(member.wire_name)
        if content is not None:
            values[member.name] = _read(member.shape, content)
        elif member.required:
            raise NotPlain
    return shape.type(**values)


def _read(shape: Shape, value: object) -> Any:
    if isinstance(shape, Scalar):
        if type(value) is shape.kind and (
            shape.range is None or shape.range.low <= value <= shape.range.high  # type: ignore[operator] # an int
        ):
            return value
    elif isinstance(shape, Bean):
        return _bean(shape, value)
    elif isinstance(shape, ListOf):
        if type(value) is list:
            return tuple([_read(shape.item, item) for item in value])
    elif isinstance(shape, MapOf):
        if type(value) is dict:
            return {_key(shape.key, key): _read(shape.value, item) for key, item in value.items() if item is not None}
    elif type(value) is str:
        constant = shape.type.__members__.get(value)
        if constant is not None:
            return constant
    raise NotPlain


def _key(shape: Shape, key: str) -> Any:
    if isinstance(shape, Scalar):
        if shape.kind is str:
            return key
        if shape.range is not None and _INTEGER_KEY.fullmatch(key):
            return _read(shape, int(key))
    raise NotPlain
