"""Promises about the record itself: nothing is missing or twice, and it has the form that the vocabulary says.

They hold of a trace that is complete. One in which events were dropped (the trace says so) is judged by the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from refmq.model.vocabulary import fields_of
from refmq.trace.record import Outcome
from refmq.verify.oracles.base import Finding, Line, Promises, Remembered
from refmq.verify.oracles.partition import Partition, oracle

NOT_KNOWN_YET: Final[dict[str, dict[str, int]]] = {
    "Send": {"a": -1, "b": -1},
    "SendBatch": {"a": -1, "b": -1},
    "SendHalf": {"b": -1},
    "Pull": {"c": -1},
    "QueryOffset": {"a": -1, "d": 0},
    "QueryKey": {"a": -1, "b": 0},
    "QueryBounds": {"a": -1, "b": -1},
    "QueryRoute": {"a": 0},
    "ViewRefresh": {"a": 0},
    "LockQueue": {"a": 0, "b": 0},
    "UnlockQueue": {"a": 0, "b": 0},
    "CommitOffset": {"d": 0},
    "Configure": {"b": 0, "d": 0},
    "Ask": {"d": 0},
    "EndTransaction": {"d": 0},
}
"""What an `invoke` holds where only the answer knows."""

NEVER_KNOWN: Final[dict[str, dict[str, int]]] = {
    **{name: NOT_KNOWN_YET[name] for name in ("Send", "SendBatch", "QueryBounds", "Configure", "Ask")},
    "SendHalf": {"a": -1, "b": -1},
    "Pull": {"b": -1, "c": -1},
    "PullFiltered": {"b": -1},
}
"""What operations hold when there was no answer, or a refusal."""

REPEATED: Final[dict[str, str]] = {
    "Send": "c",
    "SendBatch": "c",
    "SendHalf": "c",
    "SendDelayed": "abc",
    "SendBack": "abcd",
    "Pull": "a",
    "PullFiltered": "ac",
    "CommitOffset": "ab",
    "Configure": "a",
    "Ask": "a",
    "QueryKey": "c",
    "EndTransaction": "abc",
}
"""What an outcome holds of its `invoke`."""

ANSWERLESS: Final = ("EndTransaction", "CheckReply")
"""Sent one-way: there may be no outcome."""

NO_QUEUE: Final = frozenset(
    {
        *("QueryRoute", "QueryKey", "ViewRefresh", "Heartbeat", "Leave", "Notified", "RemoveMember"),
        *("RegisterBroker", "UnregisterBroker", "QueryDataVersion", "CloseBrokerChannel"),
    }
)
"""Operations and steps that are about no single queue."""


@oracle(Partition.WHOLE)
def well_formed(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """WellFormed: an event holds what the vocabulary says and nothing else, an outcome belongs to one `invoke`, and of
    every node each event is there, in its order.

    Times rise over all nodes, except those of a node whose clock was set.
    """
    if not promises.complete:
        return
    pairs = _Pairs()
    last_ns, set_clocks = 0, set[str]()
    sequences: dict[str, int] = {}
    for number, line in enumerate(lines):
        for sentence in (*_mistakes(line), *pairs.feed(line)):
            yield Finding("WellFormed", f"{line.action} of {line.actor or line.node}: {sentence}", number)
        if line.action == "JumpClock" and line.outcome == Outcome.STEP:
            set_clocks.add(line.node)
        if line.node not in set_clocks:
            if line.at_ns < last_ns:
                yield Finding("WellFormed", f"{line.action} of {line.node} is recorded after what came later", number)
            last_ns = max(last_ns, line.at_ns)
        if line.sequence >= 0:
            is_fault = line.outcome == Outcome.STEP and line.actor == line.node
            stream = "" if is_fault else line.node  # the world counts what it does itself
            expected = sequences.get(stream, -1) + 1
            if line.sequence not in (expected, 0) or (line.sequence == 0 and line.action == "" and not is_fault):
                yield Finding("WellFormed", f"event {line.sequence} of {line.node} follows {expected - 1}", number)
            sequences[stream] = line.sequence
    if promises.settled:
        for begun in pairs.without_outcome():
            yield Finding("WellFormed", f"{begun.action} {begun.operation} of {begun.actor} has no outcome", 0)


def _mistakes(line: Line) -> Iterator[str]:
    """What is wrong with a line alone."""
    names = fields_of(line.action, Outcome(line.outcome).name.lower())
    for position, letter in enumerate("abcd"):
        if (position >= len(names) or not names[position]) and getattr(line, letter):
            yield f"{letter} is {getattr(line, letter)}, and there is nothing to say there"
    expected: dict[str, int] = {}
    if line.outcome == Outcome.INVOKE:
        expected = NOT_KNOWN_YET.get(line.action, {})
    elif line.outcome in (Outcome.FAIL, Outcome.UNKNOWN):
        expected = NEVER_KNOWN.get(line.action, {})
    for letter, value in expected.items():
        if getattr(line, letter) != value:
            yield f"{letter} is {getattr(line, letter)} without an answer"
    if line.outcome == Outcome.OK:
        if line.action in ("CommitOffset", "QueryOffset") and line.status:
            yield f"a success with status {line.status}"
        is_yes = line.granted if line.action == "LockQueue" else line.found if line.action == "ViewRefresh" else 0
        if is_yes not in (0, 1):
            yield f"{is_yes} is neither yes nor no"
        if line.action in ("LockQueue", "UnlockQueue") and line.at_ms != line.at_ns // 1_000_000:
            yield f"it is recorded at another time than {line.at_ms}"
    if line.topic.startswith("RMQ_SYS_TRANS_") and line.queue_id != 0:
        yield f"there is no queue {line.queue_id}"
    if line.queue_id != -1 and (not line.subject or line.action in NO_QUEUE):
        yield f"it is about no queue, not {line.queue_id}"


class _Pairs:
    """Joins outcomes with what was invoked."""

    def __init__(self) -> None:
        self._open: Remembered[tuple[object, ...], Line] = Remembered()
        self._done: Remembered[tuple[object, ...], None] = Remembered()

    def feed(self, line: Line) -> Iterator[str]:
        if line.outcome == Outcome.STEP:
            if line.action in ("ProcessCrash", "PowerLoss"):
                for key in [key for key, begun in self._open.items() if begun.node == line.node]:
                    self._done[key] = None
                    del self._open[key]
            return
        if line.action == "Notified":
            return
        key = self._key(line)
        if line.outcome == Outcome.INVOKE:
            if key in self._open or key in self._done:
                yield "it is invoked twice"
            self._open[key] = line
        elif line.outcome == Outcome.CONSUMED:
            if key not in self._open:
                yield "a message without a pull"
        else:
            begun = self._open.pop(key, None)
            self._done[key] = None
            if begun is None:
                yield "an outcome without its beginning, or a second one"
            elif begun.queue != line.queue:
                yield f"it began on {begun.subject}/{begun.queue_id}"
            else:
                for letter in REPEATED.get(line.action, ""):
                    if getattr(begun, letter) != getattr(line, letter):
                        yield f"{letter} was {getattr(begun, letter)} when it began, and is {getattr(line, letter)}"

    def without_outcome(self) -> list[Line]:
        return [begun for begun in self._open.values() if begun.action not in ANSWERLESS]

    @staticmethod
    def _key(line: Line) -> tuple[object, ...]:
        more: object = line.message if line.action == "SendBatch" else None
        if line.action in ("LockQueue", "UnlockQueue"):  # one request may ask for several
            more = line.queue
        if line.action in ("QueryRoute", "ViewRefresh"):
            more = line.subject
        return line.actor, line.operation, line.action, more
