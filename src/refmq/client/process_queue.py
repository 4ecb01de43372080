"""What a consumer holds of one queue: messages that were pulled and are not finished, and the offset to commit.

    pulled, finished            pulled, not finished (cached)        not pulled
    ------------------------|-------------------------------------|------------------>  queue offset
                            memory: all below is finished          next_offset

Messages end in any order; the offset to commit is the first one that is not finished. Some offsets in between were
filtered out and are nobody's. The messages themselves are with the shell: here are only their offsets and sizes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from rpds import HashTrieMap, HashTrieSet, Queue

from refmq.errors import WireError

MESSAGES_MAX: Final = 1_000  # pullThresholdForQueue, 4.9.8
BYTES_MAX: Final = 100 << 20  # pullThresholdSizeForQueue, 4.9.8
SPAN_MAX: Final = 2_000  # consumeConcurrentlyMaxSpan, 4.9.8


@dataclass(frozen=True, slots=True)
class ProcessQueue:
    """One queue of a consumer."""

    next_offset: int
    """Where the next pull begins."""
    memory: int | None = None
    """The offset that would be committed; None when the queue was given up and nothing may be committed any more."""
    dropped: bool = False
    """Given up, while a listener still has a message of it."""
    cached: HashTrieMap[int, int] = field(default_factory=HashTrieMap)
    """Offset -> bytes of the body, of every message that is not finished."""
    order: Queue[int] = field(default_factory=Queue)
    """The cached offsets in their order, and some that are finished."""
    running: HashTrieSet[int] = field(default_factory=HashTrieSet)
    """Offsets in the hands of a listener."""
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """When a consumer stops to pull from a queue. Ours stop at the bound; upstream's one message above it."""

    messages_max: int = MESSAGES_MAX
    bytes_max: int = BYTES_MAX
    span_max: int = SPAN_MAX


def first_cached(queue: ProcessQueue) -> int | None:
    """The oldest message that is not finished."""
    for offset in queue.order:
        if offset in queue.cached:
            return offset
    return None


def is_full(queue: ProcessQueue, limits: CacheLimits) -> bool:
    """Whether enough waits already. The span matters when one old message holds up the offset of many new ones."""
    if len(queue.cached) >= limits.messages_max or queue.size_bytes >= limits.bytes_max:
        return True
    first = first_cached(queue)
    return first is not None and queue.next_offset - first >= limits.span_max


def check_pulled(from_offset: int, next_offset: int, offsets: Iterable[int]) -> None:
    """``WireError`` unless the messages of an answer come in order, from where was asked and before its end.

    Whatever else they said, the offset to commit would be wrong.
    """
    last = from_offset - 1
    for offset in offsets:
        if not last < offset < next_offset:
            raise WireError("queue offset", 0, f"{last + 1} .. {next_offset - 1}", offset)
        last = offset


def put_pulled(queue: ProcessQueue, messages: Iterable[tuple[int, int]], next_offset: int) -> ProcessQueue:
    """After a pull: ``messages`` are offsets and sizes, ``next_offset`` is where the next pull begins."""
    assert next_offset >= queue.next_offset, "a pull does not go back"
    cached, order, size = queue.cached, queue.order, queue.size_bytes
    last = queue.next_offset - 1
    for offset, size_bytes in messages:
        assert last < offset < next_offset, "the messages of a pull come in order and lie before its end"
        cached, order, size, last = cached.insert(offset, size_bytes), order.enqueue(offset), size + size_bytes, offset
    after = replace(queue, cached=cached, order=order, size_bytes=size, next_offset=next_offset)
    if not cached:
        # Nothing of what was passed is wanted: it is finished with, however often that happens.
        after = replace(after, memory=next_offset if queue.memory is None else max(queue.memory, next_offset))
    return after


def start(queue: ProcessQueue, offset: int) -> ProcessQueue:
    """A listener gets a message."""
    assert offset in queue.cached, "only what was pulled can be consumed"
    running = queue.running.insert(offset)
    return ProcessQueue(
        queue.next_offset, queue.memory, queue.dropped, queue.cached, queue.order, running, queue.size_bytes
    )


def finish(queue: ProcessQueue, offset: int, *, success: bool) -> ProcessQueue:
    """A listener is done. Without success the message waits for another attempt."""
    assert offset in queue.running, "only what was started can be finished"
    running = queue.running.remove(offset)
    if not success:
        return replace(queue, running=running)
    cached = queue.cached.remove(offset)
    order = queue.order
    while order and order.peek() not in cached:  # type: ignore[operator]  # the stub says it is a property
        order = order.dequeue()  # type: ignore[call-arg]  # the stub asks for a value that it does not take
    memory = queue.memory
    if not queue.dropped:  # otherwise whoever has the queue now decides what is committed
        reached = order.peek() if order else queue.next_offset  # type: ignore[operator]  # as above
        memory = reached if memory is None else max(memory, reached)
    size_bytes = queue.size_bytes - queue.cached[offset]
    assert size_bytes >= 0, "what is cached was counted"
    # Built anew and not by `replace`, which takes three times as long: every message comes this way.
    return ProcessQueue(queue.next_offset, memory, queue.dropped, cached, order, running, size_bytes)
