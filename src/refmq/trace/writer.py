"""Writing traces: a thread takes what the node records and puts it into rolled files.

Recording is a few hundred bytes of work under a lock that is never held during input or output:

    record() -> encoded records in a bounded buffer -> thread -> one block per write -> NODE-LIFE-NNNNN.trace

It never waits for the disk and never raises. When the buffer is full events are dropped, and the next event that
finds room is preceded by a record of how many are missing. When writing fails (a full or broken disk) the buffer
is thrown away, counted as dropped, and after `RETRY_S` a new file is begun. A trace that is lost costs a trace.
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
from refmq.model.step import Event
from refmq.trace.reader import SUFFIX
from refmq.trace.record import (
    BLOCK_RECORDS_MAX,
    KIND_DROP,
    KIND_EVENT,
    MAGIC,
    RECORD_BYTES,
    Dropped,
    Encoder,
    Outcome,
    seal_block,
    unpack_drop,
)

BUFFER_BYTES_MAX: Final = 16 * 1024 * 1024
"""What may wait for the disk: 262,144 records."""
LOOK_EVERY_BYTES: Final = 2 * 1024
"""How much is recorded between two looks at whether the buffer or the file is full."""
FILE_BYTES_MAX: Final = 256 * 1024 * 1024
"""A file is rolled when it has grown beyond this."""
FLUSH_INTERVAL_S: Final = 0.2
"""How old an event is at most when it is handed to the operating system, on a disk that keeps up."""
RETRY_S: Final = 5.0
"""After a failed write the disk is left alone for this long."""

log = logging.getLogger(__name__)


class TraceWriter:
    """A `Recorder` for one life of one node. Use it as a context manager, or `close` it."""

    def __init__(
        self,
        directory: Path,
        node: str,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
        buffer_bytes_max: int = BUFFER_BYTES_MAX,
        file_bytes_max: int = FILE_BYTES_MAX,
        opener: Callable[[Path], BinaryIO] = lambda path: path.open("xb", buffering=0),
    ) -> None:
        """Makes the directory, and fails here if it cannot: later nothing is allowed to fail."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"The trace directory {directory} cannot be made: {error.strerror}.") from error
        self.directory = directory
        self.dropped_count = 0
        """Events that are missing in the files, over the whole life."""
        self._clock_ns = clock_ns
        self._buffer_bytes_max = buffer_bytes_max
        self._file_bytes_max = file_bytes_max
        self._opener = opener
        self._encoder = Encoder(node, clock_ns())
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = False
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._pending_first_sequence = 0
        self._missing: Dropped | None = None
        self._file_bytes = 0
        self._begin_file = True
        self._is_special = True
        """Whether the next event needs more than being encoded: looked at once per block and after every write."""
        self._look_at_bytes = 0
        self._output: BinaryIO | None = None
        self._block_number = 0
        self._thread = threading.Thread(target=self._run, name=f"trace-{node}", daemon=True)
        self._thread.start()

    # --- the recording side -----------------------------------------------------------------------------------

    def record(self, event: Event, outcome: Outcome = Outcome.STEP, operation: int = 0) -> None:
        """Takes an event. Costs about two microseconds, whatever the disk does."""
        at_ns = self._clock_ns()
        with self._lock:
            if self._is_special and not self._prepare(at_ns):
                return
            try:
                records = self._encoder.event(event, at_ns, outcome, operation)
            except struct.error:
                # A number that does not fit is a mistake of ours, but no reason to fail a request. Strings that were
                # defined for it are in no file, so a new file begins.
                self._begin_file = self._is_special = True
                self._drop(at_ns)
                return
            self._pending.append(records)
            self._pending_bytes += len(records)
            if self._pending_bytes >= self._look_at_bytes:
                self._is_special = True

    def _prepare(self, at_ns: int) -> bool:
        """What an event needs besides itself: a new file, room, a word about missing ones. False: it is dropped."""
        if self._pending_bytes >= self._buffer_bytes_max or self._closing:
            self._drop(at_ns)
            return False
        if not self._pending:
            self._pending_first_sequence = self._encoder.sequence
        if self._begin_file or self._file_bytes + self._pending_bytes > self._file_bytes_max or self._encoder.is_full:
            self._start_file(at_ns)
        if self._missing is not None:
            self._append(self._encoder.drop(self._missing))
            self._missing = None
        if self._pending_bytes >= BLOCK_RECORDS_MAX * RECORD_BYTES:
            self._wake.set()
        self._look_at_bytes = self._pending_bytes + LOOK_EVERY_BYTES
        self._is_special = False
        return True

    def _append(self, records: bytes) -> None:
        self._pending.append(records)
        self._pending_bytes += len(records)

    def _start_file(self, at_ns: int) -> None:
        self._begin_file = False
        self._file_bytes = -self._pending_bytes  # what is pending belongs to the file before
        self._append(self._encoder.begin_file(at_ns))
        self._append(self._encoder.node_name())

    def _drop(self, at_ns: int) -> None:
        self.dropped_count += 1
        missing = self._missing
        if missing is None:
            self._missing = Dropped(1, self._encoder.sequence, at_ns)
        else:
            self._missing = Dropped(missing.count + 1, missing.sequence, missing.at_ns)
        self._encoder.sequence += 1

    # --- the writing side -------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._wake.wait(FLUSH_INTERVAL_S)
            self._wake.clear()
            closing = self._closing
            pending, first_sequence = self._take()
            try:
                self._write(pending, first_sequence)
            except OSError as error:
                self._failed(error, pending)
                if not closing:
                    self._wait_for_retry()
            if closing:
                self._close_file()
                return

    def _take(self) -> tuple[deque[bytes], int]:
        with self._lock:
            pending, self._pending = deque(self._pending), []
            self._file_bytes += self._pending_bytes
            self._pending_bytes = 0
            self._is_special = True
            return pending, self._pending_first_sequence

    def _write(self, pending: deque[bytes], first_sequence: int) -> None:
        """Writes and removes what is pending, block by block: what is left when it raises is lost."""
        while pending:
            if _begins_file(pending[0]):
                self._close_file()
                self._open_file(pending[0])
                pending.popleft()
                continue
            block: list[bytes] = []
            size = 0
            for records in pending:
                size += len(records)
                if _begins_file(records) or size > BLOCK_RECORDS_MAX * RECORD_BYTES:
                    break
                block.append(records)
            self._write_block(b"".join(block), first_sequence)
            for _ in block:
                pending.popleft()

    def _open_file(self, head: bytes) -> None:
        number = int.from_bytes(head[12:16], "little")
        node = re.sub(r"[^A-Za-z0-9._-]", "_", self._encoder.node) or "node"
        name = f"{node}-{self._encoder.life_ns}-{number:05}{SUFFIX}"
        self._output = self._opener(self.directory / name)
        self._block_number = 0
        self._write_all(head)

    def _write_block(self, records: bytes, first_sequence: int) -> None:
        self._write_all(seal_block(records, self._block_number, first_sequence))
        self._block_number += 1

    def _write_all(self, data: bytes) -> None:
        assert self._output is not None
        view = memoryview(data)
        while view:
            written = self._output.write(view)
            view = view[written:]

    def _failed(self, error: OSError, lost: deque[bytes]) -> None:
        """The block under way and everything behind it is lost; a new file starts with a clean string table."""
        log.warning("the trace in %s cannot be written, events are dropped: %s", self.directory, error)
        with self._lock:
            lost.extend(self._pending)
            self._pending = []
            self._pending_bytes = 0
            events = sum(records[-RECORD_BYTES] == KIND_EVENT for records in lost)
            self.dropped_count += events
            # What the lost records say to be missing is still missing, and so is what nobody has recorded yet.
            earlier = sum(unpack_drop(records, 0).count for records in lost if records[0] == KIND_DROP)
            count = events + earlier + (self._missing.count if self._missing is not None else 0)
            if count:
                self._missing = Dropped(count, self._encoder.sequence - count, self._clock_ns())
            self._begin_file = self._is_special = True
        self._close_file()

    def _wait_for_retry(self) -> None:
        deadline = time.monotonic() + RETRY_S
        while not self._closing and time.monotonic() < deadline:
            self._wake.wait(deadline - time.monotonic())
            self._wake.clear()

    def _close_file(self) -> None:
        output, self._output = self._output, None
        if output is not None:
            with contextlib.suppress(OSError):  # whatever could be written is written; there is nobody to tell
                output.close()

    # --- the end ----------------------------------------------------------------------------------------------

    def close(self, timeout_s: float = 10.0) -> None:
        """Writes what is waiting and ends the thread; gives up after `timeout_s` on a disk that hangs."""
        with self._lock:
            if self._missing is not None and not self._closing:
                if self._begin_file:
                    self._start_file(self._clock_ns())
                self._append(self._encoder.drop(self._missing))
            self._closing = self._is_special = True
        self._wake.set()
        self._thread.join(timeout_s)

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _begins_file(records: bytes) -> bool:
    return records[:1] == MAGIC[:1]
