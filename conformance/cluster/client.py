"""A scripted client on the wire protocol. It does what a history tells it and records what it sees.

Every operation leaves an `invoke` event and one outcome. `ok` is what the broker answered, `fail` means that it surely
did not happen, `unknown` that nobody can know: a connection that broke, an answer that never came, an error of
which one cannot tell when it struck.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from conformance.cluster.history import Decision, Wanted
from conformance.cluster.known import BrokerAddress, Common, Place
from refmq.errors import ConnectFailed, NetworkError, WireError
from refmq.model.fingerprint import message_fingerprint
from refmq.model.ids import MessageQueue
from refmq.model.step import Event
from refmq.net.address import parse_address
from refmq.net.client import Client
from refmq.net.connection import Connection
from refmq.protocol.codes import ResponseCode
from refmq.protocol.command import RemotingCommand, SerializeType
from refmq.protocol.record import (
    Record,
    decode_properties,
    decode_record,
)
from refmq.sim.world import Node
from refmq.trace.record import Outcome

PRODUCER_GROUP: Final = "p"

BINARY_ONE_IN: Final = 4
TIMEOUT_S: Final = 3.0
"""Java's send and offset timeouts are of this order."""

FILTER_GROUP: Final = "f"
"""The group of pulls with a filter: it has places of its own, because it passes messages that it does not want."""


REGISTERED_GROUP: Final = "r"
SQL_GROUP: Final = "q"
"""The same with a filter in SQL: n > 1."""
"""The group of pulls whose filter is the one that heartbeats registered: tag a."""


Heard: TypeAlias = Callable[["ScriptedClient", Connection, RemotingCommand], RemotingCommand | Awaitable[None] | None]


@dataclass(slots=True)
class ScriptedClient:
    """One client: a member of the producer group and of the consumer group."""

    node: Node
    name: str
    group: str
    common: Common
    heard: Heard
    """Is told what brokers say on their own."""
    places: dict[MessageQueue, Place] = field(default_factory=dict)
    filtered: dict[tuple[MessageQueue, Wanted], Place] = field(default_factory=dict)
    last: dict[tuple[str, str], Record] = field(default_factory=dict)
    """Broker and topic -> the last message that came from there."""
    decisions: dict[str, tuple[Decision, int]] = field(default_factory=dict)
    """Transaction -> what to answer when asked, and the message."""
    last_key: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Broker -> key and fingerprint of the last message that it acknowledged."""
    client: Client = field(init=False)
    last_code: int = 0
    """Of the last answer to a pull."""

    def __post_init__(self) -> None:
        self.client = Client(lambda connection, command: self.heard(self, connection, command))
        self.common.members.append(self.member)

    @property
    def member(self) -> str:
        return f"{self.group}@{self.name}"

    # --- recording --------------------------------------------------------------------------------------------

    def begin(self) -> int:
        self.common.operations += 1
        return self.common.operations

    def record(
        self,
        operation: int,
        outcome: Outcome,
        action: str,
        queue: MessageQueue,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        d: int = 0,
    ) -> None:
        subject = f"{queue.topic}@{queue.broker}"
        self.node.recorder.record(Event(action, self.member, subject, queue.queue_id, a, b, c, d), outcome, operation)

    async def ask(self, broker: BrokerAddress, command: RemotingCommand, timeout_s: float) -> RemotingCommand | Outcome:
        """The answer, or how it ended without one. One request in four has a binary header."""
        self.common.requests[command.code] += 1
        if self.common.operations % BINARY_ONE_IN == 0:
            command = replace(command, serialize_type=SerializeType.ROCKETMQ)
        try:
            return await self.client.invoke(broker.address, command, timeout_s)
        except ConnectFailed:
            return Outcome.FAIL
        except NetworkError:
            return Outcome.UNKNOWN

    def broker_of(self, connection: Connection) -> str:
        return self.node.world.network.name_of(parse_address(connection.peer)[0])

    def place(self, queue: MessageQueue) -> Place:
        return self.places.setdefault(queue, Place())

    def arrived(self, body: bytes) -> list[Record]:
        """The records of an answer. One of which a bit has flipped must show it by its checksum; it has its key still,
        and is given back whole."""
        found, at = [], 0
        while at < len(body):
            try:
                record = decode_record(body, at, error=WireError)
            except WireError:
                record = decode_record(body, at, check_crc=False, error=WireError)
                whole = self.common.whole_bodies.get(decode_properties(record.properties).get("UNIQ_KEY", ""))
                if whole is None:
                    raise
                record = record._replace(body=whole)
            found.append(record)
            at += record.size_bytes
        return found

    def fingerprint(self, record: Record) -> int:
        """The name of a message that arrived. One that differs from what was sent is another message."""
        key = decode_properties(record.properties).get("UNIQ_KEY", "")
        sent = self.common.sent.get(key)
        difference = "" if sent is None else sent.difference(record)
        if difference:
            self.node.world.note(self.node.name, "altered", f"{key}: {difference}")
        return message_fingerprint(f"{key}{difference}".encode(), record.body)


def simple(answer: RemotingCommand) -> Outcome:
    if answer.code == ResponseCode.QUERY_NOT_FOUND:
        return Outcome.FAIL
    return Outcome.OK if answer.code == ResponseCode.SUCCESS else Outcome.UNKNOWN
