"""The files of one life of a node: blocks go to one after the other, each of which can be read alone.

A file is begun when there is a first block for it, and opens with all strings that were written before. It ends when it
is long enough, when the table of strings begins anew, when writing fails, or when somebody has removed it. A block that
could not be written is cut off again, and a file without any is removed: a full disk does not fill up with empty files.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from refmq.trace.reader import SUFFIX
from refmq.trace.record import (
    BLOCK_RECORDS_MAX,
    RECORD_BYTES,
    encode_file_head,
    first_sequence_in,
    seal_block,
    strings_in,
)

Opener = Callable[[Path], BinaryIO]

log = logging.getLogger(__name__)


class TraceFiles:
    """Where blocks are written. `OSError` comes out of `write` alone; the block is then in no file."""

    def __init__(
        self,
        directory: Path,
        node: str,
        life_ns: int,
        *,
        clock_ns: Callable[[], int],
        file_bytes_max: int,
        opener: Opener,
    ) -> None:
        self.directory = directory
        self._name = f"{re.sub(r'[^A-Za-z0-9._-]', '_', node) or 'node'}-{life_ns}"
        self._life_ns = life_ns
        self._clock_ns = clock_ns
        self._file_bytes_max = file_bytes_max
        self._opener = opener
        self._file_number = 0
        self._path = directory
        self._output: BinaryIO | None = None
        self._size_bytes = 0
        """What is whole in the file: its head, and all of its blocks."""
        self._opening = b""
        """What the file begins with, until there is a block to be written with it."""
        self._block_number = 0
        self._sequence = 0
        """Of the first event of the last block."""
        self._table: list[bytes] = []
        """The records of all strings of the present table that were written."""

    def begin_table(self) -> None:
        """Strings are numbered anew from the next block on."""
        self.close()
        self._table = []

    def write(self, records: bytes) -> None:
        """Writes records as one block."""
        if self._output is not None and _was_removed(self._output):
            log.warning("the trace file %s was removed, another one is begun", self._path)
            self.close()
        if self._size_bytes > self._file_bytes_max:
            self.close()
        output = self._output or self._begin_file()
        sequence = first_sequence_in(records, self._sequence)
        data = self._opening + seal_block(records, self._block_number, sequence)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[output.write(rest) :]
        except OSError:
            self._cut()
            raise
        self._opening = b""
        self._size_bytes += len(data)
        self._block_number += 1
        self._sequence = sequence
        self._table += strings_in(records)

    def close(self) -> None:
        output, self._output = self._output, None
        self._file_number += self._size_bytes > 0
        self._size_bytes = 0
        if output is not None:
            with contextlib.suppress(OSError):  # whatever could be written is written; there is nobody to tell
                output.close()

    def _begin_file(self) -> BinaryIO:
        self.directory.mkdir(parents=True, exist_ok=True)  # it may have been removed
        while self._output is None:
            self._path = self.directory / f"{self._name}-{self._file_number:05}{SUFFIX}"
            try:
                self._output = self._opener(self._path)
            except FileExistsError:  # it could not be removed when it could not be written
                self._file_number += 1
        self._opening = encode_file_head(self._file_number, self._life_ns, self._clock_ns())
        self._block_number = 0
        block = b""
        for records in [*self._table, b""]:
            if block and (not records or len(block) + len(records) > BLOCK_RECORDS_MAX * RECORD_BYTES):
                self._opening += seal_block(block, self._block_number, self._sequence)
                self._block_number += 1
                block = b""
            block += records
        return self._output

    def _cut(self) -> None:
        """Takes off what was written of a block, and ends the file; one that has no block goes away."""
        assert self._output is not None
        with contextlib.suppress(OSError):  # then it has a torn tail, and readers know what that is
            self._output.truncate(self._size_bytes)
        if self._size_bytes == 0:
            with contextlib.suppress(OSError):  # then it stays, and is empty
                self._path.unlink()
        self.close()


def _was_removed(output: BinaryIO) -> bool:
    """Whether a file has no name any more: what is written to it is gone with it."""
    try:
        return os.fstat(output.fileno()).st_nlink == 0
    except io.UnsupportedOperation:  # it is no file of the operating system
        return False
