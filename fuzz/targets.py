"""What is fed. A target is a function of some bytes; it returns, whatever they are.

Its reader may raise the errors that it documents. Anything else that comes out is a finding: another exception, an
assertion (a target compares at least two answers), more time than `SECONDS_MAX` or more memory than `MEMORY_BYTES_MAX`.

    target        the input is                           compared with
    ------------  -------------------------------------  -----------------------------------------------------------
    frame         what a peer sends on a connection      the same bytes in small pieces, and read without C; the frame
                                                         written again
    json_header   a JSON header                          the header written and read again
    binary_header a ROCKETMQ binary header               the header written and read again
    request       a frame of the real RocketMQ           its header and body, as the code says, written and read again
    record        stored messages, one after the other   the records written again
    batch         the body of a batch                    the batch written again
    fastjson_text a JSON document                        the standard library's reader, where both read it
    body          the kind of a body, then its text      the body written and read again
    registration  the body of a registration             the body written and read again
    compressed    the sysFlag, then a compressed body    what was compressed, if we did it
    properties    a file of settings                     the settings written and read again
    sql           a filter expression                    the same twice
    trace         a trace file                           the same events in blocks that are whole
    checkpoint    a checkpoint file                      the checkpoint written and read again
    store         edits of the files of a small store    the store started a second time; what was ever put
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import random
from collections.abc import Callable
from typing import Any, Final

from refmq.errors import CorruptRecord, DecodeError, UsageError, WireError
from refmq.filter import SqlSyntaxError, compile_expression, matches
from refmq.net.codec import encode as encode_in_c
from refmq.net.codec import new_decoder
from refmq.protocol import bodies, fastjson
from refmq.protocol.bodies import decode_body, decode_register_broker_body, encode_body, encode_register_broker_body
from refmq.protocol.command import RemotingCommand
from refmq.protocol.compression import CompressionType, compress, decompress
from refmq.protocol.frame import FrameDecoder, encode
from refmq.protocol.header_binary import decode_binary_header, encode_binary_header
from refmq.protocol.header_json import decode_json_header, encode_json_header
from refmq.protocol.headers import decode_header, decode_send_header, encode_header
from refmq.protocol.properties import format_properties, parse_properties
from refmq.protocol.record import decode_batch, decode_properties, decode_records, encode_batch, encode_record
from refmq.protocol.registry import ROWS
from refmq.store.checkpoint import decode_checkpoint, encode_checkpoint
from refmq.trace.reader import decode_file

SECONDS_MAX: Final = 5.0
"""For one input. Most take less than a millisecond; the machine may be busy."""
MEMORY_BYTES_MAX: Final = 1 << 30
"""Address space of a campaign. An input of 64 KiB has no business with more."""

Target = Callable[[bytes], None]
TARGETS: Final[dict[str, Target]] = {}
BODY_TYPES: Final[tuple[Any, ...]] = tuple(
    getattr(bodies, name) for name in bodies.__all__ if dataclasses.is_dataclass(getattr(bodies, name))
)
"""Every body of the protocol; the first byte of the input chooses."""
SEND_CODES: Final = (10, 310, 320, 324, 325)
_ROW: Final = {int(row.code): row for row in ROWS}


def target(function: Target) -> Target:
    """Enters a target into the table."""
    TARGETS[function.__name__] = function
    return function


def _commands(
    data: bytes, pieces: int, new: Callable[[], FrameDecoder] = new_decoder
) -> tuple[list[Any], tuple[Any, ...] | None]:
    decoder, found = new(), []
    source = random.Random(pieces)
    at = 0
    try:
        while at < len(data):
            size = len(data) if pieces == 1 else source.randint(1, max(1, len(data) // pieces))
            for command in decoder.feed(data[at : at + size]):
                found.append(command)
            at += size
    except WireError as error:
        return found, error.args
    return found, None


def _written(command: RemotingCommand, write: Callable[[RemotingCommand], bytes]) -> bytes | tuple[Any, ...]:
    try:
        return write(command)
    except UsageError as error:
        return error.args


@target
def frame(data: bytes) -> None:
    whole, error = _commands(data, 1)
    for pieces in (3, 17):
        assert _commands(data, pieces) == (whole, error), "the way in which bytes arrive changes what they mean"
    assert _commands(data, 1, FrameDecoder) == (whole, error), "C reads something else"
    for command in whole:
        assert _written(command, encode_in_c) == _written(command, encode), "C writes something else"
        try:
            again = encode(command)
        except UsageError:
            continue  # a header that is legal in JSON may be too long when it is written as we write it
        (read,) = FrameDecoder().feed(again)
        assert read == command or command.ext_fields == {}, (command, read)


@target
def json_header(data: bytes) -> None:
    try:
        command = decode_json_header(data)
    except WireError:
        return
    assert decode_json_header(encode_json_header(command)) == command


@target
def binary_header(data: bytes) -> None:
    try:
        command = decode_binary_header(data)
    except WireError:
        return
    again = decode_binary_header(encode_binary_header(command))
    assert again.fields == command.fields and (again.code, again.remark) == (command.code, command.remark)


@target
def request(data: bytes) -> None:
    """A frame, read all the way down as the registry says: header class and body."""
    commands, _ = _commands(data, 1)
    for command in commands:
        row = _ROW.get(command.code)
        if row is None or command.is_response:
            continue
        try:
            if command.code in SEND_CODES:
                header: Any = decode_send_header(command)
                decode_properties((header.properties or "").encode())
            elif row.header is not None:
                header_type: Any = row.header
                header = decode_header(header_type, command)
                again = dataclasses.replace(command, ext_fields=encode_header(header))
                assert decode_header(header_type, again) == header
        except DecodeError:
            continue


@target
def record(data: bytes) -> None:
    records = []
    try:
        for each in decode_records(data):
            records.append(each)
            decode_properties(each.properties)
    except DecodeError:
        pass
    for each in records:
        (again,) = decode_records(encode_record(each))
        assert again == each, (again, each)


@target
def batch(data: bytes) -> None:
    try:
        messages = decode_batch(data)
    except WireError:
        return
    assert decode_batch(encode_batch(messages)) == messages


@target
def fastjson_text(data: bytes) -> None:
    try:
        ours: Any = fastjson.parse(data)
    except WireError:
        ours = None
    try:
        theirs = json.loads(data.decode(), parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError, UnicodeDecodeError):
        return
    if isinstance(theirs, dict) and len(theirs) > 1 and not any(mark in data for mark in SPECIAL):
        assert ours is not None, "the standard library reads it and we do not"


SPECIAL: Final = (b"$ref", b"\\u", b"\x00")
"""What fastjson reads in another way than the standard library, or we more strictly: references, half characters."""


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _finite(text: str) -> float:
    """The standard library reads a number that no double can hold as infinite; we refuse it."""
    return float(text) if math.isfinite(float(text)) else _refuse(text)


@target
def body(data: bytes) -> None:
    if not data:
        return
    body_type = BODY_TYPES[data[0] % len(BODY_TYPES)]
    try:
        read = decode_body(body_type, data[1:])
    except DecodeError:
        return
    try:
        written = encode_body(read)
    except UsageError:
        return  # half a surrogate pair has no UTF-8
    assert encode_body(decode_body(body_type, written)) == written


@target
def registration(data: bytes) -> None:
    for compressed in (False, True):
        try:
            read = decode_register_broker_body(data, compressed=compressed)
        except DecodeError:
            continue
        again = decode_register_broker_body(encode_register_broker_body(read))
        assert again.filter_server_list == read.filter_server_list


@target
def compressed(data: bytes) -> None:
    if not data:
        return
    sys_flag = 1 | data[0] % 4 << 8
    with contextlib.suppress(DecodeError):
        decompress(data[1:], sys_flag, limit=1 << 20)
    packed, flag = compress(data[1:], 0, CompressionType.ZLIB)
    assert decompress(packed, flag) == data[1:]


@target
def properties(data: bytes) -> None:
    try:
        settings = parse_properties(data.decode("utf-8", "replace"))
    except DecodeError:
        return
    try:
        written = format_properties(settings)
    except UsageError:
        return  # a value with a line break
    plain = {
        key
        for key, value in settings.items()
        if "\\" not in key + value and key.strip() == key and value.strip() == value
    }
    read = parse_properties(written) if len(plain) == len(settings) else {}
    assert all(read[key] == settings[key] for key in plain if read and not any(mark in key for mark in "=: #!\t\f"))


@target
def sql(data: bytes) -> None:
    try:
        expression = compile_expression(data.decode("utf-8", "replace"))
    except SqlSyntaxError:
        return
    for found in ({}, {"n": "1", "TAGS": "a"}, {"a": "x'y", "n": "9" * 30}):
        assert matches(expression, found) == matches(expression, found)


@target
def trace(data: bytes) -> None:
    try:
        file = decode_file(data)
    except CorruptRecord:
        return
    assert len(file.events) * 64 <= len(data), "more events than bytes for them"
    assert all(damage.position <= damage.end for damage in file.damage)


@target
def checkpoint(data: bytes) -> None:
    try:
        read = decode_checkpoint(data)
    except CorruptRecord:
        return
    assert decode_checkpoint(encode_checkpoint(read)) == read
