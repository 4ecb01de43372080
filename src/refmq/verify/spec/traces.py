r"""Validating a recorded trace: its events become a constant of TraceX, and TLC looks for a behaviour with all of them.

TLC 2.15 cannot read JSON, so a module is generated that extends TraceX:

    ---- MODULE TraceXRun ----
    EXTENDS TraceX
    RecordedEvents == << [action |-> "AppendMessage", ..., physical_offset |-> 0, ...], ... >>
    TraceUnfinished == taken < Len(Events)
    TellTaken == PrintT(<<"taken", taken>>)

and the configuration of TraceX gets `CONSTANT Events <- RecordedEvents` and, as its last invariant, TraceUnfinished.
A trace is accepted exactly when that last invariant is violated: some behaviour of the specification took every event
and kept every other invariant on the way. Otherwise the largest number that TellTaken printed (it is a constraint, and
always true) says which event could not be taken.

A record has `action`, `actor`, `subject`, `queue_id` and the fields that the vocabulary names for its action. TLC
computes with 32 bits, so values that only identify (`message`, `tags_code`) are renumbered from 1 in order of
appearance, and times (`..._ms`) are replaced by their rank. Zero stays zero.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from refmq.errors import UsageError
from refmq.model import vocabulary
from refmq.trace.reader import SUFFIX as TRACE_SUFFIX
from refmq.trace.reader import read_file as read_trace_file
from refmq.verify.spec.catalogue import find_configurations, library
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.counterexample import render, steps_of
from refmq.verify.spec.tlc import Found, Outcome, Tlc, run_tlc

TraceEvent = dict[str, int | str]

COMMON_TEXT_FIELDS = ("actor", "subject")
SLOTS = ("a", "b", "c", "d")
IDENTITY_FIELDS = frozenset({"message", "tags_code"})
TLC_INTEGER_MAX = 2**31 - 1
TAKEN = re.compile(r'<<"taken", (\d+)>>')
OF_ONE_GROUP = "Rebalance"
"""The protocol of one group and topic, with its clients: no node records that in one file."""
EVENTS_MAX = 100_000  # TLC is for small traces; `refmq verify` handles large ones


@dataclass(frozen=True, slots=True)
class TraceAnswer:
    """Whether a trace is a behaviour of its specification."""

    accepted: bool
    events: int
    states: int
    reason: str = ""
    failed_at: int | None = None
    """Number of the first event that does not fit, from 1."""
    explanation: str = ""

    def to_json(self) -> dict[str, object]:
        return {
            "accepted": self.accepted,
            "events": self.events,
            "states": self.states,
            "reason": self.reason,
            "failed_at": self.failed_at,
        }


def validate_trace(
    tlc: Tlc, spec_dir: Path, protocol: str, path: Path, options: RunOptions, config: str = ""
) -> TraceAnswer:
    """Read a trace file and check it with TraceX, using the configuration `trace` or another one of that module."""
    return validate_events(tlc, spec_dir, protocol, read_events(path, protocol), options, config)


def validate_events(
    tlc: Tlc, spec_dir: Path, protocol: str, events: Sequence[TraceEvent], options: RunOptions, config_name: str = ""
) -> TraceAnswer:
    """Check events with TraceX."""
    found = [one for one in find_configurations(spec_dir, "Trace") if one.protocol == protocol]
    wanted = config_name or "trace"
    chosen = [one for one in found if wanted in (one.name, one.name.rpartition("/")[2])]
    if not chosen:
        known = ", ".join(one.name.rpartition("/")[2] for one in found) or "none"
        raise UsageError(f"{protocol} has no trace configuration {wanted}; there are: {known}")
    configuration = chosen[0]
    if not events:
        raise UsageError("the trace has no events")
    name = f"Trace{protocol}Run"
    with tempfile.TemporaryDirectory(prefix="refmq-trace-") as folder_name:
        folder = Path(folder_name)
        module = folder / f"{name}.tla"
        module.write_text(trace_module(protocol, events))
        outcome = run_tlc(
            tlc,
            module,
            configuration.text + "CONSTANT Events <- RecordedEvents\nCONSTRAINT TellTaken\nINVARIANT TraceUnfinished\n",
            arguments=["-workers", "1", "-deadlock"],
            folders=library(configuration.folder),
            heap=options.heap,
            short_lived=True,
            timeout_s=options.timeout_s or configuration.timeout_s,
        )
    return answer_of(outcome, protocol, events)


def answer_of(outcome: Outcome, protocol: str, events: Sequence[TraceEvent]) -> TraceAnswer:
    states = outcome.progress.distinct
    if outcome.found is Found.INVARIANT and outcome.name == "TraceUnfinished":
        return TraceAnswer(True, len(events), states)
    if outcome.found is Found.OK:
        at = 1 + max((int(match[1]) for match in map(TAKEN.fullmatch, outcome.printed) if match), default=0)
        assert 1 <= at <= len(events), "a trace that was taken to its end violates TraceUnfinished"
        event = events[at - 1]
        reason = f"event {at} of {len(events)} is not possible in {protocol}: {show_event(event)}"
        return TraceAnswer(False, len(events), states, reason, at)
    if outcome.found in {Found.INVARIANT, Found.ACTION_PROPERTY}:
        at = int(outcome.states[-1].variables.get("taken", "0")) if outcome.states else 0
        shown = show_event(events[at - 1]) if at >= 1 else "the initial state"
        reason = f"event {at} of {len(events)} violates {outcome.name}: {shown}"
        explanation = render(steps_of(outcome, protocol)[-3:], None)
        return TraceAnswer(False, len(events), states, reason, at, explanation)
    said = " ".join(" ".join(outcome.errors).split())[:500]
    return TraceAnswer(False, len(events), states, f"TLC ended with {outcome.found.value}: {said}")


def show_event(event: TraceEvent) -> str:
    fields = ", ".join(f"{name}={value}" for name, value in event.items() if name != "action" and value != "")
    return f"{event['action']}({fields})"


def read_events(path: Path, protocol: str) -> list[TraceEvent]:
    """Read a trace: the binary file that nodes record (`*.trace`), or JSON lines with one event each.

    In JSON the fields have the vocabulary's names, or are called a, b, c and d. Events of other protocols in a binary
    trace are skipped: a node records everything it does in one file.
    """
    if path.suffix == TRACE_SUFFIX:
        return read_binary_events(path, protocol)
    try:
        text = path.read_text()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text: a trace is one JSON object per line") from error
    events = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except json.JSONDecodeError as error:
            raise UsageError(f"{path}:{number}: not JSON: {error.msg}") from error
        try:
            events.append(read_event(data, protocol))
        except ValueError as error:
            raise UsageError(f"{path}:{number}: {error}") from error
        if len(events) > EVENTS_MAX:
            raise UsageError(f"{path} has more than {EVENTS_MAX} events; TLC is for small traces")
    return events


def read_binary_events(path: Path, protocol: str) -> list[TraceEvent]:
    """The events of one binary trace file that belong to the protocol."""
    if protocol == OF_ONE_GROUP:
        raise UsageError(
            f"{path} has the steps of every group and none of their clients; {protocol} takes those of one group as "
            "JSON lines. `refmq trace check` judges what a broker and its clients recorded"
        )
    known = fields_of(protocol)
    recorded = read_trace_file(path)
    if recorded.dropped_count or any(not damage.is_tail for damage in recorded.damage):
        raise UsageError(f"{path} is not complete: TLC needs every event")
    return [read_event(one.event._asdict(), protocol) for one in recorded.events if one.event.action in known]


def read_event(data: object, protocol: str) -> TraceEvent:
    """One event with the names of the vocabulary. ValueError says what is wrong with it."""
    if not isinstance(data, dict):
        raise ValueError("an event is a JSON object")
    name = data.get("action", data.get("step"))
    fields = fields_of(protocol).get(str(name))
    if fields is None:
        raise ValueError(f"{protocol} has no action {name!r}")
    event: TraceEvent = {"action": str(name)}
    for common in COMMON_TEXT_FIELDS:
        event[common] = str(data.get(common, ""))
    event["queue_id"] = whole(data.get("queue_id", -1), "queue_id")
    for slot, field_name in zip(SLOTS, fields, strict=False):
        event[field_name] = whole(data.get(field_name, data.get(slot, 0)), field_name)
    return event


def whole(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} is {value!r}, not a whole number")
    return value


def fields_of(protocol: str) -> dict[str, tuple[str, ...]]:
    """Action -> the names of its event's fields."""
    for known in vocabulary.PROTOCOLS:
        if known.module == protocol:
            return {action.name: action.fields for action in known.actions}
    raise UsageError(f"the vocabulary has no protocol {protocol}")


def shrink_numbers(events: Iterable[TraceEvent]) -> list[TraceEvent]:
    """Replace identities and times by small numbers; see the top of this module."""
    events = list(events)
    times = sorted({value for event in events for name, value in event.items() if is_time(name) and value} | set())
    ranks = {time: rank for rank, time in enumerate(times, start=1)}
    identities: dict[tuple[str, int | str], int] = {}
    counts: dict[str, int] = {}
    shrunk = []
    for event in events:
        small: TraceEvent = {}
        for name, value in event.items():
            if name in IDENTITY_FIELDS and value != 0:
                if (name, value) not in identities:
                    counts[name] = counts.get(name, 0) + 1
                    identities[name, value] = counts[name]
                value = identities[name, value]
            elif is_time(name) and value:
                value = ranks[value]
            if isinstance(value, int) and abs(value) > TLC_INTEGER_MAX:
                raise UsageError(f"{name} is {value} in {show_event(event)}, more than TLC's 32 bits hold")
            small[name] = value
        shrunk.append(small)
    return shrunk


def is_time(name: str) -> bool:
    return name.endswith("_ms")


def trace_module(protocol: str, events: Sequence[TraceEvent]) -> str:
    """The text of the generated module."""
    assert events, "a trace has events"
    records = ",\n    ".join(record(event) for event in shrink_numbers(events))
    name = f"Trace{protocol}Run"
    return (
        f"---- MODULE {name} ----\nEXTENDS Trace{protocol}, Integers, Sequences, TLC\n\n"
        f"RecordedEvents == <<\n    {records}\n>>\n\n"
        'TraceUnfinished == taken < Len(Events)\nTellTaken == PrintT(<<"taken", taken>>)\n====\n'
    )


def record(event: TraceEvent) -> str:
    return "[" + ", ".join(f"{name} |-> {literal(value)}" for name, value in event.items()) + "]"


def literal(value: int | str) -> str:
    if isinstance(value, int):
        return str(value)
    return '"' + "".join(c if c.isprintable() and c not in '"\\' and ord(c) < 128 else "?" for c in value) + '"'
