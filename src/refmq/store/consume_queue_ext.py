"""The extension of a consume queue: what a filter by expression wants to know about a message before reading it.

Units of different sizes, one after the other, in `consumequeue_ext/<topic>/<queue id>/`:

    offset  size  type  field         valid
    0       2     i16   size          20 + bitmap bytes, 20 .. 32767; -1: the file ends here
    2       8     i64   tags code     the hash that otherwise stands in the queue unit
    10      8     i64   store ms      store time of the message
    18      2     i16   bitmap size   0 .. 32747
    20      n           bitmap        one bit set for each expression that the message satisfies

At least 4 bytes of every file stay unused. A queue unit holds the unit's offset with the highest bit set.
A hash never looks like that: it is never below -2^31. (ConsumeQueueExt, 4.9.8.)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from refmq.model.disk import Disk
from refmq.model.ids import TimestampMs
from refmq.store.config import StoreConfig
from refmq.store.file_sequence import DirectoryNames, FileSequence

EXT_DIRECTORY: Final = "consumequeue_ext"
ADDRESS_BASE: Final = -(2**63)
ADDRESS_MAX: Final = -(2**31) - 1
HEAD_BYTES: Final = 20
UNIT_BYTES_MAX: Final = 32767
END_BYTES: Final = 4
"""Kept free in every file. The end mark takes 2 of them."""
END_MARK: Final = b"\xff\xff"

_HEAD = struct.Struct(">hqqh")
assert _HEAD.size == HEAD_BYTES


@dataclass(frozen=True, slots=True)
class ExtUnit:
    """One unit."""

    tags_code: int
    store_ms: TimestampMs
    bitmap: bytes = b""


def is_ext_address(tags_code: int) -> bool:
    """Whether a queue unit's tags code is an address. A negative hash is not one."""
    return tags_code <= ADDRESS_MAX


def encode_ext_unit(unit: ExtUnit) -> bytes:
    size = HEAD_BYTES + len(unit.bitmap)
    assert size <= UNIT_BYTES_MAX
    return _HEAD.pack(size, unit.tags_code, unit.store_ms, len(unit.bitmap)) + unit.bitmap


class ConsumeQueueExt:
    """The extension of one queue."""

    def __init__(self, disk: Disk, names: DirectoryNames, topic: str, queue_id: int, config: StoreConfig) -> None:
        assert config.ext_file_bytes >= HEAD_BYTES + END_BYTES, "a unit without a bitmap fits a file"
        directory = f"{EXT_DIRECTORY}/{topic}/{queue_id}"
        self.files = FileSequence(
            disk, names, directory, config.ext_file_bytes, reserve=False, piece_bytes=config.piece_bytes
        )

    def load(self) -> None:
        self.files.load()

    def put_unit(self, tags_code: int, store_ms: int, bitmap: bytes) -> int:
        """Writes a unit and returns its address; the plain tags code if the unit is too large for any file."""
        data = encode_ext_unit(ExtUnit(tags_code, TimestampMs(store_ms), bitmap))
        if len(data) + END_BYTES > self.files.file_bytes:
            return tags_code
        if self.files.bases and len(data) + END_BYTES > self.files.room:
            if self.files.room:
                self.files.write(self.files.wrote, END_MARK)
            self.files.wrote = self.files.limit
        if not self.files.room:
            self.files.add_file(self.files.limit)
        assert self.files.room >= len(data) + END_BYTES, "what fits any file fits this one"
        address = self.files.wrote + ADDRESS_BASE
        self.files.append(data)
        assert is_ext_address(address)
        return address

    def get(self, address: int) -> ExtUnit | None:
        """The unit at an address; None if nothing valid is there."""
        assert is_ext_address(address)
        return self._unit_at(address - ADDRESS_BASE, self.files.wrote)

    def is_at(self, address: int) -> bool:
        """Whether there is a whole unit at an address. For recovery, which has not found the end yet."""
        position = address - ADDRESS_BASE
        is_there = self.files.holds(position) and self.files.file(self.files.base_of(position)).size_bytes > 0
        return is_there and self._unit_at(position, self.files.limit) is not None

    def _unit_at(self, position: int, end: int) -> ExtUnit | None:
        left = min(self.files.base_of(position) + self.files.file_bytes, end) - position
        if left < HEAD_BYTES or not self.files.holds(position):
            return None
        size, tags_code, store_ms, bitmap_size = _HEAD.unpack(self.files.read(position, HEAD_BYTES))
        if size != HEAD_BYTES + bitmap_size or not HEAD_BYTES <= size <= left:
            return None
        bitmap = self.files.read(position + HEAD_BYTES, bitmap_size) if bitmap_size else b""
        return ExtUnit(tags_code, TimestampMs(store_ms), bitmap)

    def recover(self, last_address: int) -> int:
        """Ends the extension after the unit that the queue's last unit points to; 0 means that none does.

        Starts it afresh if that unit is not there: it has expired with its message (if more is missing, the queue is
        rebuilt anyway), and whatever else is there belongs to units that are gone as well. Returns how many bytes went.
        """
        position = last_address - ADDRESS_BASE
        if not is_ext_address(last_address) or not self.is_at(last_address):
            cut = len(self.files.bases) * self.files.file_bytes
            self.remove()
            return cut
        unit = self._unit_at(position, self.files.limit)
        assert unit is not None
        return self.files.truncate(position + HEAD_BYTES + len(unit.bitmap))

    def remove_file_before(self, address: int) -> bool:
        """Removes the oldest file if all of it lies before an address."""
        assert is_ext_address(address)
        if len(self.files.bases) < 2 or self.files.bases[0] + self.files.file_bytes > address - ADDRESS_BASE:
            return False
        self.files.remove(self.files.bases[0])
        return True

    def remove(self) -> None:
        self.files.remove_all()

    def close(self) -> None:
        self.files.close()

    async def flush(self) -> None:
        await self.files.flush()
