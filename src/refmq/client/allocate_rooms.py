"""The other ways to share queues: by consistent hashing, by machine rooms, and by a list that somebody wrote.

They take the same two sorted lists as AVG and AVG_BY_CIRCLE, and each member again computes its own part. Not all of
them are partitions:

| strategy | every queue has exactly one owner |
| --- | --- |
| CONSISTENT_HASH | yes, with at least one virtual node and ids that differ |
| MACHINE_ROOM_NEARBY | yes, if the strategy inside is one: a room without members is shared by all |
| MACHINE_ROOM | only of the queues in the rooms it is told; nobody reads the others |
| CONFIG | whatever the lists of the members say: nobody compares them |

(AllocateMessageQueueConsistentHash, AllocateMachineRoomNearby, AllocateMessageQueueByMachineRoom,
AllocateMessageQueueByConfig, 4.9.8; the same in 5.3.3.)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from hashlib import md5
from typing import Final, TypeVar

from refmq.client.allocate import number_of
from refmq.errors import UsageError
from refmq.model.ids import MessageQueue

VIRTUAL_NODES: Final = 10
ROOM_SEPARATOR: Final = "@"

Item = TypeVar("Item")
Strategy = Callable[[str, Sequence[MessageQueue], Sequence[str]], list[MessageQueue]]


def ring_hash(text: str) -> int:
    """Where a text lies on the ring: 32 bits of its MD5."""
    return int.from_bytes(md5(text.encode(), usedforsecurity=False).digest()[:4], "big")


def queue_key(queue: MessageQueue) -> str:
    """The text under which a queue is looked up on the ring; every client has to use the same one."""
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker}, queueId={queue.queue_id}]"


def ring_of(client_ids: Sequence[str], virtual_nodes: int, hash_of: Callable[[str], int]) -> dict[int, str]:
    """Who is where on the ring. An id that occurs twice has more nodes; the later of two on one place stays."""
    ring: dict[int, str] = {}
    for client_id in client_ids:
        first = list(ring.values()).count(client_id)
        for number in range(virtual_nodes):
            ring[hash_of(f"{client_id}-{first + number}")] = client_id
    return ring


def allocate_by_consistent_hash(
    client_id: str,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    virtual_nodes: int = VIRTUAL_NODES,
    hash_of: Callable[[str], int] = ring_hash,
) -> list[MessageQueue]:
    """CONSISTENT_HASH: a queue belongs to the next member on a ring, so a member that goes changes little.

    Nothing for an id that is not among `client_ids`. Raises `UsageError` when an argument is empty, or
    `virtual_nodes` negative.
    """
    if virtual_nodes < 0:
        raise UsageError(f"the number of virtual nodes must not be negative, but is {virtual_nodes}")
    if number_of(client_id, queues, client_ids) is None:
        return []
    ring = ring_of(client_ids, virtual_nodes, hash_of)
    places = sorted(ring)
    if not places:
        return []

    def owner(queue: MessageQueue) -> str:
        at = bisect_left(places, hash_of(queue_key(queue)))
        return ring[places[at if at < len(places) else 0]]

    return [queue for queue in queues if owner(queue) == client_id]


def allocate_by_machine_room(
    client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str], rooms: Collection[str]
) -> list[MessageQueue]:
    """MACHINE_ROOM: neighbouring queues of brokers called `room@name`, in the given rooms; then the rest one by one.

    Queues of other rooms, and of brokers whose name is not of that form, are left to nobody. Nothing for an id that is
    not among `client_ids`. Raises `UsageError` when an argument is empty.
    """
    member = number_of(client_id, queues, client_ids)
    if member is None:
        return []
    inside = [queue for queue in queues if _room_in_name(queue.broker) in rooms]
    share, rest = divmod(len(inside), len(client_ids))
    own = inside[member * share : (member + 1) * share]
    return [*own, inside[member + share * len(client_ids)]] if member < rest else own


def _room_in_name(broker: str) -> str | None:
    parts = broker.split(ROOM_SEPARATOR)
    while parts and not parts[-1]:
        parts.pop()  # Java's split forgets empty parts at the end
    return parts[0] if len(parts) == 2 else None


def allocate_to_nearby_rooms(
    client_id: str,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    inside: Strategy,
    room_of_queue: Callable[[MessageQueue], str],
    room_of_client: Callable[[str], str],
) -> list[MessageQueue]:
    """MACHINE_ROOM_NEARBY: a room's queues are shared by its members with the strategy `inside`; a room that has none,
    by all members.

    Nothing for an id that is not among `client_ids`. Raises `UsageError` when an argument is empty, or a room.
    """
    if number_of(client_id, queues, client_ids) is None:
        return []
    queues_of = _by_room(queues, room_of_queue, "queue")
    clients_of = _by_room(client_ids, room_of_client, "client")
    here = room_of_client(client_id)
    own = inside(client_id, queues_of[here], clients_of[here]) if here in queues_of else []
    for room in sorted(queues_of):
        if room not in clients_of:
            own = own + inside(client_id, queues_of[room], client_ids)
    return own


def _by_room(items: Sequence[Item], room_of: Callable[[Item], str], what: str) -> dict[str, list[Item]]:
    rooms: dict[str, list[Item]] = {}
    for item in items:
        room = room_of(item)
        if not room:
            raise UsageError(f"{what} {item} is in no machine room")
        rooms.setdefault(room, []).append(item)
    return rooms


def allocate_by_config(configured: Sequence[MessageQueue] | None) -> list[MessageQueue]:
    """CONFIG: what this member was told, whoever else is there and whatever queues there are."""
    return list(configured or ())
