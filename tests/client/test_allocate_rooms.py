"""CONSISTENT_HASH, MACHINE_ROOM, MACHINE_ROOM_NEARBY and CONFIG: vectors, what they leave out, and broken twins."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from refmq.client.allocate import allocate_averagely, allocate_averagely_by_circle
from refmq.client.allocate_rooms import (
    Strategy,
    allocate_by_config,
    allocate_by_consistent_hash,
    allocate_by_machine_room,
    allocate_to_nearby_rooms,
    queue_key,
    ring_hash,
)
from refmq.errors import UsageError
from refmq.model.ids import MessageQueue

IDS = ["10.0.0.1@100#1", "10.0.0.2@200#2", "10.0.0.3@300#3"]


def queues_at(broker: str, count: int) -> list[MessageQueue]:
    return [MessageQueue("TopicTest", broker, number) for number in range(count)]


QUEUES = queues_at("broker-a", 4) + queues_at("broker-b", 4)
IN_ROOMS = queues_at("r1@broker-a", 4) + queues_at("r2@broker-b", 3) + queues_at("r3@broker-c", 4)


def parts(strategy: Strategy, queues: Sequence[MessageQueue], ids: Sequence[str]) -> list[str]:
    """What each member gets: the last letter of the broker and the number of the queue."""
    return [" ".join(f"{q.broker[-1]}{q.queue_id}" for q in strategy(client_id, queues, ids)) for client_id in ids]


def by_room(client_id: str, queues: Sequence[MessageQueue], ids: Sequence[str]) -> list[MessageQueue]:
    return allocate_by_machine_room(client_id, queues, ids, {"r1", "r2"})


def room_of_queue(queue: MessageQueue) -> str:
    return queue.broker.partition("-")[0]


def room_of_client(client_id: str) -> str:
    return client_id.partition("-")[0]


def nearby(client_id: str, queues: Sequence[MessageQueue], ids: Sequence[str]) -> list[MessageQueue]:
    return allocate_to_nearby_rooms(client_id, queues, ids, allocate_averagely, room_of_queue, room_of_client)


def test_places_on_the_ring() -> None:
    assert ring_hash("10.0.0.1@100#1-0") == 2104484402
    assert ring_hash("10.0.0.1@100#1-9") == 1448887193
    assert queue_key(QUEUES[0]) == "MessageQueue [topic=TopicTest, brokerName=broker-a, queueId=0]"
    assert ring_hash(queue_key(QUEUES[0])) == 1987926524


def test_consistent_hash() -> None:
    assert parts(allocate_by_consistent_hash, QUEUES, IDS) == ["a0 a1 a2 b2 b3", "b0 b1", "a3"]


def test_a_ring_without_nodes_gives_nothing_and_a_negative_number_is_refused() -> None:
    assert allocate_by_consistent_hash(IDS[0], QUEUES, IDS, 0) == []
    with pytest.raises(UsageError, match="negative"):
        allocate_by_consistent_hash(IDS[0], QUEUES, IDS, -1)


def test_machine_room_leaves_the_queues_of_other_rooms_to_nobody() -> None:
    assert parts(by_room, IN_ROOMS, IDS) == ["a0 a1 b2", "a2 a3", "b0 b1"]
    odd = queues_at("r1", 1) + queues_at("r1@a@b", 1) + queues_at("@r1", 1) + queues_at("r1@", 1)
    assert parts(by_room, odd, IDS) == ["", "", ""]


def test_nearby_rooms_share_their_own_queues_and_everybody_those_of_empty_rooms() -> None:
    queues = queues_at("r1-a", 3) + queues_at("r2-b", 3) + queues_at("r3-c", 4)
    assert parts(nearby, queues, ["r1-x", "r1-y", "r2-z"]) == ["a0 a1 c0 c1", "a2 c2", "b0 b1 b2 c3"]


def test_a_member_or_a_queue_in_no_room_is_refused() -> None:
    with pytest.raises(UsageError, match="no machine room"):
        nearby("r1-x", queues_at("-a", 1), ["r1-x"])
    with pytest.raises(UsageError, match="no machine room"):
        nearby("r1-x", queues_at("r1-a", 1), ["-y", "r1-x"])


def test_config_is_no_partition_it_is_what_somebody_wrote() -> None:
    assert allocate_by_config(QUEUES[:2]) == QUEUES[:2]
    assert allocate_by_config(None) == []


@pytest.mark.parametrize("strategy", [allocate_by_consistent_hash, by_room, nearby])
def test_who_is_no_member_gets_nothing_and_empty_arguments_are_refused(strategy: Strategy) -> None:
    assert strategy("r9-stranger", QUEUES, IDS) == []
    for arguments in (("", QUEUES, IDS), ("x", [], IDS), ("x", QUEUES, [])):
        with pytest.raises(UsageError):
            strategy(*arguments)


# --- partitions -----------------------------------------------------------------------------------------------------

brokers = st.lists(st.sampled_from(["r1-a", "r1-b", "r2-a", "r3-a"]), min_size=1, max_size=4, unique=True)
topics = st.builds(
    lambda names, sizes: sorted(
        queue for name, size in zip(names, sizes, strict=False) for queue in queues_at(name, size)
    ),
    brokers,
    st.lists(st.integers(1, 6), min_size=4, max_size=4),
)
groups = st.lists(
    st.sampled_from([f"r{room}-{name}" for room in (1, 2, 4) for name in "uvwxyz"]), min_size=1, unique=True
)
worlds = st.tuples(topics, groups.map(sorted))


def is_partition(strategy: Strategy, queues: Sequence[MessageQueue], ids: Sequence[str]) -> bool:
    return sorted(queue for client_id in ids for queue in strategy(client_id, queues, ids)) == list(queues)


def nearby_by_circle(client_id: str, queues: Sequence[MessageQueue], ids: Sequence[str]) -> list[MessageQueue]:
    return allocate_to_nearby_rooms(client_id, queues, ids, allocate_averagely_by_circle, room_of_queue, room_of_client)


def nearby_by_hash(client_id: str, queues: Sequence[MessageQueue], ids: Sequence[str]) -> list[MessageQueue]:
    return allocate_to_nearby_rooms(client_id, queues, ids, allocate_by_consistent_hash, room_of_queue, room_of_client)


@pytest.mark.parametrize("strategy", [allocate_by_consistent_hash, nearby, nearby_by_circle, nearby_by_hash])
@given(world=worlds)
def test_every_queue_has_one_owner(strategy: Strategy, world: tuple[list[MessageQueue], list[str]]) -> None:
    assert is_partition(strategy, *world)


def rooms_with_at(world: tuple[list[MessageQueue], list[str]]) -> tuple[list[MessageQueue], list[str]]:
    queues, ids = world
    return sorted(MessageQueue(q.topic, q.broker.replace("-", "@"), q.queue_id) for q in queues), ids


@given(world=worlds.map(rooms_with_at))
def test_machine_room_shares_exactly_the_queues_of_its_rooms(world: tuple[list[MessageQueue], list[str]]) -> None:
    queues, ids = world
    shares = [by_room(client_id, queues, ids) for client_id in ids]
    assert sorted(queue for share in shares for queue in share) == [q for q in queues if q.broker[:3] in ("r1@", "r2@")]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@given(world=worlds, gone=st.integers(0, 99))
def test_a_member_that_goes_takes_no_queue_from_those_who_stay(
    world: tuple[list[MessageQueue], list[str]], gone: int
) -> None:
    queues, ids = world
    stay = [client_id for number, client_id in enumerate(ids) if number != gone % len(ids)]
    for client_id in stay:
        before = allocate_by_consistent_hash(client_id, queues, ids)
        assert set(before) <= set(allocate_by_consistent_hash(client_id, queues, stay))


# --- the same with a mistake: the properties above must find it -----------------------------------------------------


def ring_that_does_not_close(client_id: str, queues: Sequence[MessageQueue], ids: Sequence[str]) -> list[MessageQueue]:
    last = max(ring_hash(f"{one}-{number}") for one in ids for number in range(10))
    return [q for q in allocate_by_consistent_hash(client_id, queues, ids) if ring_hash(queue_key(q)) <= last]


def own_id_first(client_id: str, queues: Sequence[MessageQueue], ids: Sequence[str]) -> list[MessageQueue]:
    """Not everybody sees the same ring: a member leaves out the ids behind its own."""
    return allocate_by_consistent_hash(client_id, queues, ids[: ids.index(client_id) + 1])


def empty_rooms_forgotten(client_id: str, queues: Sequence[MessageQueue], ids: Sequence[str]) -> list[MessageQueue]:
    return [q for q in nearby(client_id, queues, ids) if room_of_queue(q) == room_of_client(client_id)]


def every_other_room(client_id: str, queues: Sequence[MessageQueue], ids: Sequence[str]) -> list[MessageQueue]:
    """Rooms that have members of their own are shared by everybody as well."""
    others = [q for q in queues if room_of_queue(q) != room_of_client(client_id)]
    own = [q for q in nearby(client_id, queues, ids) if room_of_queue(q) == room_of_client(client_id)]
    return own + (allocate_averagely(client_id, others, ids) if others else [])


@pytest.mark.parametrize("twin", [ring_that_does_not_close, own_id_first, empty_rooms_forgotten, every_other_room])
def test_a_mistake_is_found(twin: Strategy) -> None:
    try:
        find(worlds, lambda world: not is_partition(twin, *world), settings=settings(max_examples=2000, database=None))
    except NoSuchExample:
        pytest.fail("no world shows the mistake")
