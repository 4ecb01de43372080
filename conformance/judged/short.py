"""The short trace modules beside the long ones: both judge the same runs, and the same runs with one event altered.

The short modules of TransactionCheckBack and Rebalance take the specification's own actions, one after the other, and
`[][Next]_vars` is checked along the way; the long ones (`refmq.verify.spec.long_trace`) keep only what is not settled.
A recording says more than the specification has words for, so the short trace is a translation:

| recorded                             | in a short trace                                                     |
|--------------------------------------|----------------------------------------------------------------------|
| `AppendMessage` to the topic         | `ProduceMessage`                                                     |
| `StopStore`                          | `ProcessCrash`: for the rounds a stop is one                         |
| `PersistProgress` that says nothing  | nothing: the specification has no step that changes nothing          |
| `ImmunityOver` after a crash         | nothing if it was over before: the broker finds out once more        |
| the rest of a group                  | what `refmq.verify.group_trace` makes of it                          |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from conformance.cluster import history as c
from conformance.cluster.runner import run_history as run_cluster
from conformance.group import history as g
from conformance.group.runner import run_history as run_group
from conformance.judged.agreement import BROKER, of_tlc
from refmq.model.step import Event
from refmq.model.vocabulary import REBALANCE, TRANSACTION_CHECK_BACK, fields_of
from refmq.verify.group_trace import group_trace
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.group_hints import Told
from refmq.verify.spec.long_trace import judge_groups, judge_transactions
from refmq.verify.spec.tlc import Tlc
from refmq.verify.spec.traces import TraceEvent, read_event, validate_events

SPEC: Final = Path(__file__).parents[2] / "spec"
OPTIONS: Final = RunOptions(timeout_s=240)
OF_TRANSACTIONS: Final = frozenset(action.name for action in TRANSACTION_CHECK_BACK.actions)
OF_GROUPS: Final = frozenset(action.name for action in REBALANCE.actions)
CHECKS_MAX: Final = 5
"""How often the brokers of a history ask about a half message (`conformance.cluster.runner`)."""
ROUNDS_ENOUGH: Final = 66
"""Events of transactions: so many of a run are judged, which is until a message was asked about often enough."""
AFTER_LEAVING: Final = 30
"""Events behind the first Leave of a run that are judged as well."""
GROUP, TOPIC, QUEUES = "g", "t", 2
HALVES = (c.Heartbeat(0), c.Heartbeat(1), c.AdvanceClock(100))


def short_transactions(run: Sequence[Told]) -> list[TraceEvent]:
    """The transactions of the broker, for TraceTransactionCheckBack."""
    found, saved, old, crashed = list[TraceEvent](), (0, 0), set[int](), False
    for node, event in run:
        if node != BROKER:
            continue
        match event.action:
            case "StopStore" | "ProcessCrash":
                event, crashed = Event("ProcessCrash"), True
            case "PersistProgress" if (event.a, event.b) == saved:
                continue
            case "PersistProgress":
                saved = event.a, event.b
            case "ImmunityOver" if crashed and event.a in old:
                continue
            case "ImmunityOver":
                old.add(event.a)
        if event.action in OF_TRANSACTIONS:
            found.append(read_event(event._asdict(), TRANSACTION_CHECK_BACK.module))
    return found


def short_group(run: Sequence[Told]) -> list[TraceEvent]:
    """The members of the group, for TraceRebalance."""
    told = []
    for _, event in run:
        if event.action == "AppendMessage" and event.subject == TOPIC:
            event = Event("ProduceMessage", f"{GROUP}@", TOPIC, event.queue_id, a=event.b)
        told.append(event)
    return [read_event(event._asdict(), REBALANCE.module) for event in group_trace(told, GROUP, TOPIC, QUEUES)]


@dataclass(frozen=True, slots=True)
class Subject:
    """A run that both modules of a protocol judge."""

    run: Callable[[], Sequence[Told]]
    short: Callable[[Tlc, Sequence[Told]], bool]
    long: Callable[[Tlc, Sequence[Told]], bool]
    concerns: Callable[[Told], bool]
    """Whether an event is one that both read."""


def transactions(*steps: c.Step) -> Subject:
    @cache
    def run() -> Sequence[Told]:
        made = run_cluster(c.History(c.Setting(seed=5, brokers=1, clients=2, queues=2), (*HALVES, *steps)))
        assert made.violations == []
        told = [one for one in of_tlc(made.lines) if one.node == BROKER]
        places = [at for at, one in enumerate(told) if one.event.action in OF_TRANSACTIONS]
        return told[: places[ROUNDS_ENOUGH]]

    def short(tlc: Tlc, told: Sequence[Told]) -> bool:
        events = short_transactions(told)
        return validate_events(tlc, SPEC, "TransactionCheckBack", events, OPTIONS, "trace_few_checks").accepted

    def long(tlc: Tlc, told: Sequence[Told]) -> bool:
        events = [event for _, event in told]
        return judge_transactions(tlc, SPEC, events, OPTIONS, sync_flush=False, check_max=CHECKS_MAX).accepted

    return Subject(run, short, long, lambda one: one.event.action in OF_TRANSACTIONS - {"FlushLog"})


def group(*, orderly: bool) -> Subject:
    @cache
    def run() -> Sequence[Told]:
        joins = (g.Join(0), g.Produce(0, 0, 3), g.Produce(0, 1, 2), g.AdvanceClock(5_000), g.Join(1))
        leaves = (g.AdvanceClock(25_000), g.Produce(0, 1, 2), g.Leave(0), g.AdvanceClock(10_000))
        setting = g.Setting(brokers=1, members=2, queues=QUEUES, orderly=orderly, seed=3)
        made = run_group(g.History(setting, (*joins, *leaves)))
        assert made.violations == []
        told = of_tlc(made.lines)
        left = next(at for at, one in enumerate(told) if one.event.action == "Leave")
        return told[: left + AFTER_LEAVING]

    def short(tlc: Tlc, told: Sequence[Told]) -> bool:
        name = "trace_our_client_orderly" if orderly else "trace_our_client"
        return validate_events(tlc, SPEC, "Rebalance", short_group(told), OPTIONS, name).accepted

    def long(tlc: Tlc, told: Sequence[Told]) -> bool:
        return judge_groups(tlc, SPEC, told, BROKER, OPTIONS).accepted

    def concerns(one: Told) -> bool:
        return one.event.action in OF_GROUPS and one.event.subject.partition("@")[0] in (TOPIC, GROUP)

    return Subject(run, short, long, concerns)


SUBJECTS: Final = {
    "decided and set aside": transactions(
        *(c.SendHalf(0), c.SendHalf(1, reply="rollback", decision="none")),
        *(c.SendHalf(1, decision="none", reply="none"), c.SendHalf(0, decision="rollback", ends=2)),
        *(c.AdvanceClock(3_100), c.SendHalf(0, ends=2), c.AdvanceClock(6_000)),
    ),
    "over a crash": transactions(
        *(c.SendHalf(0, ends=2), c.SendHalf(1, decision="none", reply="none")),
        *(c.SendHalf(1, decision="none", reply="commit"), c.AdvanceClock(1_500)),
        *(c.ProcessCrash(), c.RestartBroker(), c.AdvanceClock(2_500), c.SendHalf(0), c.AdvanceClock(5_000)),
    ),
    "concurrent": group(orderly=False),
    "orderly": group(orderly=True),
}


def alterations(run: Sequence[Told], at: int, concerns: Callable[[Told], bool]) -> Iterator[tuple[str, list[Told]]]:
    """Every way to alter the event at a place, by the names that its fields have."""
    told, before, after = run[at], list(run[:at]), list(run[at + 1 :])
    yield "dropped", before + after
    yield "doubled", [*before, told, told, *after]
    following = next((place for place, other in enumerate(after) if concerns(other)), None)
    if following is not None and after[following] != told:
        yield "swapped", [*before, after[following], *after[:following], told, *after[following + 1 :]]
    for letter, name in zip("abcd", fields_of(told.event.action, "step"), strict=False):
        changed = told.event._replace(**{letter: getattr(told.event, letter) + 1})
        yield name, [*before, Told(told.node, changed), *after]
    if told.event.queue_id >= 0:
        yield "queue_id", [*before, Told(told.node, told.event._replace(queue_id=told.event.queue_id + 1)), *after]


def cases(subject: Subject) -> Iterator[tuple[str, str, list[Told]]]:
    """Action, alteration and the altered run: the first and the middle one of each kind of step."""
    run, places = subject.run(), dict[str, list[int]]()
    for at, told in enumerate(run):
        if subject.concerns(told):
            places.setdefault(told.event.action, []).append(at)
    for action, found in sorted(places.items()):
        for at in sorted({found[0], found[(len(found) - 1) // 2]}):
            for what, altered in alterations(run, at, subject.concerns):
                yield action, what, altered


def different(tlc: Tlc, subject: Subject) -> dict[tuple[str, str], str]:
    """Action and alteration -> who alone refuses it: `short` or `long`."""
    found: dict[tuple[str, str], str] = {}
    for action, what, altered in cases(subject):
        by_short, by_long = subject.short(tlc, altered), subject.long(tlc, altered)
        if by_short is not by_long:
            alone = "long" if by_short else "short"
            known = found.setdefault((action, what), alone)
            assert known == alone, f"{action} {what} is refused by either alone"
    return found
