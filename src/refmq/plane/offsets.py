"""How far each consumer group has consumed each queue: the step `CommitOffset` of spec/rebalance.

A commit is a register that the last writer wins, whoever it is: the broker does not know who owns a queue. So a late
commit of the previous owner can move an offset back (duplicates, no loss); `CommittedOffsetMonotone` says when. A
monotone register would refuse resets, which arrive as ordinary commits, so we keep upstream's rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rpds import HashTrieMap

from refmq.model.ids import QueueOffset
from refmq.model.step import Event, Step
from refmq.plane.topic_rules import QUEUES_MAX, is_legal_name
from refmq.protocol.bodies.offsets import ConsumerOffsets
from refmq.protocol.names import GROUP_LENGTH_MAX, RETRY_PREFIX, TRANS_GROUP

KEY_SEPARATOR: Final = "@"

ENTRIES_MAX: Final = 1_000_000
"""Offsets kept, each of a topic, a group and a queue; a commit for one more is refused. Nobody can fill the memory, or
make the file of the offsets longer than one that can be read."""

OFFSET_TOPIC_LENGTH_MAX: Final = len(RETRY_PREFIX) + GROUP_LENGTH_MAX
"""The longest topic with offsets is the retry topic of the longest group."""

_NO_QUEUES: Final[HashTrieMap[int, QueueOffset]] = HashTrieMap()
_NO_NAMES: Final[HashTrieMap[str, None]] = HashTrieMap()
Index: TypeAlias = "HashTrieMap[str, HashTrieMap[str, None]]"
"""The groups of each topic, or the topics of each group."""


def commit_mistake(topic: str, group: str, queue_id: int) -> str | None:
    """Why a peer may not commit an offset of this queue for this group, or None.

    Whoever may write any name can write one that is not read back. And how far the check rounds have come is nobody's
    business: who could say that they have seen a half message could make it stay undecided for ever.
    """
    if not is_legal_name(topic) or len(topic) > OFFSET_TOPIC_LENGTH_MAX:
        return "the topic of an offset has an illegal name"
    if not is_legal_name(group) or len(group) > GROUP_LENGTH_MAX:
        return "the group of an offset has an illegal name"
    if group == TRANS_GROUP:
        return f"the offsets of {TRANS_GROUP} are the broker's own"
    if not 0 <= queue_id < QUEUES_MAX:
        return f"a topic has no queue {queue_id}"
    return None


@dataclass(frozen=True, slots=True)
class OffsetTable:
    """The committed offsets: (topic, group) -> queue id -> offset."""

    offsets: HashTrieMap[tuple[str, str], HashTrieMap[int, QueueOffset]] = field(default_factory=HashTrieMap)
    count: int = 0
    """Of offsets."""
    topics: Index = field(default_factory=HashTrieMap)
    """Of each group."""
    groups: Index = field(default_factory=HashTrieMap)
    """Of each topic."""

    def get(self, topic: str, group: str, queue_id: int) -> QueueOffset | None:
        queues = self.offsets.get((topic, group))
        return None if queues is None else queues.get(queue_id)

    def topics_of(self, group: str) -> tuple[str, ...]:
        return tuple(sorted(self.topics.get(group) or _NO_NAMES))

    def groups_of(self, topic: str) -> tuple[str, ...]:
        return tuple(sorted(self.groups.get(topic) or _NO_NAMES))

    def with_queues(self, topic: str, group: str, queues: HashTrieMap[int, QueueOffset]) -> OffsetTable:
        """The table with these offsets of a group in a topic, and no others of it there."""
        before = self.offsets.get((topic, group)) or _NO_QUEUES
        return OffsetTable(
            self.offsets.insert((topic, group), queues),
            self.count - len(before) + len(queues),
            _with_name(self.topics, group, topic),
            _with_name(self.groups, topic, group),
        )

    def without(self, topic: str, group: str) -> OffsetTable:
        """The table without the offsets of a group in a topic."""
        before = self.offsets.get((topic, group))
        if before is None:
            return self
        return OffsetTable(
            self.offsets.remove((topic, group)),
            self.count - len(before),
            _without_name(self.topics, group, topic),
            _without_name(self.groups, topic, group),
        )

    def body(self) -> ConsumerOffsets:
        """What goes into consumerOffset.json; sorted, so that it does not depend on hash seeds."""
        return ConsumerOffsets(
            offset_table={
                topic + KEY_SEPARATOR + group: {queue: queues[queue] for queue in sorted(queues)}
                for (topic, group), queues in sorted(self.offsets.items(), key=lambda item: item[0])
            }
        )


def _with_name(index: Index, of: str, name: str) -> Index:
    found = index.get(of) or _NO_NAMES
    return index if name in found else index.insert(of, found.insert(name, None))


def _without_name(index: Index, of: str, name: str) -> Index:
    left = index[of].remove(name)
    return index.insert(of, left) if len(left) else index.remove(of)


def load_offsets(stored: ConsumerOffsets | None) -> OffsetTable:
    """The table in a consumerOffset.json. A key that is not `topic@group` is left out, as upstream does."""
    table = OffsetTable()
    for key, queues in ({} if stored is None else stored.offset_table).items():
        topic, separator, group = key.partition(KEY_SEPARATOR)
        if separator:
            table = table.with_queues(topic, group, HashTrieMap({q: QueueOffset(o) for q, o in queues.items()}))
    return table


# CommitOffset ------------------------------------------------------------------------------------


def commit_offset_enabled(table: OffsetTable, topic: str, group: str, queue_id: int) -> bool:
    return table.count < ENTRIES_MAX or table.get(topic, group, queue_id) is not None


def commit_offset(
    table: OffsetTable, topic: str, group: str, queue_id: int, offset: QueueOffset
) -> Step[OffsetTable, None]:
    # Enabled
    if not commit_offset_enabled(table, topic, group, queue_id):
        return Step(table)
    # Next
    queues = table.offsets.get((topic, group)) or _NO_QUEUES
    before = queues.get(queue_id)
    after = table.with_queues(topic, group, queues.insert(queue_id, offset))
    assert after.get(topic, group, queue_id) == offset
    assert after.count <= max(ENTRIES_MAX, table.count), "a full table does not grow"
    # Trace
    event = Event("CommitOffset", group, topic, queue_id, a=-1 if before is None else before, b=offset)
    return Step(after, (), event)


def forget_group(table: OffsetTable, group: str) -> OffsetTable:
    """Removes all offsets of exactly this group."""
    for topic in table.topics_of(group):
        table = table.without(topic, group)
    assert group not in table.topics, "a group is forgotten as a whole"
    return table


def clone_group(table: OffsetTable, source: str, target: str, topic: str) -> OffsetTable:
    """Gives one group the offsets that another has in a topic, if there is room for them."""
    queues = table.offsets.get((topic, source))
    after = table if queues is None else table.with_queues(topic, target, queues)
    return after if after.count <= max(ENTRIES_MAX, table.count) else table
