"""Judging recordings: everything that the nodes of a place recorded, by every protocol that it concerns.

Each broker's store is judged by StoreRecovery, its transactions by TransactionCheckBack, and its consumers, together
with what clients recorded, by Rebalance. TLC needs every event: a recording with dropped events, damage in the
middle or a number that is missing is refused. What a killed process did not write to its file any more is put back as
far as it shows (`unrecorded`).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from refmq.errors import UsageError
from refmq.trace.reader import TraceFile, read_file, trace_files
from refmq.trace.record import Outcome
from refmq.verify.spec import transaction_hints
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.group_hints import OF_CLIENTS, Told
from refmq.verify.spec.long_trace import CHECK_MAX, LongAnswer, judge_groups, judge_store, judge_transactions
from refmq.verify.spec.tlc import Tlc
from refmq.verify.spec.unrecorded import with_unrecorded

STORE: Final = "StoreRecovery"
TRANSACTIONS: Final = "TransactionCheckBack"
GROUPS: Final = "Rebalance"
PROTOCOLS: Final = (STORE, TRANSACTIONS, GROUPS)
NUMBERS: Final = 1 << 32
"""The events of a life are counted modulo this."""
OWN_TRANSACTIONS: Final = frozenset(transaction_hints.FIELDS) - {
    *transaction_hints.OF_THE_STORE,
    *("ProcessCrash", "PowerLoss"),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What TLC says about one protocol of one broker."""

    node: str
    protocol: str
    answer: LongAnswer


@dataclass(frozen=True, slots=True)
class Settings:
    """What a recording does not say of the broker."""

    sync_flush: bool = False
    check_max: int = CHECK_MAX


def read_recording(place: Path) -> list[Told]:
    """The steps of all nodes of a place, in the order of their clocks."""
    files = [(path, read_file(path)) for path in trace_files(place)]
    if not files:
        raise UsageError(f"There are no trace files in {place}.")
    by_node: dict[str, list[TraceFile]] = {}
    for path, file in files:
        if file.dropped_count or any(not damage.is_tail for damage in file.damage):
            raise UsageError(f"{path} is not complete: TLC needs every event")
        by_node.setdefault(file.node, []).append(file)
    nodes = [_steps_of(node, of_node) for node, of_node in sorted(by_node.items())]
    return [told for _, told in heapq.merge(*nodes, key=lambda one: one[0])]


def _steps_of(node: str, files: Sequence[TraceFile]) -> Iterator[tuple[int, Told]]:
    """The steps of one node in their order, each with a time that never goes back."""
    latest_ns, life_ns, expected = 0, -1, 0
    for file in sorted(files, key=lambda file: (file.head.life_ns, file.head.file_number)):
        if file.head.life_ns != life_ns:
            life_ns, expected = file.head.life_ns, 0
        wrong = out_of_order((recorded.sequence for recorded in file.events), expected)
        if wrong is not None:
            raise UsageError(f"the trace of {node} is not complete: event {wrong[0]} follows {wrong[1] - 1}")
        expected += len(file.events)
        for recorded in file.events:
            if recorded.outcome is Outcome.STEP:
                latest_ns = max(latest_ns, recorded.at_ns)
                yield latest_ns, Told(node, recorded.event)


def out_of_order(numbers: Iterable[int], expected: int = 0) -> tuple[int, int] | None:
    """The first event of a life that does not have the number that is its turn, and that number; None if all have."""
    for number in numbers:
        if number != expected % NUMBERS:
            return number, expected
        expected += 1
    return None


def brokers_of(recording: Sequence[Told]) -> list[str]:
    return sorted({told.node for told in recording if told.event.action == "StartStore"})


def judge_recording(
    tlc: Tlc,
    spec_dir: Path,
    recording: Sequence[Told],
    options: RunOptions,
    settings: Settings,
    protocols: Sequence[str] = PROTOCOLS,
) -> Iterator[Verdict]:
    """One verdict for each broker and each protocol that its events concern, as soon as it is known."""
    recording = with_unrecorded(recording)
    brokers = brokers_of(recording)
    if not brokers:
        raise UsageError("the recording has no start of a broker: TLC judges a trace from its beginning")
    for broker in brokers:
        events = [event for node, event in recording if node == broker]
        actions = {event.action for event in events}
        if STORE in protocols:
            answer = judge_store(tlc, spec_dir, events, options, sync_flush=settings.sync_flush)
            yield Verdict(broker, STORE, answer)
        if TRANSACTIONS in protocols and actions & OWN_TRANSACTIONS:
            answer = judge_transactions(
                tlc, spec_dir, events, options, sync_flush=settings.sync_flush, check_max=settings.check_max
            )
            yield Verdict(broker, TRANSACTIONS, answer)
        if GROUPS in protocols and _has_groups(actions):
            yield Verdict(broker, GROUPS, judge_groups(tlc, spec_dir, recording, broker, options))


def _has_groups(actions: set[str]) -> bool:
    return bool(actions & (OF_CLIENTS | {"Heartbeat", "CommitOffset", "LockQueue"}))
