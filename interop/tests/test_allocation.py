"""Every allocation strategy gives each member what the Java class of the same name gives it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from interop.artifacts import CLIENTS
from interop.codec import JavaCodec
from refmq.client.allocate import allocate_averagely, allocate_averagely_by_circle
from refmq.client.allocate_rooms import Strategy, allocate_by_consistent_hash
from refmq.model.ids import MessageQueue
from tests.client.test_allocate_rooms import (
    by_room,
    nearby,
    nearby_by_circle,
    nearby_by_hash,
    rooms_with_at,
    worlds,
)

pytestmark = pytest.mark.jdk

STRATEGIES: dict[str, Strategy] = {
    "AVG": allocate_averagely,
    "AVG_BY_CIRCLE": allocate_averagely_by_circle,
    "CONSISTENT_HASH": allocate_by_consistent_hash,
    "MACHINE_ROOM": by_room,
    "NEARBY-AVG": nearby,
    "NEARBY-AVG_BY_CIRCLE": nearby_by_circle,
    "NEARBY-CONSISTENT_HASH": nearby_by_hash,
}


@pytest.fixture(scope="module", params=list(CLIENTS))
def java(request: pytest.FixtureRequest) -> Iterator[JavaCodec]:
    with JavaCodec(request.param) as codec:
        yield codec


@pytest.mark.parametrize("name", STRATEGIES)
def test_java_gives_the_same(java: JavaCodec, name: str) -> None:
    @settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(world=worlds.map(rooms_with_at) if name == "MACHINE_ROOM" else worlds)
    def check(world: tuple[list[MessageQueue], list[str]]) -> None:
        queues, ids = world
        lines = [" ".join(ids), *(f"{queue.broker} {queue.queue_id}" for queue in queues)]
        answer = java.ask("share", name, "\n".join(lines).encode()).decode().splitlines()
        theirs = [[queues[int(number)] for number in line.split()] for line in answer]
        assert theirs == [STRATEGIES[name](client_id, queues, ids) for client_id in ids]

    check()


def test_an_id_that_occurs_twice(java: JavaCodec) -> None:
    """Members with the same id: the ring has more nodes for them, the others take the first place twice."""
    queues = [MessageQueue("TopicTest", "broker-a", number) for number in range(8)]
    ids = ["A", "A", "B"]
    lines = [" ".join(ids), *(f"{queue.broker} {queue.queue_id}" for queue in queues)]
    for name in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"):
        answer = java.ask("share", name, "\n".join(lines).encode()).decode().splitlines()
        theirs = [[queues[int(number)] for number in line.split()] for line in answer]
        assert theirs == [STRATEGIES[name](client_id, queues, ids) for client_id in ids]
