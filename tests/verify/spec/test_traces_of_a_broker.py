"""Traces of the reference broker are behaviours of TransactionCheckBack, and doctored ones are not."""

from __future__ import annotations

import pytest

from refmq.broker.transactions import Decision
from refmq.model.step import Event
from refmq.model.vocabulary import TRANSACTION_CHECK_BACK as PROTOCOL
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.tlc import Tlc
from refmq.verify.spec.traces import TraceEvent, validate_events
from tests.broker.halves import beat, checks, end, send_half
from tests.broker.harness import Harness, run
from tests.verify.spec.helpers import SPEC

OPTIONS = RunOptions(timeout_s=240)
FIELDS = {action.name: action.fields for action in PROTOCOL.actions}
SLOTS = ("a", "b", "c", "d")


def recorded(events: list[Event]) -> list[TraceEvent]:
    """The events of the protocol, as a trace file gives them; messages are numbered as they appear."""
    numbers: dict[int, int] = {}
    found: list[TraceEvent] = []
    for event in events:
        if event.action not in FIELDS:
            continue
        row: TraceEvent = {"action": event.action, "actor": event.actor, "subject": event.subject, "queue_id": 0}
        for slot, name in zip(SLOTS, FIELDS[event.action], strict=False):
            value = getattr(event, slot)
            row[name] = numbers.setdefault(value, len(numbers) + 1) if name == "message" else value
        found.append(row)
    return found


@pytest.fixture(scope="module")
def trace() -> list[TraceEvent]:
    """A broker with three transactions: committed at once, committed after a check-back, and never decided."""
    world = Harness()
    beat(world)
    first = send_half(world, "k0")
    send_half(world, "k1")
    end(world, first, Decision.COMMIT, "k0")
    world.now += 60_000
    world.round(check_max=15)
    send_half(world, "k2")
    ((header, _),) = checks(world)
    end(world, (header.tran_state_table_offset, header.commit_log_offset), Decision.ROLLBACK, "k1")
    for _ in range(2):
        world.now += 60_000
        world.round(check_max=15)
        run(world.store.flush())
        world.rounds.persist_progress()
    return recorded(world.events)


@pytest.mark.jdk
def test_a_trace_of_our_broker_is_a_behaviour_of_the_specification(tlc: Tlc, trace: list[TraceEvent]) -> None:
    answer = validate_events(tlc, SPEC, "TransactionCheckBack", trace, OPTIONS)
    assert answer.accepted, answer.reason
    assert answer.states == answer.events + 1


def _at(trace: list[TraceEvent], action: str, number: int = 0) -> int:
    return [index for index, event in enumerate(trace) if event["action"] == action][number]


@pytest.mark.jdk
@pytest.mark.parametrize("change", ["an op is missing", "a wrong half offset", "progress too far", "a changed mind"])
def test_a_trace_with_a_wrong_event_is_refused(tlc: Tlc, trace: list[TraceEvent], change: str) -> None:
    wrong = [dict(event) for event in trace]
    match change:
        case "an op is missing":
            del wrong[_at(wrong, "WriteOp")]
        case "a wrong half offset":
            wrong[_at(wrong, "HalfRenewAndCheck")]["new_offset"] = 7
        case "progress too far":
            wrong[_at(wrong, "RoundFinish", 1)]["half_offset"] = 9
        case _:
            decided = wrong[_at(wrong, "EndTransaction")]
            wrong.append({**decided, "decision": 12})
    answer = validate_events(tlc, SPEC, "TransactionCheckBack", wrong, OPTIONS)
    assert not answer.accepted
    assert answer.failed_at is not None
