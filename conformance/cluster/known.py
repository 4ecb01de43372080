"""What the clients of a history know: where brokers are, what was sent, and where they stand in queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Final

from conformance.cluster.copies import FINAL, differences
from refmq.model.ids import HostAddress
from refmq.protocol.record import Record
from refmq.verify.oracles.arranged import SeenArrangement
from refmq.verify.oracles.base import Finding

TOPIC: Final = "t"
PACKED: Final = 1
"""The bit of the system flag that says that a body is compressed."""


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """A broker as clients know it."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class SentHalf:
    """A half message, as its sender knows it."""

    broker: str
    transaction: str
    physical_offset: int
    queue_offset: int


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent under a key, and has to arrive like that."""

    properties: dict[str, str]
    flag: int
    born_ms: int
    born_ip: bytes
    stores: Set[HostAddress]
    """Where messages may be stored."""

    is_packed: bool = False
    """Its body is said to be compressed; brokers do not look inside."""
    ends_at: set[int] = field(default_factory=set)
    """Where its half message is, as decisions have said."""
    ids: set[str] = field(default_factory=set)
    """What brokers called it where it was sent to, as consumers have seen."""

    def difference(self, record: Record) -> str:
        """How a record differs from what was sent; empty when it does not."""
        if record.topic == TOPIC:
            self.ids.add(record.message_id)
        found = next(differences(record, self.properties, TOPIC, self.ids), "")
        if not found and (record.flag, record.born_timestamp_ms) != (self.flag, self.born_ms):
            return f"flag and time of birth are {(record.flag, record.born_timestamp_ms)}"
        if not found and (record.born_host.ip != self.born_ip or record.store_host not in self.stores):
            return f"it was born at {record.born_host} and stored at {record.store_host}"
        if not found and bool(record.sys_flag & PACKED) is not self.is_packed:
            return f"its system flag is {record.sys_flag}"
        if not found and self.ends_at and record.topic == TOPIC and record.sys_flag & FINAL:
            place = record.prepared_transaction_offset
            return "" if place in self.ends_at else f"its half was at {sorted(self.ends_at)}, not at {place}"
        return found


@dataclass(slots=True)
class Common:
    """What all clients of a history share."""

    stores: frozenset[HostAddress] = frozenset()
    """What brokers write into records as their own address."""
    messages: int = 0
    operations: int = 0
    requests: Counter[int] = field(default_factory=Counter)
    """By code."""
    sent: dict[str, Sent] = field(default_factory=dict)
    """By key."""
    whole_bodies: dict[str, bytes] = field(default_factory=dict)
    """By key: what a message held before a bit of it flipped."""
    arranged: list[SeenArrangement] = field(default_factory=list)
    """What operators have arranged."""
    halves: list[SentHalf] = field(default_factory=list)
    """The half messages that brokers have acknowledged."""
    wrong: list[Finding] = field(default_factory=list)
    """Questions of brokers that were not as they must be."""
    members: list[str] = field(default_factory=list)
    """Every client that ever lived, as `group@client`."""


@dataclass(slots=True)
class Place:
    """Where a client stands in a queue."""

    next_offset: int = 0
    consumed_to: int = 0
    committed: int = -1
