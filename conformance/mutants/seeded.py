"""Mistakes by hand: bugs that real stores have had, and others that are as easy to make, seeded in the reference.

`bug` is the number in the catalogue of historical bugs (B..) or of the traps and crash points of the format (T.., C..);
the text says what the mistake is. `NOT_OURS` says which bugs of the store cannot exist in this design, and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Seeded:
    """One mistake: a place in a module, and what stands there instead."""

    name: str
    bug: str
    text: str
    module: str
    old: str
    new: str


SEEDED: Final = (
    Seeded(
        "dispatch-unflushed",
        "B01",
        "With sync flush the dispatcher follows the written position, not the flushed one.",
        "refmq.store.parts",
        "            return self.log.flushed\n",
        "            return self.log.readable\n",
    ),
    Seeded(
        "async-waits-for-flush",
        "T28",
        "With async flush the dispatcher waits for the flushed position, so that messages come late.",
        "refmq.store.parts",
        "self.config.flush_mode is FlushMode.SYNC and not self.config.dispatch_unflushed",
        "self.config.flush_mode is FlushMode.SYNC or not self.config.dispatch_unflushed",
    ),
    Seeded(
        "queues-not-cut",
        "B02",
        "Recovery cuts the log and leaves the queue units that point past the cut.",
        "refmq.store.recover",
        "queue.find_end(min(durable_to, plan.scan.valid_to))",
        "queue.find_end(1 << 62)",
    ),
    Seeded(
        "stop-forgets-dispatch",
        "B03",
        "A clean stop writes a checkpoint that covers records which were never dispatched.",
        "refmq.store.flush",
        "Durable(log_to, dispatched_to, dispatched_to,",
        "Durable(log_to, log_to, log_to,",
    ),
    Seeded(
        "dispatch-twice",
        "B04",
        "A unit that is there already is appended again when its record is dispatched again.",
        "refmq.store.consume_queue",
        "        if queue_offset < end:\n",
        "        if False:\n",
    ),
    Seeded(
        "expire-hole",
        "B05",
        "Retention removes another file than the oldest one.",
        "refmq.store.clean",
        "    base = files.bases[0]\n    files.remove(base)",
        "    base = files.bases[-1]\n    files.remove(base)",
    ),
    Seeded(
        "expire-ignores-age",
        "B05",
        "Retention does not stop at a file that is not expired.",
        "refmq.store.clean",
        "files.modified_ms(files.bases[0]) + parts.config.file_reserved_ms",
        "files.modified_ms(files.bases[0])",
    ),
    Seeded(
        "batch-properties-unchecked",
        "B07",
        "The joined properties of a batch are not checked against their 16-bit length.",
        "refmq.store.append",
        "            raise Refused(PutStatus.PROPERTIES_SIZE_EXCEEDED)\n        size = header_bytes",
        "            pass\n        size = header_bytes",
    ),
    Seeded(
        "batch-properties-glued",
        "B08",
        "The properties of a batch are glued behind the last value of a message without a separator.",
        "refmq.protocol.record",
        '        return first + b"\\x02" + second\n',
        "        return first + second\n",
    ),
    Seeded(
        "empty-file-refused",
        "B10",
        "A last file of 0 bytes keeps the store from starting.",
        "refmq.store.file_sequence",
        "            if size == 0:\n",
        "            if False:\n",
    ),
    Seeded(
        "checkpoint-before-queues",
        "B12",
        "The checkpoint is written although the queues it speaks of were not flushed.",
        "refmq.store.flush",
        "    await flush_queues(parts, 0)\n",
        "",
    ),
    Seeded(
        "pool-never-commits",
        "B13",
        "Bytes of the transient pool are never handed to the file.",
        "refmq.store.commit_log",
        "            self.files.write(position, data)\n            del",
        "            del",
    ),
    Seeded(
        "queue-offset-reused",
        "B16",
        "After recovery the next message gets a queue offset that is taken.",
        "refmq.store.recover",
        "        parts.queue_offsets[key] = queue.end\n        queue.correct",
        "        parts.queue_offsets[key] = max(0, queue.end - 1)\n        queue.correct",
    ),
    Seeded(
        "dispatch-from-the-end",
        "B19",
        "After recovery dispatch begins at the end of the log instead of where it had been.",
        "refmq.store.recover",
        "    parts.dispatched_to = begin\n",
        "    parts.dispatched_to = log.wrote\n",
    ),
    Seeded(
        "overflow-to-zero",
        "B60",
        "A reader beyond the end of a queue is sent to its begin.",
        "refmq.store.get",
        "nothing(GetStatus.OFFSET_OVERFLOW_BADLY, high)",
        "nothing(GetStatus.OFFSET_OVERFLOW_BADLY, low)",
    ),
    Seeded(
        "negative-hash-is-address",
        "B79",
        "A tag with a negative hash is taken for an address in the extension file.",
        "refmq.store.consume_queue_ext",
        "    return tags_code <= ADDRESS_MAX\n",
        "    return tags_code < 0\n",
    ),
    Seeded(
        "hash-without-wrap",
        "B80",
        "The hash of a string is not wrapped to 32 bits.",
        "refmq.protocol.record",
        "            value = (31 * value + byte) & 0xFFFF_FFFF\n",
        "            value = (31 * value + byte) & 0xFFFF_FFFF_FFFF\n",
    ),
    Seeded(
        "nearest-time",
        "B83",
        "The search by time finds the nearest message instead of the first one at or after the time.",
        "refmq.store.time_search",
        "            return QueueOffset(low)\n",
        "            return QueueOffset(_nearest(parts, queue, timestamp_ms, low))\n",
    ),
    Seeded(
        "query-ignores-topic",
        "B84",
        "A query by key returns messages of another topic with the same hash.",
        "refmq.store.get",
        "record.topic == topic and has_key and",
        "has_key and",
    ),
    Seeded(
        "index-seconds-as-ms",
        "B86",
        "The index keeps seconds and the query takes them for milliseconds.",
        "refmq.store.index_file",
        "            stored_ms = header.begin_ms + 1000 * entry.seconds\n",
        "            stored_ms = header.begin_ms + entry.seconds\n",
    ),
    Seeded(
        "time-behind-the-end",
        "B87",
        "A time after the last message maps to the first offset.",
        "refmq.store.time_search",
        "            return QueueOffset(low)\n",
        "            return QueueOffset(low if low < queue.end else queue.min_offset)\n",
    ),
    Seeded(
        "batch-stored-twice",
        "B91",
        "Every batch is stored twice.",
        "refmq.store.append",
        '    parts.log.append(b"".join(pieces), store_ms)\n',
        '    parts.log.append(b"".join(pieces), store_ms)\n    parts.log.append(b"".join(pieces), store_ms)\n',
    ),
    Seeded(
        "stale-tail",
        "C8, T1",
        "Truncation leaves the bytes behind the new end as they were.",
        "refmq.store.file_sequence",
        "            cut += self.zero_from(position)\n",
        "            pass\n",
    ),
    Seeded(
        "tail-not-flushed",
        "C8, T1",
        "The zeros behind a truncation are not made durable before new records come.",
        "refmq.store.recover",
        "            await log.files.file(base).flush()\n",
        "            pass\n",
    ),
    Seeded(
        "flush-failure-ignored",
        "T27",
        "A failed flush still moves the flushed position.",
        "refmq.store.store",
        "            if not self.config.ignore_flush_failure:\n                self._failure = error\n"
        "                raise\n            parts.log.files.flushed",
        "            parts.log.files.flushed",
    ),
    Seeded(
        "clock-goes-back",
        "T29",
        "Store times follow a clock that is set back.",
        "refmq.store.append",
        "return now_ms if parts.config.keep_clock_steps else",
        "return now_ms if True else",
    ),
    Seeded(
        "file-without-name",
        "C1",
        "The name of a new log file is not made durable before its messages are acknowledged.",
        "refmq.store.file_sequence",
        "            await self._names.flush(self.directory)\n            if",
        "            if",
    ),
    Seeded(
        "index-not-flushed",
        "C18",
        "A clean stop does not flush the index.",
        "refmq.store.flush",
        "    await flush_index(parts)\n",
        "",
    ),
    Seeded(
        "crc-not-checked",
        "C3",
        "Recovery does not compare bodies with their CRC.",
        "refmq.store.scan",
        "(check_crc and crc32(view[body:tail]) & 0x7FFFFFFF != crc)",
        "False",
    ),
    Seeded(
        "ack-without-flush",
        "T28",
        "With sync flush a put is acknowledged before it is durable.",
        "refmq.store.store",
        "(must_wait and self.flushed_to < result.durable_at)",
        "False",
    ),
    Seeded(
        "flush-covers-later-writes",
        "T26",
        "What is written while a flush is under way counts as flushed.",
        "refmq.store.file_sequence",
        "                self.flushed = max(self.flushed, end)\n",
        "                self.flushed = max(self.flushed, self.wrote if self.base_of(self.wrote) == base else end)\n",
    ),
    Seeded(
        "blank-of-seven",
        "T7",
        "A record may leave fewer than the 8 bytes that a blank record needs.",
        "refmq.store.commit_log",
        "        return length + BLANK_HEADER_BYTES <= self.room\n",
        "        return length <= self.room\n",
    ),
    Seeded(
        "prepared-takes-offset",
        "T18",
        "A prepared record takes a queue offset although it gets no unit.",
        "refmq.store.append",
        "    if transaction not in _NO_QUEUE_OFFSET:\n        parts.queue_offsets",
        "    if True:\n        parts.queue_offsets",
    ),
    Seeded(
        "delay-time-lost",
        "T16",
        "A delay queue unit that is rebuilt holds the hash of the tags instead of the time of delivery.",
        "refmq.store.dispatch",
        "    if topic == SCHEDULE_TOPIC and PROPERTY_DELAY in properties:\n",
        "    if False:\n",
    ),
)

NOT_OURS: Final = {
    "B06": "There is no put lock and no stamp of who entered it: a put is one step on one thread.",
    "B09": "Configuration files are not part of a store's history; the crash test of replace_text_file covers them.",
    "B11": "Multi-dispatch (LMQ) is not supported.",
    "B14": "There is no choice of locks to change while one is held.",
    "B18": "There is no confirm offset; a slave's position is decided by the broker's replication.",
    "B27": "Only recovery cuts flushed data, and it flushes what is left before it sets the position.",
    "B43": "The cursor of a delay level belongs to the broker, not to the store.",
    "B45": "The same.",
    "B50": "The same.",
    "B85": "An index file that was not durable is rebuilt from where the checkpoint says; see index-not-flushed.",
}
"""Bugs of the store, delay and queries that cannot exist here, and why."""
