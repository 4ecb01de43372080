from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.model import vocabulary
from refmq.trace.record import Outcome
from refmq.verify.oracles import NEED_INVOKES, ORACLES, Promises, judge, judge_group
from refmq.verify.oracles import base as oracle_base
from refmq.verify.oracles.transactions import asked_enough
from tests.verify.oracles.group_stories import GROUP_BAD, GROUP_GOOD
from tests.verify.oracles.lines import Paper
from tests.verify.oracles.stories import (
    CONSUMED,
    GOOD,
    INVOKE,
    OK,
    STEP,
    UNKNOWN,
    Lines,
    Told,
    acknowledged,
    after,
    asked_by_key,
    batch_at,
    bounded,
    broker_steps,
    changed,
    committed_and_told,
    counted,
    crashed_and_told,
    decided,
    delayed,
    delivered_late,
    dropped,
    filtered,
    filtered_wait,
    find,
    flushed_after,
    held_pull,
    refused_lock,
    routed,
    sent_back,
    stopped_while_waiting,
    story,
    swapped,
    told,
    told_by_both,
    viewed,
    waited,
)

GOOD_STORIES: list[Lines] = [
    committed_and_told(3),
    delayed(4),
    delayed(4, 5, crash=True),
    batch_at(4, 5, 6),
    batch_at(4, 5, crash=True),
    sent_back(0, "%RETRY%g"),
    sent_back(2, "%DLQ%g"),
    sent_back(0, None, loss=True),
    filtered(0b0010, True),
    filtered(0b1101, False),
    filtered(0b1101, False, known_first=False),
    routed(4),
    routed(0, wait_ms=500),
    routed(0, wait_ms=30_000, fault="StartStore"),
    routed(0, fault="ProcessCrash"),
    routed(4, fault="PowerLoss"),
    viewed(1),
    viewed(0, leave=True),
    viewed(0, death=True),
    viewed(0, wait_ms=150_000),
    told(is_told=True),
    told(is_told=True, leaves=True),
    refused_lock(lent=True, given_back=False),
    refused_lock(lent=False, given_back=False, restart=True),
    flushed_after(10_000),
    asked_by_key(1),
    bounded(0, 1),
    waited(5_000),
    waited(100, answer=20),
    filtered_wait(0b0010, 100),
    filtered_wait(0b1101, 5_000),
    crashed_and_told(5_000),
    crashed_and_told(25_000, fault="FailFlush"),
    crashed_and_told(5_000, fault="FullDisk", end="StopStore"),
    crashed_and_told(5_000, fault="FailFlush", end="FinishRecovery"),
    stopped_while_waiting(100),
    stopped_while_waiting(3_000, fault="Disconnect"),
    stopped_while_waiting(3_000, outcome=OK),
    delivered_late(100),
    delivered_late(5_000, fault="RestartBroker"),
    acknowledged(101),
    acknowledged(50, status=10),
]

AUDITOR = {"actor": "auditor@1", "action": "Pull"}

# Promise -> what was done to the good lines -> the bad lines. Each must be caught by the oracle of that name.
BAD: dict[str, dict[str, Lines]] = {
    "AckedSurvives": {
        "a message is not in the pull that passes it": dropped(GOOD, **AUDITOR, outcome=CONSUMED, c=2),
        "... nor in the pull of the group": dropped(GOOD, actor="g@1", outcome=CONSUMED, c=2),
        "the queue ends before it": changed(GOOD, {"c": 0}, **AUDITOR, outcome=Outcome.OK, a=1, subject="t@b2"),
        "the broker has forgotten the topic": [
            *GOOD,
            GOOD[find(GOOD, **AUDITOR, outcome=Outcome.OK)]._replace(outcome=Outcome.FAIL, a=0, b=-1, c=-1, d=17),
        ],
        "it is acknowledged at a place that was passed before": [
            *dropped(GOOD, actor="g@1", outcome=CONSUMED, c=2)[: find(GOOD, action="CommitOffset")],
            GOOD[find(GOOD, action="Send", outcome=Outcome.OK, c=2)],
        ],
    },
    "NoInvention": {
        "a message nobody sent": changed(GOOD, {"c": 4242}, outcome=CONSUMED, c=4),
        "a message whose sending is missing": dropped(GOOD, action="Send", outcome=Outcome.INVOKE, c=3),
        "a message of another topic": changed(GOOD, {"subject": "u@b"}, outcome=CONSUMED, c=4),
        "a message of another queue": changed(GOOD, {"queue_id": 3}, outcome=CONSUMED, c=4),
        "a message that was consumed before it was sent": swapped(
            GOOD, {"outcome": CONSUMED, "c": 1}, {"action": "Send", "outcome": Outcome.INVOKE, "c": 1}
        ),
    },
    "QueueMatchesLog": {
        "a record is not dispatched": dropped(GOOD, action="DispatchMessage", node="b", queue_id=0, b=2),
        "a unit has the place of another": changed(GOOD, {"b": 4}, action="DispatchMessage", node="b", queue_id=0, b=3),
        "a unit names another record": changed(GOOD, {"a": 0}, action="DispatchMessage", node="b", queue_id=1),
        "a unit has another size": changed(GOOD, {"d": 99}, action="DispatchMessage", node="b", queue_id=0, b=1),
        "two units are exchanged": swapped(
            GOOD,
            {"action": "DispatchMessage", "node": "b", "queue_id": 0, "b": 1},
            {"action": "DispatchMessage", "node": "b", "queue_id": 0, "b": 2},
        ),
    },
    "NeverServeUnflushed": {
        "the last flush is missing": [
            line for line in GOOD if not (line.action == "FlushLog" and line.node == "b" and line.a > 300)
        ],
        "a record is longer than what is flushed": changed(GOOD, {"d": 10_000}, outcome=CONSUMED, c=3),
    },
    "NoHalfVisible": {
        "a half message that was set aside": changed(GOOD, {"c": 22}, outcome=CONSUMED, c=1),
        "a half message before its commit": swapped(
            GOOD, {"outcome": CONSUMED, "c": 20}, {"action": "EndTransaction", "outcome": Outcome.INVOKE, "c": 20}
        ),
        "a message of the half topic": changed(GOOD, {"subject": "RMQ_SYS_TRANS_HALF_TOPIC@b"}, outcome=CONSUMED, c=1),
    },
    "RolledBackNeverVisible": {
        "a message that was rolled back": changed(GOOD, {"c": 21}, outcome=CONSUMED, c=1),
        "a commit that was a rollback": changed(GOOD, {"a": 12}, action="EndTransaction", outcome=Outcome.INVOKE, c=20),
    },
    "CommittedOnce": {"a committed message at two places": changed(GOOD, {"c": 20}, outcome=CONSUMED, c=1)},
    "EveryHalfDecided": {
        "a decision that the broker never took": dropped(GOOD, action="EndTransaction", node="b", c=21),
        "a half message that was never set aside": dropped(GOOD, action="HalfDiscard"),
    },
    "CommittedVisible": {
        "a committed message that nobody got": [
            line for line in GOOD if not (line.outcome == CONSUMED and line.c == 20)
        ]
    },
    "CommittedOffsetNeverAhead": {
        "an offset committed early": changed(GOOD, {"b": 4}, action="CommitOffset", node="b", b=3),
        "a message that was not consumed": dropped(GOOD, actor="g@1", outcome=CONSUMED, b=1),
        "a commit before the consumption": swapped(
            GOOD,
            {"action": "CommitOffset", "outcome": Outcome.INVOKE, "b": 3},
            {"actor": "g@1", "action": "Pull", "outcome": CONSUMED, "b": 2},
        ),
    },
    "CommittedOffsetMonotone": {
        "a smaller offset over a larger one": changed(GOOD, {"b": 2}, action="CommitOffset", node="b", a=3),
        "commits in the wrong order, before they were asked for": swapped(
            dropped(GOOD, action="CommitOffset", outcome=Outcome.INVOKE, b=3),
            {"action": "CommitOffset", "node": "b", "b": 3},
            {"action": "CommitOffset", "node": "b", "b": 7},
        ),
    },
    "OneOwnerPerQueue": {
        "a queue lent without having been given back": dropped(GOOD, action="UnlockQueue"),
        "a refusal that was a grant": changed(GOOD, {"a": 1}, action="LockQueue", actor="g@2", a=0),
        "a loan too early": [
            line._replace(b=line.b - 29_000) if line.action == "LockQueue" and line.b > 30_000 else line
            for line in GOOD
        ],
    },
    "InconsistentOffset": {
        "another message at the same place": changed(GOOD, {"c": 5}, actor="g@1", outcome=CONSUMED, c=2),
        "an acknowledgement with another place": changed(GOOD, {"b": 3}, action="Send", outcome=Outcome.OK, c=5),
        "two messages exchanged": changed(
            changed(GOOD, {"c": 2}, actor="g@1", outcome=CONSUMED, c=1), {"c": 1}, actor="g@1", outcome=CONSUMED, b=1
        ),
    },
    "SkippedPoll": {
        "a reader skips what another got": dropped(GOOD, actor="g@1", outcome=CONSUMED, c=2),
        "... in the other order": dropped(GOOD, **AUDITOR, outcome=CONSUMED, c=2),
    },
    "NonmonotonicPoll": {
        "messages in the wrong order": swapped(
            GOOD, {"actor": "g@1", "outcome": CONSUMED, "b": 0}, {"actor": "g@1", "outcome": CONSUMED, "b": 1}
        ),
        "a pull that leads back": changed(GOOD, {"b": 2}, actor="g@2", action="Pull", outcome=Outcome.OK),
        "a message from before the beginning": changed(GOOD, {"b": 1}, actor="g@2", outcome=CONSUMED, b=3),
        "a message of another queue": changed(GOOD, {"queue_id": 1}, actor="g@2", outcome=CONSUMED, b=3),
    },
    "DecidedIsMarked": {
        "a decision without an op message": decided(marked=False),
        "an op message that is not in the log": decided(marked=True, appended=False),
    },
    "HeldPullWakes": {
        "an answer that comes only when somebody looks": held_pull(5_000),
        "an answer without a message before its time": waited(100),
        "an answer long after its time": waited(12_000),
        "a filter that sleeps through its message": filtered_wait(0b0010, 5_000),
        "a pull that its broker leaves without an answer": stopped_while_waiting(3_000),
        "a filter that is not told that its queue moved on": filtered_wait(0b1101, 6_000),
    },
    "NeverAskedEarly": {
        "asked too early": story(
            ("SendHalf", INVOKE, {"a": 5_000, "c": 7}), ("HalfRenewAndCheck", STEP, {"c": 7, "d": 1})
        ),
    },
    "PullWithinLimits": {
        "more than it asked for": changed(GOOD, {"b": 1}, action="Pull", outcome=INVOKE),
    },
    "SettingsFollow": {
        "a change that is not made": story(("Configure", INVOKE, {"a": 40}), ("Configure", OK, {"a": 40, "b": 39})),
        "a refusal that is one in part": story(
            ("Configure", INVOKE, {"a": 40, "operation": 1}),
            ("Configure", OK, {"a": 40, "b": 40, "operation": 1}),
            ("Configure", INVOKE, {"a": -1, "operation": 2}),
            ("Configure", OK, {"a": -1, "b": 77, "d": 1, "operation": 2}),
        ),
    },
    "AnsweredWhenCalm": {
        "a commit without an outcome": changed(GOOD, {"outcome": UNKNOWN}, action="CommitOffset", outcome=OK),
        "a pull without an answer": dropped(GOOD, action="Pull", outcome=OK),
        "a message that is stored with reserve": changed(GOOD, {"d": 10}, action="Send", outcome=OK),
        "a message that is refused": changed(GOOD, {"outcome": Outcome.FAIL}, action="Send", outcome=OK),
        "a pull that is refused": changed(GOOD, {"outcome": Outcome.FAIL, "d": 1}, action="Pull", outcome=OK),
    },
    "CommittedOffsetKept": {
        "an older offset": committed_and_told(2),
        "a newer one": committed_and_told(4),
        "none": committed_and_told(0),
        "an older one after a stop in good order": crashed_and_told(5_000, end="StopStore"),
        "an older one after a start that nothing made necessary": crashed_and_told(5_000, end="FinishRecovery"),
        "an older one after a crash, long after the newer one was written down": crashed_and_told(25_000),
    },
    "NeverEarly": {
        "a delayed message is there too early": delayed(4, at_ms=5_000),
        "a message that was sent back is there too early": [
            line._replace(a=9_000_000) if line.action == "SendBack" else line for line in sent_back(0, "%RETRY%g")
        ],
    },
    "DelayedDelivered": {
        "nobody gets it": delayed(),
        "it is there twice": delayed(4, 5),
        "it is late": delivered_late(5_000),
    },
    "BatchWhole": {
        "the last is missing": batch_at(4, 5),
        "there is a gap": batch_at(4, 6, 7),
        "they are in another order": batch_at(5, 4, 6),
        "a crash left the end": [
            line for line in batch_at(4, 5, 6, crash=True) if (line.outcome, line.c) != (CONSUMED, 0)
        ],
    },
    "RetriedOrDead": {
        "it does not come again": sent_back(0, None),
        "it is a dead letter too early": sent_back(1, "%DLQ%g"),
        "it is no dead letter": sent_back(2, None),
        "it is retried once too often": sent_back(2, "%RETRY%g"),
    },
    "FilteredPull": {
        "what was not wanted": filtered(0b1101, True),
        "what was wanted is passed": filtered(0b0010, False),
        "... before anybody knows of it": filtered(0b0010, False, known_first=False),
    },
    "RouteKnown": {
        "a broker is missing in the route": routed(0),
        "... and was restarted long ago": routed(0, wait_ms=60_000, fault="StartStore"),
        "a broker that crashed is in the route": routed(4, fault="ProcessCrash"),
        "a broker without power is in the route for ever": routed(4, wait_ms=150_000, fault="PowerLoss"),
    },
    "MembersKnown": {
        "a member is missing": viewed(0),
        "one that left is there": viewed(1, leave=True),
        "one that died is there": viewed(1, death=True),
        "one that is silent for long is there": viewed(1, wait_ms=150_000),
        "one that never was is there": viewed(1)[2:],
    },
    "MembersTold": {
        "nobody is told that somebody joined": told(is_told=False),
        "nobody is told that somebody left": told(is_told=False, leaves=True),
        "nobody is told that somebody is lost": told(is_told=False, is_lost=True),
    },
    "FreeQueueLent": {
        "a queue that nobody has": refused_lock(lent=False, given_back=False),
        "a queue that was given back": refused_lock(lent=True, given_back=True),
        "a queue whose loan is over": refused_lock(lent=True, given_back=False, wait_ms=70_000),
    },
    "FlushedInTime": {"a record that is flushed too late": flushed_after(15_000)},
    "IndexFindsEveryKey": {
        "it is not found": asked_by_key(0),
        "it is found twice": asked_by_key(2),
        "another one is found": asked_by_key(1, others=1),
    },
    "BoundsExact": {
        "it begins too late": bounded(1, 1),
        "it ends too early": bounded(0, 0),
        "it ends too late": bounded(0, 2),
    },
    "DurableAck": {"an acknowledgement before the flush": acknowledged(100)},
    "WellFormed": {
        "a number where there is none": changed(GOOD, {"d": 1}, action="FlushLog"),
        "an answer before it is known": changed(GOOD, {"a": 0}, action="Send", outcome=INVOKE),
        "an outcome twice": [*GOOD, GOOD[find(GOOD, action="Send", outcome=OK)]._replace(at_ns=GOOD[-1].at_ns)],
        "an outcome of another message": changed(GOOD, {"c": 99}, action="Send", outcome=OK),
        "an outcome that is missing": dropped(GOOD, action="Send", outcome=OK),
        "a message without a pull": dropped(GOOD, action="Pull", outcome=INVOKE),
        "times that go back": changed(GOOD, {"at_ns": 0}, action="FlushLog", a=500),
        "an event that is missing": dropped(counted(GOOD), action="FlushLog", a=500),
    },
    "SidesAgree": {
        "a message that no broker acknowledged": told_by_both(acks=False),
        "a message that was not served": told_by_both(serves=False),
        "a record that nobody sent": told_by_both(sends=False),
    },
    "NodeCoherent": {
        "a record behind the end of the log": broker_steps({"a": 200}, action="AppendMessage", b=1),
        "an offset that is left out": broker_steps({"b": 2}, action="AppendMessage", b=1),
        "a flush in the middle of a record": broker_steps({"a": 150}, action="FlushLog", a=200),
        "an acknowledgement of nothing": broker_steps({"c": 9}, action="AckPut"),
        "a record that is dispatched too early": broker_steps({"a": 100}, action="DispatchMessage", b=0),
        "another log after a restart": broker_steps({"b": 100}, action="ScanLog", b=200),
        "an end somewhere else": broker_steps({"a": 100}, action="StopStore"),
    },
    "AbortedRead": {
        "a message that was refused": changed(GOOD, {"c": 9}, outcome=CONSUMED, c=1),
        "a refusal of what was stored": changed(
            GOOD, {"outcome": Outcome.FAIL}, action="Send", outcome=Outcome.UNKNOWN
        ),
        "a refusal after the consumption": [
            *GOOD,
            GOOD[find(GOOD, action="Send", outcome=Outcome.FAIL)]._replace(c=1),
        ],
    },
}

for group_name, group_cases in GROUP_BAD.items():
    BAD[group_name] = BAD.get(group_name, {}) | group_cases


def test_nobody_is_asked_about_a_message_that_is_decided() -> None:
    asked: list[Told] = [("RoundStart", STEP, {}), ("HalfRenewAndCheck", STEP, {"c": 7, "d": 1})]
    end: Told = ("EndTransaction", STEP, {"a": 8, "c": 7})
    for between, is_found in ((end, True), (("FlushLog", STEP, {}), False)):
        lines = story(("StartStore", STEP, {}), between, *asked)
        found = [finding.sentence for finding in ORACLES["NodeCoherent"](lines, Promises())]
        assert any("it was decided before" in sentence for sentence in found) is is_found


@pytest.mark.parametrize(
    ("early_ms", "slack_ms", "is_found"), [(0, 0, False), (3, 0, True), (3, 3, False), (4, 3, True)]
)
def test_a_stamp_is_a_time_at_which_something_was_stored(early_ms: int, slack_ms: int, is_found: int) -> None:
    lines = story(("StartStore", STEP, {}), ("AppendMessage", STEP, {"d": 100}))
    stored_ms = lines[-1].at_ns // 1_000_000
    lines = after(1, lines, ("WriteCheckpoint", STEP, {"a": stored_ms - early_ms}))
    found = [finding.sentence for finding in ORACLES["NodeCoherent"](lines, Promises(clock_slack_ms=slack_ms))]
    assert sum("nothing was stored at" in sentence for sentence in found) == is_found


@pytest.mark.parametrize(("read_to", "is_found"), [(1, False), (0, True)])
def test_a_round_finds_the_op_messages_that_there_are(read_to: int, is_found: bool) -> None:
    op: Told = ("DispatchMessage", STEP, {"subject": "RMQ_SYS_TRANS_OP_HALF_TOPIC", "b": 0, "d": 100})
    steps: list[Told] = [("RoundStart", STEP, {}), ("PullOps", STEP, {"b": read_to})]
    lines = story(("StartStore", STEP, {}), op, *steps)
    found = [finding.sentence for finding in ORACLES["NodeCoherent"](lines, Promises())]
    assert any("it found none" in sentence for sentence in found) is is_found


@pytest.mark.parametrize(("op_offset", "is_found"), [(1, False), (0, True), (2, True)])
def test_the_progress_of_a_round_passes_the_op_messages_that_are_done(op_offset: int, is_found: bool) -> None:
    written: list[Told] = []
    for number in (0, 1):
        subject = {"subject": "RMQ_SYS_TRANS_OP_HALF_TOPIC"}
        written += [("AppendMessage", STEP, {**subject, "b": number, "d": 100})]
        written += [("WriteOp", STEP, {**subject, "a": number, "b": number})]
    round_: list[Told] = [
        ("RoundStart", STEP, {}),
        ("PullOps", STEP, {"b": 2}),
        ("HalfRemoved", STEP, {"a": 0, "b": 0}),
        ("RoundFinish", STEP, {"a": 1, "b": op_offset}),
    ]
    lines = story(("StartStore", STEP, {}), *written, *round_)
    found = [finding.sentence for finding in ORACLES["NodeCoherent"](lines, Promises())]
    assert any("are no longer needed" in sentence for sentence in found) is is_found


def test_an_op_message_may_come_late() -> None:
    for lines in (
        decided(marked=True),
        decided(marked=False, between="FlushLog"),
        decided(marked=False, between="PowerLoss"),
    ):
        assert list(ORACLES["DecidedIsMarked"](lines, Promises())) == []


def test_the_place_of_a_message_that_is_stored_with_reserve_may_be_used_again() -> None:
    first = GOOD[find(GOOD, action="Send", outcome=OK)]
    for status, found in ((0, 1), (10, 0)):
        lines = [first._replace(d=status), first._replace(c=first.c + 100, operation=99)]
        assert len(list(ORACLES["InconsistentOffset"](lines, Promises(flush_sync=True)))) == found


def test_the_good_run_breaks_nothing() -> None:
    assert judge(GOOD) == []
    assert judge(held_pull(100)) == []
    disturbed = held_pull(5_000)
    disturbed.insert(3, disturbed[0]._replace(node="b", action="Disconnect", outcome=STEP))
    assert list(ORACLES["HeldPullWakes"](disturbed, Promises())) == []


@pytest.mark.parametrize("number", range(len(GOOD_STORIES)))
def test_a_good_story_breaks_nothing(number: int) -> None:
    paper = ("AckedSurvives", "AnsweredWhenCalm", "QueueMatchesLog", "NoInvention", "WellFormed")  # of whole histories
    for name in set(ORACLES) - {*paper}:
        assert list(ORACLES[name](GOOD_STORIES[number], Promises())) == [], name


@pytest.mark.parametrize("number", range(len(GROUP_GOOD)))
def test_a_good_story_of_a_group_breaks_nothing(number: int) -> None:
    for name in GROUP_BAD:
        assert list(ORACLES[name](GROUP_GOOD[number], Promises())) == [], name


def test_the_trace_of_a_group_is_judged_by_all_that_need_no_requests_of_clients() -> None:
    for name in set(GROUP_BAD) - {"CommittedOffsetNeverAhead"}:
        (lines, *_) = GROUP_BAD[name].values()
        assert name in {finding.invariant for finding in judge_group(lines)}
    assert set(GROUP_BAD) & NEED_INVOKES == set()


def test_a_message_that_the_power_took_the_word_for_is_known_by_who_gets_it_first() -> None:
    untold = dropped(GROUP_GOOD[0], action="AppendMessage", c=12)
    assert list(ORACLES["ListenedIsWanted"](untold, Promises())) == []
    other = changed(untold, {"c": 99}, action="Listen", outcome=INVOKE, c=12)
    assert list(ORACLES["ListenedIsWanted"](other, Promises())) != []


def bounded_by_a_dead_broker(*, dies: bool) -> Lines:
    """A queue is asked for its end, its broker dies, and answers when it has dispatched a part of its log again."""
    first: list[Told] = [("StartStore", STEP, {}), *[("DispatchMessage", STEP, {"b": each}) for each in (0, 1)]]
    asked: list[Told] = [("QueryBounds", INVOKE, {"operation": 1, "a": -1, "b": -1})]
    death: list[Told] = [("PowerLoss", STEP, {"actor": "b", "subject": "", "queue_id": -1})] if dies else []
    again: list[Told] = [("DispatchMessage", STEP, {"b": each}) for each in (0, 1)]
    return story(*first, *asked, *death, *again, ("QueryBounds", OK, {"operation": 1, "b": 1}))


def test_an_answer_from_before_a_broker_has_dispatched_all_again_is_no_lie() -> None:
    assert list(ORACLES["SidesAgree"](bounded_by_a_dead_broker(dies=True), Promises())) == []
    assert list(ORACLES["SidesAgree"](bounded_by_a_dead_broker(dies=False), Promises())) != []


def test_brokers_and_clients_that_agree_break_nothing() -> None:
    assert list(ORACLES["SidesAgree"](told_by_both(), Promises())) == []
    assert list(ORACLES["NodeCoherent"](broker_steps({}), Promises())) == []


@pytest.mark.parametrize("name", ["WellFormed", "SidesAgree", "NodeCoherent"])
def test_a_trace_that_lost_events_is_not_blamed_for_what_is_missing(name: str) -> None:
    for lines in BAD[name].values():
        assert list(ORACLES[name](lines, Promises(complete=False))) == []


CASES = [(name, what, lines) for name, cases in BAD.items() for what, lines in cases.items()]


@pytest.mark.parametrize(("name", "what", "lines"), CASES, ids=[f"{name}: {what}" for name, what, _ in CASES])
def test_a_bad_run_is_caught(name: str, what: str, lines: Lines) -> None:
    assert lines != GOOD, "the case changed nothing"
    found = list(ORACLES[name](lines, Promises()))
    assert found, what
    assert all(finding.invariant == name and 0 <= finding.line <= len(lines) for finding in found)


def test_every_oracle_has_bad_runs_and_the_name_of_a_promise() -> None:
    promises = {i.name for p in vocabulary.PROTOCOLS for i in p.invariants} | {i.name for i in vocabulary.ANOMALIES}
    assert set(BAD) == set(ORACLES)
    assert set(ORACLES) <= promises
    for name, oracle in ORACLES.items():
        assert "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_") == oracle.__name__


SENDS = st.tuples(st.just("send"), st.integers(0, 2), st.sampled_from([Outcome.OK, Outcome.UNKNOWN, Outcome.FAIL]))
PULLS = st.tuples(st.just("pull"), st.integers(0, 2), st.integers(0, 6))
HALVES = st.tuples(st.just("half"), st.sampled_from([0, 8, 12]), st.none())


@given(st.lists(st.one_of(SENDS, PULLS, HALVES), max_size=40))
def test_a_faultless_run_breaks_nothing(steps: list[tuple[str, int, int | None]]) -> None:
    paper = Paper()
    for message, (step, value, more) in enumerate(steps, start=1):
        match step:
            case "send":
                paper.send(message, queue_id=value, outcome=more or 0)
            case "pull":
                size = len(paper.queues.get(("t", "b", value), []))
                paper.pull(min(more or 0, size), 3, queue_id=value, client=f"g{message}@1")
            case _:
                paper.half(message, value)
    paper.wait(10_000)
    for topic, broker, queue_id in list(paper.queues):
        paper.pull(0, 1_000, topic, broker, queue_id, client="auditor@1")
    assert judge(paper.lines) == []


def without_flush(lines: Lines) -> Lines:
    return [line for line in lines if line.action != "FlushLog"]


@pytest.mark.parametrize(("flush_sync", "caught"), [(True, True), (False, False)])
def test_a_power_loss_forgives_what_was_never_promised(flush_sync: bool, caught: bool) -> None:
    paper = Paper()
    paper.send(1)
    paper.send(2)
    lines = without_flush(paper.lines)
    paper = Paper(lines=lines, now_ms=10_000, operation=2)
    paper.add("b", "PowerLoss")
    paper.send(3)  # at the place of message 1
    paper.wait(10_000)
    paper.pull(0, client="auditor@1")
    assert bool(judge(paper.lines, Promises(flush_sync=flush_sync))) is caught


def test_news_of_a_record_that_a_power_loss_took_may_arrive_after_it() -> None:
    paper = Paper()
    paper.send(1)
    *lines, ok = without_flush(paper.lines)
    paper = Paper(lines=lines, now_ms=10_000, operation=1)
    paper.add("b", "PowerLoss")
    paper.lines.append(ok._replace(at_ns=paper.now_ms * 1_000_000))
    paper.send(2)  # at the place of message 1
    paper.wait(10_000)
    paper.pull(0, client="auditor@1")
    assert judge(paper.lines, Promises(flush_sync=False)) == []
    assert judge(paper.lines, Promises(flush_sync=True)) != []


def test_what_was_flushed_is_promised_without_synchronous_flush_too() -> None:
    paper = Paper()
    paper.send(1)
    paper.add("b", "PowerLoss")
    paper.log.clear()
    paper.queues.clear()
    paper.send(2)
    assert [finding.invariant for finding in judge(paper.lines, Promises(flush_sync=False))] == ["InconsistentOffset"]


def test_an_unsettled_run_is_not_blamed_for_what_may_still_come() -> None:
    lines = BAD["EveryHalfDecided"]["a half message that was never set aside"]
    assert judge(lines, Promises(settled=False)) == []


@pytest.mark.parametrize("name", ORACLES)
def test_memory_is_bounded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for three entries the good run is still good: forgetting never invents a finding."""
    monkeypatch.setattr(oracle_base, "REMEMBERED_MAX", 3)
    table = oracle_base.Remembered[int, int]()
    for number in range(10):
        table[number] = number
    assert list(table) == [7, 8, 9]
    if name not in ("NoInvention", "QueueMatchesLog", "WellFormed"):  # these must know everything that is open
        assert list(ORACLES[name](GOOD, Promises())) == []


def test_one_dropped_swapped_or_changed_event_is_nearly_always_caught() -> None:
    """Every single change of the good run, over all oracles: which share is seen, so that a weaker oracle shows."""
    changes: list[tuple[str, Callable[[], Lines]]] = []
    for at, line in enumerate(GOOD):
        changes.append((f"drop {at} {line.action}", lambda at=at: GOOD[:at] + GOOD[at + 1 :]))  # type: ignore[misc]
        for key in "abc":
            value = getattr(line, key)
            changes.append(
                (
                    f"change {key} of {at} {line.action}",
                    lambda at=at, line=line, key=key, value=value: [  # type: ignore[misc]
                        *GOOD[:at],
                        line._replace(**{key: value + 1}),
                        *GOOD[at + 1 :],
                    ],
                )
            )
    caught = [name for name, make in changes if judge(make())]
    assert len(caught) / len(changes) > 0.4
    missed = {name for name, _ in changes} - set(caught)
    # Nothing that a consumer got may be dropped or renamed without being noticed.
    for at, line in enumerate(GOOD):
        if line.outcome == CONSUMED and line.actor == "auditor@1":
            assert f"drop {at} Pull" not in missed
            assert f"change b of {at} Pull" not in missed
            assert f"change c of {at} Pull" not in missed


@pytest.mark.parametrize(("times", "count"), [(4, 0), (5, 0), (6, 1)])
def test_a_question_above_the_limit_is_found(times: int, count: int) -> None:
    asked = story(("HalfRenewAndCheck", STEP, {"c": 7, "d": times}), ("HalfDiscard", STEP, {"b": times, "c": 7}))
    assert len(list(asked_enough(asked, 5))) == 2 * count
