"""A consume queue: for each message of one queue of one topic, where its record is.

Unit number q stands at byte 20 * q of the queue's file sequence (`consumequeue/<topic>/<queue id>/`):

    offset  size  type  field            valid
    0       8     i64   physical offset  of the record
    8       4     i32   size             total size of the record, above 0
    12      8     i64   tags code        hash of the tags; time of delivery in a delay queue; highest bit set and
                                         below -2^31 - 1 an address in the queue's extension file

A zero unit is the end of the data. A blank unit (0, 0x7FFFFFFF, 0) fills a place whose message is no longer in the
log: a queue that is rebuilt may start at any message. Physical offsets grow along a queue. (ConsumeQueue, 4.9.8.)
"""

from __future__ import annotations

import struct
from typing import Final

from refmq.model.disk import Disk
from refmq.model.ids import PhysicalOffset, QueueOffset
from refmq.store.config import QUEUE_UNIT_BYTES, StoreConfig
from refmq.store.consume_queue_ext import ConsumeQueueExt, ExtUnit, is_ext_address
from refmq.store.file_sequence import DirectoryNames, FileSequence

QUEUE_DIRECTORY: Final = "consumequeue"

UNIT: Final = struct.Struct(">qiq")
assert UNIT.size == QUEUE_UNIT_BYTES

SIZE_AT: Final = 8
SIZE_BYTES: Final = 4
BLANK_SIZE: Final = 0x7FFF_FFFF
BLANK_UNIT: Final = UNIT.pack(0, BLANK_SIZE, 0)


def is_storable_topic(topic: str) -> bool:
    """Whether a topic can be the name of a directory. The broker's rule is stricter; this one protects the disk."""
    return topic not in ("", ".", "..") and "/" not in topic and "\0" not in topic


class ConsumeQueue:
    """One queue. `end` is its max offset; what is before `min_offset` can no longer be read."""

    def __init__(self, disk: Disk, names: DirectoryNames, topic: str, queue_id: int, config: StoreConfig) -> None:
        assert is_storable_topic(topic)
        assert config.queue_file_bytes % QUEUE_UNIT_BYTES == 0, "no unit crosses a file"
        assert queue_id >= 0
        self.topic = topic
        self.queue_id = queue_id
        directory = f"{QUEUE_DIRECTORY}/{topic}/{queue_id}"
        self.files = FileSequence(
            disk, names, directory, config.queue_file_bytes, reserve=False, piece_bytes=config.piece_bytes
        )
        self._units_at_once = config.piece_bytes // QUEUE_UNIT_BYTES
        self.ext = ConsumeQueueExt(disk, names, topic, queue_id, config) if config.ext_enabled else None
        self.min_offset = QueueOffset(0)
        self._log_min = PhysicalOffset(0)
        """The start of the log for which `min_offset` was last corrected."""
        self.last_physical_end = -1
        """Where the record of the last unit ends; -1 without one."""
        self.dispatched_end = QueueOffset(0)
        """Where the queue ends for readers: without the unit of a record whose dispatch is unfinished, because its keys
        found no room."""

    @property
    def end(self) -> QueueOffset:
        return QueueOffset(self.files.wrote // QUEUE_UNIT_BYTES)

    def min_at(self, log_min: PhysicalOffset) -> QueueOffset:
        """The first readable message if the log starts there. It is searched for only when the log has lost a file."""
        if log_min > self._log_min:
            self.correct_min_offset(log_min)
        return self.min_offset

    @property
    def first(self) -> QueueOffset:
        """The first unit for which there is a file."""
        return QueueOffset(self.files.begin // QUEUE_UNIT_BYTES)

    @property
    def units_per_file(self) -> int:
        return self.files.file_bytes // QUEUE_UNIT_BYTES

    def unit(self, queue_offset: int) -> tuple[int, int, int] | None:
        """(physical offset, size, tags code) as it stands in the file; None outside the queue."""
        if not self.first <= queue_offset < self.end:
            return None
        physical_offset, size, tags_code = UNIT.unpack(self.files.read(queue_offset * QUEUE_UNIT_BYTES, UNIT.size))
        return physical_offset, size, tags_code

    def read_units(self, queue_offset: int, count_max: int) -> bytes:
        """The units from `queue_offset` on, as far as they are in the same file."""
        assert count_max >= 0
        if not self.first <= queue_offset < self.end:
            return b""
        at = queue_offset * QUEUE_UNIT_BYTES
        file_end = self.files.base_of(at) + self.files.file_bytes
        return self.files.read(at, min(count_max * QUEUE_UNIT_BYTES, file_end - at, self.files.wrote - at))

    def resolve(self, tags_code: int) -> tuple[int | None, ExtUnit | None]:
        """The tags code that a unit's field stands for; None for an address that leads nowhere."""
        if not is_ext_address(tags_code):
            return tags_code, None
        unit = self.ext.get(tags_code) if self.ext is not None else None
        return (unit.tags_code, unit) if unit is not None else (None, None)

    # --- dispatch --------------------------------------------------------------------------------------------------

    def put_unit(
        self, queue_offset: int, physical_offset: int, size: int, tags_code: int, store_ms: int, bitmap: bytes | None
    ) -> bool:
        """Gives a record its unit; False when it had it already.

        A different unit in that place belonged to a record that is gone: the log lost its tail and the offset was given
        again, or the topic was deleted and started afresh. The later record owns the offset; what follows it goes.
        """
        assert queue_offset >= 0
        assert 0 < size < BLANK_SIZE
        end = self.files.wrote // QUEUE_UNIT_BYTES
        if queue_offset < self.first and physical_offset >= self.last_physical_end:
            # The topic was deleted and started afresh, and only later units of the old one are left.
            self.remove()
            end = 0
        if queue_offset < end:
            if queue_offset < self.first or self._is_same(queue_offset, physical_offset, size, tags_code, store_ms):
                return False
            self.truncate(queue_offset)
        elif queue_offset > end:
            self._fill_blank(queue_offset)
        if not self.files.room:
            self.files.add_file(self.files.limit if self.files.bases else 0)
        if self.ext is not None:
            tags_code = self.ext.put_unit(tags_code, store_ms, bitmap or b"")
        self.files.append(UNIT.pack(physical_offset, size, tags_code))
        self.last_physical_end = physical_offset + size
        assert self.end == queue_offset + 1
        return True

    def _is_same(self, queue_offset: int, physical_offset: int, size: int, tags_code: int, store_ms: int) -> bool:
        unit = self.unit(queue_offset)
        assert unit is not None
        if unit == (physical_offset, size, tags_code):
            return True
        if unit[:2] != (physical_offset, size) or not is_ext_address(unit[2]):
            return False
        _, ext_unit = self.resolve(unit[2])
        return ext_unit is not None and (ext_unit.tags_code, ext_unit.store_ms) == (tags_code, store_ms)

    def _fill_blank(self, queue_offset: int) -> None:
        """Writes blank units up to `queue_offset`: from the start of its file in an empty queue, else from the end."""
        if not self.files.bases:
            self.files.add_file(self.files.base_of(queue_offset * QUEUE_UNIT_BYTES))
        assert self.end <= queue_offset
        while self.end < queue_offset:
            if not self.files.room:
                self.files.add_file(self.files.limit)
            count = min(queue_offset - self.end, self.files.room // QUEUE_UNIT_BYTES, self._units_at_once)
            self.files.append(BLANK_UNIT * count)
        if not self.min_offset:
            self.min_offset = QueueOffset(queue_offset)

    def truncate(self, queue_offset: int) -> int:
        """Ends the queue before `queue_offset` and zeroes the rest."""
        assert queue_offset <= self.end
        cut = self.files.truncate(max(queue_offset * QUEUE_UNIT_BYTES, self.files.begin))
        self.min_offset = QueueOffset(min(self.min_offset, self.end))
        self.dispatched_end = QueueOffset(min(self.dispatched_end, self.end))
        return cut

    # --- recovery --------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Finds the files. The end of the data is found by `find_end`."""
        self.files.load()
        if self.ext is not None:
            self.ext.load()

    def find_end(self, durable_to: int) -> int:
        """Where the sound part of the queue ends: before the first unit that is not valid, does not grow, or belongs to
        a record at or past `durable_to`. Those were not known to be durable, and dispatching writes them again.

        The search starts in the newest file whose first unit is below `durable_to`. Blank units count if a real one
        follows. Nothing is changed; `end_at` does that.
        """
        self.last_physical_end = -1
        usable = self._usable_bases()
        if not usable:
            return self.first
        start = next((base for base in reversed(usable[1:]) if self._begins_below(base, durable_to)), usable[0])
        end = start // QUEUE_UNIT_BYTES
        previous = -1
        piece_bytes = self._units_at_once * QUEUE_UNIT_BYTES
        for base in usable[usable.index(start) :]:
            for at in range(base, base + self.files.file_bytes, piece_bytes):
                length = min(piece_bytes, base + self.files.file_bytes - at)
                number = at // QUEUE_UNIT_BYTES
                for physical_offset, size, _ in UNIT.iter_unpack(self.files.read(at, length)):
                    number += 1
                    if size == BLANK_SIZE and physical_offset == 0:
                        continue
                    if size <= 0 or physical_offset <= previous or physical_offset >= durable_to:
                        return end
                    previous = physical_offset
                    end = number
                    self.last_physical_end = physical_offset + size
        assert self.first <= end
        return end

    def _usable_bases(self) -> list[int]:
        """The files from the first one on, up to a missing or empty one."""
        usable: list[int] = []
        for base in self.files.bases:
            if usable and base != usable[-1] + self.files.file_bytes:
                break
            if self.files.file(base).size_bytes != self.files.file_bytes:
                break
            usable.append(base)
        return usable

    def _begins_below(self, base: int, durable_to: int) -> bool:
        physical_offset, size, _ = UNIT.unpack(self.files.read(base, UNIT.size))
        return bool(0 < size < BLANK_SIZE and 0 <= physical_offset < durable_to)

    def end_at(self, queue_offset: int) -> int:
        """Recovery decided where the queue ends: the rest is zeroed and later files go. Returns how many bytes went."""
        if self.last_physical_end < 0:
            cut = len(self.files.bases) * self.files.file_bytes
            self.remove()
            return cut
        assert queue_offset > self.first, "a queue ends behind the record that was found in it"
        cut = self._void_unit(queue_offset * QUEUE_UNIT_BYTES)
        cut += self.files.truncate(queue_offset * QUEUE_UNIT_BYTES)
        if self.files.remove_unused_last():
            cut += self.files.file_bytes  # 4.9.8 takes the zeros at the start of such a file for a unit
        assert self.end == queue_offset
        self.files.flushed = self.files.wrote
        self.dispatched_end = self.end
        if self.ext is not None:
            cut += self.ext.recover(self._last_ext_address(queue_offset)[0])
        return cut

    def _void_unit(self, position: int) -> int:
        """Zeroes the size field of the first unit that goes, before the rest. A crash may zero half of a unit: its
        offset would be that of an older record, and the unit would count again."""
        base = self.files.base_of(position)
        if base not in self._usable_bases() or not any(self.files.read(position + SIZE_AT, SIZE_BYTES)):
            return 0
        self.files.write(position + SIZE_AT, bytes(SIZE_BYTES))
        return SIZE_BYTES

    def has_ext_of(self, end: int, log_min: PhysicalOffset) -> bool:
        """Whether the extension reaches as far as the units before `end` whose records are there: a power loss may
        bring back one of the two for a deleted queue without the other."""
        if self.ext is None:
            return True
        address, physical_offset = self._last_ext_address(end)
        return physical_offset < log_min or self.ext.is_at(address)

    def _last_ext_address(self, end: int) -> tuple[int, int]:
        """The address in the last unit before `end` that has one, and its physical offset; (0, -1) if none has."""
        for queue_offset in range(end - 1, self.first - 1, -1):
            unit = self.files.read(queue_offset * QUEUE_UNIT_BYTES, UNIT.size)
            physical_offset, _, tags_code = UNIT.unpack(unit)
            if is_ext_address(tags_code):
                return tags_code, physical_offset
        return 0, -1

    def correct_min_offset(self, log_min: PhysicalOffset) -> None:
        """Moves `min_offset` to the first unit whose record is still in the log; to the end of the queue if none is."""
        low, high = int(max(self.first, min(self.min_offset, self.end))), int(self.end)
        if self.min_offset > high:
            low = self.first
        while low < high:
            middle = (low + high) // 2
            unit = self.unit(middle)
            if unit is not None and unit[0] >= log_min and unit[1] != BLANK_SIZE:
                high = middle
            else:
                low = middle + 1
        assert self.first <= low <= max(self.first, self.end)
        assert log_min >= 0
        self.min_offset = QueueOffset(low)
        self._log_min = log_min

    # --- files -----------------------------------------------------------------------------------------------------

    def remove_expired_file(self, log_min: PhysicalOffset, checkpointed_to: PhysicalOffset) -> bool:
        """Removes the oldest file if all its records are gone. Never the last file, nor the one with the newest unit
        that a start would find (one whose record the checkpoint covers): only a unit says at which offset the queue
        continues."""
        following = self.files.bases[0] + self.files.file_bytes if self.files.bases else 0
        if len(self.files.bases) < 2 or self.files.flushed <= following:
            return False
        later = [self.files.read(at, UNIT.size) for at in (following, self.files.flushed - QUEUE_UNIT_BYTES)]
        if not any(0 < size < BLANK_SIZE and at < checkpointed_to for at, size, _ in map(UNIT.unpack, later)):
            return False
        last = following - QUEUE_UNIT_BYTES
        physical_offset, size, _ = UNIT.unpack(self.files.read(last, UNIT.size))
        if size != BLANK_SIZE and physical_offset >= log_min:
            return False
        self.files.remove(self.files.bases[0])
        return True

    def remove_expired_ext_file(self) -> bool:
        """Removes the oldest file of the extension if no readable unit points to it."""
        unit = self.unit(self.min_offset)
        if self.ext is None or unit is None or not is_ext_address(unit[2]):
            return False
        return self.ext.remove_file_before(unit[2])

    def remove(self) -> None:
        """Removes all files of the queue."""
        self.files.remove_all()
        if self.ext is not None:
            self.ext.remove()
        self.min_offset = self.dispatched_end = QueueOffset(0)
        self.last_physical_end = -1

    def close(self) -> None:
        self.files.close()
        if self.ext is not None:
            self.ext.close()

    def pages_to_flush(self, page_bytes: int) -> int:
        assert page_bytes > 0
        return self.files.wrote // page_bytes - self.files.flushed // page_bytes

    async def flush_files(self) -> None:
        """Makes the last files durable as a whole, including what was zeroed past the end."""
        for files in (self.ext.files, self.files) if self.ext is not None else (self.files,):
            if files.bases:
                await files.flush_last_file()

    async def flush(self) -> QueueOffset:
        """Makes the queue durable as far as it is written now: first the extension, because the units point to it."""
        target = self.files.wrote
        if self.ext is not None:
            await self.ext.flush()
        # The queue may have been cut while that waited: what is written there later is not covered by this flush.
        await self.files.flush(min(target, self.files.wrote))
        assert self.files.flushed % QUEUE_UNIT_BYTES == 0, "units are durable as a whole"
        return QueueOffset(self.files.flushed // QUEUE_UNIT_BYTES)
