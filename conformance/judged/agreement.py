"""Which judge notices what: TLC and the oracles on one run, with one event dropped, doubled, swapped or changed.

The run is that of `conformance.cluster.test_alterations`: clients, consumers, transactions and a restart of one broker.
Each kind of step of the broker is altered once in every way. What is not noticed by both judges is named in
`differences`; the table of the book is made from that, and a test computes it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from conformance.cluster.runner import run_history
from conformance.cluster.test_alterations import HISTORY
from conformance.judged.differences import NOBODY, NUMBERS, ORACLES, TLC
from refmq.model.step import Event
from refmq.model.vocabulary import fields_of
from refmq.trace.record import Outcome
from refmq.verify.oracles import Line, judge
from refmq.verify.spec import group_hints, store_hints, transaction_hints
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.group_hints import Told
from refmq.verify.spec.recordings import GROUPS, STORE, TRANSACTIONS, Settings, judge_recording, out_of_order
from refmq.verify.spec.tlc import Tlc as TlcProgram

SPEC: Final = Path(__file__).parents[2] / "spec"
BROKER: Final = "broker-a"
JUDGES: Final = {
    STORE: frozenset(store_hints.FIELDS),
    TRANSACTIONS: frozenset(transaction_hints.FIELDS) - {*transaction_hints.OF_THE_STORE},
    GROUPS: group_hints.OF_BROKERS - {"StartStore", "AppendMessage", "DispatchMessage"},
}
"""Protocol -> the events that its judge looks at for their own sake."""
SETTINGS: Final = Settings(sync_flush=HISTORY.setting.sync_flush, check_max=5)
OPTIONS: Final = RunOptions(timeout_s=120)


@cache
def recorded() -> tuple[Line, ...]:
    """The run, as the oracles read it."""
    run = run_history(HISTORY)
    assert run.violations == []
    return tuple(run.lines)


def of_tlc(lines: Sequence[Line]) -> list[Told]:
    """The same run, as TLC gets it."""
    return [
        Told(line.node, Event(line.action, line.actor, line.subject, line.queue_id, line.a, line.b, line.c, line.d))
        for line in lines
        if line.outcome == Outcome.STEP
    ]


def alterations(lines: Sequence[Line], at: int) -> Iterator[tuple[str, list[Line]]]:
    """Every way to alter the event at a place, by the names that its fields have."""
    line, before, after = lines[at], list(lines[:at]), list(lines[at + 1 :])
    yield "dropped", before + after
    yield "doubled", [*before, line, line, *after]
    following = next((place for place, other in enumerate(after) if other.node == line.node), None)
    if following is not None and after[following][1:] != line[1:]:
        swapped = [*after[:following], line, *after[following + 1 :]]
        yield "swapped", [*before, after[following], *swapped]
    for letter, name in zip("abcd", fields_of(line.action, "step"), strict=False):
        yield name, [*before, line._replace(**{letter: getattr(line, letter) + 1}), *after]
    if line.queue_id >= 0:
        yield "queue_id", [*before, line._replace(queue_id=line.queue_id + 1), *after]


def cases(lines: Sequence[Line]) -> Iterator[tuple[str, str, list[Line]]]:
    """Action, alteration and the altered run: the middle one of each kind of step of the broker."""
    places: dict[str, list[int]] = {}
    kinds = frozenset[str]().union(*JUDGES.values())
    for at, line in enumerate(lines):
        if line.node == BROKER and line.outcome == Outcome.STEP and line.action in kinds:
            places.setdefault(line.action, []).append(at)
    for action, found in sorted(places.items()):
        for what, altered in alterations(lines, found[(len(found) - 1) // 2]):
            yield action, what, altered


def is_numbered(lines: Sequence[Line]) -> bool:
    """Whether the events of each life of the broker have their numbers, as reading a recording demands."""
    lives: list[list[int]] = [[]]
    for line in lines:
        if line.node == BROKER and line.actor != BROKER:  # the world counts what it does itself
            if line.action == "StartStore":
                lives.append([])
            lives[-1].append(line.sequence)
    return all(out_of_order(life) is None for life in lives)


def noticed_by_tlc(tlc: TlcProgram, action: str, altered: Sequence[Line]) -> bool:
    """Whether TLC refuses the steps, whatever their numbers."""
    protocols = [protocol for protocol, kinds in JUDGES.items() if action in kinds]
    verdicts = judge_recording(tlc, SPEC, of_tlc(altered), OPTIONS, SETTINGS, protocols)
    return any(not verdict.answer.accepted for verdict in verdicts)


def noticed_by(tlc: TlcProgram, action: str, altered: Sequence[Line]) -> str:
    """Who notices; empty when both do."""
    by_steps, by_oracles = noticed_by_tlc(tlc, action, altered), bool(judge(altered))
    if by_oracles and not by_steps and not is_numbered(altered):
        return NUMBERS
    if by_steps and by_oracles:
        return ""
    return TLC if by_steps else ORACLES if by_oracles else NOBODY
