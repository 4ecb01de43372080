"""Where queues start and end, and which message is nearest to a time."""

from __future__ import annotations

from refmq.protocol.codes import RequestCode
from tests.broker.harness import START_MS, Harness


def test_the_bounds_of_a_queue_and_the_search_by_time() -> None:
    world = Harness()
    for _ in range(3):
        world.send()
        world.now += 1_000
    place = {"topic": "T", "queueId": "0"}
    assert world.ask(RequestCode.GET_MAX_OFFSET, fields=place).fields["offset"] == "3"
    assert world.ask(RequestCode.GET_MIN_OFFSET, fields=place).fields["offset"] == "0"
    assert world.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, fields=place).fields["timestamp"] == str(START_MS)
    at = {**place, "timestamp": str(START_MS + 1_400)}
    assert world.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields=at).fields["offset"] == "1"
    lower = {**at, "boundaryType": "LOWER"}
    assert world.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields=lower).fields["offset"] == "2"
