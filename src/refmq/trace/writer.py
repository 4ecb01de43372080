"""Writing traces: a node's events are packed into pages of memory, and a thread writes the pages to files.

    record() -> pack -> the last page ... the oldest page -> thread: a block for each write -> files

Recording reads the clock and packs 64 bytes. It never waits for the disk and never raises. While all
pages wait for the disk events are dropped, and the next event that finds room is preceded by a record of how many are
missing. When writing fails (a full or broken disk, a missing directory) what could not be written stays in its page,
and after `RETRY_S` it is written to another file. A lost trace costs nothing but the trace.

Who may touch what: `record` and `close` belong to one thread, that of the node's loop. It fills the last page, or adds
one. The writer's thread writes what is finished in the oldest page, and removes it when it is full and written. Strings
keep their numbers for as long as the table lasts, so a file that is begun in between opens with all strings that came
before.
"""

from __future__ import annotations

import contextlib
import logging
import os
import struct
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

import refmq_fast
from refmq.errors import UsageError
from refmq.model.step import EventFields
from refmq.trace.files import Opener, TraceFiles
from refmq.trace.page import NewPage, Page, new_page
from refmq.trace.record import KIND_EVENT, RECORD_BYTES, Dropped, Encoder, Outcome

BUFFER_EVENTS_MAX: Final = 262_144
"""Events that may wait for the disk: 16 MiB of memory, a fifth of a second of a broker that does what it can."""
PAGES_MIN: Final = 4
"""The least number of pages the memory is divided into: one is filled while others wait."""
PAGE_RECORDS_MAX: Final = 2_048
FILE_BYTES_MAX: Final = 256 * 1024 * 1024
"""A file is rolled when it has grown beyond this."""
FLUSH_INTERVAL_S: Final = 0.2
"""How old an event is at most when it is handed to the operating system, on a disk that keeps up."""
RETRY_S: Final = 5.0
"""After a failed write the disk is left alone for this long."""
SAY_INTERVAL_S: Final = 10.0
"""The shortest time between two log lines about dropped events."""
CLOSE_TIMEOUT_S: Final = 10.0

NOTE: Final = struct.Struct("=6q3I4x")
"""An event that C has noted, `rmq_note` in shell/notes.h: when, queue, a, b, c, d; the numbers of action, actor and
subject; padding."""
UNKNOWN: Final = 0xFFFF_FFFF
"""The number of a noted text that is not in the table of strings."""

log = logging.getLogger(__name__)


class _QueuedPage:
    """A page that is filled, or waits to be written."""

    __slots__ = ("is_full", "opens_table", "page", "written")

    def __init__(self, page: Page, *, opens_table: bool) -> None:
        self.page = page
        self.written = 0
        """How many of its bytes are in a file."""
        self.is_full = False
        """Nothing more is added: the node fills another page."""
        self.opens_table = opens_table
        """The string table starts over here, so a new file must too."""


def _pack_nothing(event: EventFields, at_ns: int, outcome: int, operation: int, /) -> bool:
    """The packer while there is no room: every event takes the slow path."""
    return False


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
        opener: Opener = lambda path: path.open("xb", buffering=0),
        new_page: NewPage = new_page,
    ) -> None:
        """Makes the directory, and fails now if it cannot: nothing may fail later."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"The trace directory {directory} cannot be created: {error.strerror}.") from error
        if not os.access(directory, os.W_OK | os.X_OK):
            raise UsageError(f"The trace directory {directory} cannot be written to.")
        self.directory = directory
        self._clock_ns = clock_ns
        page_records = min(PAGE_RECORDS_MAX, buffer_events_max // PAGES_MIN, file_bytes_max // RECORD_BYTES)
        self._page_records = max(1, page_records)
        self._pages_max = max(1, buffer_events_max // self._page_records)
        self._new_page = new_page
        self._encoder = Encoder(node, clock_ns())
        self._files = TraceFiles(
            directory, node, self._encoder.life_ns, clock_ns=clock_ns, file_bytes_max=file_bytes_max, opener=opener
        )
        self._missing_now = 0
        """Dropped events that no page reports as missing yet."""
        self._dropped_count = 0
        self._noted_table: dict[str, int] | None = None
        self._noted_numbers = array("I")
        self._undefined = b""
        """The records of strings that have numbers and stand in no page yet."""
        self._opens_table = False
        """The next event needs a page with the present table."""
        self._is_closed = False
        self._pages: deque[_QueuedPage] = deque()
        self._begin_table()
        self._page = self._add_page(sequence=0)
        self._pack = self._page.page.pack
        self._wake = threading.Event()
        self._failure = ""
        """Why nothing can be written, while that lasts."""
        self._dropped_said = 0
        self._silent_until_s = 0.0
        self._lost_count = 0
        """Events still in pages at the end."""
        self._thread = threading.Thread(target=self._run, name=f"trace-{node}", daemon=True)
        self._thread.start()

    @property
    def dropped_count(self) -> int:
        """Events that are missing in the files, over the whole life."""
        return self._dropped_count + self._lost_count

    # --- the node's thread ------------------------------------------------------------------------------------

    def record(self, event: EventFields, outcome: Outcome = Outcome.STEP, operation: int = 0) -> None:
        """Takes an event, whatever the disk does."""
        at_ns = self._clock_ns()
        if not self._pack(event, at_ns, outcome, operation):
            self._record_slowly(event, at_ns, outcome, operation)

    def record_noted(self, notes: bytes, names: Sequence[str]) -> None:
        """Takes events that C has noted a while ago, as `NOTE` lays them out. `names` has the texts that they number,
        and only ever grows."""
        start = 0
        while start < len(notes):
            if self._missing_now and not self._may_turn_page:
                self.drop((len(notes) - start) // NOTE.size)  # nor is there room for what follows
                return
            page = self._page.page
            numbers = self._numbers_of(names)
            if not self._missing_now and isinstance(page, refmq_fast.TracePage):
                start += page.pack_notes(notes, start, numbers) * NOTE.size
            if start < len(notes):  # something new, or no room
                self._record_note(notes, start, names)
                start += NOTE.size

    def _record_note(self, notes: bytes, start: int, names: Sequence[str]) -> None:
        at_ns, queue_id, a, b, c, d, action, actor, subject = NOTE.unpack_from(notes, start)
        event = (names[action], names[actor], names[subject], queue_id, a, b, c, d)
        if not self._pack(event, at_ns, Outcome.STEP, 0):
            self._record_slowly(event, at_ns, Outcome.STEP, 0)
        if self._noted_table is self._encoder.strings:  # it has not started over since `_numbers_of`
            assert len(self._noted_numbers) == len(names), "every name has its entry"
            for number in (action, actor, subject):
                self._noted_numbers[number] = self._noted_table.get(names[number], UNKNOWN)

    def _numbers_of(self, names: Sequence[str]) -> array[int]:
        """The numbers of noted texts in the table of strings, as far as they are in it."""
        table = self._encoder.strings
        if self._noted_table is not table:
            self._noted_table, self._noted_numbers = table, array("I")
        known = len(self._noted_numbers)
        self._noted_numbers.extend(table.get(name, UNKNOWN) for name in names[known:])
        return self._noted_numbers

    def drop(self, count: int) -> None:
        """Events that nobody could keep are missing here."""
        assert count > 0, "nothing is missing"
        self._dropped_count += count
        self._missing_now += count
        self._pack = _pack_nothing  # the next event must first report what is missing

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Writes what is waiting and ends the thread; gives up after `timeout_s` on a disk that hangs."""
        if not self._is_closed:
            if self._missing_now:
                self._turn_page()  # it may be one more than there should be, but it is the last
                self._put_waiting(self._clock_ns())
            self._is_closed = True
            self._pack = _pack_nothing
        self._wake.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            log.warning("the trace in %s is incomplete: it could not be finished in %.0f s", self.directory, timeout_s)

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _record_slowly(self, event: EventFields, at_ns: int, outcome: int, operation: int) -> None:
        """The same for an event with new strings, in need of another page, or with numbers that do not fit."""
        if self._is_closed or (self._missing_now and not self._may_turn_page):
            self._drop()
            return
        encoder = self._encoder
        if encoder.is_full:
            self._begin_table()
        for text in event[:3]:
            if text not in encoder.strings:
                self._undefined += encoder.define(text)
        if self._opens_table or self._page.page.room < self._waiting_records + 1:
            if not self._may_turn_page:
                self._drop()
                return
            self._turn_page()
        self._put_waiting(at_ns)
        self._pack = self._page.page.pack
        if not self._pack(event, at_ns, outcome, operation):
            # A number that does not fit is a bug in refmq, but not a reason to fail anything.
            self._drop()
            self._put_waiting(at_ns)

    def _drop(self) -> None:
        self.drop(1)

    def _begin_table(self) -> None:
        """Restarts string numbering; the first is the node's name."""
        self._encoder.begin_table()
        self._undefined = self._encoder.node_name()
        self._opens_table = True

    @property
    def _may_turn_page(self) -> bool:
        return len(self._pages) < self._pages_max

    def _turn_page(self) -> None:
        """Starts a page, and leaves the previous one to the writer."""
        before = self._page
        self._page = self._add_page(before.page.sequence)
        before.is_full = True
        self._wake.set()  # events may come faster than the writer looks by itself

    def _add_page(self, sequence: int) -> _QueuedPage:
        """A page with room for whatever waits and an event."""
        size_records = max(self._page_records, self._waiting_records + 1)
        page = self._new_page(size_records, self._encoder.strings, sequence)
        queued = _QueuedPage(page, opens_table=self._opens_table)
        self._opens_table = False
        self._pages.append(queued)
        return queued

    @property
    def _waiting_records(self) -> int:
        return bool(self._missing_now) + len(self._undefined) // RECORD_BYTES

    def _put_waiting(self, at_ns: int) -> None:
        """What has to stand before the next event: how many are missing, and new strings."""
        page, records = self._page.page, self._undefined
        if self._missing_now:
            records = self._encoder.drop(Dropped(self._missing_now, page.sequence, at_ns)) + records
        page.put(records, page.sequence + self._missing_now)
        self._undefined, self._missing_now = b"", 0

    # --- the writer's thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            is_last = self._is_closed  # read before the pages: nothing is added after it is set
            try:
                while self._write_page():
                    pass
            except OSError as error:
                self._failed(error)
            self._say_dropped(at_once=is_last)
            if is_last:
                break
            self._rest()
        self._give_up()
        self._files.close()

    def _rest(self) -> None:
        """Until a page is full or some time has passed. A disk that failed is left alone for all of its time."""
        left_s = RETRY_S if self._failure else FLUSH_INTERVAL_S
        until_s = time.monotonic() + left_s
        while not self._is_closed and left_s > 0:
            was_woken = self._wake.wait(left_s)
            self._wake.clear()
            left_s = 0.0 if was_woken and not self._failure else until_s - time.monotonic()

    def _write_page(self) -> bool:
        """Writes what is new in the oldest page; whether there is another one."""
        queued = self._pages[0]
        is_full = queued.is_full  # checked before reading: anything later is then in another page
        records = queued.page.read(queued.written)
        if records:
            if queued.opens_table and queued.written == 0:
                self._files.begin_table()
            self._files.write(records)
            queued.written += len(records)
            if self._failure:
                self._failure = ""
                log.warning("the trace in %s can be written again", self.directory)
        if is_full:
            self._pages.popleft()
        return is_full

    def _failed(self, error: OSError) -> None:
        """What was to be written stays in its page."""
        if self._failure != str(error):
            self._failure = str(error)
            log.warning("the trace in %s cannot be written, events are waiting: %s", self.directory, error)

    def _say_dropped(self, *, at_once: bool) -> None:
        """Says from time to time that events are dropped, for as long as they are."""
        dropped, now_s = self._dropped_count, time.monotonic()
        if dropped > self._dropped_said and (at_once or now_s >= self._silent_until_s):
            self._dropped_said, self._silent_until_s = dropped, now_s + SAY_INTERVAL_S
            log.warning("the trace in %s is incomplete: %d events dropped so far", self.directory, dropped)

    def _give_up(self) -> None:
        """Counts what could not be written to the end."""
        for queued in self._pages:
            self._lost_count += queued.page.read(queued.written)[::RECORD_BYTES].count(KIND_EVENT)
        if self._lost_count:
            log.warning("the trace in %s ends early: %d events lost", self.directory, self._lost_count)


@contextlib.contextmanager
def recording(directory: Path | None, node: str) -> Iterator[TraceWriter | None]:
    """The recorder of a node while it runs; none without a directory."""
    if directory is None:
        yield None
        return
    with TraceWriter(directory, node) as trace:
        yield trace
