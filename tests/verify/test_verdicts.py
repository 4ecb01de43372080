"""What follows from findings, gaps and what a trace consists of."""

from __future__ import annotations

import pytest

from refmq.trace.record import Outcome
from refmq.verify.oracles import ORACLES, Finding, Line, Promises
from refmq.verify.recordings import Gap
from refmq.verify.verdicts import (
    MEANINGS,
    Census,
    Counting,
    Found,
    Judgement,
    Shown,
    Status,
    conclude,
    shown_of,
    why_not_judged,
)
from refmq.verify.words import in_words

Counts = dict[tuple[str, str, int], int]
CLIENTS: Counts = {
    ("c", "Send", Outcome.INVOKE): 3,
    ("c", "Send", Outcome.OK): 3,
    ("b", "AppendMessage", Outcome.STEP): 3,
}
GAP = Gap("b", "b.trace", "7 events were dropped", 7)


def judged(
    found: dict[str, Found], gaps: list[Gap], counts: dict[tuple[str, str, int], int] | None = None
) -> Judgement:
    return conclude("test", Census(counts or CLIENTS, 1, 2), Promises(), found, gaps)


def status(judgement: Judgement, name: str) -> Status:
    (verdict,) = [each for each in judgement.verdicts if each.invariant == name]
    return verdict.status


def finding(name: str, node: str, broker: str = "x") -> Found:
    return Found(1, (Shown(name, "something is wrong", node, broker),))


def test_without_findings_every_promise_is_kept() -> None:
    judgement = judged({}, [])
    assert {verdict.invariant for verdict in judgement.verdicts} == set(ORACLES)
    assert {verdict.status for verdict in judgement.verdicts} == {Status.KEPT}
    assert all(verdict.meaning for verdict in judgement.verdicts)
    assert set(ORACLES) <= set(MEANINGS)


def test_a_finding_breaks_its_promise_and_no_other() -> None:
    judgement = judged({"AckedSurvives": finding("AckedSurvives", "c")}, [])
    assert [verdict.invariant for verdict in judgement.broken] == ["AckedSurvives"]
    assert judgement.doubtful == []


@pytest.mark.parametrize(
    ("name", "node", "broker", "expected"),
    [
        ("NeverEarly", "b", "b", Status.UNKNOWN),
        ("NeverEarly", "c", "b", Status.UNKNOWN),
        ("NeverEarly", "c", "x", Status.BROKEN),
        ("NoInvention", "c", "x", Status.UNKNOWN),
        ("AckedSurvives", "c", "x", Status.UNKNOWN),
    ],
)
def test_what_a_missing_event_may_explain_is_unknown(name: str, node: str, broker: str, expected: Status) -> None:
    assert status(judged({name: finding(name, node, broker)}, [GAP]), name) is expected


def test_what_needs_all_events_is_unknown_with_a_gap() -> None:
    judgement = judged({}, [GAP])
    assert {verdict.invariant for verdict in judgement.doubtful} == {"SidesAgree", "WellFormed", "NodeCoherent"}


def test_what_nobody_recorded_is_not_judged() -> None:
    judgement = judged({}, [], {("b", "AppendMessage", Outcome.STEP): 3})
    not_judged = {each.invariant for each in judgement.verdicts if each.status is Status.NOT_JUDGED}
    assert not_judged == {"SidesAgree", "AnsweredWhenCalm", "CommittedOffsetMonotone", "NoInvention"}
    asynchronous = conclude("test", Census(CLIENTS, 1, 2), Promises(flush_sync=False), {}, [])
    assert status(asynchronous, "DurableAck") is Status.NOT_JUDGED


def test_a_census_counts_lines() -> None:
    counting = Counting()
    for at_ns in (5, 3, 9):
        counting.feed(Line("b", "FlushLog", Outcome.STEP, 0, at_ns, "", "", -1, 0, 0, 0, 0))
    census = counting.census()
    assert (census.total, census.first_ns, census.last_ns) == (3, 3, 9)
    assert census.has(["FlushLog"], [Outcome.STEP]) and not census.has_requests
    assert (census.count("FlushLog"), census.actions()) == (3, {"FlushLog"})


def test_a_finding_is_shown_with_its_line() -> None:
    line = Line("c", "Pull", Outcome.OK, 1, 7, "g@1", "t@b", 0, 0, 0, 0, 0, 4)
    shown = shown_of(Finding("SkippedPoll", "it skips", 3), line, (line,))
    assert (shown.node, shown.broker, shown.at_ns, shown.sequence, shown.witness) == ("c", "b", 7, 4, (in_words(line),))
    assert shown.plain == ("g@1 is to go on at offset 0 of t/0 at b, which ends at 0",)
    assert shown_of(Finding("SkippedPoll", "it skips", 3), None).node == ""


def test_what_no_client_noted_is_not_held_against_anybody() -> None:
    """Real clients note what they send and pull, and no heartbeats or commits."""

    def census(*events: tuple[str, Outcome]) -> Census:
        return Census({("n", action, int(outcome)): 1 for action, outcome in events}, 0, 1)

    life, send = ("StartStore", Outcome.STEP), ("Send", Outcome.INVOKE)
    beat, asked = ("Heartbeat", Outcome.STEP), ("Heartbeat", Outcome.INVOKE)
    for known, is_judged in (((life, send), True), ((life, send, beat), False), ((life, send, beat, asked), True)):
        assert (why_not_judged("SidesAgree", census(*known), Promises()) == "") == is_judged
    assert "no broker recorded its life" in why_not_judged("AnsweredWhenCalm", census(send), Promises())
    assert why_not_judged("AckedSurvives", census(send), Promises()) == ""
