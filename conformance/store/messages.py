"""What the producers of a history send: small names chosen to collide, and bodies that carry their number.

`Aa` and `BB` have the same Java hash, so have the index keys `Aa#x` and `BB#x`: a query that trusts the hash alone
finds strangers. `polygenelubricants` hashes to -2^31, whose absolute value does not fit 32 bits.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any, Final
from zlib import crc32

from rpds import HashTrieMap

from conformance.oracles.store_events import Sent
from conformance.store.history import AppendBatch, AppendIllegal, AppendMessage, Setting
from conformance.store.record import (
    BLANK_BYTES,
    COMMIT,
    FIXED_BYTES,
    HEADS,
    IPV6_EXTRA_BYTES,
    MESSAGE_MAGIC,
    PREPARED,
    ROLLBACK,
    Record,
    java_hash,
)
from refmq.filter import compile_expression
from refmq.filter.registry import FilterData, Filters, TopicFilters
from refmq.filter.sql_ast import Expression
from refmq.filter.work import terms_and_depth
from refmq.model.ids import HostAddress, PhysicalOffset, TimestampMs
from refmq.store import AppendPlan, BatchToStore, MessageToStore, PutResult, PutStatus

TOPICS: Final = ("Aa", "BB", "t", "x" * 127)
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
COMPRESSED: Final = 0x1
IPV4_HOST_BYTES: Final = 8
EXT_HEAD_BYTES: Final = 20
EXT_END_BYTES: Final = 4
"""Of a unit of the extension, and what every file of it keeps free."""
TRANSACTIONS: Final = {
    "plain": 0,
    "delayed": 0,
    "prepared": PREPARED,
    "commit": COMMIT,
    "rollback": ROLLBACK,
    "commit delayed": COMMIT,
}
DELAYED: Final = ("delayed", "commit delayed")

EXTRA_BYTES_MAX: Final = 64 * 1024
"""What a record may have beside the largest message."""
BODY_BYTES_MIN: Final = 4
BODY_BYTES_MAX: Final = 3000
HOST: Final = HostAddress(bytes([127, 0, 0, 1]), 10911)
HOST_IPV6: Final = HostAddress(bytes(range(16, 32)), 10911)
BORN_HOST: Final = HostAddress(bytes([10, 1, 2, 3]), 40001)
BORN_HOST_IPV6: Final = HostAddress(bytes(range(1, 17)), 40001)


def born_host(number: int) -> HostAddress:
    """Every seventh producer has an IPv6 address, which moves most fields of its records."""
    return BORN_HOST_IPV6 if number % 7 == 3 else BORN_HOST


def record_bytes(sent: Sent) -> int:
    """The size of the record of a message."""
    hosts = len(sent.born_host) + len(sent.store_host) - 2 * IPV4_HOST_BYTES
    return FIXED_BYTES + hosts + len(sent.body) + len(sent.topic) + len(wire(sent.properties)) + ends_with_zero(sent)


def host_bytes(host: HostAddress) -> bytes:
    """An address as a record and a message id hold it: the address, then the port as i32."""
    return host.ip + host.port.to_bytes(4, "big")


def next_place(end: int, sent: tuple[Sent, ...], file_bytes: int) -> int:
    """Where records have to go: to the end of the log if they and a blank fit the file, else into the next file."""
    left = file_bytes - end % file_bytes
    size = sum(map(record_bytes, sent))
    return end if left == file_bytes or size + BLANK_BYTES <= left else end + left


def misplaced(plan: AppendPlan, sent: tuple[Sent, ...]) -> str | None:
    """What is wrong with the places of a plan. They must be exact: an acknowledgement tells nothing else."""
    expected = []
    at = int(plan.physical_offset)
    for index, size in enumerate(map(record_bytes, sent)):
        expected.append((at, plan.queue_offset + index if plan.is_queued else 0, size))
        at += size
    found = [(place.physical_offset, place.queue_offset, place.size_bytes) for place in plan.places]
    return None if found == expected else f"a plan for {found} instead of {expected}"


def ids(result: PutResult, sent: tuple[Sent, ...]) -> str:
    """The message ids that a put must give: the broker's address and the physical offset, in hex."""
    offset, found = int(result.physical_offset), []
    for each in sent:
        found.append((each.store_host + offset.to_bytes(8, "big")).hex().upper())
        offset += record_bytes(each)
    return ",".join(found)


def is_legal(to_send: ToSend, setting: Setting) -> bool:
    """Whether a store has to accept these messages: together they fit a file, and every text its length field."""
    sent, message = to_send.sent, to_send.message
    size = sum(map(record_bytes, sent))
    payload = message.body if isinstance(message, MessageToStore) else message.messages
    fits = size + BLANK_BYTES <= setting.log_file_bytes and size <= setting.message_bytes_max + EXTRA_BYTES_MAX
    texts_fit = all(len(wire(each.properties)) + ends_with_zero(each) < 1 << 15 for each in sent)
    return fits and texts_fit and len(payload) <= setting.message_bytes_max


def refusal(to_send: ToSend, setting: Setting) -> PutStatus:
    """With which status a store has to refuse messages that are not legal."""
    is_too_long = len(getattr(to_send.message, "messages", b"")) > setting.message_bytes_max
    texts_fit = all(len(wire(each.properties)) + ends_with_zero(each) < 1 << 15 for each in to_send.sent)
    return PutStatus.MESSAGE_ILLEGAL if is_too_long or texts_fit else PutStatus.PROPERTIES_SIZE_EXCEEDED


def ends_with_zero(sent: Sent) -> bool:
    """Whether the properties end with a zero byte: a store adds a separator."""
    return wire(sent.properties).endswith(b"\0")


def flags(number: int) -> int:
    """Bits of the system flag that mean nothing to a store: some bodies say that they are compressed."""
    return COMPRESSED if number % 5 == 2 else 0


# --- filters by expression ------------------------------------------------------------------------------------------


def bit_positions(expression: int) -> tuple[int, ...]:
    """The bits of an expression; expression `e` is true of messages with tag `e`. The last two have the same bits, so
    a bitmap alone lets some messages through that the expression does not."""
    return (min(expression, len(TAGS) - 2), 2 * min(expression, len(TAGS) - 2) + 5)


def bit_count(topic: str) -> int:
    """How many bits the bitmaps of a topic have. Nobody filters `BB`; those of the delay topic fit no file."""
    return {"Aa": 16, "BB": 0, "t": 112}.get(topic, 8 * 240)


def bitmap_of(topic: str, properties: bytes) -> bytes:
    """The bits of the expressions that a message satisfies, as the broker computes them."""
    bits = bytearray(bit_count(topic) // 8)
    for position in bit_positions(tag_of(properties)) if bits else ():
        bits[position // 8] |= 1 << position % 8
    return bytes(bits)


def expression(number: int) -> Expression:
    """The expression that is true of messages with this tag; the first one of those without one that we know."""
    if number:
        return compile_expression(f"TAGS = '{TAGS[number]}'")
    known = ", ".join(f"'{tag}'" for tag in TAGS[1:])
    return compile_expression(f"TAGS IS NULL OR TAGS NOT IN ({known})")


def filters() -> Filters:
    """The expressions as a store is told of them."""
    found: Filters = HashTrieMap()
    for topic in (*TOPICS, DELAY_TOPIC):
        entries = {
            f"group-{number}": FilterData(
                topic=topic,
                group=f"group-{number}",
                expression_type="SQL92",
                text="",
                compiled=expression(number),
                terms=terms_and_depth(expression(number))[0],
                born_ms=TimestampMs(0),
                since=PhysicalOffset(0),
                client_version=0,
                bit_positions=bit_positions(number),
                dead_ms=TimestampMs(0),
            )
            for number in range(len(TAGS))
        }
        if bit_count(topic):
            found = found.insert(topic, TopicFilters(bit_count(topic), HashTrieMap(entries)))
    return found


FILTERS: Final = filters()


def has_ext_unit(record: Record, ext_file_bytes: int) -> bool:
    """Whether a message's bitmap fits a file of the extension; otherwise its unit holds the plain tags code."""
    return EXT_HEAD_BYTES + bit_count(record.topic) // 8 + EXT_END_BYTES <= ext_file_bytes


def tags_code(record: Record) -> int:
    """What the unit of a record says: when it is due in the delay topic, else the hash of its tags."""
    found = dict(record.properties)
    if record.topic == DELAY_TOPIC:
        return record.store_ms + DELAYS_MS[int(found["DELAY"]) - 1]
    return java_hash(found["TAGS"]) if "TAGS" in found else 0


def tag_of(properties: bytes) -> int:
    """The number of a message's tag; 0 for one that a damaged record has."""
    text = properties.decode(errors="replace")
    tag = dict(piece.split("\x01", 1) for piece in text.split("\x02") if "\x01" in piece).get("TAGS", "")
    return TAGS.index(tag) if tag in TAGS else 0


@dataclass(frozen=True, slots=True)
class ToSend:
    """A message or a batch for the store, and what must be found of it."""

    message: MessageToStore | BatchToStore
    sent: tuple[Sent, ...]


def body_of(number: int, length: int) -> bytes:
    """The number, then bytes that differ from message to message."""
    length = max(BODY_BYTES_MIN, min(length, BODY_BYTES_MAX))
    return number.to_bytes(4, "big") + bytes((number * 7 + i) % 251 + 1 for i in range(length - 4))


def image_of(number: int, length: int) -> bytes:
    """A body that holds a whole record, of another place in the log, if it is long enough for one."""
    body, topic, text = b"image", TOPICS[0].encode(), wire((("UNIQ_KEY", "image"),))
    head = HEADS[IPV4_HOST_BYTES, IPV4_HOST_BYTES]
    size = FIXED_BYTES + len(body) + len(topic) + len(text)
    crc = crc32(body) & 0x7FFF_FFFF
    hosts = (host_bytes(BORN_HOST), host_bytes(HOST))
    fields = (size, MESSAGE_MAGIC, crc, 0, 0, 0, 1, 0, 1, hosts[0], 1, hosts[1], 0, 0, len(body))
    tail = bytes([len(topic)]) + topic + len(text).to_bytes(2, "big") + text
    record = head.pack(*fields) + body + tail
    plain = body_of(number, length)
    return plain[:4] + record + plain[4 + size :] if len(plain) >= 4 + size else plain


def wire(properties: tuple[tuple[str, str], ...]) -> bytes:
    return "\x02".join(f"{name}\x01{value}" for name, value in properties).encode()


def one(step: AppendMessage, number: int, now_ms: int, room_bytes: int, host: HostAddress = HOST) -> ToSend:
    """The message of a step. `room_bytes` is what is left of the present log file, `host` the broker's address."""
    topic, queue_id = TOPICS[step.topic % len(TOPICS)], QUEUES[step.queue % len(QUEUES)]
    properties = [("UNIQ_KEY", f"U{number:03}")]
    tag = TAGS[step.tag % len(TAGS)]
    if tag:
        properties.append(("TAGS", tag))
    if step.keys:
        properties.append(("KEYS", " ".join(KEYS[key % len(KEYS)] for key in step.keys)))
    if step.properties_bytes:
        rest = step.properties_bytes - len(wire((*properties, ("more", ""))))
        properties.append(("more", "y" * max(0, rest)))
    if step.ends_with_zero and step.kind not in DELAYED:
        properties.append(("zz", "\0"))
    # A prepared or rolled back message is not delayed, whatever the caller says.
    level = step.level if step.kind in (*DELAYED, "prepared", "rollback") else 0
    delay_ms = -1
    stored_topic, stored_queue, stored_properties = topic, queue_id, list(properties)
    if level > 0 and step.kind in DELAYED:
        properties.append(("DELAY", str(level)))
        level_kept = min(level, len(DELAYS_MS))
        stored_topic, stored_queue, delay_ms = DELAY_TOPIC, level_kept - 1, DELAYS_MS[level_kept - 1]
        stored_properties += [("DELAY", str(level_kept)), ("REAL_TOPIC", topic), ("REAL_QID", str(queue_id))]
    length = step.body_bytes
    if step.leave is not None:
        fixed = (
            FIXED_BYTES
            + (IPV6_EXTRA_BYTES if born_host(number).is_ipv6 else 0)
            + (IPV6_EXTRA_BYTES if host.is_ipv6 else 0)
            + len(stored_topic)
            + len(wire(tuple(stored_properties)))
        )
        length = room_bytes - step.leave - fixed
        length = length if length >= BODY_BYTES_MIN else step.body_bytes
    body = (image_of if step.image else body_of)(number, length)
    transaction = TRANSACTIONS[step.kind]
    prepared = number if transaction in (COMMIT, ROLLBACK) else 0
    message = MessageToStore(
        topic=topic,
        queue_id=queue_id,
        body=body,
        properties=wire(tuple(properties)),
        born_timestamp_ms=TimestampMs(now_ms - 5),
        born_host=born_host(number),
        store_host=host,
        flag=number % 3,
        # Whatever the caller says: the store sets the bits of the hosts itself.
        sys_flag=transaction | flags(number) | 0x30,
        reconsume_times=number % 4,
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
        properties=tuple(stored_properties),
        at_ms=now_ms,
        delay_ms=delay_ms,
        sys_flag=transaction | flags(number),
        born_host=host_bytes(born_host(number)),
        store_host=host_bytes(host),
        reconsume_times=number % 4,
    )
    return ToSend(message, (sent,))


def batch(step: AppendBatch, number: int, now_ms: int, host: HostAddress = HOST) -> ToSend:
    """The batch of a step; its members have consecutive numbers from `number` on."""
    topic, queue_id = TOPICS[step.topic % len(TOPICS)], QUEUES[step.queue % len(QUEUES)]
    shared = (*BATCH_PROPERTIES, ("more", "y" * step.filler)) if step.filler else BATCH_PROPERTIES
    if step.both:
        shared = (("both", "batch"), *shared)
    if step.ends_with_zero:
        shared = (*shared, ("zz", "\0"))
    encoded = []
    sent = []
    for member, length in enumerate(step.bodies, start=number):
        # TAGS stands last: whoever joins the two property texts without a separator damages it.
        filler = (("filler", "x" * step.filler),) if step.filler else ()
        own = (("both", "member"),) if step.both else ()
        keys = (("UNIQ_KEY", f"U{member:03}"), ("KEYS", KEYS[step.key % len(KEYS)]))
        properties = (*filler, *own, *keys, ("TAGS", "TagA"))
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
                properties=(*properties, *shared),
                at_ms=now_ms,
                sys_flag=flags(number),
                born_host=host_bytes(born_host(number)),
                store_host=host_bytes(host),
                reconsume_times=number % 4,
            )
        )
    message = BatchToStore(
        topic=topic,
        queue_id=queue_id,
        messages=b"".join(encoded),
        properties=wire(shared),
        born_timestamp_ms=TimestampMs(now_ms - 5),
        born_host=born_host(number),
        store_host=host,
        sys_flag=flags(number) | 0x30,
        reconsume_times=number % 4,
    )
    return ToSend(message, tuple(sent))


ILLEGAL: Final[dict[str, dict[str, Any]]] = {
    "no topic": {"topic": ""},
    "topic with a slash": {"topic": "a/b"},
    "delayed topic with a slash": {"topic": "a/b", "delay_level": 1},
    "topic of one dot": {"topic": "."},
    "topic of two dots": {"topic": ".."},
    "topic with a zero": {"topic": "a\0"},
    "topic of 128 bytes": {"topic": "x" * 128},
    "negative queue": {"queue_id": -1},
    "queue of 33 bits": {"queue_id": 1 << 32},
    "empty batch": {"messages": b""},
    "batch with a delay": {"delay_level": 1},
    "batch in a transaction": {"sys_flag": PREPARED},
    "batch of a negative queue": {"queue_id": -1},
}
"""What is wrong with a message or a batch that is legal otherwise."""


def illegal(step: AppendIllegal, number: int, now_ms: int) -> MessageToStore | BatchToStore:
    """What no store may take."""
    if "batch" not in step.how:
        single = one(AppendMessage(), number, now_ms, 1 << 20).message
        assert isinstance(single, MessageToStore)
        return single._replace(**ILLEGAL[step.how])
    several = batch(AppendBatch(), number, now_ms).message
    assert isinstance(several, BatchToStore)
    wrong = ILLEGAL.get(step.how, {"messages": several.messages[:-1]})
    return replace(several, **wrong)
