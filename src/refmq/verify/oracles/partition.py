"""What an oracle is: a function over lines, and the key by which its lines may be judged apart from each other.

A trace of a day is too long for one process. Most promises speak of one queue, one message or one node at a time: the
lines with one key are judged by themselves, and what is found in all parts is what is found in the whole. A promise
says which key that is where it is defined:

    @oracle(Partition.QUEUE, shared=("FlushLog",))
    def acked_survives(lines, promises): ...

Beside its own lines each part needs some that have no such key: what the world did to anybody (always), and the actions
named in `shared`. They go to every part. `parts_of` splits a trace in this way; whoever splits it otherwise, over many
machines, needs `key_of` and `is_shared` only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, TypeAlias

from refmq.model.vocabulary import fields_of
from refmq.trace.record import Outcome
from refmq.verify.oracles.base import Finding, Line, Promises

Judge: TypeAlias = Callable[[Iterable[Line], Promises], Iterator[Finding]]
Key: TypeAlias = tuple[str | int, ...]


class Partition(StrEnum):
    """By which key the lines of a promise may be judged apart."""

    QUEUE = "queue"
    """Topic, broker and queue id."""
    MESSAGE = "message"
    """The message, wherever it is."""
    TRANSACTION = "transaction"
    """The half message, which is the name of its transaction."""
    GROUP = "group"
    """The consumer group, with all its members and queues."""
    NODE = "node"
    """The broker: its steps, and what clients did there."""
    WHOLE = "whole"
    """Not at all: all lines are one part."""


MEMBERSHIP: Final = frozenset({"Heartbeat", "Leave", "RemoveMember"})
"""Steps of a broker whose subject is the group; the actor is the client."""


class Oracle:
    """One promise: the function that judges it, and how its lines may be split."""

    __name__: str

    def __init__(self, judge: Judge, partition: Partition, shared: Iterable[str]) -> None:
        functools.update_wrapper(self, judge)
        self.judge: Final = judge
        self.partition: Final = partition
        self.shared: Final = frozenset(shared)
        """Actions whose lines every part needs, whatever their key."""

    def __call__(self, lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
        return self.judge(lines, promises)

    def is_shared(self, line: Line) -> bool:
        """Whether a line belongs to every part."""
        return line.action in self.shared or (line.outcome == Outcome.STEP and line.actor == line.node)

    def key_of(self, line: Line) -> Key | None:
        """The key of the part that a line belongs to; None if it belongs to none."""
        return KEYS[self.partition](line)


def oracle(partition: Partition, *, shared: Iterable[str] = ()) -> Callable[[Judge], Oracle]:
    """Says of a function by which key its promise may be judged."""
    return lambda judge: Oracle(judge, partition, shared)


def _group_of(line: Line) -> Key:
    is_membership = line.outcome == Outcome.STEP and line.action in MEMBERSHIP
    return (line.subject if is_membership else line.group,)


def _message_of(line: Line) -> Key | None:
    names = fields_of(line.action, Outcome(line.outcome).name.lower())
    return (line.message,) if "message" in names else None


KEYS: Final[dict[Partition, Callable[[Line], Key | None]]] = {
    Partition.QUEUE: lambda line: line.queue,
    Partition.MESSAGE: _message_of,
    Partition.TRANSACTION: _message_of,
    Partition.GROUP: _group_of,
    Partition.NODE: lambda line: (line.queue[1],),
    Partition.WHOLE: lambda line: (),
}
"""Partition -> the key of a line."""


def parts_of(lines: Sequence[Line], judged_by: Oracle) -> dict[Key, list[int]]:
    """The lines of each part, as numbers in their order."""
    keys = {key for line in lines if (key := judged_by.key_of(line)) is not None and not judged_by.is_shared(line)}
    parts: dict[Key, list[int]] = {key: [] for key in keys}
    for number, line in enumerate(lines):
        if judged_by.is_shared(line):
            for numbers in parts.values():
                numbers.append(number)
        elif (key := judged_by.key_of(line)) is not None:
            parts[key].append(number)
    return parts


def judge_in_parts(lines: Sequence[Line], judged_by: Oracle, promises: Promises) -> list[Finding]:
    """What an oracle finds in the parts of a trace; findings name lines of the whole."""
    found: dict[Finding, None] = {}
    for numbers in parts_of(lines, judged_by).values():
        for finding in judged_by([lines[number] for number in numbers], promises):
            found[Finding(finding.invariant, finding.sentence, numbers[finding.line])] = None
    return list(found)
