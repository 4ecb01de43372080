"""Writing traces: a node's events are packed into pages of memory, and a thread writes the pages to rolled files.

    record() -> a short queue -> pack, a few dozen at once -> the last page -> thread: one block per write -> a file

Recording reads the clock and appends to a queue. When enough events wait there they are packed, 64 bytes each: many at
once, because a loop that is warm takes a third of the time. Recording never waits for a lock or for the disk and never
raises. When all pages are in use events are dropped, and the next event that finds room is preceded by a record of how
many are missing. When writing fails (a full or broken disk) what was being written is counted as dropped, and after
`RETRY_S` a new file is begun. A trace that is lost costs a trace.

Who may touch what: `record` belongs to one thread, that of the node's loop. Whoever holds the lock `_packing` takes
events from the queue and moves the end of the last page: the node's thread when many events wait (if the lock is taken
it goes on without), the writer's thread for what is left over. The writer's thread writes what lies before a page's
end, which never changes any more, and removes pages that are full and written. Strings keep their numbers for as long
as the table lasts, so a file that is begun in between opens with all strings that came before.
"""

from __future__ import annotations

import contextlib
import logging
import re
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final

from refmq.errors import UsageError
from refmq.model.step import EventFields
from refmq.trace.reader import SUFFIX
from refmq.trace.record import (
    BLOCK_RECORDS_MAX,
    KIND_DROP,
    KIND_EVENT,
    RECORD_BYTES,
    Dropped,
    Encoder,
    Outcome,
    pack_event_into,
    seal_block,
    unpack_drop,
)

BUFFER_EVENTS_MAX: Final = 65_536
"""Events that may wait for the disk: 4 MiB of memory."""
PACK_EVENTS: Final = 32
"""So many events are packed at once."""
QUEUE_EVENTS_MAX: Final = 8_192
"""Events that may wait to be packed while the writer's thread does that and does not come to an end."""
PAGES_MIN: Final = 4
"""In so many pages the memory is divided at least: one is filled while others wait."""
PAGE_RECORDS_MAX: Final = 2_048
FILE_BYTES_MAX: Final = 256 * 1024 * 1024
"""A file is rolled when it has grown beyond this."""
FLUSH_INTERVAL_S: Final = 0.2
"""How old an event is at most when it is handed to the operating system, on a disk that keeps up."""
RETRY_S: Final = 5.0
"""After a failed write the disk is left alone for this long."""
BLOCK_BYTES_MAX: Final = BLOCK_RECORDS_MAX * RECORD_BYTES

log = logging.getLogger(__name__)


class _Page:
    """A piece of the trace in memory."""

    __slots__ = ("data", "definitions", "end", "is_full", "opens_table", "written")

    def __init__(self, records: int, *, opens_table: bool) -> None:
        self.data = bytearray(records * RECORD_BYTES)
        self.end = 0
        """Whatever lies before is finished."""
        self.written = 0
        self.is_full = False
        """Nothing more comes: the node fills another page."""
        self.opens_table = opens_table
        """The table of strings begins here, so a file has to begin as well."""
        self.definitions: list[tuple[int, bytes]] = []
        """Where strings were defined, and how."""


class TraceWriter:
    """A `Recorder` for one life of one node. Use it as a context manager, or `close` it."""

    def __init__(
        self,
        directory: Path,
        node: str,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
        buffer_events_max: int = BUFFER_EVENTS_MAX,
        file_bytes_max: int = FILE_BYTES_MAX,
        opener: Callable[[Path], BinaryIO] = lambda path: path.open("xb", buffering=0),
    ) -> None:
        """Makes the directory, and fails here if it cannot: later nothing is allowed to fail."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"The trace directory {directory} cannot be made: {error.strerror}.") from error
        self.directory = directory
        self._refused_count = 0
        """Events that found no room in a page."""
        self._overflow_count = 0
        """Events that found no room in the queue; counted by the node's thread alone."""
        self._overflow_said = 0
        self.lost_count = 0
        """Events that could not be written."""
        self._clock_ns = clock_ns
        page_records = min(PAGE_RECORDS_MAX, buffer_events_max // PAGES_MIN, file_bytes_max // RECORD_BYTES)
        self._page_records = max(1, page_records)
        self._pages_max = max(1, buffer_events_max // self._page_records)
        self._refused_now = 0
        self._file_bytes_max = file_bytes_max
        self._opener = opener
        self._encoder = Encoder(node, clock_ns())
        self._queue: deque[tuple[EventFields, int, int, int]] = deque()
        """Event, time, outcome, operation."""
        self._packing = threading.Lock()
        self._pages: deque[_Page] = deque()
        self._page = _Page(0, opens_table=True)
        """The one that is filled; the last one in `_pages` as soon as it has room for something."""
        self._page.is_full = True
        self._page_end = 0
        self._begin_table()
        self._wake = threading.Event()
        self._closing = False
        self._has_ended = False
        """The thread is gone: what comes now is too late."""
        self._output: BinaryIO | None = None
        self._file_bytes = 0
        self._block_number = 0
        self._sequence = 0
        """Of the first event that is not written."""
        self._lost_now = 0
        """Events before it that no file has or says to be missing yet."""
        self._table: list[bytes] = []
        """The records of all strings of the present table that were met so far."""
        self._thread = threading.Thread(target=self._run, name=f"trace-{node}", daemon=True)
        self._thread.start()

    @property
    def dropped_count(self) -> int:
        """Events that are missing in the files, over the whole life."""
        return self._refused_count + self._overflow_count + self.lost_count

    # --- the node's thread ------------------------------------------------------------------------------------

    def record(self, event: EventFields, outcome: Outcome = Outcome.STEP, operation: int = 0) -> None:
        """Takes an event, whatever the disk does."""
        queue = self._queue
        queue.append((event, self._clock_ns(), outcome, operation))
        if len(queue) >= PACK_EVENTS and self._packing.acquire(blocking=False):
            try:
                self._pack()
            finally:
                self._packing.release()
        if len(queue) > QUEUE_EVENTS_MAX:
            queue.pop()
            self._overflow_count += 1

    def close(self, timeout_s: float = 10.0) -> None:
        """Writes what is waiting and ends the thread; gives up after `timeout_s` on a disk that hangs."""
        self._closing = True
        self._wake.set()
        self._thread.join(timeout_s)

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # --- whoever holds the lock -------------------------------------------------------------------------------

    def _pack(self) -> None:
        """Packs the events of the queue into the page."""
        queue, encoder = self._queue, self._encoder
        while queue:
            page, strings = self._page, encoder.strings
            data, at, end, sequence = page.data, page.end, self._page_end, encoder.sequence
            try:
                while at < end and queue:
                    (action, actor, subject, queue_id, a, b, c, d), at_ns, outcome, operation = queue[0]
                    pack_event_into(
                        data,
                        at,
                        KIND_EVENT,
                        outcome,
                        strings[action],
                        sequence & 0xFFFF_FFFF,
                        at_ns,
                        a,
                        b,
                        c,
                        d,
                        strings[actor],
                        strings[subject],
                        queue_id,
                        operation,
                    )
                    queue.popleft()
                    at += RECORD_BYTES
                    sequence += 1
            except (KeyError, struct.error):
                pass  # it is still in the queue, for the slow way
            encoder.sequence, page.end = sequence, at
            if queue:
                self._pack_slowly(*queue.popleft())

    def _pack_slowly(self, event: EventFields, at_ns: int, outcome: int, operation: int) -> None:
        """The same for an event with new strings, in need of another page, or with numbers that do not fit."""
        if self._has_ended or not self._has_room():
            self._refused_count += 1
            self._refused_now += 1
            return
        self._say_refused()
        encoder = self._encoder
        if encoder.is_full:
            self._page.is_full = True
            self._begin_table()
        texts = [text for text in dict.fromkeys(event[:3]) if text not in encoder.strings]
        definitions = b"".join([encoder.define(text) for text in texts])
        try:
            record = encoder.event(event, at_ns, outcome, operation)
        except struct.error:
            # A number that does not fit is a mistake of ours, but no reason to fail anything: it is dropped.
            self.lost_count += 1
            encoder.sequence += 1
            record = encoder.drop(Dropped(1, encoder.sequence - 1, at_ns))
        self._put(definitions, record)

    def _begin_table(self) -> None:
        """Strings are numbered anew; the first is the node's name."""
        self._encoder.begin_table()
        self._page_end = 0
        self._table_head = self._encoder.node_name()

    def _has_room(self) -> bool:
        """Whether there is a page to write into, or may be."""
        return self._page.end < self._page_end or len(self._pages) < self._pages_max

    def _put(self, definitions: bytes, record: bytes) -> None:
        """Adds records to the page, or to a new one if they do not fit: those of strings stay with their event."""
        opens_table, definitions = bool(self._table_head), self._table_head + definitions
        self._table_head = b""
        size = len(definitions) + len(record)
        if self._page.end + size > self._page_end:
            self._page.is_full = True
            self._page = _Page(max(self._page_records, size // RECORD_BYTES), opens_table=opens_table)
            self._page_end = len(self._page.data)
            self._pages.append(self._page)
        page, at = self._page, self._page.end
        page.data[at : at + size] = definitions + record
        if definitions:
            page.definitions.append((at, definitions))
        page.end = at + size

    def _say_refused(self) -> None:
        """The record of what was dropped comes before the next event."""
        overflow = self._overflow_count
        count = self._refused_now + overflow - self._overflow_said
        self._refused_now, self._overflow_said = 0, overflow
        if count:
            self._encoder.sequence += count
            dropped = Dropped(count, self._encoder.sequence - count, self._clock_ns())
            self._put(b"", self._encoder.drop(dropped))

    # --- the writer's thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            closing = self._closing
            with self._packing:
                self._pack()
                if closing:
                    self._say_refused()
                    self._has_ended = True
                    self._page_end = 0
            try:
                while self._write_page():
                    pass
                if closing and self._lost_now:
                    self._ready()
                    self._write_block(b"")
            except OSError as error:
                self._failed(error)
                if not closing:
                    self._rest(RETRY_S)
            if closing:
                self._close_file()
                return
            self._rest(FLUSH_INTERVAL_S)

    def _rest(self, seconds: float) -> None:
        """Waits, unless it is time to end."""
        if not self._closing:
            self._wake.wait(seconds)

    def _write_page(self) -> bool:
        """Writes what is new in the oldest page; whether there may be more."""
        if not self._pages:
            return False
        page = self._pages[0]
        is_full = page.is_full  # before its end is read: whatever comes later is then in another page
        if page.end > page.written:
            if page.opens_table and page.written == 0:
                self._close_file()
                self._table = []
            self._ready()
            self._write_part(page)
        if is_full and page.written == page.end:
            self._pages.popleft()
            return True
        return False

    def _ready(self) -> None:
        """There is a file, and it is not too long."""
        if self._output is None or self._file_bytes > self._file_bytes_max:
            self._close_file()
            self._open_file()

    def _write_part(self, page: _Page) -> None:
        start, end = page.written, page.end
        page.written = end  # if it cannot be written it is lost
        part = bytes(memoryview(page.data)[start:end])
        self._table += [records for at, records in page.definitions if start <= at < end]
        try:
            self._write_block(part)
        except OSError:
            self._lose(part)
            raise
        self._sequence += _count(part)[1]

    def _write_block(self, records: bytes) -> None:
        """Writes records, after the one that says what was lost before them."""
        if self._lost_now:
            first = self._sequence - self._lost_now
            records = self._encoder.drop(Dropped(self._lost_now, first, self._clock_ns())) + records
        self._write_all(seal_block(records, self._block_number, self._sequence))
        self._block_number += 1
        self._lost_now = 0

    def _lose(self, part: bytes) -> None:
        events, count = _count(part)
        self.lost_count += events
        self._lost_now += count
        self._sequence += count

    def _open_file(self) -> None:
        """Begins a file, with all strings that may be used in it."""
        head = self._encoder.file_head(self._clock_ns())
        node = re.sub(r"[^A-Za-z0-9._-]", "_", self._encoder.node) or "node"
        name = f"{node}-{self._encoder.life_ns}-{self._encoder.file_number:05}{SUFFIX}"
        self._output = self._opener(self.directory / name)
        self._file_bytes = self._block_number = 0
        self._write_all(head)
        block = b""
        for records in [*self._table, b""]:
            if block and (not records or len(block) + len(records) > BLOCK_BYTES_MAX):
                self._write_all(seal_block(block, self._block_number, self._sequence))
                self._block_number += 1
                block = b""
            block += records

    def _write_all(self, data: bytes) -> None:
        assert self._output is not None
        view = memoryview(data)
        while view:
            written = self._output.write(view)
            view = view[written:]
        self._file_bytes += len(data)

    def _failed(self, error: OSError) -> None:
        """What was being written is lost, and the next block, in a new file, says how many events that were."""
        log.warning("the trace in %s cannot be written, events are dropped: %s", self.directory, error)
        self._close_file()

    def _close_file(self) -> None:
        output, self._output = self._output, None
        if output is not None:
            with contextlib.suppress(OSError):  # whatever could be written is written; there is nobody to tell
                output.close()


def _count(records: bytes) -> tuple[int, int]:
    """How many events a piece of a trace has, and how many sequence numbers it takes: drops take some as well."""
    kinds = records[::RECORD_BYTES]
    events = kinds.count(KIND_EVENT)
    missing = 0
    at = kinds.find(KIND_DROP)
    while at >= 0:
        missing += unpack_drop(records, at * RECORD_BYTES).count
        at = kinds.find(KIND_DROP, at + 1)
    return events, events + missing
