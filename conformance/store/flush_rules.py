"""When a store has to make its log durable, and when not: by time and by full pages, as its documentation says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from conformance.store import raw
from refmq.sim.disk import SimulatedDisk
from refmq.store import MessageStore

COMMIT_MS: Final = 200
"""The transient pool hands everything to the file that often."""
LOG_MS: Final = 500
LOG_PAGES: Final = 4
LOG_THOROUGH_MS: Final = 10_000
QUEUE_MS: Final = 1000
QUEUE_PAGES: Final = 2
QUEUE_THOROUGH_MS: Final = 60_000
"""Everything is flushed that often, whatever the number of pages; with the queues the log is flushed as well."""


@dataclass(slots=True)
class FlushRules:
    """What a store with async flush should do, since its start."""

    log_ms: int
    log_thorough_ms: int
    queue_ms: int
    queue_thorough_ms: int
    commit_ms: int
    page_bytes: int = 4096
    by_queues: bool = False
    """Whether everything had to be flushed the last time `flushes` was asked, with the queues."""
    by_queue_pages: bool = False
    """Whether queues of which so many pages are full had to be flushed then."""

    @staticmethod
    def since(now_ms: int, page_bytes: int) -> FlushRules:
        return FlushRules(now_ms, now_ms, now_ms, now_ms, now_ms, page_bytes)

    def commits(self, now_ms: int) -> bool:
        """Whether the pool is emptied now."""
        if not _is_over(COMMIT_MS, self.commit_ms, now_ms):
            return False
        self.commit_ms = now_ms
        return True

    def flushes(self, now_ms: int, flushed: int, written: int, *, has_deleted: bool) -> bool:
        """Whether the log is flushed now. A deleted topic is one more reason to make everything durable."""
        by_log = False
        if _is_over(LOG_MS, self.log_ms, now_ms):
            self.log_ms = now_ms
            by_log = self.full_pages(flushed, written) >= LOG_PAGES
            if _is_over(LOG_THOROUGH_MS, self.log_thorough_ms, now_ms):
                self.log_thorough_ms = now_ms
                by_log = True
        self.by_queues = self.by_queue_pages = False
        if has_deleted or _is_over(QUEUE_MS, self.queue_ms, now_ms):
            self.queue_ms = now_ms
            self.by_queues = has_deleted or _is_over(QUEUE_THOROUGH_MS, self.queue_thorough_ms, now_ms)
            self.by_queue_pages = not self.by_queues
            if self.by_queues:
                self.queue_thorough_ms = now_ms
        return by_log or self.by_queues

    def full_pages(self, flushed: int, written: int) -> int:
        """How many pages have filled up since the last flush."""
        return written // self.page_bytes - flushed // self.page_bytes


def _is_over(interval_ms: int, since_ms: int, now_ms: int) -> bool:
    """A clock that was set back says nothing about an interval; then it is over."""
    return now_ms < since_ms or now_ms - since_ms >= interval_ms


def queues_with_full_pages(
    rules: FlushRules | None, store: MessageStore, disk: SimulatedDisk
) -> dict[tuple[str, int], int]:
    """How many units the queues have that the page rule says must be flushed at the next occasion."""
    if rules is None:
        return {}
    ends = {
        (queue.topic, queue.queue_id): int(store.max_offset(queue.topic, queue.queue_id)) for queue in store.queues()
    }
    ends = {name: end for name, end in ends.items() if end * raw.UNIT_BYTES >= QUEUE_PAGES * rules.page_bytes}
    worst = raw.worst_case(disk) if ends else {}
    return {
        (topic, queue_id): end
        for (topic, queue_id), end in ends.items()
        if rules.full_pages(raw.queue_end(worst, topic, queue_id), end * raw.UNIT_BYTES) >= QUEUE_PAGES
    }


def not_durable(queues: Mapping[tuple[str, int], int], disk: SimulatedDisk) -> Iterator[str]:
    """A sentence for each of these queues that a power loss now would make shorter."""
    worst = raw.worst_case(disk) if queues else {}
    for (topic, queue_id), end in queues.items():
        durable = raw.queue_end(worst, topic, queue_id) // raw.UNIT_BYTES
        if durable < end:
            yield f"{durable} of {end} units of {topic}/{queue_id} are durable"
