"""The checkpoint: how far log, queues and index were durable when it was written.

    offset  size  type  field            meaning
    0       8     i64   log ms           store time of the newest durable record (physicMsgTimestamp)
    8       8     i64   queue ms         ... of the newest record whose queue unit is durable (logicsMsgTimestamp)
    16      8     i64   index ms         ... of the newest record whose index entries are durable (indexMsgTimestamp)
    24      40    -     zero             (5.x keeps two offsets at 24 and 32)
    64      8     8s    magic            "refmqCP1"; from here on the block is ours, Java ignores it
    72      24    3xi64 the three stamps again
    96      8     i64   log to           physical offset up to which the log is durable
    104     8     i64   queues to        ... up to which every record has its durable queue unit
    112     8     i64   index to         ... up to which every record has its durable index entries
    120     8     i64   queue sum        sum of the ends of all queues at that moment, in units
    128     8     i64   index last       physical offset of the newest index entry below `index to`; -1 without one
    136     8     i64   index file       the number that is the name of this entry's file; 0 without one
    144     8     i64   index count      entries in this file at that moment
    152     8     i64   is clean         1: written by a clean stop, and nothing has changed since
    160     4     u32   crc              CRC-32 of bytes 64 .. 160
    164     3932  -     zero

Java's recovery goes by the three stamps. Ours goes by the block, if it is whole and its copy of the stamps equals those
at the front; otherwise Java or somebody else has written since, and the whole log is scanned.

The file is replaced by rename, so a crash leaves the old one or the new one. (StoreCheckpoint, 4.9.8.)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from refmq.model.disk import Disk
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.store.file_sequence import DirectoryNames
from refmq.store.index_file import IndexEnd

CHECKPOINT_FILE: Final = "checkpoint"
CHECKPOINT_TEMPORARY: Final = "checkpoint.tmp"
CHECKPOINT_BYTES: Final = 4096
SLACK_MS: Final = 3000
"""Java starts this much before its stamps."""

_MAGIC: Final = b"refmqCP1"
_STAMPS = struct.Struct(">qqq")
_BLOCK = struct.Struct(">8s11q")
_BLOCK_AT: Final = 64
_CRC_AT: Final = _BLOCK_AT + _BLOCK.size
assert _CRC_AT == 160


@dataclass(frozen=True, slots=True)
class Durable:
    """Our own block: offsets rather than times."""

    log_to: PhysicalOffset
    queues_to: PhysicalOffset
    index_to: PhysicalOffset
    queue_sum: int
    index_end: IndexEnd
    is_clean: bool = False


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What the file says. `durable` is None if the block is missing, torn or older than the stamps."""

    log_ms: TimestampMs = TimestampMs(0)  # noqa: RUF009 - a NewType is no call
    queue_ms: TimestampMs = TimestampMs(0)  # noqa: RUF009 - the same
    index_ms: TimestampMs = TimestampMs(0)  # noqa: RUF009 - the same
    durable: Durable | None = None

    @property
    def start_before_ms(self) -> TimestampMs:
        """Java's rule: recovery starts in the newest file whose first record is not newer than this."""
        return TimestampMs(max(0, min(self.log_ms, self.queue_ms) - SLACK_MS))


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    data = bytearray(CHECKPOINT_BYTES)
    stamps = (checkpoint.log_ms, checkpoint.queue_ms, checkpoint.index_ms)
    _STAMPS.pack_into(data, 0, *stamps)
    durable = checkpoint.durable
    if durable is not None:
        _BLOCK.pack_into(
            data,
            _BLOCK_AT,
            _MAGIC,
            *stamps,
            durable.log_to,
            durable.queues_to,
            durable.index_to,
            durable.queue_sum,
            durable.index_end.last,
            durable.index_end.file,
            durable.index_end.count,
            int(durable.is_clean),
        )
        data[_CRC_AT : _CRC_AT + 4] = crc32(data[_BLOCK_AT:_CRC_AT]).to_bytes(4, "big")
    return bytes(data)


def decode_checkpoint(data: bytes) -> Checkpoint:
    """Any bytes are a checkpoint: what is missing counts as zero, as it does for Java."""
    data = data.ljust(CHECKPOINT_BYTES, b"\0")
    assert len(data) >= _CRC_AT + 4
    log_ms, queue_ms, index_ms = _STAMPS.unpack_from(data)
    magic, *numbers = _BLOCK.unpack_from(data, _BLOCK_AT)
    crc = int.from_bytes(data[_CRC_AT : _CRC_AT + 4], "big")
    durable = None
    if magic == _MAGIC and crc == crc32(data[_BLOCK_AT:_CRC_AT]) and numbers[:3] == [log_ms, queue_ms, index_ms]:
        log_to, queues_to, index_to, queue_sum, last, file, count, is_clean = numbers[3:]
        durable = Durable(
            log_to=PhysicalOffset(log_to),
            queues_to=PhysicalOffset(queues_to),
            index_to=PhysicalOffset(index_to),
            queue_sum=queue_sum,
            index_end=IndexEnd(last, file, count),
            is_clean=is_clean == 1,
        )
    return Checkpoint(TimestampMs(log_ms), TimestampMs(queue_ms), TimestampMs(index_ms), durable)


def read_checkpoint(disk: Disk) -> Checkpoint:
    """The checkpoint of a store; all zero without one."""
    if not disk.exists(CHECKPOINT_FILE):
        return Checkpoint()
    file = disk.open(CHECKPOINT_FILE, writable=False)
    try:
        return decode_checkpoint(file.read(0, min(file.size_bytes, CHECKPOINT_BYTES)))
    finally:
        file.close()


async def write_checkpoint(disk: Disk, names: DirectoryNames, checkpoint: Checkpoint) -> None:
    """Replaces the checkpoint; when this returns the new one is durable."""
    if disk.exists(CHECKPOINT_TEMPORARY):
        disk.remove(CHECKPOINT_TEMPORARY)
    file = disk.create(CHECKPOINT_TEMPORARY, CHECKPOINT_BYTES)
    try:
        file.write(0, encode_checkpoint(checkpoint))
        await file.flush()
    finally:
        file.close()
    disk.rename(CHECKPOINT_TEMPORARY, CHECKPOINT_FILE)
    names.changed("")
    await names.flush("")
