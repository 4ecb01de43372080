"""What the extension itself offers besides what ``refmq_fast`` gives on: decoders, for tests and fuzzers that hold them
beside the reference. Texts are UTF-8."""

from typing import TypeAlias

HeaderFields: TypeAlias = tuple[int, int, int, int, int, int, int, int, int, bytes, int, int, bytes, int, int, int, int]
"""The fields of `refmq.protocol.record.RecordHeader` in their order."""

def decode_record(data: bytes, start: int, base: int, check_crc: bool, /) -> tuple[HeaderFields, bytes, bytes, bytes]:
    """The header of a record, its topic, body and properties. Raises ``CorruptRecord``."""

def check_record(
    data: bytes, at: int, position: int, in_file: int, page_bytes: int, check_crc: bool, /
) -> HeaderFields:
    """The header of a record that is as it was once written at its place. Raises ``CorruptRecord``."""

def decode_batch(data: bytes, /) -> list[tuple[int, bytes, bytes]]:
    """Flag, body and properties of each message of a batch send. Raises ``WireError``."""

def string_hash(text: bytes, /) -> int:
    """Java's hash of a text."""

def key_hash(topic: bytes, key: bytes, /) -> int:
    """The hash of a key in the index."""

def find_properties(wire: bytes, /) -> tuple[bytes | None, bytes | None, bytes | None, bytes | None, bytes]:
    """TAGS, KEYS, UNIQ_KEY and DELAY as they stand in the wire form; and what a trace takes for the unique key."""

def replace_utf8(text: bytes, /) -> tuple[bytes, int]:
    """The text with replacement characters for what is not UTF-8, and where that begins."""

def message_id(ip: bytes, port: int, physical_offset: int, /) -> str:
    """The id that a broker gives a message."""

def parse_message_id(text: str, /) -> tuple[bytes, int, int] | None:
    """Address, port and physical offset of an id; None for what is no id."""
