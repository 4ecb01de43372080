"""What the producers of a history send: small names chosen to collide, and bodies that carry their number.

`Aa` and `BB` have the same Java hash, so have the index keys `Aa#x` and `BB#x`: a query that trusts the hash alone
finds strangers. `polygenelubricants` hashes to -2^31, whose absolute value does not fit 32 bits.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from conformance.oracles.store_events import Sent
from conformance.store.history import AppendBatch, AppendMessage
from conformance.store.record import COMMIT, FIXED_BYTES, IPV6_EXTRA_BYTES, PREPARED, ROLLBACK
from refmq.model.ids import HostAddress, TimestampMs
from refmq.store import BatchToStore, MessageToStore

TOPICS: Final = ("Aa", "BB", "t")
QUEUES: Final = (0, 1, 7)
KEYS: Final = ("Aa", "BB", "polygenelubricants", "k")
TAGS: Final = ("", "TagA", "polygenelubricants", "Aa", "BB")
BATCH_PROPERTIES: Final = (("CLUSTER", "c"),)
DELAY_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
DELAYS_MS: Final = tuple(
    count * unit
    for count, unit in (
        *[(n, 1000) for n in (1, 5, 10, 30)],
        *[(n, 60_000) for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30)],
        *[(n, 3_600_000) for n in (1, 2)],
    )
)
TRANSACTIONS: Final = {"plain": 0, "delayed": 0, "prepared": PREPARED, "commit": COMMIT, "rollback": ROLLBACK}

BODY_BYTES_MIN: Final = 4
BODY_BYTES_MAX: Final = 3000
HOST: Final = HostAddress(bytes([127, 0, 0, 1]), 10911)
BORN_HOST: Final = HostAddress(bytes([10, 1, 2, 3]), 40001)
BORN_HOST_IPV6: Final = HostAddress(bytes(range(1, 17)), 40001)


def born_host(number: int) -> HostAddress:
    """Every seventh producer has an IPv6 address, which moves most fields of its records."""
    return BORN_HOST_IPV6 if number % 7 == 3 else BORN_HOST


def record_bytes(sent: Sent, first: int) -> int:
    """The size of the record of a message; `first` is the number of its batch's first member."""
    extra = IPV6_EXTRA_BYTES if born_host(first).is_ipv6 else 0
    return FIXED_BYTES + extra + len(sent.body) + len(sent.topic) + len(wire(sent.properties))


@dataclass(frozen=True, slots=True)
class ToSend:
    """A message or a batch for the store, and what must be found of it."""

    message: MessageToStore | BatchToStore
    sent: tuple[Sent, ...]


def body_of(number: int, length: int) -> bytes:
    """The number, then bytes that differ from message to message."""
    length = max(BODY_BYTES_MIN, min(length, BODY_BYTES_MAX))
    return number.to_bytes(4, "big") + bytes((number * 7 + i) % 251 + 1 for i in range(length - 4))


def wire(properties: tuple[tuple[str, str], ...]) -> bytes:
    return "\x02".join(f"{name}\x01{value}" for name, value in properties).encode()


def one(step: AppendMessage, number: int, now_ms: int, room_bytes: int) -> ToSend:
    """The message of a step. `room_bytes` is what is left of the present log file."""
    topic, queue_id = TOPICS[step.topic % len(TOPICS)], QUEUES[step.queue % len(QUEUES)]
    properties = [("UNIQ_KEY", f"U{number:03}")]
    tag = TAGS[step.tag % len(TAGS)]
    if tag:
        properties.append(("TAGS", tag))
    if step.keys:
        properties.append(("KEYS", " ".join(KEYS[key % len(KEYS)] for key in step.keys)))
    level = step.level if step.kind == "delayed" else 0
    delay_ms = -1
    stored_topic, stored_queue, stored_properties = topic, queue_id, list(properties)
    if level > 0:
        properties.append(("DELAY", str(level)))
        level_kept = min(level, len(DELAYS_MS))
        stored_topic, stored_queue, delay_ms = DELAY_TOPIC, level_kept - 1, DELAYS_MS[level_kept - 1]
        stored_properties += [("DELAY", str(level_kept)), ("REAL_TOPIC", topic), ("REAL_QID", str(queue_id))]
    length = step.body_bytes
    if step.leave is not None:
        fixed = (
            FIXED_BYTES
            + (IPV6_EXTRA_BYTES if born_host(number).is_ipv6 else 0)
            + len(stored_topic)
            + len(wire(tuple(stored_properties)))
        )
        length = room_bytes - step.leave - fixed
        length = length if length >= BODY_BYTES_MIN else step.body_bytes
    body = body_of(number, length)
    transaction = TRANSACTIONS[step.kind]
    prepared = number if transaction in (COMMIT, ROLLBACK) else 0
    message = MessageToStore(
        topic=topic,
        queue_id=queue_id,
        body=body,
        properties=wire(tuple(properties)),
        born_timestamp_ms=TimestampMs(now_ms - 5),
        born_host=born_host(number),
        store_host=HOST,
        flag=number % 3,
        sys_flag=transaction | 0x10,  # whatever the caller says: the store sets the bits of the hosts itself
        prepared_transaction_offset=prepared,
        delay_level=level,
    )
    sent = Sent(
        number=number,
        topic=stored_topic,
        queue_id=stored_queue,
        flag=number % 3,
        transaction=transaction,
        prepared_offset=prepared,
        born_ms=now_ms - 5,
        body=body,
        properties=tuple(sorted(stored_properties)),
        at_ms=now_ms,
        delay_ms=delay_ms,
    )
    return ToSend(message, (sent,))


def batch(step: AppendBatch, number: int, now_ms: int) -> ToSend:
    """The batch of a step; its members have consecutive numbers from `number` on."""
    topic, queue_id = TOPICS[step.topic % len(TOPICS)], QUEUES[step.queue % len(QUEUES)]
    shared = (*BATCH_PROPERTIES, ("more", "y" * step.filler)) if step.filler else BATCH_PROPERTIES
    encoded = []
    sent = []
    for member, length in enumerate(step.bodies, start=number):
        # TAGS stands last: whoever joins the two property texts without a separator damages it.
        filler = (("filler", "x" * step.filler),) if step.filler else ()
        properties = (*filler, ("UNIQ_KEY", f"U{member:03}"), ("KEYS", KEYS[step.key % len(KEYS)]), ("TAGS", "TagA"))
        body, text = body_of(member, length), wire(properties)
        size = 22 + len(body) + len(text)
        head = struct.pack(">iiiii", size, 0, 0, member % 3, len(body))
        encoded.append(head + body + struct.pack(">h", len(text)) + text)
        sent.append(
            Sent(
                number=member,
                topic=topic,
                queue_id=queue_id,
                flag=member % 3,
                transaction=0,
                prepared_offset=0,
                born_ms=now_ms - 5,
                body=body,
                properties=tuple(sorted((*properties, *shared))),
                at_ms=now_ms,
            )
        )
    message = BatchToStore(
        topic=topic,
        queue_id=queue_id,
        messages=b"".join(encoded),
        properties=wire(shared),
        born_timestamp_ms=TimestampMs(now_ms - 5),
        born_host=born_host(number),
        store_host=HOST,
    )
    return ToSend(message, tuple(sent))
