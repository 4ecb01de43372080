"""The steps of a store, made ready for TraceStoreRecoveryLong: small numbers, and hints where to look.

TLC takes one event after another and keeps no records. So an event that speaks of a record gets the number of the event
that wrote it, which is found here with a dictionary and looked up there in constant time. TLC compares every field: a
hint that is wrong can only refuse a trace.

| event                              | hint              | what it is                                               |
|------------------------------------|-------------------|----------------------------------------------------------|
| AckPut, ServeMessage,              | `of`              | the AppendMessage of the record                          |
| DispatchMessage                    |                   |                                                          |
| AppendMessage                      | `ack`             | the AckPut of the record: there is one at most           |
| DispatchMessage                    | `again`           | an earlier DispatchMessage of the same record            |
| FlushLog, ScanLog                  | `of`              | what wrote the last bytes before the position            |
| ScanLog                            | `next`            | the AppendMessage of the record that begins there        |
| FlushQueue                         | `of`              | the AppendMessage of the first unit that is not durable  |
| FlushIndex                         | `of`              | the AppendMessage of the last record with an entry       |
| WriteCheckpoint                    | `of`              | the FlushLog or TruncateLog that told the same time      |
| ScanLog                            | `by_checkpoint`   | whether recovery went by the checkpoint, as what follows |
|                                    |                   | it shows                                                 |
| TruncateQueue                      | `of`, `again`     | the AppendMessage of the first unit that goes, and of    |
|                                    |                   | the last that stays                                      |

Two events are added. A start that follows neither a stop nor a crash is preceded by `ProcessCrash`: the process was
killed, and told nobody. And `Lost` follows a scan, once for each queue that the crash took records of: the first of
them, and (`again`) the last that is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from refmq.errors import UsageError
from refmq.model import vocabulary
from refmq.model.step import Event

TLC_INTEGER_MAX: Final = 2**31 - 1
U32: Final = 2**32
HINTS: Final[dict[str, tuple[str, ...]]] = {
    "AppendMessage": ("ack",),
    "AckPut": ("of",),
    "ServeMessage": ("of",),
    "DispatchMessage": ("of", "again"),
    "FlushLog": ("of",),
    "FlushQueue": ("of",),
    "FlushIndex": ("of",),
    "WriteCheckpoint": ("of",),
    "ScanLog": ("of", "next", "by_checkpoint"),
    "TruncateQueue": ("of", "again"),
    "Lost": ("of", "again"),
}
FIELDS: Final = {action.name: action.fields for action in vocabulary.STORE_RECOVERY.actions} | {
    "Lost": ("queue_offset",),
    "FlipBit": ("message",),
}
NAMES: Final = {action: ("queue", *FIELDS[action], *HINTS.get(action, ())) for action in FIELDS}
ENDINGS: Final = frozenset({"StopStore", "ProcessCrash", "PowerLoss"})
SLOTS: Final = ("a", "b", "c", "d")

Queue = tuple[str, int]


@dataclass(slots=True)
class Row:
    """One event for TLC: its action, the number of its queue, its fields and its hints."""

    action: str
    queue: int
    fields: list[int]
    hints: list[int]
    source: int
    """Which event of the trace it is, or follows from; from 1."""


@dataclass(frozen=True, slots=True)
class Before:
    """What the first start of a trace says of the store that it found."""

    base: int = 0
    """Where its log ended."""
    first: int = 0
    """Where its log began."""
    scanned_from: int = 0
    begun: int = 0
    """From where on recovery built units and entries again: what the checkpoint said."""


def state_before(trace: Sequence[Event]) -> Before:
    """What was there before the trace."""
    first, scanned_from, base, begun = 0, 0, 0, None
    for event in trace:
        match event.action:
            case "ScanLog":
                scanned_from, base = event.a, event.b
            case "DispatchMessage" if begun is None:
                begun = event.a
            case "FinishRecovery":
                first = event.b
                break
            case "AppendMessage":
                break
    return Before(base, first, scanned_from, base if begun is None else begun)


@dataclass(slots=True)
class Hinted:
    """A trace for TLC."""

    rows: list[Row]
    queues: int
    base: int
    """Where the log ended before the trace began."""
    names: dict[str, tuple[str, ...]]
    """Action -> the names of what its rows hold."""
    before: Before = Before()


def numbers_of(event: Event) -> tuple[int, int, int, int]:
    """What the fields of an event hold. The world names a message where the messages of other events are."""
    return (event.c, 0, 0, 0) if event.action == "FlipBit" else (event.a, event.b, event.c, event.d)


def checked_number(name: str, value: int) -> int:
    if abs(value) > TLC_INTEGER_MAX:
        raise UsageError(f"{name} is {value}, more than TLC's 32 bits hold")
    return value


@dataclass(slots=True)
class _Hinter:
    rows: list[Row] = field(default_factory=list)
    queues: dict[Queue, int] = field(default_factory=dict)
    numbers: dict[str, dict[int, int]] = field(default_factory=lambda: {"message": {}, "tags_code": {}})
    ranks: dict[int, int] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    """Position -> the row that wrote the record that begins there."""
    ending: dict[int, int] = field(default_factory=dict)
    """Position -> the row that wrote what ends there."""
    units: dict[int, dict[int, int]] = field(default_factory=dict)
    """Queue -> queue offset -> the row that wrote the record."""
    dispatched: dict[int, int] = field(default_factory=dict)
    """Row of a record -> the row that dispatched it last."""
    told: dict[int, int] = field(default_factory=dict)
    """Store time -> the row that told last that the log is durable up to it."""
    alive: bool = False
    wrote: int = 0
    first: int = 0
    checkpoint: int = 0

    def add(self, action: str, queue: int, fields: Sequence[int], hints: Sequence[int], source: int) -> int:
        self.rows.append(Row(action, queue, list(fields), list(hints), source))
        return len(self.rows)

    def queue(self, event: Event) -> int:
        return -1 if event.queue_id < 0 else self.queues.setdefault((event.subject, event.queue_id), len(self.queues))

    def small(self, name: str, value: int) -> int:
        """Numbers that only identify, and times, as TLC can hold them. Zero stays zero."""
        if name in self.numbers and value:
            known = self.numbers[name]
            return known.setdefault(value, len(known) + 1)
        if name.endswith("_ms") and value:
            return self.ranks[value]
        return checked_number(name, value)

    def unit(self, queue: int, queue_offset: int) -> int:
        return self.units.get(queue, {}).get(queue_offset, 0)

    def take(self, number: int, events: Sequence[Event]) -> None:
        """Event `number`, from 0."""
        event, source = events[number], number + 1
        if event.action == "StartStore" and self.alive:
            self.add("ProcessCrash", -1, (), (), source)
        self.alive = event.action not in ENDINGS
        queue = self.queue(event)
        if event.action == "WriteCheckpoint":  # its last field is modulo 2^32
            event = event._replace(
                d=event.d + (self.wrote - event.d) // U32 * U32 if self.wrote >= event.d else event.d
            )
        names = FIELDS[event.action]
        values = [self.small(name, value) for name, value in zip(names, numbers_of(event), strict=False)]
        row = self.add(event.action, queue, values, self.hints(event, queue, number, events), source)
        self.learn(event, queue, row)

    def hints(self, event: Event, queue: int, number: int, events: Sequence[Event]) -> tuple[int, ...]:
        match event.action:
            case "AppendMessage":
                return (0,)
            case "AckPut" | "ServeMessage":
                return (self.written.get(event.a, 0),)
            case "DispatchMessage":
                of = self.written.get(event.a, 0)
                return of, self.dispatched.get(of, 0) if of else 0
            case "FlushLog":
                return (self.ending.get(event.a, 0),)
            case "FlushQueue":
                return (self.unit(queue, event.a),)
            case "FlushIndex":
                return (self.written.get(event.a, 0),)
            case "WriteCheckpoint":
                return (self.told.get(event.a, 0),)
            case "ScanLog":
                trusted = int(self.went_by_checkpoint(event, number, events))
                return self.ending.get(event.b, 0), self.written.get(event.b, 0), trusted
            case "TruncateQueue":
                return self.unit(queue, event.a), self.unit(queue, event.a - 1)
        return ()

    def went_by_checkpoint(self, scan: Event, number: int, events: Sequence[Event]) -> bool:
        """Whether units and entries were built again from where the checkpoint says, and not from the beginning."""
        begin = scan.b
        for event in events[number + 1 :]:
            if event.action == "DispatchMessage":
                begin = event.a
            if event.action in ("DispatchMessage", "FinishRecovery", "StartStore") or event.action in ENDINGS:
                break
        return begin != self.first or self.checkpoint <= self.first

    def learn(self, event: Event, queue: int, row: int) -> None:
        match event.action:
            case "AppendMessage":
                self.written[event.a] = row
                self.ending[event.a + event.d] = row
                self.units.setdefault(queue, {})[event.b] = row
                self.wrote = event.a + event.d
            case "AckPut" if of := self.written.get(event.a, 0):
                self.rows[of - 1].hints[0] = self.rows[of - 1].hints[0] or row
            case "RollFile":
                self.ending.setdefault(event.a, row)
                self.wrote = event.b
            case "DispatchMessage":
                self.dispatched[self.written.get(event.a, 0)] = row
            case "FlushLog" | "TruncateLog":
                self.told[event.b] = row
            case "WriteCheckpoint":
                self.checkpoint = event.d
            case "ExpireFile":
                self.first = event.b
            case "ScanLog":
                self.lose(event.b, row)

    def lose(self, valid_to: int, row: int) -> None:
        """What lies behind the end of a scan is gone."""
        if valid_to < self.wrote:
            gone = {row for position, row in self.written.items() if position >= valid_to}
            for queue, units in sorted(self.units.items()):
                lost = sorted(offset for offset, row in units.items() if row in gone)
                if lost:
                    hints = (units[lost[0]], units.get(lost[0] - 1, 0))
                    self.add("Lost", queue, (lost[0],), hints, self.rows[row - 1].source)
                for offset in lost:
                    del units[offset]
            self.written = {position: row for position, row in self.written.items() if position < valid_to}
            self.ending = {position: row for position, row in self.ending.items() if position <= valid_to}
        self.wrote = valid_to


def hinted(events: Iterable[Event]) -> Hinted:
    """A trace of one store, from its first event on. Events of other protocols are left out before."""
    trace = list(events)
    before = state_before(trace)
    times = {
        value
        for event in trace
        for name, value in zip(FIELDS[event.action], numbers_of(event), strict=False)
        if value and name.endswith("_ms")
    }
    hinter = _Hinter(wrote=before.base, first=before.first, checkpoint=before.begun)
    hinter.ranks = {time: rank for rank, time in enumerate(sorted(times), start=1)}
    for number in range(len(trace)):
        hinter.take(number, trace)
    return Hinted(hinter.rows, len(hinter.queues), before.base, NAMES, before)
