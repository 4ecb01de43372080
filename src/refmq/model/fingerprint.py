"""The number by which traces name a message, wherever it is: at a producer, in a log, at a consumer.

A message changes its offsets, its topic and some properties on its way (delay queue, half message, retry), but
keeps its unique key and its body. The fingerprint is made of these two, so it stays the same:

    bits    content
    62..31  CRC-32 of the `UNIQ_KEY` property in UTF-8, 0 without one
    30..0   CRC-32 of the body as sent (compressed or not), without its highest bit, as in the log record

It fits a signed 64-bit field, is never negative and costs two CRCs; it names messages in traces, it does not
protect anything.
"""

from __future__ import annotations

from zlib import crc32


def message_fingerprint(unique_key: bytes, body: bytes) -> int:
    """The number of the message with this unique key and body."""
    number = crc32(unique_key) << 31 | crc32(body) & 0x7FFF_FFFF
    assert 0 <= number < 1 << 63, "it fits a field of a trace"
    return number
