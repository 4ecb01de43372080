"""A cluster in closed form: each broker has a producer and a consumer, and everything comes in rounds.

In a round a producer sends `depth` messages to each of the `queues` of its broker. The broker appends them, flushes
its log once, dispatches and acknowledges them; then the consumer pulls each queue, gets the `depth` messages and
commits. All numbers of a round follow from its number, so any stretch of any stream is made by itself, in numpy, at
millions of events a second, and 10^9 events need no disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from refmq.trace.columns import record_dtype
from refmq.trace.record import KIND_EVENT, Outcome
from refmq.verify.spark.columns import mix

RECORD_BYTES: Final = 256
"""Of each message in the log."""
BEGIN_NS: Final = 1_700_000_000_000_000_000
MS: Final = 1_000_000
US: Final = 1_000
TOPIC: Final = "orders"
GROUP: Final = "billing"

BROKER, PRODUCER, CONSUMER = "broker", "producer", "consumer"
KINDS: Final = (BROKER, PRODUCER, CONSUMER)
Rows = NDArray[np.void]

START: Final = ("StartStore", "ScanLog", "TruncateLog", "FinishRecovery")
STRINGS: Final = (
    *("AppendMessage", "FlushLog", "DispatchMessage", "AckPut", "ServeMessage", "CommitOffset", *START),
    *("Send", "Pull"),
)


@dataclass(frozen=True, slots=True)
class _Event:
    """One event of each round: what it holds in round 0, and what is added for each round."""

    at_ns: int
    action: str
    outcome: int = 0
    queue_id: int = -1
    a: tuple[int, int] = (0, 0)
    b: tuple[int, int] = (0, 0)
    c: tuple[int, int] = (0, 0)
    d: int = 0
    message: int = -1
    """Which message of the round is in `c`."""
    operation: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Cluster:
    """The shape of a cluster."""

    brokers: int = 4
    queues: int = 64
    """Of each broker."""
    depth: int = 4
    """Messages of a queue in a round."""
    seed: int = 0

    @property
    def round_messages(self) -> int:
        return self.queues * self.depth

    @cached_property
    def round_ns(self) -> int:
        """Long enough for everything in a round, and a pause."""
        return (4 * self.round_messages + 16 * self.queues + 100) * US

    @cached_property
    def events(self) -> dict[str, tuple[_Event, ...]]:
        """The events of a round by the kind of node, in the order of their times."""
        made: dict[str, list[_Event]] = {kind: [] for kind in KINDS}
        self._sends(made)
        self._pulls(made)
        return {kind: tuple(sorted(events, key=lambda event: event.at_ns)) for kind, events in made.items()}

    @property
    def events_of_round(self) -> int:
        """Of one broker and its clients."""
        return sum(map(len, self.events.values()))

    def _place(self, number: int) -> tuple[int, tuple[int, int], tuple[int, int]]:
        """Queue, physical offset and queue offset of a message of a round."""
        row, queue = divmod(number, self.queues)
        return queue, (number * RECORD_BYTES, self.round_messages * RECORD_BYTES), (row, self.depth)

    def _sends(self, made: dict[str, list[_Event]]) -> None:
        count, size = self.round_messages, RECORD_BYTES
        flushed = count * US + 2 * US
        for number in range(count):
            queue, a, b = self._place(number)
            message = {"queue_id": queue, "message": number}
            record = {**message, "a": a, "b": b}
            operation = (number + 1, count)
            begin = number * US
            nobody_knows = {**message, "a": (-1, 0), "b": (-1, 0)}
            made[PRODUCER].append(_Event(begin, "Send", Outcome.INVOKE, operation=operation, **nobody_knows))  # type: ignore[arg-type]  # names and values of fields
            made[BROKER].append(_Event(begin + 500, "AppendMessage", d=size, **record))  # type: ignore[arg-type]  # the same
            dispatch = flushed + US + number * 500
            made[BROKER].append(_Event(dispatch, "DispatchMessage", queue_id=queue, a=a, b=b, d=size))
            ack = flushed + US + (count + number) * 500
            made[BROKER].append(_Event(ack, "AckPut", **record))  # type: ignore[arg-type]  # the same
            made[PRODUCER].append(_Event(ack + 200, "Send", Outcome.OK, operation=operation, **record))  # type: ignore[arg-type]  # the same
        made[BROKER].append(_Event(flushed, "FlushLog", a=(count * size, count * size)))

    def _pulls(self, made: dict[str, list[_Event]]) -> None:
        count, depth = self.round_messages, self.depth
        begin = count * 2 * US + 5 * US
        for queue in range(self.queues):
            at, operation = begin + queue * (8 + depth) * US, (2 * queue + 1, 2 * self.queues)
            where = {"queue_id": queue, "operation": operation}
            asked = {"a": (0, depth), "b": (-1, 0), "c": (-1, 0)}
            made[CONSUMER].append(_Event(at, "Pull", Outcome.INVOKE, **where, **asked))  # type: ignore[arg-type]  # the same
            for row in range(depth):
                number = row * self.queues + queue
                _, a, b = self._place(number)
                record = {"a": a, "b": b, "d": RECORD_BYTES, "message": number, "queue_id": queue}
                made[BROKER].append(_Event(at + US + row * 500, "ServeMessage", **record))  # type: ignore[arg-type]  # the same
                consumed = {**record, "operation": operation}
                made[CONSUMER].append(_Event(at + US + row * 500 + 250, "Pull", Outcome.CONSUMED, **consumed))  # type: ignore[arg-type]  # the same
            at += US + depth * 500
            answer = {"a": (0, depth), "b": (depth, depth), "c": (depth, depth)}
            made[CONSUMER].append(_Event(at, "Pull", Outcome.OK, **where, **answer))  # type: ignore[arg-type]  # the same
            commit = {"a": (0, depth), "b": (depth, depth), "queue_id": queue}
            operation = (2 * queue + 2, 2 * self.queues)
            made[CONSUMER].append(_Event(at + US, "CommitOffset", Outcome.INVOKE, operation=operation, **commit))  # type: ignore[arg-type]  # the same
            made[BROKER].append(_Event(at + 2 * US, "CommitOffset", **commit))  # type: ignore[arg-type]  # the same
            made[CONSUMER].append(_Event(at + 3 * US, "CommitOffset", Outcome.OK, operation=operation, **commit))  # type: ignore[arg-type]  # the same


def message_numbers(seed: int, broker: int, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The fingerprints of a broker's messages."""
    base = np.uint64(((seed + 1) * 0x9E3779B97F4A7C15 + broker * 0xD1B54A32D192ED03) & 0xFFFF_FFFF_FFFF_FFFF)
    return np.asarray((mix(numbers.astype(np.uint64) + base) >> np.uint64(1)).astype(np.int64), np.int64)


@dataclass(frozen=True)
class Node:
    """One node of a cluster: its names, and its events."""

    cluster: Cluster
    kind: str
    broker: int

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.broker}"

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The strings of the stream; number 0 is empty and number 1 the node."""
        broker = f"{BROKER}-{self.broker}"
        actor = {BROKER: GROUP, PRODUCER: f"shop@{self.name}.1", CONSUMER: f"{GROUP}@{self.name}.1"}[self.kind]
        subject = TOPIC if self.kind == BROKER else f"{TOPIC}@{broker}"
        return ("", self.name, actor, subject, *STRINGS)

    @cached_property
    def _template(self) -> dict[str, NDArray[np.int64]]:
        numbers = {text: number for number, text in enumerate(self.texts)}
        events = self.cluster.events[self.kind]
        columns = {
            "at_ns": [event.at_ns for event in events],
            "action": [numbers[event.action] for event in events],
            "outcome": [event.outcome for event in events],
            "queue_id": [event.queue_id for event in events],
            "d": [event.d for event in events],
            "message": [event.message for event in events],
            "actor": [self._actor(event) for event in events],
            "subject": [3 if event.queue_id >= 0 else 0 for event in events],
        }
        for name in ("a", "b", "c", "operation"):
            columns[name] = [getattr(event, name)[0] for event in events]
            columns[f"{name}_step"] = [getattr(event, name)[1] for event in events]
        return {name: np.array(values, np.int64) for name, values in columns.items()}

    def _actor(self, event: _Event) -> int:
        return 2 if self.kind != BROKER or event.action == "CommitOffset" else 0

    @property
    def events_of_round(self) -> int:
        return len(self.cluster.events[self.kind])

    def prologue(self) -> Rows:
        """What stands before the first round: a broker starts."""
        names = START if self.kind == BROKER else ()
        rows = np.zeros(len(names), record_dtype())
        rows["kind"] = KIND_EVENT
        rows["action"] = [self.texts.index(name) for name in names]
        rows["sequence"] = np.arange(len(names))
        rows["at_ns"] = BEGIN_NS - (len(names) - np.arange(len(names))) * US
        rows["queue_id"] = -1
        rows["a"][:1] = 1
        return rows

    def rounds(self, first: int, last: int) -> Rows:
        """The events of some rounds."""
        template, number = self._template, np.arange(first, last, dtype=np.int64)[:, None]
        rows = np.zeros((last - first, self.events_of_round), record_dtype())
        rows["kind"] = KIND_EVENT
        for name in ("outcome", "action", "d", "actor", "subject", "queue_id"):
            rows[name] = template[name]
        rows["at_ns"] = template["at_ns"] + (BEGIN_NS + number * self.cluster.round_ns)
        for name in ("a", "b", "operation"):
            rows[name] = template[name] + number * template[f"{name}_step"]
        plain = template["c"] + number * template["c_step"]
        messages = number * self.cluster.round_messages + template["message"]
        fingerprints = message_numbers(self.cluster.seed, self.broker, messages)
        rows["c"] = np.where(template["message"] >= 0, fingerprints, plain)
        sequence = len(self.prologue()) + first * self.events_of_round + np.arange(rows.size)
        rows["sequence"] = (sequence & 0xFFFF_FFFF).reshape(rows.shape)
        if first == 0:  # nothing was committed before
            is_commit = np.isin(template["action"], [self.texts.index("CommitOffset")])
            rows["a"][0, is_commit] = -1
        return rows.reshape(-1)
