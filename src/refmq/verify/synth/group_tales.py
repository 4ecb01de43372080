"""Tales of what applications see: members of groups that take queues, listeners, retries; and who is where.

Each tale has a group of its own, because one promise may look at all that a group ever did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from refmq.trace.record import Outcome
from refmq.verify.synth.cluster import BROKER, CONSUMER, MS, PRODUCER, RECORD_BYTES
from refmq.verify.synth.teller import (
    CONSUMED,
    GROUP,
    HALF,
    INVOKE,
    OK,
    OTHER,
    READER,
    ROLLBACK,
    SELLER,
    Numbers,
    Teller,
)

FAIL: Final = Outcome.FAIL
MACHINE: Final = f"{CONSUMER}-0"
GROUPS: Final = tuple(f"group-{number}" for number in range(12))
PLAIN: Final = 1
"""The classes of messages that groups want, as bits; messages are of class 0 if nothing else is said."""

STRINGS: Final = (
    *(f"{group}@{MACHINE}.{member}" for group in GROUPS for member in (1, 2)),
    *(GROUPS[6], f"%DLQ%{GROUPS[6]}", MACHINE, f"{READER}@{BROKER}-0", f"{GROUP}@{BROKER}-0", f"flushDelay@{BROKER}-0"),
    *("Subscribe", "Produce", "AcquireQueue", "Listen", "SendBack", "QueryRoute", "Heartbeat", "ViewRefresh", "Leave"),
    *("HalfRenewAndCheck", "RoundStart", "Configure", "RouteRefresh", "Settled", "Parting", "flushDelay"),
)


def member(group: int, number: int = 1) -> str:
    return f"{GROUPS[group]}@{MACHINE}.{number}"


def asked(
    teller: Teller, action: str, *, outcome: int = OK, actor: str = READER, subject: str | None = None, **told: int
) -> None:
    """A request of a client and its outcome, with the same numbers."""
    teller.next_operation()
    told.setdefault("queue_id", teller.queue_id if action in ("Listen", "SendBack") else -1)
    for each in (INVOKE, outcome):
        teller.tell(CONSUMER, action, each, actor=actor, subject=subject, **told)


def subscribed(teller: Teller, actor: str, *, orderly: bool = False, retries_max: int = 16) -> None:
    asked(teller, "Subscribe", actor=actor, a=PLAIN, b=int(orderly), c=retries_max, d=1)


def produced(teller: Teller, kind: int = 0) -> Numbers:
    """An application sends a message; where it is stored."""
    message = teller.fresh()
    told: Numbers = {"a": kind, "c": message, "queue_id": -1, "operation": teller.operation}
    teller.tell(PRODUCER, "Produce", INVOKE, actor=SELLER, **told)
    place = teller.sent(message)
    teller.tell(PRODUCER, "Produce", OK, actor=SELLER, **told)
    return place


def acquired(teller: Teller, actor: str, start: int = 0) -> None:
    teller.tell(CONSUMER, "AcquireQueue", actor=actor, a=start, operation=0)


def listened(teller: Teller, actor: str, *places: Numbers, outcome: int = OK) -> None:
    for place in places:
        asked(teller, "Listen", outcome=outcome, actor=actor, b=place["b"], c=place["c"])


def noted(teller: Teller, what: str) -> None:
    """A note of whoever drives the cluster."""
    teller.tell(CONSUMER, what, actor=MACHINE, subject="", operation=0)


def begun(teller: Teller, group: int, *, orderly: bool = False, retries_max: int = 16) -> str:
    """A member that has the queue of the tale."""
    actor = member(group)
    subscribed(teller, actor, orderly=orderly, retries_max=retries_max)
    if orderly:
        teller.locked(actor)
    acquired(teller, actor)
    return actor


# --- groups ---------------------------------------------------------------------------------------------------------


def begins_too_late(teller: Teller) -> None:
    actor = member(0)
    subscribed(teller, actor)
    first, second = produced(teller), produced(teller)
    acquired(teller, actor, start=1)
    listened(teller, actor, first, second)


def never_consumed(teller: Teller) -> None:
    begun(teller, 1)
    produced(teller)


def out_of_order(teller: Teller) -> None:
    actor = begun(teller, 2, orderly=True)
    first, second = produced(teller), produced(teller)
    listened(teller, actor, second, first)


def two_listeners(teller: Teller) -> None:
    actor, other = begun(teller, 3, orderly=True), member(3, 2)
    subscribed(teller, other, orderly=True)
    acquired(teller, other)
    place = produced(teller)
    teller.next_operation()
    told: Numbers = {"b": place["b"], "c": place["c"], "operation": teller.operation}
    teller.tell(CONSUMER, "Listen", INVOKE, actor=actor, **told)
    listened(teller, other, place)
    teller.tell(CONSUMER, "Listen", OK, actor=actor, **told)


def unwanted(teller: Teller) -> None:
    actor = begun(teller, 4)
    listened(teller, actor, produced(teller, kind=1))


def not_a_holder(teller: Teller) -> None:
    subscribed(teller, member(5))
    listened(teller, member(5), produced(teller))


def dead_too_early(teller: Teller) -> None:
    actor = begun(teller, 6, retries_max=2)
    place = produced(teller)
    listened(teller, actor, place, outcome=FAIL)
    teller.stored(place["c"], f"%DLQ%{GROUPS[6]}", ack=False)


def not_all_owned(teller: Teller) -> None:
    actor = begun(teller, 7)
    teller.tell(CONSUMER, "RouteRefresh", actor=actor, a=2, queue_id=-1, operation=0)
    noted(teller, "Settled")
    asked(teller, "Leave", actor=actor)


def committed_late(teller: Teller) -> None:
    actor = begun(teller, 8)
    listened(teller, actor, produced(teller))
    teller.wait(11_000)
    noted(teller, "Settled")


def consumed_late(teller: Teller) -> None:
    actor = begun(teller, 9)
    teller.wait(15_000)  # nobody is busy with failures any more
    noted(teller, "Settled")
    place = produced(teller)
    teller.wait(5_000)
    listened(teller, actor, place)


def left_without_commit(teller: Teller) -> None:
    actor = begun(teller, 10)
    listened(teller, actor, produced(teller))
    noted(teller, "Settled")
    noted(teller, "Parting")
    asked(teller, "Leave", actor=actor)


# --- the rest -------------------------------------------------------------------------------------------------------


def not_retried(teller: Teller) -> None:
    place = teller.sent()
    teller.pulled(place)
    asked(teller, "SendBack", b=0, c=place["c"], d=16)


def not_in_the_route(teller: Teller) -> None:
    teller.sent()
    teller.wait(5_000)
    asked(teller, "QueryRoute")


def not_listed(teller: Teller) -> None:
    asked(teller, "Heartbeat", subject=GROUP)
    asked(teller, "ViewRefresh", actor=OTHER, subject=READER)


def not_told(teller: Teller) -> None:
    asked(teller, "Heartbeat", subject=GROUP)
    asked(teller, "Heartbeat", actor=OTHER, subject=GROUP)
    teller.wait(2_000)
    asked(teller, "Heartbeat", actor=OTHER, subject=GROUP)


def asked_early(teller: Teller) -> None:
    message = teller.fresh()
    immune_until_ms = teller.now_ns // MS + 60_000
    teller.tell(PRODUCER, "SendHalf", INVOKE, a=immune_until_ms, b=-1, c=message)
    place = teller.stored(message, HALF, ack=False)
    teller.tell(BROKER, "SendHalf", **place)
    teller.tell(PRODUCER, "SendHalf", OK, **place)
    teller.wait(1_000)
    renewed = teller.stored(message, HALF, ack=False)
    teller.tell(BROKER, "HalfRenewAndCheck", subject=HALF, queue_id=0, a=place["b"], b=renewed["b"], c=message, d=1)
    teller.decided(message, place["b"], ROLLBACK)


def not_marked(teller: Teller) -> None:
    message, half_offset = teller.half()
    said: Numbers = {"a": ROLLBACK, "b": half_offset, "c": message}
    teller.next_operation()
    teller.tell(PRODUCER, "EndTransaction", INVOKE, **said)
    teller.tell(BROKER, "EndTransaction", **said)
    for _ in range(2):
        teller.sent()
        teller.tell(BROKER, "RoundStart", subject=HALF, queue_id=0, a=half_offset)


def beyond_the_limit(teller: Teller) -> None:
    places = [teller.sent() for _ in range(3)]
    teller.next_operation()
    teller.tell(CONSUMER, "Pull", INVOKE, b=2, c=-1)
    for place in places:
        teller.tell(BROKER, "ServeMessage", **place, d=RECORD_BYTES)
        teller.tell(CONSUMER, "Pull", CONSUMED, **place, d=RECORD_BYTES)
    teller.tell(CONSUMER, "Pull", OK, b=3, c=3)


def set_to_something_else(teller: Teller) -> None:
    asked(teller, "Configure", subject="flushDelay", a=500, b=200)


def flushed_late(teller: Teller) -> None:
    message = teller.fresh()
    place: Numbers = {"a": teller.log_end, "b": 0, "c": message}
    teller.log_end += RECORD_BYTES
    teller.tell(BROKER, "AppendMessage", **place, d=RECORD_BYTES)
    teller.wait(15_000)
    teller.tell(BROKER, "FlushLog", subject="", a=teller.log_end)
    teller.tell(BROKER, "DispatchMessage", a=place["a"], b=0, d=RECORD_BYTES)


BAD: Final[Mapping[str, tuple[Callable[[Teller], None], tuple[str, ...]]]] = {
    "not retried": (not_retried, ("RetriedOrDead",)),
    "not in the route": (not_in_the_route, ("RouteKnown",)),
    "member not listed": (not_listed, ("MembersKnown",)),
    "members not told": (not_told, ("MembersTold",)),
    "asked too early": (asked_early, ("NeverAskedEarly",)),
    "decided and not marked": (not_marked, ("DecidedIsMarked",)),
    "more than was asked for": (beyond_the_limit, ("PullWithinLimits",)),
    "set to something else": (set_to_something_else, ("SettingsFollow",)),
    "flushed late": (flushed_late, ("FlushedInTime",)),
    "begins too late": (begins_too_late, ("NoSkippedOffset",)),
    "never consumed": (never_consumed, ("EveryMessageConsumed",)),
    "listens out of order": (out_of_order, ("OrderlyInOrder",)),
    "two listeners at once": (two_listeners, ("OneListenerPerQueue",)),
    "unwanted message": (unwanted, ("ListenedIsWanted",)),
    "listens without a queue": (not_a_holder, ("OnlyHoldersAct",)),
    "dead too early": (dead_too_early, ("DeadAfterRetries",)),
    # These speak of times at which everything is at rest. What comes after must not take that back.
    "queue without an owner": (not_all_owned, ("AllQueuesOwned",)),
    "committed late": (committed_late, ("CommittedInTime",)),
    "consumed late": (consumed_late, ("ConsumedWhenCalm",)),
    "left without a commit": (left_without_commit, ("LeaveCommits",)),
}
"""Name -> tale, and what it breaks."""
