"""A broker's stream proved regular without its oracles: the log, its queues, its flushes and its acknowledgements.

A broker that works appends record after record, dispatches in the order of the log, acknowledges and serves what is
there, and flushes whole records. All of this can be seen in columns. A stream that does so keeps NodeCoherent,
QueueMatchesLog, DurableAck, NeverServeUnflushed and FlushedInTime, as far as they read its steps. Anything else (a
crash, a rolled file, a check round, or a mistake) ends the screening: the oracles look at that broker themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import REMEMBERED_MAX
from refmq.verify.oracles.coherence import STEPS
from refmq.verify.oracles.polls import FLUSH_NS_MAX
from refmq.verify.spark.columns import ACTION_CODE, I64, U64, Chunk, codes, mix

START: Final = ("StartStore", "ScanLog", "TruncateLog", "FinishRecovery")
BULK: Final = ("AppendMessage", "FlushLog", "AckPut", "DispatchMessage", "ServeMessage")
TABLES: Final = (
    *("CommitOffset", "PersistOffsets", "LockQueue", "UnlockQueue", "LoanExpire", "Heartbeat", "Leave", "RemoveMember"),
)
"""Steps that NodeCoherent judges by themselves, whatever the log does."""
TRANSACTIONS: Final = (
    *("SendHalf", "EndTransaction", "WriteOp", "RoundStart", "PullOps", "HalfRemoved", "HalfDiscard", "HalfImmune"),
    *("HalfRenewAndCheck", "RoundFinish", "RoundAbort", "PersistProgress", "ImmunityOver"),
)
"""Steps that it judges by themselves and by what stands in the topics of transactions."""
OWN_TOPICS: Final = ("RMQ_SYS_TRANS_", "TRANS_CHECK_MAX_TIME_TOPIC")
"""What those begin with."""
OTHERS: Final = tuple(sorted(set(STEPS) - {*START, *BULK, *TABLES, *TRANSACTIONS}))
"""Steps that it judges together with the log: they end the screening."""


class Irregular(Exception):
    """The stream is not plainly regular; why."""


@dataclass(slots=True)
class Records:
    """Records of the log that are remembered, in its order."""

    at: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    size: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    queue: U64 = field(default_factory=lambda: np.empty(0, np.uint64))
    offset: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    message: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    position: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    """Where their events stand in the stream."""
    at_ns: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    acked: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))

    def __len__(self) -> int:
        return len(self.at)

    def joined(self, chunk: Chunk, position: I64) -> Records:
        fresh = Records(
            chunk.column("a"),
            chunk.column("d").astype(np.int64),
            chunk.queue,
            chunk.column("b"),
            chunk.column("c"),
            position,
            chunk.column("at_ns"),
            np.zeros(len(chunk), np.bool_),
        )
        return fresh if not len(self) else Records(*(np.append(mine, new) for mine, new in self._pairs(fresh)))

    def _pairs(self, fresh: Records) -> list[tuple[NDArray[np.generic], NDArray[np.generic]]]:
        return [(getattr(self, name), getattr(fresh, name)) for name in self.__slots__]

    def since(self, first: int) -> Records:
        return Records(*(getattr(self, name)[first:] for name in self.__slots__))

    def find(self, at: I64) -> NDArray[np.intp]:
        """The number of the record that begins at each offset; `Irregular` where there is none."""
        numbers = np.searchsorted(self.at, at)
        if len(at) and (not len(self) or numbers.max() >= len(self) or (self.at[numbers] != at).any()):
            raise Irregular("there is no such record")
        return numbers


@dataclass(slots=True)
class BrokerScreen:
    """Screens one stream chunk by chunk."""

    flush_sync: bool
    settled: bool
    reason: str = ""
    """Why the stream is not regular; empty as long as it is."""
    commits_reason: str = ""
    """Why the offsets that it stored are not."""
    has_log: bool = False
    """Whether it has steps of a store at all."""
    started: int = 0
    """Steps of the start that were seen."""
    _records: Records = field(default_factory=Records)
    _dispatched: int = 0
    """How many of the records were dispatched."""
    _log_end: int = -1
    _flushed_to: int = 0
    _dispatched_to: int = 0
    _next_offset: dict[int, int] = field(default_factory=dict)
    _offsets: dict[int, int] = field(default_factory=dict)
    _seen: int = 0

    def feed(self, chunk: Chunk) -> None:
        if self.reason:
            return
        steps = chunk.only(chunk.outcome == Outcome.STEP)
        try:
            self._feed(steps)
        except Irregular as why:
            self.reason = str(why)

    def finish(self) -> None:
        """The stream has ended."""
        if not self.reason and self.settled and self._dispatched < len(self._records):
            self.reason = "a record was not dispatched"

    def _feed(self, steps: Chunk) -> None:
        if steps.is_world.any():
            raise Irregular("something struck it")
        others = steps.of(OTHERS)
        if others.any():
            raise Irregular(f"it took the step {steps.names.texts[steps.rows['action'][others][0]]}")
        self._start(steps)
        self._commits(steps)
        position = np.arange(self._seen, self._seen + len(steps))
        self._seen += len(steps)
        bulk = steps.of(BULK)
        if not bulk.any():
            return
        self.has_log = True
        if 0 < self.started < len(START):
            raise Irregular("the store was not open")
        log = _Log(self, steps.only(bulk), position[bulk])
        log.append()
        log.flush()
        log.dispatch()
        log.acknowledge()
        log.serve()
        self._no_record_waits(int(steps.rows["at_ns"][-1]))
        self._forget()

    def _no_record_waits(self, now_ns: int) -> None:
        """Without synchronous flush the oldest record that is not durable yet is young enough."""
        records = self._records
        first = int(np.searchsorted(records.at + records.size, self._flushed_to, side="right"))
        if not self.flush_sync and first < len(records) and now_ns - int(records.at_ns[first]) > FLUSH_NS_MAX:
            raise Irregular("a record is not flushed for long")

    def _commits(self, steps: Chunk) -> None:
        """Each offset that is stored follows the one before it, and none goes back."""
        # Rounds commit offsets of their own; NodeCoherent looks at those with the rounds.
        own = np.isin(steps.rows["subject"], steps.names.numbers_with(OWN_TOPICS))
        rows = steps.only(steps.of(("CommitOffset",)) & ~own)
        if not len(rows) or self.commits_reason:
            return
        try:
            first = -1 if self.started == len(START) else None
            before, after = rows.column("a"), rows.column("b")
            chained(pair_key(rows.actor, rows.queue), before, after, self._offsets, "an offset does not follow", first)
            if (after < before).any():
                raise Irregular("an offset goes back")
        except Irregular as why:
            self.commits_reason = str(why)

    def _start(self, steps: Chunk) -> None:
        """The steps of a first start stand at the beginning, in their order, and agree with each other."""
        for row in steps.rows[steps.of(START)]:
            action = steps.names.texts[row["action"]]
            if self.started == len(START) or action != START[self.started] or len(self._records) or self._seen:
                raise Irregular(f"{action} after its start")
            a, b = int(row["a"]), int(row["b"])
            match action:
                case "StartStore" if a != 1:
                    raise Irregular("it starts after a crash")
                case "ScanLog":
                    if a != 0:
                        raise Irregular("its log has more than one file")
                    self._log_end = b
                case "TruncateLog" if a != self._log_end:
                    raise Irregular("recovery cuts the log")
                case "FinishRecovery":
                    if a != self._log_end or b != 0:
                        raise Irregular("recovery ends elsewhere")
                    self._flushed_to = self._dispatched_to = a
            self.started += 1

    def _forget(self) -> None:
        """Keeps as many records as an oracle remembers, and all that wait to be dispatched."""
        beyond = min(len(self._records) - REMEMBERED_MAX, self._dispatched)
        if beyond > REMEMBERED_MAX // 4:
            self._records = self._records.since(beyond)
            self._dispatched -= beyond


class _Log:
    """The steps of one chunk that are about the log, checked against what came before."""

    def __init__(self, screen: BrokerScreen, steps: Chunk, position: I64) -> None:
        self.screen = screen
        self.steps = steps
        self.position = position
        self.flush_positions = np.empty(0, np.int64)
        self.flushes = np.empty(0, np.int64)
        self.dispatch_positions = np.empty(0, np.int64)
        self.dispatch_ends = np.empty(0, np.int64)

    def _of(self, action: str) -> tuple[Chunk, I64]:
        chosen = self.steps.action == ACTION_CODE[action]
        return self.steps.only(chosen), self.position[chosen]

    def append(self) -> None:
        screen = self.screen
        rows, position = self._of("AppendMessage")
        if not len(rows):
            return
        at, size = rows.column("a"), rows.column("d").astype(np.int64)
        if screen._log_end < 0:
            screen._log_end = screen._flushed_to = screen._dispatched_to = int(at[0])
        ends = at + size
        if at[0] != screen._log_end or (at[1:] != ends[:-1]).any():
            raise Irregular("a record does not begin where the log ended")
        screen._log_end = int(ends[-1])
        chained(rows.queue, rows.column("b"), rows.column("b") + 1, screen._next_offset, "a queue has a hole")
        screen._records = screen._records.joined(rows, position)

    def flush(self) -> None:
        screen = self.screen
        rows, position = self._of("FlushLog")
        if not len(rows):
            return
        to = rows.column("a")
        if to[0] < screen._flushed_to or (np.diff(to) < 0).any():
            raise Irregular("a flush goes back")
        records = screen._records
        if len(records):
            ends = records.at + records.size
            last = np.searchsorted(records.position, position)  # records appended before each flush
            number = np.searchsorted(ends, to)
            inside = number < len(ends)
            is_end = np.zeros(len(to), np.bool_)
            is_end[inside] = (ends[number[inside]] == to[inside]) & (number[inside] < last[inside])
            is_end |= to <= records.at[0]
            if not is_end.all():
                raise Irregular("a flush ends inside a record, or beyond the log")
            self._in_time(rows, number, inside)
        elif (to > screen._flushed_to).any():
            raise Irregular("a flush of nothing")
        self.flush_positions, self.flushes = position, np.maximum.accumulate(to)

    def _in_time(self, rows: Chunk, number: NDArray[np.intp], inside: NDArray[np.bool_]) -> None:
        """Without synchronous flush no record waits too long; the first one that a flush covers has waited longest."""
        records, screen = self.screen._records, self.screen
        if screen.flush_sync:
            return
        first = np.searchsorted(records.at, np.append(screen._flushed_to, rows.column("a")[:-1]))
        covered = inside & (first <= number)
        waited = rows.column("at_ns")[covered] - records.at_ns[first[covered]]
        if (waited > FLUSH_NS_MAX).any():
            raise Irregular("a record was flushed late")

    def flushed_at(self, position: I64) -> I64:
        """How far the log was durable when each of these events happened."""
        number = np.searchsorted(self.flush_positions, position)
        return np.append(self.screen._flushed_to, self.flushes)[number]

    def dispatch(self) -> None:
        screen, records = self.screen, self.screen._records
        rows, position = self._of("DispatchMessage")
        count = len(rows)
        if count:
            due = records.since(screen._dispatched)
            if count > len(due) or not (
                np.array_equal(rows.column("a"), due.at[:count])
                and np.array_equal(rows.column("b"), due.offset[:count])
                and np.array_equal(rows.column("d"), due.size[:count])
                and np.array_equal(rows.queue, due.queue[:count])
                and (position > due.position[:count]).all()
            ):
                raise Irregular("dispatch does not follow the log")
            ends = due.at[:count] + due.size[:count]
            if screen.flush_sync and (ends > self.flushed_at(position)).any():
                raise Irregular("a record is dispatched before it is flushed")
            screen._dispatched += count
            self.dispatch_positions, self.dispatch_ends = position, ends

    def dispatched_at(self, position: I64) -> I64:
        number = np.searchsorted(self.dispatch_positions, position)
        return np.append(self.screen._dispatched_to, self.dispatch_ends)[number]

    def acknowledge(self) -> None:
        screen, records = self.screen, self.screen._records
        rows, position = self._of("AckPut")
        if not len(rows):
            return
        number = records.find(rows.column("a"))
        is_same = (
            (records.queue[number] == rows.queue)
            & (records.offset[number] == rows.column("b"))
            & (records.message[number] == rows.column("c"))
            & (records.position[number] < position)
        )
        if not is_same.all():
            raise Irregular("another record is acknowledged")
        if records.acked[number].any() or len(np.unique(number)) < len(number):
            raise Irregular("a record is acknowledged twice")
        records.acked[number] = True
        ends = records.at[number] + records.size[number]
        if screen.flush_sync and (ends[rows.column("d") == 0] > self.flushed_at(position)[rows.column("d") == 0]).any():
            raise Irregular("a record is acknowledged before it is flushed")

    def serve(self) -> None:
        screen, records = self.screen, self.screen._records
        rows, position = self._of("ServeMessage")
        if len(rows):
            at, size = rows.column("a"), rows.column("d").astype(np.int64)
            if (at + size > self.dispatched_at(position)).any():
                raise Irregular("a record is served before it is dispatched")
            if screen.flush_sync and (at + size > self.flushed_at(position)).any():
                raise Irregular("a record is served before it is flushed")
            known = at >= (records.at[0] if len(records) else 0)
            number = records.find(at[known])
            is_same = (
                (records.queue[number] == rows.queue[known])
                & (records.offset[number] == rows.column("b")[known])
                & (records.message[number] == rows.column("c")[known])
                & (records.size[number] == size[known])
            )
            if not is_same.all():
                raise Irregular("another record is served")
        if len(self.flushes):
            screen._flushed_to = int(self.flushes[-1])
        if len(self.dispatch_ends):
            screen._dispatched_to = int(self.dispatch_ends[-1])


def chained(keys: U64, begins: I64, ends: I64, known: dict[int, int], why: str, first: int | None = None) -> None:
    """Each event of a key begins where the one before it ended: `Irregular` otherwise. The first one of a key begins
    anywhere, or at `first`."""
    order = np.argsort(keys, kind="stable")
    keys, begins, ends = keys[order], begins[order], ends[order]
    same = keys[1:] == keys[:-1]
    if (same & (begins[1:] != ends[:-1])).any():
        raise Irregular(why)
    starts = np.flatnonzero(np.append(True, ~same))
    stops = np.append(starts[1:], len(keys)) - 1
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        key, begin = int(keys[start]), int(begins[start])
        if begin != known.get(key, begin if first is None else first):
            raise Irregular(why)
        known[key] = int(ends[stop])


def pair_key(one: U64, other: U64) -> U64:
    return mix(one ^ mix(other))


assert set(codes(OTHERS)).isdisjoint(codes(BULK))
