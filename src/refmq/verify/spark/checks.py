"""How Spark checks each promise: what proves it clean in one pass, and what its oracle is shown where that fails.

Every promise has the same last instance, its oracle in `refmq.verify.oracles`. Spark's work is to show that it need not
be asked, or about which keys only. A promise is proved in one of three ways:

- *absent*: nothing can be found without certain events (`trigger`), and there are none;
- *screen*: a stream is regular (`broker_screen`, `client_screen`, `record_screen`);
- *digest*: sides of a place range have equal digests (`digest`, `plans`).

What is left are suspects. `examine` shows an oracle the events of its suspects, and those that every part needs
(`shared`), as far as it reads them (`reads`).

A screen may not see everything that an oracle sees: `blind` says what. `refmq verify --exact` asks the oracles about
everything and sees it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from refmq.model.vocabulary import CLIENT_FIELDS, FIELDS
from refmq.trace.record import Outcome
from refmq.verify.oracles import ORACLES


class Part(StrEnum):
    """By which key the lines of a promise may be judged apart from each other."""

    QUEUE = "queue"
    MESSAGE = "message"
    GROUP = "group"
    NODE = "node"
    """The broker: its steps, and what clients did there."""
    STREAM = "stream"
    """What one node recorded."""
    WHOLE = "whole"


INVOKE, OK, FAIL, UNKNOWN, CONSUMED = Outcome.INVOKE, Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN, Outcome.CONSUMED

SENDS: Final = ("Send", "SendBatch", "SendHalf", "SendDelayed")
PULLS: Final = ("Pull", "PullFiltered")
LIFE: Final = ("StartStore", "FinishRecovery", "StopStore")
LOG: Final = ("AppendMessage", "DispatchMessage", "FlushLog")
STORED: Final = ("Subscribe", "Produce", "AppendMessage", "DispatchMessage")
"""What tells what is stored, and how groups want it."""
GROUPS: Final = (*STORED, "Listen", "AcquireQueue", "CommitOffset")
DECISIONS: Final = ("SendHalf", "EndTransaction", "CheckReply", "HalfDiscard")

Trigger = tuple[tuple[str, Outcome | None], ...]

CLOCKS: Final = "the order of two events of different nodes inside one range of places"
"""Digests know the first and the last time of a range, and no order inside it."""


def events(*actions: str, outcome: Outcome | None = None) -> Trigger:
    return tuple((action, outcome) for action in actions)


@dataclass(frozen=True, slots=True)
class Check:
    """How one promise is checked."""

    part: Part
    reads: Collection[str]
    """Actions that its oracle looks at; empty for all."""
    proof: str
    """How it is proved clean, in words for the book."""
    trigger: Trigger = ()
    """Events that no screen judges: its oracle looks at their keys."""
    screened: bool = False
    """Whether the screens and digests name suspects of it, beside those of `trigger`."""
    shared: Collection[str] = ()
    """Actions that every part needs; faults always are."""
    blind: str = ""
    """What the proof does not see and the oracle would."""
    thin: Collection[str] = ()
    """Events of which the oracle only asks whether there were any in between: of several in a row, outside the broker's
    own topics, it is shown the first and the last."""


def absent(part: Part, trigger: Trigger, reads: Collection[str], **more: Collection[str]) -> Check:
    names = ", ".join(dict.fromkeys(action for action, _ in trigger))
    return Check(part, reads, f"absent: nothing to find without {names}", trigger, False, **more)  # type: ignore[arg-type]  # only collections are given


_ROWS: Final[Mapping[str, Check]] = {
    "AckedSurvives": Check(
        Part.QUEUE,
        (*SENDS, "Pull"),
        "client screen: pulls without holes; the end of the last pull is behind all that was acknowledged",
        events("SendBatch", outcome=OK),
        screened=True,
        shared=("FlushLog",),
    ),
    "NoInvention": Check(
        Part.MESSAGE,
        (*SENDS, *PULLS),
        "digest: consumed places are places that were sent; rows of ranges that differ",
        events("SendBatch"),
        screened=True,
        blind=CLOCKS,
    ),
    "QueueMatchesLog": Check(
        Part.NODE,
        ("AppendMessage", "DispatchMessage", "StartStore"),
        "broker screen: dispatch follows the log record by record",
        screened=True,
    ),
    "DurableAck": Check(
        Part.NODE,
        ("FlushLog", "FinishRecovery", "AckPut", "Send", "SendBatch", "SendHalf"),
        "broker screen: acknowledged records are flushed; digest: answers to producers are acknowledgements",
        screened=True,
        blind=CLOCKS,
    ),
    "NeverServeUnflushed": Check(
        Part.NODE,
        ("FlushLog", "FinishRecovery", *PULLS),
        "broker screen: served records are flushed; digest: what was consumed was served",
        screened=True,
        blind=CLOCKS,
    ),
    "NoHalfVisible": absent(Part.MESSAGE, events("SendHalf", outcome=INVOKE), (*DECISIONS, *PULLS)),
    "RolledBackNeverVisible": absent(
        Part.MESSAGE, events("EndTransaction", "CheckReply", outcome=INVOKE), (*DECISIONS, *PULLS)
    ),
    "CommittedOnce": absent(Part.MESSAGE, events("SendHalf", outcome=INVOKE), (*DECISIONS, *PULLS)),
    "EveryHalfDecided": Check(
        Part.MESSAGE,
        (*DECISIONS, *PULLS),
        "absent: nothing to find without SendHalf",
        events("SendHalf", outcome=OK),
        shared=("FlushLog",),
    ),
    "CommittedVisible": absent(Part.MESSAGE, events("EndTransaction", outcome=Outcome.STEP), (*DECISIONS, *PULLS)),
    "DecidedIsMarked": absent(
        Part.NODE,
        events("EndTransaction", outcome=Outcome.STEP),
        ("StartStore", "AppendMessage", "EndTransaction", "WriteOp", "RoundStart"),
        thin=("AppendMessage",),
    ),
    "CommittedOffsetNeverAhead": Check(
        Part.GROUP,
        (*GROUPS, *PULLS, "ResetOffset"),
        "client screen: commits against what was consumed without a hole, where a queue has one consumer of a group",
        events("AcquireQueue", "ResetOffset"),
        screened=True,
        shared=STORED,
        blind=CLOCKS,
    ),
    "CommittedOffsetMonotone": Check(
        Part.QUEUE,
        ("CommitOffset", "ResetOffset"),
        "broker screen: each stored offset follows the one before it and is not smaller",
        events("ResetOffset"),
        screened=True,
    ),
    "OneOwnerPerQueue": absent(Part.QUEUE, events("LockQueue", outcome=Outcome.STEP), ("LockQueue", "UnlockQueue")),
    "InconsistentOffset": Check(
        Part.QUEUE,
        (*SENDS, *PULLS),
        "digest: whoever names a place names the same message there; rows of ranges that differ",
        events("SendBatch", outcome=OK),
        screened=True,
        shared=("FlushLog",),
    ),
    "SkippedPoll": Check(
        Part.QUEUE, ("Pull",), "client screen: pulls without holes", screened=True, shared=("FlushLog",)
    ),
    "NonmonotonicPoll": Check(Part.GROUP, ("Pull",), "client screen: pulls rise without holes", screened=True),
    "AbortedRead": absent(Part.MESSAGE, events(*SENDS, "Produce", outcome=FAIL), (*SENDS, *PULLS, "Produce", "Listen")),
    "HeldPullWakes": Check(
        Part.NODE,
        (*SENDS, *PULLS, "AppendMessage", "DispatchMessage", *LIFE),
        "client screen: no pull had to wait",
        events("PullFiltered", outcome=INVOKE),
        screened=True,
    ),
    "AnsweredWhenCalm": Check(
        Part.NODE,
        (),
        "client screen: every request has an answer that says yes; the oracle looks at requests of rare kinds",
        screened=True,
        blind="a decision of a producer that no broker takes, where the log is never flushed again",
    ),
    "CommittedOffsetKept": absent(
        Part.QUEUE, events("QueryOffset", outcome=INVOKE), ("CommitOffset", "QueryOffset"), shared=LIFE
    ),
    "NeverEarly": absent(
        Part.MESSAGE, events("SendDelayed", "SendBack", outcome=INVOKE), ("SendDelayed", "SendBack", *PULLS)
    ),
    "DelayedDelivered": Check(
        Part.MESSAGE,
        ("SendDelayed", *PULLS, "AppendMessage"),
        "absent: nothing to find without SendDelayed",
        events("SendDelayed"),
        shared=LIFE,
    ),
    "BatchWhole": absent(Part.QUEUE, events("SendBatch", outcome=INVOKE), ("SendBatch", "Pull")),
    "RetriedOrDead": absent(Part.MESSAGE, events("SendBack"), ("SendBack", *PULLS)),
    "FilteredPull": Check(
        Part.NODE,
        (*SENDS, *PULLS),
        "absent: nothing to find without PullFiltered",
        events("PullFiltered", outcome=OK),
        shared=("FlushLog",),
    ),
    "RouteKnown": absent(Part.NODE, events("QueryRoute", outcome=OK), ("QueryRoute", "Send", "SendBatch", *LIFE)),
    "MembersKnown": absent(Part.NODE, events("ViewRefresh", outcome=OK), ("Heartbeat", "Leave", "ViewRefresh", *LIFE)),
    "MembersTold": absent(Part.NODE, events("Heartbeat", "Leave", outcome=INVOKE), ()),
    "FreeQueueLent": absent(Part.QUEUE, events("LockQueue", outcome=OK), ("LockQueue", "UnlockQueue"), shared=LIFE),
    "FlushedInTime": Check(
        Part.NODE,
        (),
        "broker screen: no record waits long for its flush",
        screened=True,
    ),
    "IndexFindsEveryKey": Check(
        Part.MESSAGE,
        ("Send", "SendBatch", "QueryKey"),
        "absent: nothing to find without QueryKey",
        events("QueryKey", outcome=OK),
        shared=("FlushLog",),
    ),
    "BoundsExact": absent(
        Part.QUEUE,
        events("QueryBounds", outcome=OK),
        ("AppendMessage", "Send", "SendBatch", *PULLS, "QueryBounds"),
        shared=("ExpireFile",),
    ),
    "WellFormed": Check(
        Part.STREAM,
        (),
        "record screen: every event alone, its number and its time; client screen: requests and outcomes",
        screened=True,
    ),
    "SidesAgree": Check(
        Part.NODE,
        (),
        "digest: acknowledged is what producers were told, served what was consumed, stored what was committed",
        events("PullFiltered", "QueryBounds", outcome=INVOKE),
        screened=True,
        blind=f"{CLOCKS}; the end of a queue that a pull was told, as long as the queue came so far in the end",
    ),
    "NodeCoherent": Check(
        Part.NODE, (), "broker screen: each step of the log follows from the one before it", screened=True
    ),
    "NoSkippedOffset": absent(
        Part.GROUP, events("AcquireQueue", "PullMessages"), (*GROUPS, "PullMessages"), shared=STORED
    ),
    "EveryMessageConsumed": absent(Part.GROUP, events("Produce", "AcquireQueue"), GROUPS, shared=STORED),
    "OrderlyInOrder": absent(Part.GROUP, events("Listen", outcome=INVOKE), GROUPS, shared=STORED),
    "LeaveCommits": absent(Part.GROUP, events("AcquireQueue"), GROUPS, shared=STORED),
    "CommittedInTime": absent(Part.GROUP, events("Listen", outcome=OK), GROUPS, shared=STORED),
    "AllQueuesOwned": absent(
        Part.GROUP,
        events("Subscribe", outcome=OK),
        ("Subscribe", "AcquireQueue", "ReleaseQueue", "RouteRefresh", "Leave"),
    ),
    "OneListenerPerQueue": absent(Part.GROUP, events("Listen", outcome=INVOKE), ("Subscribe", "Listen")),
    "OnlyHoldersAct": Check(
        Part.GROUP,
        (
            "Subscribe",
            "LockQueue",
            "Listen",
            "PullMessages",
            "ConsumeStart",
            "CommitSend",
            "AcquireQueue",
            "ReleaseQueue",
            "Leave",
        ),
        "absent: nothing to find without what consumers do with a queue",
        (*events("Listen", outcome=INVOKE), *events("PullMessages", "ConsumeStart", "CommitSend")),
    ),
    "ListenedIsWanted": Check(
        Part.GROUP,
        (*STORED, "Listen", "ConsumeStart", "ConsumeFinish"),
        "absent: nothing to find without listeners",
        (*events("Listen", outcome=INVOKE), *events("ConsumeStart", "ConsumeFinish")),
        shared=STORED,
    ),
    "DeadAfterRetries": Check(
        Part.GROUP,
        ("Subscribe", "Listen", "AppendMessage"),
        "absent: nothing to find without listeners",
        events("Listen"),
        shared=("AppendMessage",),
    ),
    "NeverAskedEarly": absent(Part.MESSAGE, events("HalfRenewAndCheck"), ("SendHalf", "HalfRenewAndCheck")),
    "PullWithinLimits": Check(
        Part.GROUP,
        PULLS,
        "client screen: pulls are answered with what they asked for, and little of it",
        events("PullFiltered", outcome=OK),
        screened=True,
    ),
    "SettingsFollow": absent(Part.NODE, events("Configure"), ("Configure", "StartStore")),
    "ConsumedWhenCalm": Check(
        Part.WHOLE,
        (),
        "absent: nothing to find without Produce",
        events("Produce", outcome=INVOKE),
        thin=sorted({*FIELDS, *CLIENT_FIELDS} - {"Subscribe", "Leave", "Produce", "Listen"}),
    ),
}
"""Promise -> how it is checked."""

EVERYTHING_READ: Final = Check(Part.WHOLE, (), "nothing proves it: its oracle looks at everything", screened=True)
"""Of a promise that is new here: right and slow. A test fails where one is."""

CHECKS: Final[Mapping[str, Check]] = {name: _ROWS.get(name, EVERYTHING_READ) for name in ORACLES}

NOT_CHECKED: Final[Mapping[str, str]] = {}
"""Promises of the oracles that Spark cannot check, and why."""

AFTER_BROKER: Final = (
    "NodeCoherent",
    "QueueMatchesLog",
    "DurableAck",
    "NeverServeUnflushed",
    "FlushedInTime",
    "SidesAgree",
)
"""Whose oracles look at a broker that is not plainly regular."""


COLUMN_AFTER: Final = "Oracle"
"""The column of the vocabulary's table of promises beside which that of the checks stands."""


def in_a_word(invariant: str) -> str:
    """How a promise is checked, for a cell of a table."""
    if invariant in NOT_CHECKED:
        return f"no: {NOT_CHECKED[invariant]}"
    check = CHECKS.get(invariant)
    return f"{check.proof} (by {check.part})" if check is not None else ""


def with_checks(page: str) -> str:
    """The tables of the vocabulary, with a column more in that of the promises."""
    found, place = [], -1
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "Promise":
            place = cells.index(COLUMN_AFTER) + 1
            cells.insert(place, "Spark")
        elif place > 0 and line.startswith("| ---"):
            cells.insert(place, "---")
        elif place > 0 and line.startswith("| `"):
            cells.insert(place, in_a_word(cells[0].strip("`")))
        else:
            place = place if line.startswith("|") else -1
            found.append(line)
            continue
        found.append(f"| {' | '.join(cells)} |")
    return "\n".join(found) + "\n"


def as_markdown() -> str:
    """The table of the book: how each promise is checked, and what the quick way does not see."""
    rows = ["| Promise | Judged apart by | Proved clean by | Not seen without `--exact` |", "| --- | --- | --- | --- |"]
    for name, check in CHECKS.items():
        rows.append(f"| `{name}` | {check.part} | {check.proof} | {check.blind} |")
    return "\n".join(rows) + "\n"
