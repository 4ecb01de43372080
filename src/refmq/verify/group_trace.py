"""What a broker and the members of one group recorded, as one trace that TraceRebalance can take.

The broker and the clients each record their own steps; put together in the order in which they happened they are a
behaviour of Rebalance, up to what the specification says in other words:

| recorded                                             | in the trace                                                  |
|------------------------------------------------------|---------------------------------------------------------------|
| `Heartbeat`, `Leave`, `RemoveMember` of other groups | nothing                                                       |
| events of the retry topic, and of other topics       | nothing: a message handed to it counts as consumed            |
| `Leave` of the client, then of the broker            | that of the client                                            |
| `RouteRefresh` that brings the number known at first | nothing                                                       |
| `CommitOffset` by which a group begins               | nothing: `AcquireQueue` has it (CommitStart)                  |
| `CommitOffset` over no offset, of a young queue      | over the offset at which the group began: the broker said 0   |
| `UnlockQueue` of a loan that ended with the release  | nothing: `ReleaseQueue` and `Leave` have it                   |
| `group@client` as the actor                          | `client`                                                      |
| `topic@broker` as the subject of a client's event    | `topic`: there is one broker                                  |
"""

from __future__ import annotations

from collections.abc import Iterable

from refmq.model import vocabulary
from refmq.model.step import Event

NO_OFFSET = -1
MEMBERSHIP = frozenset({"Heartbeat", "Leave", "RemoveMember"})
REBALANCE_ACTIONS = frozenset(action.name for action in vocabulary.REBALANCE.actions)


def group_trace(events: Iterable[Event], group: str, topic: str, queues: int) -> list[Event]:
    """The events of one group and topic, in their order and in the words of the specification."""
    return _Teller(group, topic, queues).tell(events)


class _Teller:
    def __init__(self, group: str, topic: str, queues: int) -> None:
        self._group = group
        self._topic = topic
        self._queues = queues
        self._begin: dict[int, int] = {}
        self._cached: dict[tuple[str, int], set[int]] = {}
        self._left: set[str] = set()
        self._unlocks: set[tuple[str, int]] = set()
        """Loans that a release leaves to a later unlock: the client still had messages of the queue."""

    def tell(self, events: Iterable[Event]) -> list[Event]:
        found = []
        for event in events:
            if event.action not in REBALANCE_ACTIONS:
                continue
            told = self._member(event) if event.action in MEMBERSHIP else self._other(event)
            if told is not None:
                found.append(told)
        return found

    def _member(self, event: Event) -> Event | None:
        if event.subject != self._group:
            return None
        if event.action == "Leave":
            if event.actor in self._left:
                return None
            self._left.add(event.actor)
        elif event.actor in self._left:
            return None
        return event._replace(subject="")

    def _other(self, event: Event) -> Event | None:
        if event.action == "PersistOffsets":
            return event
        if event.subject.partition("@")[0] != self._topic:  # clients name the broker as well: `topic@broker`
            return None
        group, _, client = event.actor.partition("@")
        if group != self._group:
            return None
        told = event._replace(actor=client, subject=self._topic)
        place = (client, event.queue_id)
        match event.action:
            case "RouteRefresh":
                return None if event.a == self._queues else told
            case "AcquireQueue":
                self._begin.setdefault(event.queue_id, event.a)
                self._cached[place] = set()
            case "PullMessages":
                self._cached.setdefault(place, set()).update(range(event.a, event.b))
            case "ConsumeFinish" if event.c == 0:
                self._cached.setdefault(place, set()).discard(event.a)
            case "ReleaseQueue":
                if self._cached.get(place):
                    self._unlocks.add(place)
            case "UnlockQueue":
                if place not in self._unlocks:
                    return None
                self._unlocks.remove(place)
            case "CommitOffset":
                return self._commit(told)
        return told

    def _commit(self, event: Event) -> Event | None:
        begin = self._begin.get(event.queue_id)
        if event.a != NO_OFFSET:
            return event
        if begin is None:
            return None  # the first offset of the group, stored before its first pull
        return event._replace(a=begin)
