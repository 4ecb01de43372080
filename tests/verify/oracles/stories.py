"""Short stories for oracles: what clients and brokers tell of one thing that goes well, or wrong."""

from __future__ import annotations

from collections.abc import Mapping

from refmq.trace.record import Outcome
from refmq.verify.oracles import Line
from tests.verify.oracles.lines import Paper, good_run

GOOD = good_run()
Lines = list[Line]


def find(lines: Lines, **wanted: object) -> int:
    """The number of the first line with these values."""
    return next(n for n, line in enumerate(lines) if all(getattr(line, key) == value for key, value in wanted.items()))


def dropped(lines: Lines, **wanted: object) -> Lines:
    at = find(lines, **wanted)
    return lines[:at] + lines[at + 1 :]


def changed(lines: Lines, change: dict[str, int | str], **wanted: object) -> Lines:
    at = find(lines, **wanted)
    return [*lines[:at], lines[at]._replace(**change), *lines[at + 1 :]]  # type: ignore[arg-type]


def swapped(lines: Lines, first: dict[str, object], second: dict[str, object]) -> Lines:
    """The two lines at each other's places."""
    a, b = find(lines, **first), find(lines, **second)
    copy = list(lines)
    copy[a], copy[b] = lines[b], lines[a]
    return copy


Told = tuple[str, int, Mapping[str, int | str]]


def story(*events: Told, lines: Lines | None = None) -> Lines:
    """Events of one client on queue 0 of topic t at b, each an operation of its own unless it has the same number."""
    paper = Paper(lines=list(lines or []))
    for action, outcome, values in events:
        node = "b" if outcome == Outcome.STEP else "client"
        named: dict[str, int | str] = {"actor": "g@1", "operation": 1, "subject": "t@b", "queue_id": 0}
        if outcome == Outcome.STEP:
            named = {"subject": "t", "queue_id": 0}
        paper.add(node, action, outcome, **{**named, **values})  # type: ignore[arg-type]
    return paper.lines


INVOKE, OK, UNKNOWN, STEP, CONSUMED = Outcome.INVOKE, Outcome.OK, Outcome.UNKNOWN, Outcome.STEP, Outcome.CONSUMED


def committed_and_told(told: int) -> Lines:
    return story(
        ("CommitOffset", INVOKE, {"b": 3}),
        ("CommitOffset", OK, {"b": 3}),
        ("QueryOffset", INVOKE, {"operation": 2}),
        ("QueryOffset", OK, {"operation": 2, "a": told}),
    )


def delayed(*places: int, at_ms: int = 10_000, crash: bool = False) -> Lines:
    """A delayed message that is due after 5 s and consumed at some places."""
    lines = story(("SendDelayed", INVOKE, {"a": 6_000, "c": 1}), ("SendDelayed", OK, {"a": 6_000, "c": 1}))
    if crash:
        lines = story(("ProcessCrash", STEP, {}), lines=lines)
    paper = Paper(lines=lines, now_ms=at_ms)
    for place in places:
        paper.add("client", "Pull", CONSUMED, "t@b", 0, "a@1", 9, b=place, c=1)
    return paper.lines


def batch_at(*places: int, crash: bool = False) -> Lines:
    """A batch of three messages, found at these places."""
    lines = story(*[("SendBatch", INVOKE, {"c": number}) for number in range(3)])
    if crash:
        lines = story(("ProcessCrash", STEP, {}), lines=lines)
    return story(*[("Pull", CONSUMED, {"b": at, "c": c}) for c, at in enumerate(places)], lines=lines)


def sent_back(times: int, topic: str | None, *, loss: bool = False) -> Lines:
    """A message that was sent back for the so manieth time, of at most two, and appears in a topic."""
    lines = story(("SendBack", INVOKE, {"b": times, "c": 1, "d": 2}), ("SendBack", OK, {"b": times, "c": 1, "d": 2}))
    if loss:
        lines = story(("PowerLoss", STEP, {}), lines=lines)
    found: dict[str, int | str] = {"subject": f"{topic}@b", "c": 1, "operation": 3}
    return story(("Pull", CONSUMED, found), lines=lines) if topic is not None else lines


def filtered(wanted: int, brought: bool, *, known_first: bool = True) -> Lines:
    """A message of class 1 at offset 0, and a pull that passes it with a filter."""
    sent: list[Told] = [("Send", INVOKE, {"c": 7, "d": 1}), ("Send", OK, {"a": 0, "b": 0, "c": 7})]
    pull: list[Told] = [("PullFiltered", INVOKE, {"operation": 2, "c": wanted})]
    pull += [("PullFiltered", CONSUMED, {"operation": 2, "b": 0, "c": 7})] if brought else []
    pull += [("PullFiltered", OK, {"operation": 2, "a": 0, "b": 1, "c": wanted, "d": 0 if brought else 20})]
    return story(*sent, *pull) if known_first else story(sent[0], *pull, sent[1])


def after(ms: int, lines: Lines, *events: Told) -> Lines:
    """The lines, a while, and more lines."""
    shift_ns = lines[-1].at_ns + ms * 1_000_000 - Paper().now_ms * 1_000_000
    return [*lines, *[line._replace(at_ns=line.at_ns + shift_ns) for line in story(*events)]]


def routed(found: int, *, wait_ms: int = 5_000, fault: str = "") -> Lines:
    """A topic, something that happens to its broker, and a question for the route."""
    lines = story(("Send", INVOKE, {"c": 7}), ("Send", OK, {"c": 7}))
    if fault:
        lines = after(100, lines, (fault, STEP, {"a": 1} if fault == "StartStore" else {}))
    asked = {"operation": 2, "queue_id": -1}
    return after(wait_ms, lines, ("QueryRoute", INVOKE, asked), ("QueryRoute", OK, {**asked, "a": found}))


def said(action: str, member: str = "g@c.1", operation: int = 1) -> list[Told]:
    """A heartbeat, or a good-bye."""
    who: dict[str, int | str] = {"actor": member, "subject": "@b", "queue_id": -1, "operation": operation}
    return [(action, INVOKE, who), (action, OK, who)]


def viewed(found: int, *, leave: bool = False, wait_ms: int = 5_000, death: bool = False) -> Lines:
    """A member that is there, has left or has died, and a question for the members."""
    lines = story(*said("Heartbeat"))
    if leave:
        lines = after(100, lines, *said("Leave", operation=2))
    if death:
        lines = [*lines, lines[-1]._replace(node="c", action="ProcessCrash", outcome=STEP)]
    view: dict[str, int | str] = {"actor": "g@d.1", "subject": "g@c.1@b", "queue_id": -1, "operation": 3}
    return after(wait_ms, lines, ("ViewRefresh", INVOKE, view), ("ViewRefresh", OK, {**view, "a": found}))


def told(*, is_told: bool, leaves: bool = False, is_lost: bool = False) -> Lines:
    """Two members; one joins, or leaves, or loses its connection, after the other is there."""
    lines = story(*said("Heartbeat"))
    other = said("Heartbeat", "g@d.1", 2)
    lines = after(100, lines, *other)
    if leaves or is_lost:
        lines = after(100, lines, *said("Notified")[1:])
        lost = ("RemoveMember", STEP, {"actor": "d.1", "subject": "g", "queue_id": -1})
        lines = after(5_000, lines, *([lost] if is_lost else said("Leave", "g@d.1", 3)))
    if is_told:
        lines = after(100, lines, *said("Notified")[1:])
    return after(5_000, lines, ("FlushLog", STEP, {}))


def refused_lock(*, lent: bool, given_back: bool, wait_ms: int = 5_000, restart: bool = False) -> Lines:
    """A client asks for a queue in vain."""
    lines = story(("FinishRecovery", STEP, {}))
    lines = after(40_000, lines, ("FlushLog", STEP, {}))
    at_ms = lines[-1].at_ns // 1_000_000
    if lent:
        lines = after(0, lines, ("LockQueue", STEP, {"actor": "g@2", "a": 1, "b": at_ms}))
    if given_back:
        lines = after(0, lines, ("UnlockQueue", STEP, {"actor": "g@2"}))
    if restart:
        lines = after(0, lines, ("FinishRecovery", STEP, {}))
    return after(wait_ms, lines, ("LockQueue", INVOKE, {}), ("LockQueue", OK, {}))


def flushed_after(ms: int) -> Lines:
    lines = after(ms, story(("AppendMessage", STEP, {"d": 100})), ("FlushLog", STEP, {"a": 100}))
    return after(1, lines, ("WriteCheckpoint", STEP, {}))


def asked_by_key(found: int, others: int = 0) -> Lines:
    lines = story(("Send", INVOKE, {"c": 7}), ("Send", OK, {"c": 7}))
    asked: dict[str, int | str] = {"operation": 2, "queue_id": -1, "c": 7}
    return after(6_000, lines, ("QueryKey", INVOKE, asked), ("QueryKey", OK, {**asked, "a": found, "b": others}))


def bounded(low: int, high: int) -> Lines:
    """A queue of one message, and where it is said to begin and to end."""
    lines = story(("Send", INVOKE, {"c": 7}), ("AppendMessage", STEP, {"d": 100}), ("Send", OK, {"c": 7}))
    asked: dict[str, int | str] = {"operation": 2}
    return after(6_000, lines, ("QueryBounds", INVOKE, asked), ("QueryBounds", OK, {**asked, "a": low, "b": high}))


def waited(ms: int, answer: int = 19, may_ms: int = 5_000) -> Lines:
    """A pull that may wait, and its answer without a message."""
    lines = story(("Pull", INVOKE, {"d": may_ms}))
    return after(ms, lines, ("Pull", OK, {"d": answer}))


def stopped_while_waiting(ms: int, fault: str = "", outcome: Outcome = UNKNOWN) -> Lines:
    """A pull that may wait, its broker that is stopped so much later, perhaps something else, and how the pull ends."""
    lines = after(ms, story(("Pull", INVOKE, {"d": 60_000})), ("StopBroker", STEP, {"actor": "b"}))
    if fault:
        lines = after(1, lines, (fault, STEP, {"actor": "b"}))
    return after(10, lines, ("Pull", outcome, {"d": 20 if outcome == OK else 0}))


def filtered_wait(wanted: int, ms: int) -> Lines:
    """A pull with a filter that waits, a message of class 1, and the answer so much later."""
    lines = story(("PullFiltered", INVOKE, {"operation": 9, "c": wanted, "d": 60_000}))
    arrives: list[Told] = [("Send", INVOKE, {"c": 7, "d": 1}), ("AppendMessage", STEP, {"c": 7, "d": 100})]
    lines = after(10, lines, *arrives, ("DispatchMessage", STEP, {"d": 100}))
    return after(ms, lines, ("PullFiltered", OK, {"operation": 9, "c": wanted, "d": 20}))


def decided(*, marked: bool, appended: bool = True, between: str = "AppendMessage") -> Lines:
    """A half message is decided, gets its op message or not, and two rounds begin, with something in between."""
    op: list[Told] = [("AppendMessage", STEP, {"subject": "RMQ_SYS_TRANS_OP_HALF_TOPIC", "b": 3})] if appended else []
    op += [("WriteOp", STEP, {"a": 3, "c": 7})] if marked else []
    lines = story(("EndTransaction", STEP, {"a": 8, "c": 7}), *op, ("RoundStart", STEP, {}))
    return after(1_000, lines, (between, STEP, {"d": 100}), ("RoundStart", STEP, {}))


def crashed_and_told(wait_ms: int, fault: str = "", end: str = "ProcessCrash") -> Lines:
    """Offsets 1 and 2 are committed, the broker runs on for a while and ends, and the group is told 1."""
    lines = story(("FinishRecovery", STEP, {}))
    for operation, offset in ((1, 1), (2, 2)):
        commit: dict[str, int | str] = {"operation": operation, "b": offset}
        lines = after(100, lines, ("CommitOffset", INVOKE, commit), ("CommitOffset", OK, commit))
    if fault:
        lines = after(1, lines, (fault, STEP, {}))
    lines = after(wait_ms, lines, (end, STEP, {}))
    asked: dict[str, int | str] = {"operation": 3}
    return after(100, lines, ("QueryOffset", INVOKE, asked), ("QueryOffset", OK, {**asked, "a": 1}))


def delivered_late(ms: int, fault: str = "") -> Lines:
    """A delayed message, due after 5 s, that is appended to its queue so much later than it is due."""
    lines = story(("SendDelayed", INVOKE, {"a": 6_000, "c": 1}), ("SendDelayed", OK, {"a": 6_000, "c": 1}))
    if fault:
        lines = after(1, lines, (fault, STEP, {}))
    paper = Paper(lines=lines, now_ms=6_000 + ms)
    paper.add("b", "AppendMessage", STEP, "t", 0, a=0, b=0, c=1, d=100)
    paper.add("client", "Pull", CONSUMED, "t@b", 0, "a@1", 9, b=0, c=1, d=100)
    return paper.lines


def acknowledged(flushed_to: int, status: int = 0) -> Lines:
    return story(
        ("FinishRecovery", STEP, {"a": 0}),
        ("FlushLog", STEP, {"a": flushed_to}),
        ("AckPut", STEP, {"a": 100, "d": status}),
    )


def held_pull(answer_after_ms: int) -> Lines:
    """A pull that waits, the message that it waits for, and its answer."""
    paper = Paper()
    paper.pull(0)
    _, ok = paper.lines
    paper.lines.remove(ok)
    paper.send(1)
    paper.wait(answer_after_ms)
    at_ns = paper.now_ms * 1_000_000
    return [*paper.lines, ok._replace(at_ns=at_ns, b=0, c=1)]


def counted(lines: Lines) -> Lines:
    """The lines with the numbers that nodes give their events."""
    counts: dict[str, int] = {}
    found = []
    for line in lines:
        counts[line.node] = counts.get(line.node, -1) + 1
        found.append(line._replace(sequence=counts[line.node]))
    return found


def told_by_both(*, sends: bool = True, acks: bool = True, serves: bool = True) -> Lines:
    """A message that is sent, stored and consumed, as its broker and its clients tell it."""
    sent: list[Told] = [("Send", INVOKE, {"a": -1, "b": -1, "c": 7})] if sends else []
    stored: list[Told] = [("StartStore", STEP, {"a": 1}), *sent, ("AppendMessage", STEP, {"c": 7, "d": 100})]
    stored += [("AckPut", STEP, {"c": 7})] if acks else []
    stored += [("DispatchMessage", STEP, {"d": 100}), ("Send", OK, {"c": 7})]
    stored += [("ServeMessage", STEP, {"c": 7, "d": 100})] if serves else []
    return story(*stored, ("Pull", CONSUMED, {"operation": 2, "c": 7, "d": 100}))


def broker_steps(change: dict[str, int | str], **wanted: object) -> Lines:
    """Two messages, a stop in good order and a start, told by a broker, with one thing changed."""
    start: list[Told] = [("StartStore", STEP, {"a": 1}), ("ScanLog", STEP, {}), ("TruncateLog", STEP, {})]
    steps: list[Told] = [*start, ("FinishRecovery", STEP, {})]
    for number in (0, 1):
        steps += [
            ("AppendMessage", STEP, {"a": number * 100, "b": number, "c": 7 + number, "d": 100}),
            ("FlushLog", STEP, {"a": number * 100 + 100}),
            ("AckPut", STEP, {"a": number * 100, "b": number, "c": 7 + number}),
            ("DispatchMessage", STEP, {"a": number * 100, "b": number, "d": 100}),
        ]
    steps += [("FlushQueue", STEP, {"a": 2}), ("StopStore", STEP, {"a": 200}), start[0]]
    steps += [(name, STEP, {"a": 200}) for name in ("TruncateLog", "FinishRecovery")]
    steps.insert(-2, ("ScanLog", STEP, {"b": 200}))
    return changed(story(*steps), change, **wanted) if change else story(*steps)
