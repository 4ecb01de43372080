"""Short stories of a consumer group, told by a broker, its clients and applications; and what can be wrong in them."""

from __future__ import annotations

from refmq.trace.record import Outcome
from tests.verify.oracles.lines import Paper
from tests.verify.oracles.stories import INVOKE, OK, Lines, changed, dropped, find, swapped

FAIL = Outcome.FAIL


class Group(Paper):
    """A group of members c1, c2 on machines m1, m2; one broker b, topic t with one queue."""

    def subscribe(self, member: int = 1, *, orderly: bool = False, retries: int = 1, first: bool = True) -> Group:
        self.operation += 1
        for outcome in (INVOKE, OK):
            self.add(
                f"m{member}",
                "Subscribe",
                outcome,
                "t",
                actor=f"g@c{member}",
                operation=self.operation,
                a=1,
                b=int(orderly),
                c=retries,
                d=int(first),
            )
        self.add(f"m{member}", "RouteRefresh", subject="t", actor=f"g@c{member}", a=1)
        return self

    def produce(self, message: int, *, kind: int = 0) -> Group:
        self.operation += 1
        operation = self.operation
        self.add("p", "Produce", INVOKE, "t", actor="p", operation=operation, a=kind, c=message)
        self.store(message, "t")
        self.add("p", "Produce", OK, "t", actor="p", operation=operation, a=kind, c=message)
        return self

    def store(self, message: int, topic: str) -> Group:
        self._store(topic, "b", 0, message)
        return self

    def client(self, action: str, member: int = 1, *, topic: str = "t", a: int = 0, b: int = 0, c: int = 0) -> Group:
        self.add(f"m{member}", action, subject=f"{topic}@b", queue_id=0, actor=f"g@c{member}", a=a, b=b, c=c)
        return self

    def acquire(self, at: int, member: int = 1) -> Group:
        self.wait(10)
        self.add("b", "LockQueue", subject="t", queue_id=0, actor=f"g@c{member}", a=1, b=self.now_ms + 1)
        return self.client("AcquireQueue", member, a=at)

    def begin(self, offset: int, message: int, member: int = 1, *, times: int = 0, topic: str = "t") -> int:
        self.client("ConsumeStart", member, topic=topic, a=offset, b=message)
        self.operation += 1
        self._listen(INVOKE, self.operation, offset, message, member, times, topic)
        return self.operation

    def end(self, operation: int, offset: int, message: int, member: int = 1, *, outcome: int = OK) -> Group:
        self._listen(outcome, operation, offset, message, member, 0, "t")
        return self.client("ConsumeFinish", member, a=offset, b=message, c=int(outcome != OK))

    def consume(self, offset: int, message: int, member: int = 1, *, outcome: int = OK, times: int = 0) -> Group:
        return self.end(self.begin(offset, message, member, times=times), offset, message, member, outcome=outcome)

    def _listen(
        self, outcome: int, operation: int, offset: int, message: int, member: int, times: int, topic: str
    ) -> None:
        self.add(
            f"m{member}",
            "Listen",
            outcome,
            f"{topic}@b",
            0,
            f"g@c{member}",
            operation,
            a=times,
            b=offset,
            c=message,
        )

    def commits(self, offset: int, member: int = 1) -> Group:
        self.client("CommitSend", member, a=offset)
        self.add("b", "CommitOffset", subject="t", queue_id=0, actor="g", a=-1, b=offset)
        return self

    def world(self, action: str, node: str = "world") -> Group:
        self.add(node, action, actor=node)
        return self

    def leave(self, member: int = 1) -> Group:
        self.add(f"m{member}", "Leave", subject="g", actor=f"c{member}")
        return self


def consumed(*, orderly: bool = False) -> Lines:
    """Three messages are consumed by one member, the last of them in calm; then it leaves."""
    paper = Group().subscribe(orderly=orderly).produce(11).produce(12)
    paper.acquire(0).client("PullMessages", a=0, b=2).consume(0, 11).consume(1, 12).commits(2)
    paper.world("Settled").produce(13).client("PullMessages", a=2, b=3).consume(2, 13).commits(3)
    return paper.world("Parting").leave().lines


def handed_over(*, begins_at: int = 1, overlaps: bool = False, paused: bool = False) -> Lines:
    """The second member takes the queue of the first, which is orderly, while that has a message, or after it."""
    paper = Group().subscribe(orderly=True).subscribe(2, orderly=True).produce(11).produce(12)
    paper.acquire(0).client("PullMessages", a=0, b=2).consume(0, 11).commits(1)
    operation = paper.begin(1, 12)
    if paused:
        paper.world("ConsumerPause", "m1")
    if not overlaps:
        paper.end(operation, 1, 12, outcome=Outcome.UNKNOWN)
    paper.client("ReleaseQueue", a=1).acquire(begins_at, 2).client("PullMessages", 2, a=begins_at, b=2)
    paper.consume(1, 12, 2).commits(2, 2)
    return paper.lines


def left_in_silence() -> Lines:
    """The first member ends while no broker hears it: it gives nothing back and does not leave, in words."""
    paper = Group().subscribe().subscribe(2).produce(11).acquire(0).client("PullMessages", a=0, b=1)
    paper.consume(0, 11).commits(1).world("StopConsumer", "m1").wait(60_000)
    return paper.acquire(1, 2).world("Settled").lines


def failed(*, dead: bool = True, told: int = 1) -> Lines:
    """A message fails, comes again and is a dead letter after its second failure."""
    paper = Group().subscribe().produce(11).acquire(0).client("PullMessages", a=0, b=1)
    paper.consume(0, 11, outcome=FAIL).store(11, "SCHEDULE_TOPIC_XXXX").commits(1)
    paper.store(11, "%RETRY%g").client("AcquireQueue", topic="%RETRY%g")
    operation = paper.begin(0, 11, times=told, topic="%RETRY%g")
    paper._listen(FAIL if dead else OK, operation, 0, 11, 1, told, "%RETRY%g")
    if dead:
        paper.store(11, "%DLQ%g")
    return paper.lines


def at_the_end(begins_at: int, *, crash: bool) -> Lines:
    """A group begins at the end of a queue; its broker crashes, or not; then a member begins at ``begins_at``."""
    paper = Group().subscribe(first=False).produce(11).acquire(1).produce(12)
    if crash:
        paper.world("ProcessCrash", "b")
    paper.client("ReleaseQueue", a=1).acquire(begins_at)
    return (paper if begins_at == 2 else paper.consume(1, 12)).lines


def in_calm(wait_ms: int, *, before: str = "", times: int = 1) -> Lines:
    """A message in calm is consumed after a while, so many times."""
    paper = Group().subscribe().acquire(0).world("Settled")
    if before:
        paper.world(before, "b")
    paper.produce(11).wait(wait_ms)
    for _ in range(times):
        paper.consume(0, 11)
    return paper.lines


GROUP_GOOD = [
    consumed(),
    consumed(orderly=True),
    handed_over(),
    handed_over(overlaps=True, paused=True),
    left_in_silence(),
    failed(),
    failed(dead=False),
    at_the_end(1, crash=False),
    at_the_end(2, crash=True),
    in_calm(10),
    in_calm(5_000, before="Disconnect", times=2),
]
CALM = consumed()
ORDER = consumed(orderly=True)
LISTENED = {"action": "Listen", "outcome": INVOKE}

GROUP_BAD: dict[str, dict[str, Lines]] = {
    "NoSkippedOffset": {
        "a member begins too late": handed_over(begins_at=2),
        "a pull leaves a message out": changed(CALM, {"a": 1}, action="PullMessages"),
        "a group that wants all begins in the middle": changed(CALM, {"a": 1}, action="AcquireQueue"),
        "a group begins at the end again": at_the_end(2, crash=False),
    },
    "CommittedOffsetNeverAhead": {
        "a commit before the listener is done": swapped(
            CALM, {"action": "CommitOffset"}, {"action": "Listen", "outcome": OK, "b": 1}
        ),
        "a commit of what failed and was not given back": [
            line for line in failed() if not line.subject.startswith("SCHEDULE")
        ],
    },
    "EveryMessageConsumed": {
        "a message that no listener saw": dropped(CALM, action="Listen", outcome=OK, b=1),
        "a message that was lost": dropped(CALM, action="AppendMessage", c=12),
        "a failure that did not come again": [line for line in failed() if not line.subject.startswith("%DLQ%")],
    },
    "OrderlyInOrder": {
        "the second comes first": changed(ORDER, {"b": 1}, **LISTENED),
        "a message is passed over": dropped(ORDER, action="Listen", outcome=OK, b=0),
    },
    "LeaveCommits": {
        "the last commit is missing": dropped(CALM, action="CommitOffset", b=3),
        "it is too low": changed(CALM, {"b": 2}, action="CommitOffset", b=3),
    },
    "CommittedInTime": {
        "nothing was committed": [
            line._replace(at_ns=line.at_ns + 20 * 10**9) if line.action == "Settled" else line
            for line in CALM
            if line.action != "CommitOffset"
        ],
    },
    "AllQueuesOwned": {
        "nobody has the queue": dropped(CALM, action="AcquireQueue"),
        "one has it that has not ended": dropped(left_in_silence(), action="StopConsumer"),
        "two have it": [*handed_over()[:-2], *Group().acquire(2).world("Settled").lines],
    },
    "OneListenerPerQueue": {"a listener begins while another is at work": handed_over(overlaps=True)},
    "OnlyHoldersAct": {
        "a pull without the queue": dropped(CALM, action="AcquireQueue"),
        "a commit after the queue was given up": [
            *handed_over(),
            *Group().client("CommitSend", a=1).lines,
        ],
        "a loan that is too old": [
            line if line.action != "LockQueue" else line._replace(at_ns=line.at_ns - 40 * 10**9) for line in ORDER
        ],
    },
    "ListenedIsWanted": {
        "another message": changed(CALM, {"c": 99}, **LISTENED),
        "a place that does not exist": changed(CALM, {"b": 9}, **LISTENED),
        "the trace names another message": changed(CALM, {"b": 99}, action="ConsumeFinish"),
        "one that the group does not want": changed(CALM, {"a": 1}, action="Produce", outcome=INVOKE),
    },
    "DeadAfterRetries": {
        "dead after the first failure": [line for line in failed() if "%RETRY%" not in line.subject],
        "an attempt that counts one too many": failed(told=2),
        "an attempt too many": [
            *failed(dead=False),
            *Group(operation=50).consume(0, 11, outcome=FAIL).consume(1, 11, times=2).lines,
        ],
    },
    "AbortedRead": {"a message that was not stored": changed(CALM, {"outcome": FAIL}, action="Produce", outcome=OK)},
    "ConsumedWhenCalm": {
        "it takes seconds": in_calm(3_000),
        "it comes twice": in_calm(10, times=2),
        "it never comes": in_calm(3_000, times=0) + Group(now_ms=9_000).world("Parting").lines,
    },
}
assert find(CALM, action="Leave")
