"""How the members of a group share the queues of a topic: AVG and AVG_BY_CIRCLE (`allocate_rooms` has the others).

Every member computes its own part, from the same two lists: all queues and all client ids, both sorted. Nobody compares
the results; that they do not overlap and leave nothing out is arithmetic (proved for all sizes in `spec/proofs`). It
holds only while all members see the same lists, and when no id occurs twice: of two members with one id both take the
part of the first, and the part of the second is read by nobody.

(AllocateMessageQueueAveragely, AllocateMessageQueueAveragelyByCircle, 4.9.8; the same in 5.3.3.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from refmq.errors import UsageError

Queue = TypeVar("Queue")


def allocate_averagely(client_id: str, queues: Sequence[Queue], client_ids: Sequence[str]) -> list[Queue]:
    """AVG, the default: neighbouring queues for each member; the first ones have one more where it does not come out.

    Nothing for an id that is not among `client_ids`. Raises `UsageError` when an argument is empty.
    """
    member = number_of(client_id, queues, client_ids)
    if member is None:
        return []
    share, rest = divmod(len(queues), len(client_ids))
    has_one_more = member < rest
    if len(queues) <= len(client_ids):
        size = 1
    else:
        size = share + 1 if has_one_more else share
    start = member * size if has_one_more else member * size + rest
    return list(queues[start : start + size])


def allocate_averagely_by_circle(client_id: str, queues: Sequence[Queue], client_ids: Sequence[str]) -> list[Queue]:
    """AVG_BY_CIRCLE: the queues are dealt out like cards.

    Nothing for an id that is not among `client_ids`. Raises `UsageError` when an argument is empty.
    """
    member = number_of(client_id, queues, client_ids)
    return [] if member is None else list(queues[member :: len(client_ids)])


def number_of(client_id: str, queues: Sequence[Queue], client_ids: Sequence[str]) -> int | None:
    """Which member this is; the first of them if the id occurs twice."""
    if not client_id or not queues or not client_ids:
        raise UsageError("an allocation needs a client id, at least one queue and at least one member")
    return client_ids.index(client_id) if client_id in client_ids else None
