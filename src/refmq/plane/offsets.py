"""How far each consumer group has consumed each queue: the step `CommitOffset` of spec/rebalance.

A commit is a register that the last writer wins, whoever it is: the broker does not know who owns a queue. So a late
commit of the previous owner can move an offset back (duplicates, no loss); `CommittedOffsetMonotone` says when. A
monotone register would refuse resets, which arrive as ordinary commits, so we keep upstream's rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from rpds import HashTrieMap

from refmq.model.ids import QueueOffset
from refmq.model.step import Event, Step
from refmq.protocol.bodies.offsets import ConsumerOffsets

KEY_SEPARATOR: Final = "@"

ENTRIES_MAX: Final = 1_000_000
"""Offsets of (topic, group) pairs kept; a commit for one more is refused, so that nobody can fill the memory."""


_NO_QUEUES: Final[HashTrieMap[int, QueueOffset]] = HashTrieMap()


@dataclass(frozen=True, slots=True)
class OffsetTable:
    """The committed offsets: (topic, group) -> queue id -> offset."""

    offsets: HashTrieMap[tuple[str, str], HashTrieMap[int, QueueOffset]] = field(default_factory=HashTrieMap)

    def get(self, topic: str, group: str, queue_id: int) -> QueueOffset | None:
        queues = self.offsets.get((topic, group))
        return None if queues is None else queues.get(queue_id)

    def topics_of(self, group: str) -> tuple[str, ...]:
        return tuple(sorted(topic for topic, name in self.offsets if name == group))

    def groups_of(self, topic: str) -> tuple[str, ...]:
        return tuple(sorted(group for name, group in self.offsets if name == topic))

    def body(self) -> ConsumerOffsets:
        """What goes into consumerOffset.json; sorted, so that it does not depend on hash seeds."""
        return ConsumerOffsets(
            offset_table={
                topic + KEY_SEPARATOR + group: {queue: queues[queue] for queue in sorted(queues)}
                for (topic, group), queues in sorted(self.offsets.items(), key=lambda item: item[0])
            }
        )


def load_offsets(stored: ConsumerOffsets | None) -> OffsetTable:
    """The table in a consumerOffset.json. A key that is not `topic@group` is left out, as upstream does."""
    offsets: HashTrieMap[tuple[str, str], HashTrieMap[int, QueueOffset]] = HashTrieMap()
    for key, queues in ({} if stored is None else stored.offset_table).items():
        topic, separator, group = key.partition(KEY_SEPARATOR)
        if separator:
            offsets = offsets.insert((topic, group), HashTrieMap({q: QueueOffset(o) for q, o in queues.items()}))
    return OffsetTable(offsets)


# CommitOffset ------------------------------------------------------------------------------------


def commit_offset_enabled(table: OffsetTable, topic: str, group: str) -> bool:
    return (topic, group) in table.offsets or len(table.offsets) < ENTRIES_MAX


def commit_offset(
    table: OffsetTable, topic: str, group: str, queue_id: int, offset: QueueOffset
) -> Step[OffsetTable, None]:
    # Enabled
    if not commit_offset_enabled(table, topic, group):
        return Step(table)
    # Next
    queues = table.offsets.get((topic, group)) or _NO_QUEUES
    before = queues.get(queue_id)
    after = replace(table, offsets=table.offsets.insert((topic, group), queues.insert(queue_id, offset)))
    assert after.get(topic, group, queue_id) == offset
    assert len(after.offsets) <= max(ENTRIES_MAX, len(table.offsets)), "a full table does not grow"
    # Trace
    event = Event("CommitOffset", group, topic, queue_id, a=-1 if before is None else before, b=offset)
    return Step(after, (), event)


def forget_group(table: OffsetTable, group: str) -> OffsetTable:
    """Removes all offsets of exactly this group."""
    offsets = table.offsets
    for topic in table.topics_of(group):
        offsets = offsets.discard((topic, group))
    assert not any(name == group for _, name in offsets), "a group is forgotten as a whole"
    return replace(table, offsets=offsets)


def clone_group(table: OffsetTable, source: str, target: str, topic: str) -> OffsetTable:
    """Gives one group the offsets that another has in a topic."""
    queues = table.offsets.get((topic, source))
    return table if queues is None else replace(table, offsets=table.offsets.insert((topic, target), queues))
