"""Writing traces: a thread takes what the node records, encodes it and puts it into rolled files.

    record() -> a bounded queue of events -> thread: encode -> one block per write -> NODE-LIFE-NNNNN.trace

Recording reads the clock and appends to a queue; it takes no lock, never waits for the disk and never raises. When
the queue is full events are dropped, and the next event that finds room is preceded by a record of how many are
missing. When writing fails (a full or broken disk) what was taken from the queue is counted as dropped, and after
`RETRY_S` a new file is begun. A trace that is lost costs a trace.

`record` belongs to one thread, that of the node's loop; everything behind the queue belongs to the writer's thread.
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
from typing import BinaryIO, Final, TypeAlias

from refmq.errors import UsageError
from refmq.model.step import Event
from refmq.trace.reader import SUFFIX
from refmq.trace.record import BLOCK_RECORDS_MAX, RECORD_BYTES, Dropped, Encoder, Outcome, seal_block

BUFFER_EVENTS_MAX: Final = 65_536
"""Events that may wait for the disk: about 20 MiB of memory."""
FILE_BYTES_MAX: Final = 256 * 1024 * 1024
"""A file is rolled when it has grown beyond this."""
FLUSH_INTERVAL_S: Final = 0.2
"""How old an event is at most when it is handed to the operating system, on a disk that keeps up."""
RETRY_S: Final = 5.0
"""After a failed write the disk is left alone for this long."""
BATCH_EVENTS: Final = 512
"""Events that the thread encodes in one go: a fraction of a millisecond of the interpreter's time."""

Waiting: TypeAlias = tuple[Event | None, int, int, int]
"""An event, when it was recorded, its outcome and its operation; or no event, a time, and how many are missing."""

log = logging.getLogger(__name__)


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
        self.refused_count = 0
        """Events that found no room in the queue."""
        self.lost_count = 0
        """Events that could not be written."""
        self._clock_ns = clock_ns
        self._waiting: deque[Waiting] = deque()
        self._waiting_max = buffer_events_max
        self._refused_now = 0
        self._file_bytes_max = file_bytes_max
        self._opener = opener
        self._encoder = Encoder(node, clock_ns())
        self._wake = threading.Event()
        self._closing = False
        self._output: BinaryIO | None = None
        self._file_bytes = 0
        self._block_number = 0
        self._unwritten = 0
        """Events taken from the queue, refused ones among them, that no file has or says to be missing yet."""
        self._unwritten_events = 0
        """Those among them that would be lost and are not counted yet."""
        self._thread = threading.Thread(target=self._run, name=f"trace-{node}", daemon=True)
        self._thread.start()

    @property
    def dropped_count(self) -> int:
        """Events that are missing in the files, over the whole life."""
        return self.refused_count + self.lost_count

    # --- the node's thread ------------------------------------------------------------------------------------

    def record(self, event: Event, outcome: Outcome = Outcome.STEP, operation: int = 0) -> None:
        """Takes an event, whatever the disk does."""
        waiting = self._waiting
        if len(waiting) >= self._waiting_max or self._closing:
            self.refused_count += 1
            self._refused_now += 1
            return
        if self._refused_now:
            self._say_refused()
        waiting.append((event, self._clock_ns(), outcome, operation))

    def _say_refused(self) -> None:
        count, self._refused_now = self._refused_now, 0
        self._waiting.append((None, self._clock_ns(), count, 0))

    def close(self, timeout_s: float = 10.0) -> None:
        """Writes what is waiting and ends the thread; gives up after `timeout_s` on a disk that hangs."""
        if self._refused_now and not self._closing:
            self._say_refused()
        self._closing = True
        self._wake.set()
        self._thread.join(timeout_s)

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # --- the writer's thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            closing = self._closing
            try:
                while self._waiting:
                    self._write_batch()
                if closing and self._unwritten:
                    self._write_batch()
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

    def _write_batch(self) -> None:
        """Encodes and writes up to one batch as a block, in a new file where that is due."""
        encoder = self._encoder
        if self._output is None or self._file_bytes > self._file_bytes_max or encoder.is_full:
            self._close_file()
            self._open_file()
        first_sequence = encoder.sequence
        parts = [encoder.node_name()] if encoder.string_count == 0 else []
        if self._unwritten:
            parts.append(encoder.drop(Dropped(self._unwritten, first_sequence - self._unwritten, self._clock_ns())))
        size = sum(map(len, parts))
        size_max = min(BLOCK_RECORDS_MAX * RECORD_BYTES // 4, self._file_bytes_max)
        take, encode = self._waiting.popleft, encoder.event
        for _ in range(min(len(self._waiting), BATCH_EVENTS)):
            event, at_ns, value, operation = take()
            if event is None:
                records = self._missing(value, at_ns)
            else:
                try:
                    records = encode(event, at_ns, value, operation)
                    self._unwritten += 1
                    self._unwritten_events += 1
                except struct.error:
                    # A number that does not fit is a mistake of ours, but no reason to fail anything: it is dropped.
                    self.lost_count += 1
                    records = self._missing(1, at_ns)
            parts.append(records)
            size += len(records)
            if size >= size_max:
                break
        self._write_all(seal_block(b"".join(parts), self._block_number, first_sequence))
        self._block_number += 1
        self._unwritten = self._unwritten_events = 0

    def _missing(self, count: int, at_ns: int) -> bytes:
        """The record that says that the next events are missing."""
        self._unwritten += count
        self._encoder.sequence += count
        return self._encoder.drop(Dropped(count, self._encoder.sequence - count, at_ns))

    def _open_file(self) -> None:
        head = self._encoder.begin_file(self._clock_ns())
        node = re.sub(r"[^A-Za-z0-9._-]", "_", self._encoder.node) or "node"
        name = f"{node}-{self._encoder.life_ns}-{self._encoder.file_number:05}{SUFFIX}"
        self._output = self._opener(self.directory / name)
        self._file_bytes = self._block_number = 0
        self._write_all(head)

    def _write_all(self, data: bytes) -> None:
        assert self._output is not None
        view = memoryview(data)
        while view:
            written = self._output.write(view)
            view = view[written:]
        self._file_bytes += len(data)

    def _failed(self, error: OSError) -> None:
        """The block under way is lost, and the next one, in a new file, says how many events that were."""
        log.warning("the trace in %s cannot be written, events are dropped: %s", self.directory, error)
        self.lost_count += self._unwritten_events
        self._unwritten_events = 0
        self._close_file()

    def _close_file(self) -> None:
        output, self._output = self._output, None
        if output is not None:
            with contextlib.suppress(OSError):  # whatever could be written is written; there is nobody to tell
                output.close()
