"""The transactions of a broker, made ready for TraceTransactionCheckBackLong: as `store_hints` does it for a store.

| event                                | hint               | what it is                                             |
|--------------------------------------|--------------------|--------------------------------------------------------|
| SendHalf, EndTransaction,            | `of`               | the AppendMessage of the half message                  |
| ImmunityOver, HalfRemoved,           |                    |                                                        |
| RoundFinish, the other Half...       |                    |                                                        |
| EndTransaction                       | `sent`, `final`,   | the SendHalf, the AppendMessage of the final message,  |
|                                      | `prior`            | an earlier decision about the same message             |
| WriteOp                              | `of`               | the AppendMessage of the op message                    |
| PullOps                              | `of`               | the AppendMessage of the half message that it has come |
|                                      |                    | to                                                     |
| HalfImmune, HalfRenewAndCheck,       | `new`              | the AppendMessage of the copy                          |
| HalfDiscard                          |                    |                                                        |
|                                      | `made`             | the event that made the half message, if it is a copy  |
|                                      | `prior`            | the last decision about the message                    |
| HalfImmune, HalfRenewAndCheck        | `checks`           | how many checks the copy carries                       |

Of the store the appends and the ends of files are part of such a trace, the dispatch of half messages (`of`: the
append), the flushes and what a start says of the log.
`ReadOp` is added after each PullOps, once for each op message: which half message it names (`of`: its WriteOp,
`again`: its AppendMessage). `Hole` is added where a round passes a half message that is damaged. After a cut of the
log `Lost` says which half or op message was the first to go, and `Reopened` which messages are undecided again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from refmq.model import vocabulary
from refmq.model.step import Event
from refmq.protocol.names import TRANS_CHECK_MAX_TIME_TOPIC, TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC
from refmq.verify.spec.store_hints import ENDINGS, Hinted, Row, checked_number, numbers_of

HALF, OP, ASIDE = 0, 1, 2
COMMIT: Final = 8
OF_THE_STORE: Final = (
    *("AppendMessage", "DispatchMessage", "RollFile", "FlushLog", "TruncateLog", "StopStore", "StartStore"),
)
FIELDS: Final = (
    {action.name: action.fields for action in vocabulary.STORE_RECOVERY.actions if action.name in OF_THE_STORE}
    | {action.name: action.fields for action in vocabulary.TRANSACTION_CHECK_BACK.actions}
    | {
        "ReadOp": ("op_offset", "half_offset"),
        "Lost": ("queue_offset",),
        "Reopened": ("message",),
        "PowerLoss": (),
        "FlipBit": ("message",),
        "Hole": ("half_offset",),
    }
)
COPY_HINTS: Final = ("of", "made", "new", "prior", "checks")
HINTS: Final[dict[str, tuple[str, ...]]] = {
    "DispatchMessage": ("of",),
    "SendHalf": ("actor", "of"),
    "EndTransaction": ("actor", "of", "sent", "final", "prior"),
    "WriteOp": ("of",),
    "PullOps": ("of",),
    "ReadOp": ("of", "again"),
    "HalfRemoved": ("of",),
    "HalfDiscard": COPY_HINTS,
    "HalfImmune": COPY_HINTS,
    "HalfRenewAndCheck": COPY_HINTS,
    "RoundFinish": ("of",),
    "ImmunityOver": ("of",),
    "Hole": ("of",),
    "Lost": ("of",),
    "Reopened": ("of", "again"),
}
PASSES: Final = frozenset({"HalfRemoved", "HalfDiscard", "HalfImmune", "HalfRenewAndCheck"})
"""Steps by which a round passes a half message."""
NAMES: Final = {action: ("queue", *FIELDS[action], *HINTS.get(action, ())) for action in FIELDS}


@dataclass(slots=True)
class _Append:
    """An append that matters here."""

    row: int
    queue: int
    queue_offset: int
    message: int
    position: int


@dataclass(slots=True)
class _Hinter:
    rows: list[Row] = field(default_factory=list)
    queues: dict[tuple[str, int], int] = field(
        default_factory=lambda: {(TRANS_HALF_TOPIC, 0): HALF, (TRANS_OP_HALF_TOPIC, 0): OP}
    )
    actors: dict[str, int] = field(default_factory=lambda: {"": 0})
    messages: dict[int, int] = field(default_factory=dict)
    halves: dict[int, _Append] = field(default_factory=dict)
    """Half offset -> its append."""
    op_appends: dict[int, int] = field(default_factory=dict)
    op_writes: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Op offset -> the row of its WriteOp, and the half offset."""
    sent: dict[int, int] = field(default_factory=dict)
    """Message -> the row of its SendHalf."""
    finals: dict[tuple[int, int], int] = field(default_factory=dict)
    """(message, queue) -> the row of its last append there."""
    decided: dict[int, int] = field(default_factory=dict)
    """Message -> the row of the last decision."""
    deciding: dict[int, list[_Append]] = field(default_factory=dict)
    """Message -> the appends that its decision rests on: the final message, and op messages."""
    asides: dict[int, int] = field(default_factory=dict)
    made: dict[int, int] = field(default_factory=dict)
    """Half offset of a copy -> the row of the event that made it."""
    checks: dict[int, int] = field(default_factory=dict)
    """Row of such an event -> how many checks the copy carries."""
    come_to: int = 0
    """The half offset that the round has come to."""
    pulled: bool = False
    """It has read op messages, so it has begun to look at half messages."""
    flipped: set[int] = field(default_factory=set)
    """Messages of which a bit has flipped."""
    wrote: int = 0
    alive: bool = False

    def add(self, action: str, queue: int, fields: Sequence[int], hints: Sequence[int], source: int) -> int:
        self.rows.append(Row(action, queue, list(fields), list(hints), source))
        return len(self.rows)

    def queue(self, event: Event) -> int:
        if event.queue_id < 0:
            return -1
        if event.subject == TRANS_CHECK_MAX_TIME_TOPIC:
            return ASIDE
        return self.queues.setdefault((event.subject, event.queue_id), len(self.queues) + 1)

    def message(self, fingerprint: int) -> int:
        return self.messages.setdefault(fingerprint, len(self.messages) + 1)

    def take(self, event: Event, source: int, comes_to: int) -> None:
        """An event. `comes_to`: the half message that its round looks at with it, or next; -1 without one."""
        if event.action == "StartStore":
            if self.alive:
                self.add("ProcessCrash", -1, (), (), source)
            self.alive = True
            return
        self.alive = event.action not in ENDINGS
        values = [
            self.message(value)
            if name == "message"
            else 0
            if name.endswith("_ms") or name == "tags_code"
            else checked_number(name, value)
            for name, value in zip(FIELDS[event.action], numbers_of(event), strict=False)
        ]
        queue = self.queue(event)
        while self.pulled and self.come_to < comes_to and self.is_damaged(self.come_to):
            self.add("Hole", HALF, (self.come_to,), (self.half_row(self.come_to),), source)
            self.come_to += 1
        told = dict(zip(FIELDS[event.action], values, strict=True))
        hints = self.hints(event, queue, told)
        row = self.add(event.action, queue, values, hints, source)
        self.learn(event, queue, told, row, source)

    def is_damaged(self, offset: int) -> bool:
        half = self.halves.get(offset)
        return half is not None and half.message in self.flipped

    def half_row(self, offset: int) -> int:
        half = self.halves.get(offset)
        return 0 if half is None else half.row

    def hints(self, event: Event, queue: int, told: dict[str, int]) -> tuple[int, ...]:
        message, half = told.get("message", 0), told.get("half_offset", 0)
        match event.action:
            case "DispatchMessage":
                return (self.half_row(event.b),)
            case "SendHalf":
                return self.actor(event), self.half_row(half)
            case "EndTransaction":
                prior = self.decided.get(message, 0)
                final = self.finals.get((message, queue), 0)
                return self.actor(event), self.half_row(half), self.sent.get(message, 0), final, prior
            case "WriteOp":
                return (self.op_appends.get(told["op_offset"], 0),)
            case "HalfRemoved" | "RoundFinish":
                return (self.half_row(half),)
            case "PullOps":
                return (self.half_row(self.come_to),)
            case "HalfDiscard" | "HalfImmune" | "HalfRenewAndCheck":
                made, prior = self.made.get(half, 0), self.decided.get(message, 0)
                discards = event.action == "HalfDiscard"
                new = self.asides.get(message, 0) if discards else self.half_row(told["new_offset"])
                carried = self.checks.get(made, 0) + (event.action == "HalfRenewAndCheck")
                return self.half_row(half), made, new, prior, carried
            case "ImmunityOver":
                return (next((half.row for half in reversed(self.halves.values()) if half.message == message), 0),)
        return ()

    def actor(self, event: Event) -> int:
        return self.actors.setdefault(event.actor, len(self.actors))

    def learn(self, event: Event, queue: int, told: dict[str, int], row: int, source: int) -> None:
        if event.action == "RoundStart":
            self.come_to, self.pulled = told["half_offset"], False
        elif event.action == "PullOps":
            self.pulled = True
        elif event.action in PASSES:
            self.come_to = told["half_offset"] + 1
        match event.action:
            case "FlipBit":
                self.flipped.add(told["message"])
            case "AppendMessage":
                self.appended(_Append(row, queue, event.b, told["message"], event.a))
                self.wrote = event.a + event.d
            case "RollFile":
                self.wrote = event.b
            case "SendHalf":
                self.sent[told["message"]] = row
            case "EndTransaction":
                self.decided[told["message"]] = row
                final = self.finals.get((told["message"], queue))
                if told["decision"] == COMMIT and final:
                    place = self.rows[final - 1].fields
                    decisive = _Append(final, queue, place[1], told["message"], place[0])
                    self.deciding.setdefault(told["message"], []).append(decisive)
            case "WriteOp":
                self.op_writes[told["op_offset"]] = row, told["half_offset"]
                appended = self.op_appends.get(told["op_offset"], 0)
                if appended:
                    place = self.rows[appended - 1].fields
                    decisive = _Append(appended, OP, place[1], told["message"], place[0])
                    self.deciding.setdefault(told["message"], []).append(decisive)
            case "PullOps":
                for op in range(event.a, event.b):
                    written, half = self.op_writes.get(op, (0, -1))
                    self.add("ReadOp", OP, (op, half), (written, self.op_appends.get(op, 0)), source)
            case "HalfImmune" | "HalfRenewAndCheck":
                self.made[told["new_offset"]] = row
                self.checks[row] = self.rows[row - 1].hints[-1]
            case "TruncateLog" if event.a < self.wrote:
                self.lose(event.a, source)
                self.wrote = event.a

    def appended(self, append: _Append) -> None:
        if append.queue == HALF:
            self.halves[append.queue_offset] = append
        elif append.queue == OP:
            self.op_appends[append.queue_offset] = append.row
        elif append.queue == ASIDE:
            self.asides[append.message] = append.row
        else:
            self.finals[append.message, append.queue] = append.row

    def lose(self, valid_to: int, source: int) -> None:
        """What lies behind the end of the log is gone, and with it what it decided."""

        def is_gone(row: int) -> bool:
            return self.rows[row - 1].fields[0] >= valid_to

        gone = [half for half in self.halves.values() if half.position >= valid_to]
        if gone:
            self.add("Lost", HALF, (gone[0].queue_offset,), (gone[0].row,), source)
        self.halves = {offset: half for offset, half in self.halves.items() if half.position < valid_to}
        lost_ops = sorted(op for op, row in self.op_appends.items() if is_gone(row))
        if lost_ops:
            self.add("Lost", OP, (lost_ops[0],), (self.op_appends[lost_ops[0]],), source)
        for op in lost_ops:
            del self.op_appends[op]
            self.op_writes.pop(op, None)
        left = {half.message: half.row for half in self.halves.values()}
        for message, decisive in list(self.deciding.items()):
            kept = [append for append in decisive if append.position < valid_to]
            if not kept and message in left:
                self.add("Reopened", -1, (message,), (decisive[0].row, left[message]), source)
            if not kept:
                del self.deciding[message]
            else:
                self.deciding[message] = kept
        self.finals = {key: row for key, row in self.finals.items() if not is_gone(row)}


def of_transactions(events: Iterable[Event]) -> list[Event]:
    """What concerns the transactions of a broker. Of dispatch that is the half queue."""
    return [
        event
        for event in events
        if event.action in FIELDS and (event.action != "DispatchMessage" or event.subject == TRANS_HALF_TOPIC)
    ]


def coming(trace: Sequence[Event]) -> list[int]:
    """For each event the half message that a running round looks at with it, or next; -1 where none is told."""
    found, half = [], -1
    for event in reversed(trace):
        if event.action in PASSES or event.action == "RoundFinish":
            half = event.a
        elif event.action in ENDINGS or event.action in ("RoundStart", "RoundAbort", "StartStore"):
            half = -1
        found.append(half)
    return found[::-1]


def hinted_transactions(events: Iterable[Event]) -> Hinted:
    """The transactions of one broker, from its first event on."""
    trace = list(events)
    base = next((event.a for event in trace if event.action == "TruncateLog"), 0)
    hinter = _Hinter(wrote=base)
    for number, (event, comes_to) in enumerate(zip(trace, coming(trace), strict=True), start=1):
        hinter.take(event, number, comes_to)
    return Hinted(hinter.rows, len(hinter.queues) + 1, base, NAMES)
