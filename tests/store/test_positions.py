"""Where a recovered store stands, as another engine is told."""

from __future__ import annotations

import pytest

from refmq.store.positions import FilesPosition, positions_of
from tests.store.helpers import NOW, SMALL, message, new_disk, put, put_many, run, started


def test_an_empty_store_stands_at_its_beginning() -> None:
    store = started(new_disk())
    positions = positions_of(store.parts)
    assert (positions.queues, positions.queue_offsets, positions.dispatched_to) == ((), (), 0)
    assert (positions.log.wrote, positions.log.flushed, positions.log.zeroed_base) == (0, 0, -1)


def test_positions_after_a_restart_are_those_of_what_was_written() -> None:
    disk = new_disk()
    store = started(disk)
    results = put_many(store, 40) + put_many(store, 3, topic="TopicB", queue_id=2)
    end = max(result.physical_offset + result.size_bytes for result in results)
    run(store.stop(NOW))
    positions = positions_of(started(disk).parts)
    assert positions.log.wrote == positions.log.flushed == end
    assert positions.log.bases == tuple(range(0, end, SMALL.log_file_bytes))
    assert sorted(positions.queue_offsets) == [("TopicA", 0, 40), ("TopicB", 2, 3)]
    assert positions.dispatched_to == end
    (a, b) = sorted(positions.queues, key=lambda queue: queue.topic)
    assert (a.topic, a.queue_id, a.min_offset, a.files.wrote) == ("TopicA", 0, 0, 40 * 20)
    assert (b.topic, b.queue_id, b.min_offset, b.files.wrote) == ("TopicB", 2, 0, 3 * 20)
    assert b.last_physical_end == end
    assert not a.is_dirty and not b.is_dirty
    assert list(positions.index_files) == sorted(positions.index_files) and len(positions.index_files) > 1
    assert positions.last_store_ms == NOW + 39


def test_a_queue_that_has_units_no_flush_has_covered_is_dirty() -> None:
    store = started(new_disk())
    put_many(store, 2)
    (queue,) = positions_of(store.parts).queues
    assert queue.is_dirty
    assert queue.files.flushed < queue.files.wrote


def test_the_names_say_what_a_flush_of_their_directory_has_not_covered() -> None:
    store = started(new_disk())
    put(store, message())
    names = {path: (changed, flushed) for path, changed, flushed in positions_of(store.parts).names}
    changed, flushed = names["commitlog"]
    assert flushed < changed
    run(store.flush())
    names = {path: (changed, flushed) for path, changed, flushed in positions_of(store.parts).names}
    changed, flushed = names["commitlog"]
    assert flushed >= changed


def test_files_are_described_without_being_held() -> None:
    store = started(new_disk())
    before = FilesPosition.of(store.parts.log.files)
    put_many(store, 40)
    assert before == FilesPosition((), 0, 0, -1)
    assert FilesPosition.of(store.parts.log.files) != before


def test_a_log_that_is_in_memory_only_is_no_position(monkeypatch: pytest.MonkeyPatch) -> None:
    store = started(new_disk())
    put(store, message())
    monkeypatch.setattr(type(store.parts.log), "readable", property(lambda log: log.files.wrote - 1))
    with pytest.raises(AssertionError, match="in memory only"):
        positions_of(store.parts)
