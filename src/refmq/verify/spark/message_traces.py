"""What clients said themselves: the messages of `RMQ_SYS_TRACE_TOPIC`, as sides of a comparison with the log.

Clients with message trace on send a record for each message that they sent: its unique key, the topic, and the message
id that the broker answered, which holds the place in the log. These are acknowledgements that nobody recorded for us;
what they name has to be in the log of one of the brokers. Records of consumption have no place, and are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from refmq.client.message_trace import FIELD, RECORD
from refmq.errors import DecodeError, UsageError
from refmq.inspect.verify import key_hash
from refmq.protocol.compression import decompress
from refmq.protocol.names import TRACE_TOPIC
from refmq.protocol.record import Record, decode_record, parse_message_id

ENTRIES_MAX: Final = 100_000
"""Of one body, which has 128,000 characters at most."""
PUB_FIELDS_MIN: Final = 14
"""Type, time, region, group, topic, message id, tags, keys, address, length, cost, kind, id of the broker, success."""


@dataclass(frozen=True, slots=True)
class Published:
    """A message that a client was told to be stored."""

    at_ms: int
    group: str
    topic: str
    unique_key: str
    physical_offset: int

    @property
    def hash(self) -> int:
        """Of its unique key, as the index has it."""
        return key_hash(self.topic, self.unique_key)


def published_in(body: bytes) -> Iterator[Published]:
    """The successful sends in the body of a trace message. What cannot be read is passed over: clients wrote it."""
    for entry in body.decode(errors="replace").split(RECORD)[:ENTRIES_MAX]:
        fields = entry.split(FIELD)
        if fields[0] != "Pub" or len(fields) < PUB_FIELDS_MIN or fields[13] != "true":
            continue
        try:
            _, physical_offset = parse_message_id(fields[12])
            at_ms = int(fields[1])
        except (DecodeError, UsageError, ValueError):
            continue  # a batch has several ids; old clients wrote none
        yield Published(at_ms, fields[3], fields[4], fields[5], physical_offset)


def published_by(data: memoryview, position: int) -> Iterator[Published]:
    """... in the record of a log that begins `data`."""
    record: Record = decode_record(data, base=position, check_crc=False)
    if record.topic == TRACE_TOPIC:
        try:
            body = decompress(record.body, record.sys_flag)
        except DecodeError:
            return
        yield from published_in(body)
