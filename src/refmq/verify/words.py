"""Lines of a trace in words, for witnesses and reports."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from refmq.model.vocabulary import fields_of
from refmq.trace.record import Outcome
from refmq.verify.oracles import Line

AROUND_MAX: Final = 6
"""Lines of a witness."""
PASSED_MAX: Final = 3
"""... of which so many tell what a pull passed over."""
PULLS: Final = ("Pull", "PullFiltered")
STORED: Final = (("AppendMessage", Outcome.STEP), ("Send", Outcome.OK), ("SendBatch", Outcome.OK))
LOOK_BACK: Final = 4096
"""So many lines before the one that shows a finding are looked at for what belongs to it."""


def stamp(at_ns: int) -> str:
    """A time for people: UTC with microseconds."""
    seconds, rest_ns = divmod(at_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ns // 1000:06}Z"


def in_words(line: Line) -> str:
    """One line: when, who did what, where, and its numbers under the names of the vocabulary."""
    outcome = Outcome(line.outcome)
    parts = [stamp(line.at_ns), line.node, line.action]
    if outcome is not Outcome.STEP:
        parts.append(f"{outcome.name.lower()}#{line.operation}")
    if line.actor:
        parts.append(f"by {line.actor}")
    if line.subject:
        parts.append(f"on {line.subject}" + (f"/{line.queue_id}" if line.queue_id >= 0 else ""))
    names = fields_of(line.action, outcome.name.lower())
    for position, value in enumerate((line.a, line.b, line.c, line.d)):
        name = names[position] if position < len(names) else ""
        if name:
            parts.append(f"{name}={value:#x}" if name == "message" else f"{name}={value}")
        elif value:
            parts.append(f"{'abcd'[position]}={value}")
    return " ".join(parts)


def message_of(line: Line) -> int | None:
    """The message that a line is about."""
    names = fields_of(line.action, Outcome(line.outcome).name.lower())
    return (line.a, line.b, line.c, line.d)[names.index("message")] if "message" in names else None


def belongs_to(other: Line, shown: Line) -> bool:
    """Whether a line helps to understand another one: the same message, the same place, or the same operation."""
    message = message_of(shown)
    if message is not None and message_of(other) == message:
        return True
    if shown.outcome != Outcome.STEP and (other.actor, other.operation) == (shown.actor, shown.operation):
        return True
    return bool(shown.queue_id >= 0 and other.queue == shown.queue and abs(other.b - shown.b) <= 1)


def passed_over(pull: Line, before: Iterable[Line]) -> list[Line]:
    """What was stored in the stretch that an answered pull passed, and did not come with it."""
    if pull.action not in PULLS or pull.outcome != Outcome.OK:
        return []
    own = [other for other in before if other.queue == pull.queue and pull.a <= other.b < pull.b]
    came = {other.b for other in own if (other.actor, other.operation) == (pull.actor, pull.operation)}
    return [other for other in own if (other.action, other.outcome) in STORED and other.b not in came]


def witness_of(line: Line, before: Sequence[Line]) -> tuple[Line, ...]:
    """A line with some of those before it that belong to it, in their order."""
    numbers = {id(other): number for number, other in enumerate(before)}
    first = passed_over(line, before)[:PASSED_MAX]
    related = [other for other in before if belongs_to(other, line) and other not in first]
    chosen = [*first, *related[-(AROUND_MAX - 1 - len(first)) :]]
    return (*sorted(chosen, key=lambda other: numbers[id(other)]), line)


def witnesses(
    lines: Iterable[Line], numbers: Sequence[int], witnessed: int
) -> dict[int, tuple[Line, tuple[Line, ...]]]:
    """The lines with these numbers; the first ones with the lines before them that belong to them, and themselves."""
    wanted, found = set(numbers), dict[int, tuple[Line, tuple[Line, ...]]]()
    told = set(numbers[:witnessed])
    before: deque[Line] = deque(maxlen=LOOK_BACK)
    for number, line in enumerate(lines):
        if number in wanted:
            found[number] = (line, witness_of(line, before) if number in told else ())
            if len(found) == len(wanted):
                break
        before.append(line)
    return found
