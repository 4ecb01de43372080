"""What a broker finds in its config directory when it starts.

    file                    table                                      written
    topics.json             topics                                     at each change
    subscriptionGroup.json  consumer groups                            at each change, at the end if one was just made
    consumerOffset.json     offsets of groups, progress of rounds      every 5 s and at the end
    consumerFilter.json     registered SQL92 expressions               every 10 s and at the end
    delayOffset.json        how far each delay level is delivered      every 10 s and at the end

Each file has a backup with its previous content (`.bak`), used when the file is missing, empty or unreadable. If both
are unreadable the broker does not start, because an empty table would hide messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from refmq.broker import clients, groups, topics
from refmq.broker.queue_locks import QueueLocks
from refmq.broker.registered_filters import FilterFile, from_file
from refmq.broker.state import BrokerState
from refmq.errors import DiskFailed, WireError
from refmq.filter import BloomFilter
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.protocol.bodies.codec import decode_body
from refmq.protocol.bodies.config import SubscriptionGroupWrapper, TopicConfigSerializeWrapper
from refmq.protocol.bodies.offsets import ConsumerOffsets, DelayOffsets

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

TOPICS_FILE: Final = "topics.json"
GROUPS_FILE: Final = "subscriptionGroup.json"
OFFSETS_FILE: Final = "consumerOffset.json"
FILTERS_FILE: Final = "consumerFilter.json"
DELAY_FILE: Final = "delayOffset.json"

BodyT = TypeVar("BodyT", bound="DataclassInstance")

ReadFile = Callable[[str], tuple[bytes | None, bytes | None]]
"""The name of a file -> its content and that of its backup."""


@dataclass(frozen=True, slots=True)
class StoredTables:
    """The tables in the files; None for a missing file."""

    topics: TopicConfigSerializeWrapper | None = None
    groups: SubscriptionGroupWrapper | None = None
    offsets: ConsumerOffsets | None = None
    filters: FilterFile | None = None
    delays: DelayOffsets | None = None
    notes: tuple[str, ...] = ()
    """One sentence for each backup that was used."""

    @property
    def is_empty(self) -> bool:
        return self == StoredTables()


def read_tables(read: ReadFile) -> StoredTables:
    """Reads every table. `DiskFailed` names the file that cannot be read."""
    notes: list[str] = []
    return StoredTables(
        topics=_read_table(read, TOPICS_FILE, TopicConfigSerializeWrapper, notes),
        groups=_read_table(read, GROUPS_FILE, SubscriptionGroupWrapper, notes),
        offsets=_read_table(read, OFFSETS_FILE, ConsumerOffsets, notes),
        filters=_read_table(read, FILTERS_FILE, FilterFile, notes),
        delays=_read_table(read, DELAY_FILE, DelayOffsets, notes),
        notes=tuple(notes),
    )


def _read_table(read: ReadFile, name: str, body: type[BodyT], notes: list[str]) -> BodyT | None:
    mistake: WireError | None = None
    for text in read(name):
        if not text or not text.strip():
            continue
        try:
            table = decode_body(body, text)
        except WireError as error:
            mistake = mistake or error
            continue
        if mistake is not None:
            notes.append(f"{name} is not readable ({mistake}), using its backup")
        return table
    if mistake is not None:
        raise DiskFailed(name, "parse", str(mistake))
    return None


def start_state(
    config: BrokerConfig, stored: StoredTables, locks: QueueLocks, now_ms: TimestampMs, log_end: PhysicalOffset
) -> BrokerState:
    """The initial state of a broker."""
    bloom = BloomFilter.for_groups(config.max_error_rate_of_bloom_filter, config.expect_consumer_num_use_filter)
    return BrokerState(
        config=config,
        topics=topics.start_topics(config, stored.topics, now_ms),
        groups=groups.start_groups(stored.groups, now_ms),
        clients=clients.ClientTable(),
        locks=locks,
        filters=from_file(stored.filters, bloom, now_ms, log_end),
    )
