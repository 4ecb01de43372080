"""What TLC and the oracles do not both notice in one altered run (`agreement`), and why."""

from __future__ import annotations

from typing import Final

TLC, ORACLES, NOBODY = "TLC", "oracles", "nobody"
EVENTS: Final = ("dropped", "doubled", "swapped")
"""What happens to a whole event; any other alteration is of a field."""

NUMBERED: Final = "the events are numbered, which oracles check; without the numbers it is a run that could be"
SILENT: Final = "the clients of this run recorded no steps of Rebalance, so TLC lets them do what they like"
CLOCK: Final = "the oracles compare with the time of the event, which TLC does not get"
NOT_READ: Final = "no oracle reads it"
A_LABEL: Final = "only filters look at it; TLC compares it when recovery dispatches the message again"
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
                "AckPut", "CommitOffset", "DispatchMessage", "EndTransaction", "FinishRecovery", "FlushQueue",
                "Heartbeat", "ImmunityOver", "PersistOffsets", "PersistProgress", "RemoveMember", "SendHalf",
                "ServeMessage", "WriteOp",
            )),
        ],
        (ORACLES, NUMBERED),
    ),
    ("CommitOffset", "after"): (ORACLES, SILENT),
    ("CommitOffset", "queue_id"): (ORACLES, SILENT),
    ("LockQueue", "at_ms"): (ORACLES, CLOCK),
    ("UnlockQueue", "at_ms"): (ORACLES, CLOCK),
    ("WriteCheckpoint", "queue_ms"): (ORACLES, CLOCK),
    ("FlushIndex", "entries_to"): (TLC, NOT_READ),
    ("TruncateLog", "log_ms"): (TLC, NOT_READ),
    ("WriteCheckpoint", "queues_to"): (TLC, NOT_READ),
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
