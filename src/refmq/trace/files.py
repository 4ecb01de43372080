"""The files of one life of a node: blocks go to one file after another, and each file can be read on its own.

A file is started when there is a first block for it, and opens with all strings written before. It ends when it is long
enough, when the string table starts over, when writing fails, or when the file has been removed. A block that could not
be written is cut off, and a file without any block is removed: a full disk does not fill up with empty files.
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
    """Where blocks are written. Only `write` raises `OSError`; the block is then in no file."""

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
        """Restarts string numbering with the next block."""
        self.close()
        self._table = []

    def write(self, records: bytes) -> None:
        """Writes records as one block."""
        if self._output is not None and _was_removed(self._output):
            log.warning("the trace file %s was removed, starting another", self._path)
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
            with contextlib.suppress(OSError):  # what could be written is written; there is no one to report to
                output.close()

    def _begin_file(self) -> BinaryIO:
        self.directory.mkdir(parents=True, exist_ok=True)  # it may have been removed
        while self._output is None:
            self._path = self.directory / f"{self._name}-{self._file_number:05}{SUFFIX}"
            try:
                self._output = self._opener(self._path)
            except FileExistsError:  # removing it failed when writing to it had failed
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
        """Cuts off a partly written block and ends the file; a file without a block is removed."""
        assert self._output is not None
        with contextlib.suppress(OSError):  # then it has a torn tail, which readers recognize
            self._output.truncate(self._size_bytes)
        if self._size_bytes == 0:
            with contextlib.suppress(OSError):  # then it stays, and is empty
                self._path.unlink()
        self.close()


def _was_removed(output: BinaryIO) -> bool:
    """Whether a file no longer has a name: anything written to it is lost."""
    try:
        return os.fstat(output.fileno()).st_nlink == 0
    except io.UnsupportedOperation:  # not a file of the operating system
        return False
