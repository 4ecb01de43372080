from __future__ import annotations

import pytest

from refmq.store import AppendPlan, GetResult, GetStatus, PutResult, PutStatus, QueueId
from refmq.store.values import NOWHERE
from tests.store.helpers import NOW, message, new_disk, started


def plan() -> AppendPlan:
    found = started(new_disk()).plan_message(message(unique="U1"), NOW)
    assert isinstance(found, AppendPlan)
    return found


@pytest.mark.parametrize("status", PutStatus)
def test_a_put_is_stored_unless_its_status_says_that_it_is_not(status: PutStatus) -> None:
    stored = {"PUT_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE"}
    assert status.is_stored == (status.name in stored)


def test_the_numbers_of_a_status_are_those_of_java() -> None:
    assert [PutStatus(number).name for number in (0, 4, 5, 10)] == [
        "PUT_OK",
        "SERVICE_NOT_AVAILABLE",
        "CREATE_MAPEDFILE_FAILED",
        "LMQ_CONSUME_QUEUE_NUM_EXCEEDED",
    ]
    assert [GetStatus(number).name for number in (0, 5, 8)] == ["FOUND", "OFFSET_OVERFLOW_ONE", "NO_MESSAGE_IN_QUEUE"]


def test_the_result_of_a_stored_put_says_what_its_plan_says() -> None:
    planned = plan()
    result = PutResult.of(PutStatus.FLUSH_DISK_TIMEOUT, planned)
    assert result.status is PutStatus.FLUSH_DISK_TIMEOUT
    for field in ("physical_offset", "size_bytes", "durable_at", "store_timestamp_ms", "topic", "queue_id", "count"):
        assert getattr(result, field) == getattr(planned, field), field
    assert (result.queue_offset, result.message_id) == (planned.queue_offset, planned.message_id)
    assert result.fingerprint == planned.places[0].fingerprint


def test_the_result_of_a_refused_put_says_nothing_but_its_status() -> None:
    result = PutResult.of(PutStatus.SERVICE_NOT_AVAILABLE, plan())
    assert result == PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
    assert result.physical_offset == NOWHERE


def test_the_size_of_a_read_is_that_of_its_records() -> None:
    start = started(new_disk()).min_offset("T", 0)
    assert GetResult(GetStatus.FOUND, start, start, start, (b"ab", b"c")).size_bytes == 3


def test_queues_are_sorted_by_topic_and_number() -> None:
    assert sorted([QueueId("b", 0), QueueId("a", 10), QueueId("a", 9)]) == [
        QueueId("a", 9),
        QueueId("a", 10),
        QueueId("b", 0),
    ]
