"""A broker and its consumers, made ready for TraceRebalanceLong: as `store_hints` does it for a store.

The events of the broker and those of the clients that recorded are one trace, in the order of their clocks. A place is
a queue for a group, a member a client in a group, a holding a member at a place.

| event                        | hint                           | what it is                                         |
|------------------------------|--------------------------------|----------------------------------------------------|
| all                          | `place`, `group`, `member`,    | their numbers                                      |
|                              | `holding`                      |                                                    |
| PullMessages, ConsumeStart,  | `of`, `topic`                  | the AppendMessage of the (last) message            |
| ConsumeFinish                |                                |                                                    |
| AcquireQueue                 | `of`, `number`                 | a commit of that offset, the number of the queue   |
| AcquireQueue, ViewRefresh,   | `route`                        | the member's RouteRefresh of the topic             |
| ReleaseQueue                 |                                |                                                    |
| AcquireQueue, ReleaseQueue   | `view`                         | the member's ViewRefresh of the topic              |
| ReleaseQueue                 | `acquired`                     | the AcquireQueue by which it has the queue         |
| TrustExpire                  | `of`                           | the LockQueue of the member                        |
| CommitOffset                 | `by_clients`                   | whether all clients of the group recorded          |
|                              | `of`                           | what a member said of this offset last: CommitSend,|
|                              |                                | ReleaseQueue, AcquireQueue or Left                 |
| ViewRefresh                  | `by_one`                       | whether there is one broker only                   |
| ConsumeStart, ReleaseQueue,  | `by_orderly`                   | whether the group locks its queues                 |
| AcquireQueue, TrustExpire    |                                |                                                    |
| Leave                        | `by_client`                    | whether it is the client's own step                |
| RestartBroker                | `by_power`                     | whether the power had failed                       |

`Left` is added after the Leave of a client for each queue that it had, and `RestartBroker` where a broker starts again.
`Skipped` follows a PullMessages for each message that the group does not want: no trace says what a group wants, so
that is what it has ever consumed one of, by its tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from refmq.model import vocabulary
from refmq.model.step import Event
from refmq.verify.spec.store_hints import Hinted, Row, checked_number, numbers_of

FIELDS: Final = {action.name: action.fields for action in vocabulary.REBALANCE.actions} | {
    "AppendMessage": ("physical_offset", "queue_offset", "message", "size_bytes"),
    "DispatchMessage": ("physical_offset", "queue_offset", "tags_code", "size_bytes"),
    "Left": (),
    "Skipped": ("queue_offset", "tags_code"),
    "RestartBroker": (),
    "StartStore": ("was_clean",),
    "PowerLoss": (),
    "ProcessCrash": (),
}
WHO: Final = ("group", "member", "holding")
HINTS: Final[dict[str, tuple[str, ...]]] = {
    "AppendMessage": ("topic",),
    "DispatchMessage": ("topic",),
    "Skipped": ("of", "topic"),
    "ReleaseQueue": ("by_orderly", "acquired", "route", "view"),
    "ViewRefresh": ("route", "by_one"),
    "AcquireQueue": ("of", "route", "view", "number", "by_orderly"),
    "PullMessages": ("of", "topic"),
    "ConsumeStart": ("of", "topic", "by_orderly"),
    "ConsumeFinish": ("of", "topic"),
    "TrustExpire": ("by_orderly", "of"),
    "CommitOffset": ("by_clients", "of"),
    "Leave": ("by_client",),
    "RestartBroker": ("by_power",),
}
NAMES: Final = {action: ("place", *FIELDS[action], *WHO, *HINTS.get(action, ())) for action in FIELDS}
OF_BROKERS: Final = frozenset(
    {
        "AppendMessage",
        "DispatchMessage",
        "Heartbeat",
        "RemoveMember",
        "CommitOffset",
        "PersistOffsets",
        "LockQueue",
        "UnlockQueue",
    }
    | {"LoanExpire", "StartStore", "PowerLoss", "ProcessCrash", "Leave"}
)
OF_CLIENTS: Final = frozenset(
    {"ViewRefresh", "RouteRefresh", "AcquireQueue", "ReleaseQueue", "PullMessages", "ConsumeStart", "ConsumeFinish"}
    | {"CommitSend", "TrustExpire", "Leave"}
)
MEMBERSHIP: Final = frozenset({"Heartbeat", "Leave", "RemoveMember"})


class Told(NamedTuple):
    """An event, and who recorded it."""

    node: str
    event: Event


@dataclass(slots=True)
class HintedGroups:
    """The trace for TLC, and how many of each there are."""

    made: Hinted
    groups: int
    places: int
    holdings: int


@dataclass(slots=True)
class _Hinter:
    broker: str
    incomplete: set[str]
    """Groups with a client that did not."""
    locking: set[str]
    wanted: dict[tuple[str, str], set[int]]
    """(group, topic) -> the tags of which it has ever consumed a message."""
    by_one: bool
    """There is one broker only."""
    first_ms: int
    rows: list[Row] = field(default_factory=list)
    groups: dict[str, int] = field(default_factory=dict)
    topics: dict[tuple[str, int], int] = field(default_factory=dict)
    places: dict[tuple[str, str, int], int] = field(default_factory=dict)
    members: dict[tuple[str, str], int] = field(default_factory=dict)
    holdings: dict[tuple[int, int], int] = field(default_factory=dict)
    messages: dict[int, int] = field(default_factory=dict)
    stored: dict[tuple[int, int], int] = field(default_factory=dict)
    """(topic, queue offset) -> the row that stored it last."""
    tags: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """(topic, queue offset) -> the row that dispatched it last, and the tags."""
    numbers: dict[int, int] = field(default_factory=dict)
    """Tags, renumbered."""
    commits: dict[tuple[int, int], int] = field(default_factory=dict)
    """(place, offset) -> the row that committed it last."""
    routes: dict[tuple[int, str], int] = field(default_factory=dict)
    """(member, topic) -> its last RouteRefresh."""
    views: dict[tuple[int, str], int] = field(default_factory=dict)
    """(member, topic) -> its last ViewRefresh."""
    acquired: dict[int, int] = field(default_factory=dict)
    """Holding -> the row by which the member has it."""
    locked: dict[int, int] = field(default_factory=dict)
    """Holding -> the row by which it was lent to the member last."""
    sent: dict[tuple[int, int], int] = field(default_factory=dict)
    """(place, offset) -> the row by which a member spoke of it last."""
    left: dict[int, int] = field(default_factory=dict)
    """Place -> the row by which a member left it last."""
    owned: dict[int, list[int]] = field(default_factory=dict)
    """Member -> the holdings that it has."""
    started: bool = False
    lost_power: bool = False

    def add(self, action: str, place: int, fields: Sequence[int], hints: Sequence[int], source: int) -> int:
        self.rows.append(Row(action, place, list(fields), list(hints), source))
        return len(self.rows)

    def take(self, told: Told, source: int) -> None:
        event = told.event
        if event.action == "StartStore":
            if told.node != self.broker:
                return
            if self.started:
                self.add("RestartBroker", -1, (), (-1, -1, -1, int(self.lost_power)), source)
            self.started, self.lost_power = True, False
            return
        if event.action in ("PowerLoss", "ProcessCrash"):
            self.lost_power = self.lost_power or event.action == "PowerLoss"
            return
        topic, broker, queue_id = event.subject.partition("@")[0], event.subject.partition("@")[2], event.queue_id
        if event.action in ("AppendMessage", "DispatchMessage"):
            number = self.topics.setdefault((topic, queue_id), len(self.topics))
            row = self.add(event.action, -1, self.values(event), (-1, -1, -1, number), source)
            if event.action == "AppendMessage":
                self.stored[number, event.b] = row
            else:
                self.tags[number, event.b] = row, event.c
            return
        assert not broker or broker == self.broker, "the events of other brokers' queues are left out before"
        group, client = self.who(event)
        place = -1
        if queue_id >= 0:
            place = self.places.setdefault((group, topic, queue_id), len(self.places))
        member = self.members.setdefault((group, client), len(self.members)) if client else -1
        holding = -1
        if place >= 0 and member >= 0:
            holding = self.holdings.setdefault((member, place), len(self.holdings))
        of_group = self.groups.setdefault(group, len(self.groups)) if group else -1
        hints = (of_group, member, holding, *self.hints(told, topic, group, member, place))
        row = self.add(event.action, place, self.values(event), hints, source)
        self.learn(told, topic, member, place, holding, row, source)

    @staticmethod
    def who(event: Event) -> tuple[str, str]:
        """Group and client."""
        if event.action in MEMBERSHIP:
            return event.subject, event.actor
        if event.action == "CommitOffset":
            return event.actor, ""
        group, _, client = event.actor.partition("@")
        return group, client

    def values(self, event: Event) -> list[int]:
        found = []
        for name, value in zip(FIELDS[event.action], numbers_of(event), strict=False):
            if name == "message":
                value = self.messages.setdefault(value, len(self.messages) + 1) if value else 0
            elif name == "tags_code":
                value = self.numbers.setdefault(value, len(self.numbers) + 1) if value else 0
            elif name.endswith("_ms"):
                value -= self.first_ms
            found.append(checked_number(name, value))
        return found

    def hints(self, told: Told, topic: str, group: str, member: int, place: int) -> tuple[int, ...]:
        event = told.event
        number = self.topics.setdefault((topic, event.queue_id), len(self.topics)) if event.queue_id >= 0 else -1
        match event.action:
            case "ViewRefresh":
                return self.routes.get((member, topic), 0), int(self.by_one)
            case "AcquireQueue":
                known = self.routes.get((member, topic), 0), self.views.get((member, topic), 0)
                return self.commits.get((place, event.a), 0), *known, event.queue_id, int(group in self.locking)
            case "PullMessages":
                return self.stored.get((number, event.b - 1), 0), number
            case "ConsumeStart":
                return self.stored.get((number, event.a), 0), number, int(group in self.locking)
            case "ConsumeFinish":
                return self.stored.get((number, event.a), 0), number
            case "TrustExpire":
                return int(group in self.locking), self.locked.get(self.holdings[member, place], 0)
            case "ReleaseQueue":
                acquired = self.acquired.get(self.holdings[member, place], 0)
                read = self.routes.get((member, topic), 0), self.views.get((member, topic), 0)
                return int(group in self.locking), acquired, *read
            case "CommitOffset":
                return int(group not in self.incomplete), self.sent.get((place, event.b), self.left.get(place, 0))
            case "Leave":
                return (int(told.node != self.broker),)
        return ()

    def learn(self, told: Told, topic: str, member: int, place: int, holding: int, row: int, source: int) -> None:
        event = told.event
        match event.action:
            case "CommitOffset":
                self.commits[place, event.b] = row
            case "RouteRefresh":
                self.routes[member, topic] = row
            case "ViewRefresh":
                self.views[member, topic] = row
            case "LockQueue":
                self.locked[holding] = row
            case "CommitSend":
                self.sent[place, event.a] = row
            case "PullMessages":
                self.skip(told, topic, member, place, holding, source)
            case "AcquireQueue":
                self.owned.setdefault(member, []).append(holding)
                self.acquired[holding] = row
                self.sent[place, event.a] = row
            case "ReleaseQueue":
                self.sent[place, event.a] = row
                if holding in self.owned.get(member, ()):
                    self.owned[member].remove(holding)
            case "Leave" if told.node != self.broker:
                for left in self.owned.pop(member, []):
                    of_place = next(place for (who, place), number in self.holdings.items() if number == left)
                    self.left[of_place] = self.add("Left", of_place, (), (-1, member, left), source)

    def skip(self, told: Told, topic: str, member: int, place: int, holding: int, source: int) -> None:
        event = told.event
        number = self.topics[topic, event.queue_id]
        wanted = self.wanted.get((self.who(event)[0], topic), set())
        for offset in range(event.a, event.b):
            row, tags = self.tags.get((number, offset), (0, 0))
            if row and tags not in wanted:
                values = (offset, self.numbers.get(tags, 0))
                self.add("Skipped", place, values, (-1, member, holding, row, number), source)


def of_groups(trace: Iterable[Told], broker: str) -> list[Told]:
    """The events that concern the groups of one broker: its own, and those of clients about its queues."""
    found = []
    for told in trace:
        event = told.event
        if told.node == broker or event.action == "StartStore":
            if event.action in OF_BROKERS:
                found.append(told)
        elif event.action in OF_CLIENTS and event.subject.partition("@")[2] in ("", broker):
            found.append(told)
    return found


def hinted_groups(trace: Sequence[Told], broker: str) -> HintedGroups:
    """The groups of one broker, from its first event on."""
    recorded, seen, locking = set[tuple[str, str]](), set[tuple[str, str]](), set[str]()
    for node, event in trace:
        if event.action in OF_CLIENTS and node != broker:
            recorded.add(_Hinter.who(event))
        elif event.action == "Heartbeat":
            seen.add((event.subject, event.actor))
        elif event.action == "LockQueue":
            locking.add(event.actor.partition("@")[0])
        elif event.action == "CommitOffset":
            seen.add((event.actor, ""))
    told_groups = {group for group, _ in recorded}
    incomplete = {group for group, client in seen if (client and (group, client) not in recorded)}
    incomplete |= {group for group, _ in seen if group not in told_groups}
    times = [event.a if event.action == "UnlockQueue" else event.b for _, event in trace if _has_time(event)]
    by_one = not any(node != broker and event.action == "StartStore" for node, event in trace)
    hinter = _Hinter(broker, incomplete, locking, wanted_tags(trace), by_one, min(times, default=0))
    for number, told in enumerate(trace, start=1):
        hinter.take(told, number)
    made = Hinted(hinter.rows, len(hinter.places), 0, NAMES)
    return HintedGroups(made, len(hinter.groups), len(hinter.places), len(hinter.holdings))


def wanted_tags(trace: Sequence[Told]) -> dict[tuple[str, str], set[int]]:
    """(group, topic) -> the tags of which it has ever consumed a message."""
    tags = {
        (event.subject, event.queue_id, event.b): event.c for _, event in trace if event.action == "DispatchMessage"
    }
    found: dict[tuple[str, str], set[int]] = {}
    for _, event in trace:
        if event.action == "ConsumeStart":
            topic = event.subject.partition("@")[0]
            code = tags.get((topic, event.queue_id, event.a))
            if code is not None:
                found.setdefault((event.actor.partition("@")[0], topic), set()).add(code)
    return found


def _has_time(event: Event) -> bool:
    return event.action in ("LockQueue", "UnlockQueue")
