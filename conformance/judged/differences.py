"""What TLC and the oracles do not both notice in one altered run (`agreement`), and why; and the same of the short and
the long trace modules (`short`)."""

from __future__ import annotations

from typing import Final

TLC, ORACLES, NOBODY = "TLC", "oracles", "nobody"
NUMBERS: Final = "both, by numbers"
EVENTS: Final = ("dropped", "doubled", "swapped")
"""What happens to a whole event; any other alteration is of a field."""

NUMBERED: Final = "TLC is not asked: the events are numbered. By its steps alone it is a run that could be"
LAST_WORD: Final = "a process that dies when everything is done, before it can tell of its stop, leaves the same"
SILENT: Final = "the clients of this run recorded no steps of Rebalance, so TLC lets them do what they like"
CLOCK: Final = "the oracles compare with the time of the event, which TLC does not get"
NOT_READ: Final = "no oracle reads it"
A_LABEL: Final = "only filters look at it; TLC compares it when recovery dispatches the message again"
UNREAD: Final = "the one that is altered is an op message, which nobody is served"
SUPERSEDED: Final = "no checkpoint speaks of this flush: a later one covers it"

NOT_BY_BOTH: Final[dict[tuple[str, str], tuple[str, str]]] = {
    **dict.fromkeys(
        [
            *((action, "dropped") for action in (
                "AckPut", "CommitOffset", "Heartbeat", "PersistOffsets", "RemoveMember", "ServeMessage",
            )),
            *((action, "doubled") for action in (
                "EndTransaction", "FlushIndex", "FlushLog", "FlushQueue", "Heartbeat", "LockQueue", "PersistOffsets",
                "PersistProgress", "ServeMessage", "WriteCheckpoint",
            )),
            *((action, "swapped") for action in (
                "AckPut", "AppendMessage", "CommitOffset", "EndTransaction", "FinishRecovery", "FlushQueue",
                "Heartbeat", "PersistOffsets", "PersistProgress", "RemoveMember", "SendHalf",
                "ServeMessage", "WriteOp",
            )),
        ],
        (NUMBERS, NUMBERED),
    ),
    ("StopStore", "dropped"): (ORACLES, LAST_WORD),
    ("CommitOffset", "after"): (ORACLES, SILENT),
    ("CommitOffset", "queue_id"): (ORACLES, SILENT),
    ("LockQueue", "at_ms"): (ORACLES, CLOCK),
    ("UnlockQueue", "at_ms"): (ORACLES, CLOCK),
    ("WriteCheckpoint", "queue_ms"): (ORACLES, CLOCK),
    ("FlushIndex", "entries_to"): (TLC, NOT_READ),
    ("TruncateLog", "log_ms"): (TLC, NOT_READ),
    ("WriteCheckpoint", "queues_to"): (TLC, NOT_READ),
    ("AppendMessage", "message"): (NOBODY, UNREAD),
    ("DispatchMessage", "tags_code"): (NOBODY, A_LABEL),
    ("FlushLog", "log_ms"): (NOBODY, SUPERSEDED),
}  # fmt: skip
"""Action and alteration -> who notices it, and why not both."""


def as_markdown() -> str:
    """The table of the book: what is not noticed by both."""
    rows = ["| Step | Altered | Noticed by | Why not by both |", "| --- | --- | --- | --- |"]
    by_reason: dict[tuple[str, str, str], list[str]] = {}
    for (action, what), (who, why) in sorted(NOT_BY_BOTH.items()):
        by_reason.setdefault((action, who, why), []).append(f"`{what}`" if what not in EVENTS else what)
    for (action, who, why), altered in by_reason.items():
        rows.append(f"| `{action}` | {', '.join(altered)} | {who} | {why} |")
    return "\n".join(rows) + "\n"


SHORT, LONG = "short", "long"
NO_WORD: Final = "the specification has no word for it, or numbers its own records"
TOLD_LATER: Final = "the appends are events of their own in a long trace, and must be explained in time"
MEANT: Final = "the short trace leaves it out: it is part of another action of the specification"
TWO_ANSWERS: Final = "two half messages are stored before either is answered; a short trace has only the answers"
KILLED: Final = "a killed process tells nothing: the start that follows says that it was"
MANY_QUEUES: Final = "nothing else tells how many queues a topic has"
SHARES: Final = (
    "who has which share depends on the order of the client ids and on a strategy, which no long trace tells"
)
NO_TRUST: Final = "that a client trusts its lock is no event; of loans the broker's own steps tell"
ANEW: Final = "the first commit of a group is part of AcquireQueue there"
TWICE: Final = "the specification starts a message again that is in the listener's hands"
VIEWS: Final = "a member that was not counted cannot be in an answer that has its number"

BY_ONE_MODULE: Final[dict[tuple[str, str], tuple[str, str]]] = {
    **dict.fromkeys(
        [
            *((action, "queue_id") for action in (
                "EndTransaction", "HalfDiscard", "HalfRemoved", "HalfRenewAndCheck", "ImmunityOver", "PullOps",
                "RoundFinish", "RoundStart", "SendHalf", "WriteOp",
            )),
            *(("EndTransaction", "status"), ("HalfRemoved", "op_offset"), ("WriteOp", "message")),
            *(("SendHalf", "check_times"), ("SendHalf", "physical_offset")),
            *(("ConsumeStart", "message"), ("ConsumeFinish", "message"), ("PullMessages", "status")),
            ("LockQueue", "granted"),
        ],
        (LONG, NO_WORD),
    ),
    ("RoundFinish", "swapped"): (LONG, TOLD_LATER),
    **dict.fromkeys([("CommitOffset", what) for what in ("dropped", "doubled", "after", "queue_id")], (LONG, ANEW)),
    **dict.fromkeys([("RouteRefresh", what) for what in ("dropped", "swapped")], (LONG, MEANT)),
    **dict.fromkeys([("UnlockQueue", what) for what in ("dropped", "doubled", "queue_id")], (LONG, MEANT)),
    ("ConsumeStart", "doubled"): (LONG, TWICE),
    ("Heartbeat", "swapped"): (LONG, VIEWS),
    ("SendHalf", "swapped"): (SHORT, TWO_ANSWERS),
    ("ProcessCrash", "dropped"): (SHORT, KILLED),
    ("RouteRefresh", "queues"): (SHORT, MANY_QUEUES),
    ("ViewRefresh", "dropped"): (SHORT, SHARES),
    ("ViewRefresh", "swapped"): (SHORT, SHARES),
    ("ReleaseQueue", "dropped"): (SHORT, NO_TRUST),
}  # fmt: skip
"""Action and alteration -> which trace module alone refuses it (`conformance.judged.short`), and why."""


def modules_as_markdown() -> str:
    """The table of the book: what only one of the two trace modules refuses."""
    rows = ["| Refused by | Step: altered | Why not by both |", "| --- | --- | --- |"]
    by_reason: dict[tuple[str, str], dict[str, list[str]]] = {}
    for (action, what), (who, why) in sorted(BY_ONE_MODULE.items()):
        by_reason.setdefault((who, why), {}).setdefault(what, []).append(f"`{action}`")
    for (who, why), altered in sorted(by_reason.items()):
        told = "; ".join(
            f"{', '.join(actions)}: {what if what in EVENTS else f'`{what}`'}" for what, actions in altered.items()
        )
        rows.append(f"| {who} | {told} | {why} |")
    return "\n".join(rows) + "\n"
