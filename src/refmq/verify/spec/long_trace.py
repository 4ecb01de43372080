"""Judging long traces: TLC follows a trace of any length, at the same cost for each event.

The events are not part of a module, which would take longer to parse than to judge. They are written to a file beside
it, and TraceEvents.java gives them to TLC one by one. Where there is no Java compiler a module has them after all.

    ---- MODULE TraceEvents ----
    EventCount == ...       the number of events
    EventAt(n) == ...       event number n, a record
    ====

A trace is accepted when TLC has taken every event. The first event that it could not take is the one after the last
state: such a module has one state for each event and no choice.
"""

from __future__ import annotations

import re
import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from refmq.errors import UsageError
from refmq.model import vocabulary
from refmq.model.step import Event
from refmq.verify.spec import store_hints, transaction_hints
from refmq.verify.spec.catalogue import BASE, TABLE, Configuration, find_configurations, library
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.group_hints import Told, hinted_groups, of_groups
from refmq.verify.spec.store_hints import Hinted, Row, hinted, numbers_of
from refmq.verify.spec.tlc import Found, Tlc, run_tlc
from refmq.verify.spec.transaction_hints import hinted_transactions

EVENTS_FILE: Final = "trace.events"
TAKEN: Final = re.compile(r'<<"taken", (\d+)>>')
CHECK_MAX: Final = 15
"""How often RocketMQ asks about a half message: transactionCheckMax."""


@dataclass(frozen=True, slots=True)
class LongAnswer:
    """Whether a long trace is a behaviour of its specification."""

    accepted: bool
    events: int
    seconds: float
    cpu_seconds: float
    reason: str = ""
    failed_at: int | None = None
    """Number of the first event of the trace that does not fit, from 1."""

    @property
    def events_per_second(self) -> float:
        return self.events / self.cpu_seconds if self.cpu_seconds else 0.0


def judge_store(
    tlc: Tlc, spec_dir: Path, events: Sequence[Event], options: RunOptions, *, sync_flush: bool
) -> LongAnswer:
    """Whether the steps of one store are a behaviour of StoreRecovery."""
    trace = [event for event in events if event.action in store_hints.FIELDS]
    if not trace:
        raise UsageError("the trace has no events of a store")
    made = hinted(trace)
    name = "long_trace" if sync_flush else "long_trace_async_flush"
    before = made.before
    constants = {
        "Queues": made.queues,
        "Base": before.base,
        "First": before.first,
        "From": before.scanned_from,
        "Begun": before.begun,
    }
    return judge_rows(tlc, spec_dir, f"store_recovery/{name}", made, constants, trace, options)


def judge_transactions(
    tlc: Tlc,
    spec_dir: Path,
    events: Sequence[Event],
    options: RunOptions,
    *,
    sync_flush: bool,
    check_max: int = CHECK_MAX,
) -> LongAnswer:
    """Whether the transactions of one broker are a behaviour of TransactionCheckBack."""
    trace = transaction_hints.of_transactions(events)
    if not trace:
        raise UsageError("the trace has no transactions")
    made = hinted_transactions(trace)
    constants = {"SyncFlush": sync_flush, "Base": made.base, "CheckMax": check_max}
    return judge_rows(tlc, spec_dir, "transaction_check_back/long_trace", made, constants, trace, options)


def judge_groups(tlc: Tlc, spec_dir: Path, trace: Sequence[Told], broker: str, options: RunOptions) -> LongAnswer:
    """Whether a broker and its consumers are a behaviour of Rebalance."""
    told = of_groups(trace, broker)
    if not told:
        raise UsageError("the trace has no consumers")
    groups = hinted_groups(told, broker)
    constants = {"Groups": groups.groups, "Places": groups.places, "Holdings": groups.holdings}
    constants["Older"] = any(event.action == "ScanLog" and event.b > 0 for event in first_start(trace, broker))
    events = [event for _, event in told]
    return judge_rows(tlc, spec_dir, "rebalance/long_trace", groups.made, constants, events, options)


def first_start(trace: Sequence[Told], broker: str) -> Iterator[Event]:
    """The events of a broker's first start."""
    for node, event in trace:
        if node == broker:
            yield event
            if event.action == "FinishRecovery":
                return


def judge_rows(
    tlc: Tlc,
    spec_dir: Path,
    configuration_name: str,
    made: Hinted,
    constants: Mapping[str, int],
    trace: Sequence[Event],
    options: RunOptions,
) -> LongAnswer:
    configuration = configuration_of(spec_dir, configuration_name)
    cfg = configuration.text + "".join(f"CONSTANT {name} = {str(value).upper()}\n" for name, value in constants.items())
    with tempfile.TemporaryDirectory(prefix="refmq-trace-") as folder_name:
        folder = Path(folder_name)
        module = folder / f"{configuration.module.stem}Run.tla"
        module.write_text(f"---- MODULE {module.stem} ----\nEXTENDS {configuration.module.stem}\n====\n")
        (folder / "TraceEvents.tla").write_text(STUB if tlc.runs_operators(options.heap) else spelled_out(made))
        (folder / EVENTS_FILE).write_bytes(encoded(made))
        outcome = run_tlc(
            tlc,
            module,
            cfg + "CONSTRAINT Tell\n",
            arguments=["-workers", "1", "-deadlock"],
            folders=library(configuration.folder),
            heap=options.heap,
            short_lived=True,
            timeout_s=options.timeout_s or configuration.timeout_s,
        )
    if outcome.found is not Found.OK:
        said = " ".join(" ".join(outcome.errors).split())[:500]
        reason = f"TLC ended with {outcome.found.value}: {said}"
        return LongAnswer(False, len(trace), outcome.seconds, outcome.cpu_seconds, reason)
    told = max((int(match[1]) for match in map(TAKEN.fullmatch, outcome.printed) if match), default=0)
    if told == len(made.rows):
        return LongAnswer(True, len(trace), outcome.seconds, outcome.cpu_seconds)
    taken = outcome.progress.distinct - 1
    assert taken < len(made.rows), "a line of states is as long as what was taken"
    at = made.rows[taken].source
    reason = f"event {at} of {len(trace)} is not possible: {shown(trace[at - 1])}"
    return LongAnswer(False, len(trace), outcome.seconds, outcome.cpu_seconds, reason, at)


def configuration_of(spec_dir: Path, name: str) -> Configuration:
    """A configuration by its full name. Reading all tables takes as long as judging a short trace: it is done once."""
    folder = spec_dir / name.partition("/")[0]
    return _configuration(spec_dir, name, tuple((folder / each).stat().st_mtime_ns for each in (BASE, TABLE)))


@cache
def _configuration(spec_dir: Path, name: str, changed_ns: tuple[int, ...]) -> Configuration:
    (found,) = [one for one in find_configurations(spec_dir, "Trace") if one.name == name]
    return found


STUB: Final = """---- MODULE TraceEvents ----
\\* What these stand for is in TraceEvents.java.
EventCount == 0
EventAt(n) == n
====
"""


def shown(event: Event) -> str:
    place = f" {event.subject}/{event.queue_id}" if event.queue_id >= 0 else ""
    names = [name for name in vocabulary.FIELDS[event.action] if name]
    values = ", ".join(f"{name}={value}" for name, value in zip(names, numbers_of(event), strict=False))
    return f"{event.action}{place} ({values})"


def encoded(made: Hinted) -> bytes:
    """The file that TraceEvents.java reads."""
    rows = made.rows
    kinds = {action: kind for kind, action in enumerate(dict.fromkeys(row.action for row in rows))}
    parts = [struct.pack(">i", len(kinds))]
    for action in kinds:
        names = made.names[action]
        parts += [text(action), struct.pack(">i", len(names)), *map(text, names)]
    parts.append(struct.pack(">i", len(rows)))
    for row in rows:
        numbers = (kinds[row.action], row.queue, *row.fields, *row.hints)
        parts.append(struct.pack(f">{len(numbers)}i", *numbers))
    return b"".join(parts)


def text(name: str) -> bytes:
    data = name.encode()
    return struct.pack(">H", len(data)) + data


def spelled_out(made: Hinted) -> str:
    """The module TraceEvents with the events in it."""
    records = ",\n    ".join(record(row, made.names[row.action]) for row in made.rows)
    return (
        "---- MODULE TraceEvents ----\nEXTENDS Integers, Sequences\n"
        f"Events == <<\n    {records}\n>>\nEventCount == Len(Events)\nEventAt(n) == Events[n]\n====\n"
    )


def record(row: Row, names: Sequence[str]) -> str:
    pairs = zip(names, (row.queue, *row.fields, *row.hints), strict=True)
    fields = (f"{name} |-> {literal(name, value)}" for name, value in pairs)
    return f'[action |-> "{row.action}", {", ".join(fields)}]'


def literal(name: str, value: int) -> str:
    return ("TRUE" if value else "FALSE") if name.startswith("by_") else str(value)
