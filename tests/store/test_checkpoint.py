from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.sim.choice import seeded
from refmq.sim.disk import SimulatedCrash
from refmq.store.checkpoint import (
    CHECKPOINT_BYTES,
    Checkpoint,
    Durable,
    decode_checkpoint,
    encode_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from refmq.store.file_sequence import DirectoryNames
from refmq.store.index_file import IndexEnd
from tests.store.helpers import new_disk, run

int64 = st.integers(-(2**63), 2**63 - 1)
durables = st.builds(
    Durable,
    int64.map(PhysicalOffset),
    int64.map(PhysicalOffset),
    int64.map(PhysicalOffset),
    int64,
    st.builds(IndexEnd, int64, int64, int64),
    st.booleans(),
)
times = int64.map(TimestampMs)
checkpoints = st.builds(Checkpoint, times, times, times, st.none() | durables)


@given(checkpoints)
def test_decoding_what_was_encoded_gives_it_back(checkpoint: Checkpoint) -> None:
    data = encode_checkpoint(checkpoint)
    assert len(data) == CHECKPOINT_BYTES
    assert decode_checkpoint(data) == checkpoint
    assert struct.unpack_from(">qqq", data) == (checkpoint.log_ms, checkpoint.queue_ms, checkpoint.index_ms)
    assert not any(data[24:64]), "5.x keeps numbers there"


@given(checkpoints, durables, st.integers(0, 163), st.integers(1, 255))
def test_a_block_that_was_changed_by_one_byte_is_not_believed(
    checkpoint: Checkpoint, durable: Durable, at: int, change: int
) -> None:
    data = bytearray(
        encode_checkpoint(Checkpoint(checkpoint.log_ms, checkpoint.queue_ms, checkpoint.index_ms, durable))
    )
    data[at] ^= change
    found = decode_checkpoint(bytes(data))
    assert found.durable is None or 24 <= at < 64


@pytest.mark.parametrize("size", [0, 8, 23, 100, 4095])
def test_a_file_that_is_too_short_reads_as_zeros(size: int) -> None:
    data = encode_checkpoint(Checkpoint(TimestampMs(1), TimestampMs(2), TimestampMs(3)))[:size]
    assert decode_checkpoint(data).durable is None
    assert decode_checkpoint(b"") == Checkpoint()


def test_java_starts_three_seconds_before_the_older_stamp() -> None:
    assert Checkpoint(TimestampMs(10_000), TimestampMs(8000), TimestampMs(1)).start_before_ms == 5000
    assert Checkpoint(TimestampMs(2000), TimestampMs(8000), TimestampMs(1)).start_before_ms == 0


def test_a_crash_leaves_the_old_checkpoint_or_the_new_one() -> None:
    old = Checkpoint(TimestampMs(1), TimestampMs(1), TimestampMs(1))
    new = Checkpoint(TimestampMs(2), TimestampMs(2), TimestampMs(2))
    found = set()
    for step in range(20):
        for seed in range(5):
            disk = new_disk()
            run(write_checkpoint(disk, DirectoryNames(disk), old))
            disk.crash_at(disk.operations + step)
            try:
                run(write_checkpoint(disk, DirectoryNames(disk), new))
            except SimulatedCrash:
                disk = disk.after_power_loss(seeded(seed))
                found.add(read_checkpoint(disk))
            else:
                assert read_checkpoint(disk.after_power_loss(seeded(seed))) == new
    assert found == {old, new}
