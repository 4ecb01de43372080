"""The ROCKETMQ binary header (serialize type 1); the same in 4.9.8 and 5.3.3.

    offset  bytes      type   field           valid
    ------  ---------  -----  --------------  -----------------------------------------------------------
    0       2          i16    code            any; request codes above 32767 (POP) cannot be written
    2       1          u8     language        ``LanguageCode``; unknown bytes are read as OTHER
    3       2          i16    version         any
    5       4          i32    opaque          any
    9       4          i32    flag            any
    13      4          i32    remark length   r: 0 to what is left of the header; 0 stands for no remark
    17      r          UTF-8  remark
    17+r    4          i32    map length      m: exactly what is left of the header
    21+r    m          bytes  map             entries back to back

    Each entry of the map:

    offset  bytes      type   field           valid
    ------  ---------  -----  --------------  -----------------------------------------------------------
    0       2          i16    key length      k: 0 to what is left of the map
    2       k          UTF-8  key
    2+k     4          i32    value length    v: 0 to what is left of the map
    6+k     v          UTF-8  value

A string of length zero means null: an empty remark means no remark, and an entry with an empty key or value is ignored.
The same key may occur twice (Java writes some headers directly into the map and then the map itself); the last one
counts. The lengths are compared with what is there before anything is read.
"""

from __future__ import annotations

import struct
from typing import Final

from refmq.errors import WireError
from refmq.protocol._bytes import INT16_MAX, INT32_MAX, INT32_MIN, ByteReader, check_range, encode_utf8
from refmq.protocol.command import LanguageCode, RemotingCommand, SerializeType

FIXED_LENGTH: Final = 21
INT16_MIN: Final = -(2**15)

_START: Final = struct.Struct(">hBhiii")  # code, language, version, opaque, flag, remark length
_KEY_LENGTH: Final = struct.Struct(">h")
_LENGTH: Final = struct.Struct(">i")


def encode_binary_header(command: RemotingCommand) -> bytes:
    """The header of ``command``. ``UsageError`` when a field does not fit, as the codes of POP do not."""
    remark = encode_utf8(command.remark or "", "remark")
    entries = []
    for key, value in command.fields.items():
        key_bytes = encode_utf8(key, "extFields key")
        value_bytes = encode_utf8(value, f"extFields.{key}")
        check_range(len(key_bytes), 0, INT16_MAX, "extFields key length")
        entries += [_KEY_LENGTH.pack(len(key_bytes)), key_bytes, _LENGTH.pack(len(value_bytes)), value_bytes]
    packed = b"".join(entries)
    start = _START.pack(
        check_range(command.code, INT16_MIN, INT16_MAX, "code in a binary header"),
        command.language,
        check_range(command.version, INT16_MIN, INT16_MAX, "version in a binary header"),
        check_range(command.opaque, INT32_MIN, INT32_MAX, "opaque"),
        check_range(command.flag, INT32_MIN, INT32_MAX, "flag"),
        len(remark),
    )
    return b"".join((start, remark, _LENGTH.pack(len(packed)), packed))


def decode_binary_header(header: bytes, *, base: int = 0, body: bytes = b"") -> RemotingCommand:
    """The command that ``header`` stands for, with ``body``. ``base`` is the offset of the header's first byte."""
    if len(header) < FIXED_LENGTH:
        raise WireError("headerLength", max(base - 3, 0), f"at least {FIXED_LENGTH}", len(header))
    reader = ByteReader(header, base=base)
    code = reader.int16("code")
    language = reader.take(1, "language")[0]
    version = reader.int16("version")
    opaque = reader.int32("opaque")
    flag = reader.int32("flag")
    # The four bytes of the map length still follow the remark.
    remark_length = reader.length(4, "remarkLength", INT32_MAX)
    remark = reader.text(remark_length, "remark") if remark_length else None
    at = reader.position
    map_length = reader.int32("extFieldsLength")
    if map_length != reader.remaining:
        raise reader.fail("extFieldsLength", f"{reader.remaining}, the rest of the header", map_length, at=at)
    return RemotingCommand(
        code=code,
        opaque=opaque,
        flag=flag,
        language=LanguageCode(language) if language <= LanguageCode.NODE_JS else LanguageCode.OTHER,
        version=version,
        remark=remark,
        ext_fields=_decode_map(reader) if map_length else None,
        body=body,
        serialize_type=SerializeType.ROCKETMQ,
        header=header,
    )


def binary_position(header: bytes, name: str) -> int | None:
    """Where the value of an ext field starts in a readable header; of several with the name, the last."""
    (remark_length,) = _LENGTH.unpack_from(header, FIXED_LENGTH - 8)
    at, found = FIXED_LENGTH + remark_length, None
    while at < len(header):
        (key_length,) = _KEY_LENGTH.unpack_from(header, at)
        key_at = at + _KEY_LENGTH.size
        (value_length,) = _LENGTH.unpack_from(header, key_at + key_length)
        value_at = key_at + key_length + _LENGTH.size
        if value_length and header[key_at : key_at + key_length] == name.encode():
            found = value_at
        at = value_at + value_length
    return found


def _decode_map(reader: ByteReader) -> dict[str, str]:
    fields = {}
    while reader.remaining:
        key = reader.text(reader.length(2, "extFields key length", INT16_MAX), "extFields key")
        value = reader.text(reader.length(4, "extFields value length", INT32_MAX), "extFields value")
        if key and value:
            fields[key] = value
    return fields
