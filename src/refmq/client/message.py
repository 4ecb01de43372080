"""Messages as applications know them: those to be sent, those that were received, and what came of a send.

All of them are frozen. Bodies are bytes; nothing is serialized in secret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from ipaddress import ip_address
from types import MappingProxyType, TracebackType
from typing import Final, Protocol

from refmq.errors import InvalidMessage, InvalidName
from refmq.model.fingerprint import message_fingerprint
from refmq.model.ids import HostAddress, MessageQueue
from refmq.protocol import names
from refmq.protocol.compression import decompress
from refmq.protocol.record import (
    NAME_VALUE_SEPARATOR,
    PROPERTIES_BYTES_MAX,
    PROPERTY_SEPARATOR,
    Record,
    decode_properties,
    encode_properties,
)

BODY_BYTES_MAX: Final = 4 * 1024 * 1024  # maxMessageSize, 4.9.8
SHORT: Final = 4_096
"""Properties with so few characters fit, whatever they are: four bytes each at most, and a few separators."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to be sent.

    ``keys`` are what it can be found by later, ``tag`` is what consumers choose by, ``properties`` are the
    application's own. ``delay_level`` 1 to 18 delivers it later. ``wait_stored=False`` asks a broker that flushes or
    copies synchronously not to wait for it.
    """

    topic: str
    body: bytes
    tag: str = ""
    keys: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    delay_level: int = 0
    flag: int = 0
    wait_stored: bool = True


def checked_message(message: Message, *, body_bytes_max: int = BODY_BYTES_MAX) -> Message:
    """``message`` itself, when a broker can take it. ``InvalidMessage`` or ``InvalidName`` otherwise."""
    checked_topic(message.topic)
    if message.topic in names.NOT_FOR_CLIENTS:
        raise InvalidName(f"The topic {message.topic} belongs to the brokers; clients may not send to it.")
    if not isinstance(message.body, bytes):
        raise InvalidMessage(f"A body is bytes, not {type(message.body).__name__}: encode it first.")
    if not message.body:
        raise InvalidMessage("The body is empty; brokers take 1 byte or more.")
    if len(message.body) > body_bytes_max:
        raise InvalidMessage(f"The body has {len(message.body)} bytes; at most {body_bytes_max} are allowed.")
    if not 0 <= message.delay_level <= 0x7FFF_FFFF:
        raise InvalidMessage(f"A delay level is 0 (none) or more, not {message.delay_level}.")
    if not (message.tag or message.keys or message.properties):
        return message
    for name, value in message.properties.items():
        if name in names.RESERVED_PROPERTIES:
            raise InvalidMessage(f"The property {name} belongs to RocketMQ; an application may not set it.")
        if not name.strip() or not value.strip():
            raise InvalidMessage(f"A property needs a name and a value, not {name!r}={value!r}.")
    texts = (message.tag, *message.keys, *message.properties, *message.properties.values())
    for text in texts:
        if NAME_VALUE_SEPARATOR in text or PROPERTY_SEPARATOR in text:
            raise InvalidMessage(f"{text!r} has one of the characters U+0001 and U+0002, which separate properties.")
    if any(not key or " " in key for key in message.keys):
        raise InvalidMessage("A key must not be empty or contain a space: spaces separate keys.")
    # The client and the broker add some of their own: id, group, cluster, a few hundred bytes.
    is_long = sum(map(len, texts)) > SHORT
    if is_long and len(encode_properties(message_properties(message))) > PROPERTIES_BYTES_MAX - 512:
        raise InvalidMessage(f"The properties are too long; about {PROPERTIES_BYTES_MAX - 512} bytes fit.")
    return message


def checked_topic(topic: str) -> str:
    """``topic`` when it can be the name of a topic, else ``InvalidName``."""
    complaint = _complaint_about(topic)
    if complaint is not None:
        raise InvalidName(f"{topic!r} cannot be a topic: {complaint}.")
    return topic


@lru_cache(maxsize=1_024)  # an application has few topics, and every message asks
def _complaint_about(topic: str) -> str | None:
    return names.topic_complaint(topic)


def checked_group(group: str, kind: str) -> str:
    """``group`` when it can be a producer or consumer group, else ``InvalidName``."""
    complaint = names.group_complaint(group)
    if complaint is not None:
        raise InvalidName(f"{group!r} cannot be a {kind} group: {complaint}.")
    if group in ("DEFAULT_PRODUCER", "DEFAULT_CONSUMER"):
        raise InvalidName(f"{group} is a name that RocketMQ keeps for itself; choose another {kind} group.")
    return group


def message_properties(message: Message) -> dict[str, str]:
    """The properties of a message on the wire, apart from those that sending adds."""
    found = dict(message.properties)
    if message.keys:
        found[names.KEYS] = " ".join(message.keys)
    if message.tag:
        found[names.TAGS] = message.tag
    found[names.WAIT_STORE_MSG_OK] = "true" if message.wait_stored else "false"
    if message.delay_level:
        found[names.DELAY_TIME_LEVEL] = str(message.delay_level)
    return found


# What came of a send ------------------------------------------------------------------------------------------------


class SendStatus(StrEnum):
    """How far a stored message is secured."""

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


@dataclass(frozen=True, slots=True)
class SendResult:
    """Where a message is stored. ``msg_id`` is the client's id; ``offset_msg_id`` names the place at the broker."""

    status: SendStatus
    msg_id: str
    offset_msg_id: str
    queue: MessageQueue
    queue_offset: int
    transaction_id: str = ""
    region: str = "DefaultRegion"
    trace_on: bool = True


# Received messages --------------------------------------------------------------------------------------------------


class Scope(Protocol):
    """``async with`` around the work on a message. Leaving it gives True when the work was stopped: then there is no
    verdict."""

    async def __aenter__(self) -> None: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool: ...


class Settler(Protocol):
    """Who takes the verdict on a message: its consumer."""

    async def settle(self, message: ReceivedMessage, verdict: Verdict) -> None: ...

    def scope(self, message: ReceivedMessage) -> Scope | None:
        """What surrounds the work on a message, when it may have to end early."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the application says of a message. ``delay_level`` of a failure: 0 lets the broker choose, -1 is the dead
    letter queue at once."""

    success: bool
    delay_level: int = 0
    reason: str = ""


SUCCESS: Final = Verdict(True)


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message as a broker stored it, with everything it knows."""

    topic: str
    body: bytes
    msg_id: str
    queue: MessageQueue
    """The queue it was read from. For a message that is tried again this is a queue of the retry topic."""
    queue_offset: int
    physical_offset: int
    properties: Mapping[str, str] = field(default_factory=dict)
    flag: int = 0
    sys_flag: int = 0
    born_timestamp_ms: int = 0
    born_host: str = ""
    store_timestamp_ms: int = 0
    store_host: str = ""
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    offset_msg_id: str = ""
    stored_bytes: int = 0
    fingerprint: int = field(default=0, repr=False, compare=False)
    """The name of the message in traces, where brokers name it by the body as it is stored; 0 when none is recorded."""
    settler: Settler | None = field(default=None, repr=False, compare=False)

    @property
    def tag(self) -> str:
        return self.properties.get(names.TAGS, "")

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.properties.get(names.KEYS, "").split())

    @property
    def born_at(self) -> datetime:
        return datetime.fromtimestamp(self.born_timestamp_ms / 1000, UTC)

    @property
    def stored_at(self) -> datetime:
        return datetime.fromtimestamp(self.store_timestamp_ms / 1000, UTC)

    @property
    def transaction_id(self) -> str:
        return self.properties.get(names.UNIQ_KEY, "") if names.TRANSACTION_PREPARED in self.properties else ""

    def processing(self) -> Processing:
        """``async with msg.processing():`` leaving the block is success, an exception means "later".

        The exception is logged and does not leave the block, except those that end a task or a program. In order, the
        block is cancelled when the lock on its queue expires, and then the message comes again.
        """
        return Processing(self)

    async def ack(self) -> None:
        """Says that the message is done with."""
        await self._settler().settle(self, SUCCESS)

    async def retry_later(self, *, delay_level: int = 0, reason: str = "") -> None:
        """Gives the message back, to be tried again after a delay. Level 0 lets the broker choose."""
        await self._settler().settle(self, Verdict(False, delay_level, reason))

    async def to_dead_letters(self, reason: str = "") -> None:
        """Gives the message up: it goes to the dead letter queue of the group at once."""
        await self._settler().settle(self, Verdict(False, -1, reason))

    def _settler(self) -> Settler:
        if self.settler is None:
            raise InvalidMessage("This message was not handed out by a consumer, so nobody waits for a verdict.")
        return self.settler


class Processing:
    """The block in which an application deals with messages."""

    __slots__ = ("_messages", "_scope")

    def __init__(self, *messages: ReceivedMessage) -> None:
        self._messages = messages
        self._scope: Scope | None = None

    async def __aenter__(self) -> None:
        if len(self._messages) == 1:  # what is handed out in order comes one by one
            (message,) = self._messages
            self._scope = message._settler().scope(message)
        if self._scope is not None:
            await self._scope.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if self._scope is not None and await self._scope.__aexit__(kind, error, traceback):
            return True
        if error is not None and not isinstance(error, Exception):
            return False  # cancelled, or Ctrl-C: no verdict, somebody gets the messages again
        verdict = SUCCESS if error is None else Verdict(False, reason=f"{type(error).__name__}: {error}")
        for message in self._messages:
            await message._settler().settle(message, verdict)
        return True


@dataclass(frozen=True, slots=True)
class Batch(Sequence[ReceivedMessage]):
    """Messages that are dealt with together. ``async with batch.processing():`` settles all of them."""

    messages: tuple[ReceivedMessage, ...]

    def processing(self) -> Processing:
        return Processing(*self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    def __getitem__(self, index):  # type: ignore[no-untyped-def] # the two forms of Sequence, as tuple has them
        return self.messages[index]


@lru_cache(maxsize=4_096)  # brokers and producers are few, messages are many
def host_text(host: HostAddress) -> str:
    address = ip_address(host.ip)
    return f"[{address}]:{host.port}" if host.is_ipv6 else f"{address}:{host.port}"


def received_message(
    record: Record,
    broker: str,
    *,
    namespace: str | None = None,
    group: str = "",
    settler: Settler | None = None,
    recorded: bool = False,
) -> ReceivedMessage:
    """The message that a record holds, decompressed, under the names that the application knows.

    A message of the group's retry topic shows the topic that it was first sent to. What is ``recorded`` in a trace has
    a fingerprint.
    """
    properties = decode_properties(record.properties)
    topic = record.topic
    if group and topic == names.retry_topic(group):
        topic = properties.get(names.RETRY_TOPIC, topic)
    offset_id = record.message_id
    return ReceivedMessage(
        topic=names.without_namespace(topic, namespace),
        body=decompress(record.body, record.sys_flag),
        msg_id=properties.get(names.UNIQ_KEY, offset_id),
        queue=MessageQueue(record.topic, broker, record.queue_id),
        queue_offset=record.queue_offset,
        physical_offset=record.physical_offset,
        properties=MappingProxyType(properties),
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp_ms=record.born_timestamp_ms,
        born_host=host_text(record.born_host),
        store_timestamp_ms=record.store_timestamp_ms,
        store_host=host_text(record.store_host),
        reconsume_times=record.reconsume_times,
        prepared_transaction_offset=record.prepared_transaction_offset,
        offset_msg_id=offset_id,
        stored_bytes=len(record.body),
        fingerprint=(message_fingerprint(properties.get(names.UNIQ_KEY, "").encode(), record.body) if recorded else 0),
        settler=settler,
    )
