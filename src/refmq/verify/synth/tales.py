"""What happens once in a synthetic trace, after the rounds: transactions, delays, locks, lookups, pulls that wait.

Some tales are told in every trace and are all right. The others are told when violations are wanted; each breaks the
promises that stand beside its name. All happen at broker 0, each on a queue of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from refmq.trace.columns import record_dtype
from refmq.trace.record import KIND_EVENT
from refmq.verify.synth import group_tales
from refmq.verify.synth.cluster import BEGIN_NS, BROKER, CONSUMER, MS, PRODUCER, RECORD_BYTES, Cluster, Rows
from refmq.verify.synth.teller import (
    BROKER_0,
    COMMIT,
    CONSUMED,
    DELAYED,
    GROUP,
    HALF,
    INVOKE,
    OK,
    OPS,
    OTHER,
    READER,
    ROLLBACK,
    SELLER,
    TOPIC,
    UNKNOWN,
    Numbers,
    Teller,
    Told,
)

TALE_STRINGS: Final = (
    *(TOPIC, f"{TOPIC}@{BROKER_0}", HALF, OPS, DELAYED, READER, OTHER, SELLER, GROUP),
    *("SendHalf", "EndTransaction", "WriteOp", "SendDelayed", "LockQueue", "UnlockQueue", "QueryKey", "QueryBounds"),
    *("QueryOffset", "SendBatch", "PullFiltered", "Send", "Pull", "CommitOffset"),
    *("AppendMessage", "FlushLog", "DispatchMessage", "AckPut", "ServeMessage"),
    *group_tales.STRINGS,
)


# --- what is all right ------------------------------------------------------------------------------------------------


def transactions(teller: Teller) -> None:
    message, half = teller.half()
    teller.pulled(teller.decided(message, half, COMMIT))
    teller.decided(*teller.half(), ROLLBACK)


def delay(teller: Teller, *, wait_ms: int = 1_000, brought: bool = True) -> None:
    message, due_ms = teller.fresh(), teller.now_ns // MS + 1_000
    teller.tell(PRODUCER, "SendDelayed", INVOKE, a=due_ms, b=1, c=message)
    operation = teller.operation
    teller.stored(message, DELAYED)
    teller.tell(PRODUCER, "SendDelayed", OK, a=due_ms, b=1, c=message, operation=operation)
    teller.wait(wait_ms)
    if brought:
        teller.pulled(teller.stored(message, ack=False))


def locks(teller: Teller) -> None:
    teller.locked(READER)
    teller.unlocked(READER)
    teller.locked(OTHER)


# --- what is not ------------------------------------------------------------------------------------------------------


def half_visible(teller: Teller) -> None:
    message, half = teller.half()
    place = teller.stored(message)
    teller.pulled(place)
    teller.next_operation()
    said: Numbers = {"a": COMMIT, "b": half, "c": message}
    teller.tell(PRODUCER, "EndTransaction", INVOKE, **said)
    teller.tell(BROKER, "EndTransaction", **said)


def rolled_back_visible(teller: Teller) -> None:
    message, half = teller.half()
    teller.decided(message, half, ROLLBACK)
    teller.pulled(teller.stored(message))


def committed_twice(teller: Teller) -> None:
    message, half = teller.half()
    place = teller.decided(message, half, COMMIT)
    teller.pulled(place, teller.stored(message, ack=False))


def undecided(teller: Teller) -> None:
    teller.half()


def committed_and_gone(teller: Teller) -> None:
    teller.decided(*teller.half(), COMMIT)


def early(teller: Teller) -> None:
    delay(teller, wait_ms=100)


def never_delivered(teller: Teller) -> None:
    delay(teller, brought=False)


def two_owners(teller: Teller) -> None:
    teller.locked(READER)
    teller.locked(OTHER)


def free_and_refused(teller: Teller) -> None:
    teller.wait(40_000)
    teller.locked(READER)
    teller.unlocked(READER)
    teller.locked(OTHER, 0, tell_broker=False)


def key_not_found(teller: Teller) -> None:
    place = teller.sent()
    teller.wait(6_000)
    teller.next_operation()
    asked: Numbers = {"queue_id": -1, "c": place["c"]}
    teller.tell(CONSUMER, "QueryKey", INVOKE, a=-1, **asked)
    teller.tell(CONSUMER, "QueryKey", OK, **asked)


def wrong_bounds(teller: Teller) -> None:
    teller.sent()
    teller.wait(6_000)
    teller.next_operation()
    teller.tell(CONSUMER, "QueryBounds", INVOKE, a=-1, b=-1)
    teller.tell(CONSUMER, "QueryBounds", OK, b=7)


def wrong_offset(teller: Teller) -> None:
    teller.pulled(teller.sent())
    teller.next_operation()
    commit: Numbers = {"a": -1, "b": 1}
    teller.tell(CONSUMER, "CommitOffset", INVOKE, **commit)
    teller.tell(BROKER, "CommitOffset", actor=GROUP, **commit)
    teller.tell(CONSUMER, "CommitOffset", OK, **commit)
    teller.next_operation()
    teller.tell(CONSUMER, "QueryOffset", INVOKE, a=-1)
    teller.tell(CONSUMER, "QueryOffset", OK, a=5)


def torn_batch(teller: Teller) -> None:
    messages = [teller.fresh() for _ in range(3)]
    for message in messages:
        teller.tell(PRODUCER, "SendBatch", INVOKE, a=-1, b=-1, c=message)
    operation = teller.operation
    places = [teller.stored(message) for message in (messages[1], messages[0], messages[2])]
    for place in places:
        teller.tell(PRODUCER, "SendBatch", OK, **place, operation=operation)
    teller.pulled(*places)


def filter_passes_wanted(teller: Teller) -> None:
    teller.sent()
    teller.next_operation()
    teller.tell(CONSUMER, "PullFiltered", INVOKE, b=-1, c=1)
    teller.tell(CONSUMER, "PullFiltered", OK, b=1, c=1, d=20)


def skipped(teller: Teller) -> None:
    first, second = teller.sent(), teller.sent()
    teller.pulled(first, second)
    teller.pulled(second, end=2, actor=OTHER)


def slow_pull(teller: Teller) -> None:
    teller.next_operation()
    operation = teller.operation
    teller.tell(CONSUMER, "Pull", INVOKE, a=0, b=-1, c=-1, d=15_000)
    place = teller.sent()
    teller.wait(3_000)
    teller.tell(BROKER, "ServeMessage", **place, d=RECORD_BYTES)
    teller.tell(CONSUMER, "Pull", CONSUMED, **place, d=RECORD_BYTES, operation=operation)
    teller.tell(CONSUMER, "Pull", OK, b=1, c=1, operation=operation)


def nobody_answers(teller: Teller) -> None:
    message = teller.fresh()
    teller.tell(PRODUCER, "Send", INVOKE, a=-1, b=-1, c=message)
    teller.stored(message)
    teller.wait(3_000)
    teller.tell(PRODUCER, "Send", UNKNOWN, a=-1, b=-1, c=message)


Tale = Callable[[Teller], None]

GOOD: Final[Sequence[Tale]] = (transactions, delay, locks)
BAD: Final[Mapping[str, tuple[Tale, tuple[str, ...]]]] = {
    "half message visible": (half_visible, ("NoHalfVisible",)),
    "rolled back and visible": (rolled_back_visible, ("RolledBackNeverVisible",)),
    "committed twice": (committed_twice, ("CommittedOnce",)),
    "undecided half message": (undecided, ("EveryHalfDecided",)),
    "committed and gone": (committed_and_gone, ("CommittedVisible",)),
    "delivered early": (early, ("NeverEarly",)),
    "never delivered": (never_delivered, ("DelayedDelivered",)),
    "two owners of a queue": (two_owners, ("OneOwnerPerQueue",)),
    "free queue refused": (free_and_refused, ("FreeQueueLent",)),
    "key not found": (key_not_found, ("IndexFindsEveryKey",)),
    "wrong bounds": (wrong_bounds, ("BoundsExact",)),
    "wrong offset told": (wrong_offset, ("CommittedOffsetKept",)),
    "batch out of order": (torn_batch, ("BatchWhole",)),
    "filter passes what is wanted": (filter_passes_wanted, ("FilteredPull",)),
    "pull skips a message": (skipped, ("SkippedPoll", "AckedSurvives")),
    "slow pull": (slow_pull, ("HeldPullWakes",)),
    "nobody answers": (nobody_answers, ("AnsweredWhenCalm",)),
    **group_tales.BAD,
}
"""Name -> tale, and what it breaks. Some need a trace that ends with a quiet time."""


@dataclass(frozen=True)
class Tales:
    """The tales of one trace."""

    cluster: Cluster
    rounds: int
    bad: tuple[str, ...] = ()

    @staticmethod
    def names() -> tuple[str, ...]:
        return tuple(BAD)

    @staticmethod
    def breaks(name: str) -> tuple[str, ...]:
        return BAD[name][1]

    def told(self) -> dict[str, list[Told]]:
        operations = max(self.cluster.round_messages, 2 * self.cluster.queues) * self.rounds
        teller = Teller(
            BEGIN_NS + self.rounds * self.cluster.round_ns + 1_000 * MS,
            self.rounds * self.cluster.round_messages * RECORD_BYTES,
            operation=operations + 1,
        )
        for tale in (*GOOD, *(BAD[name][0] for name in self.bad)):
            tale(teller)
            teller.queue_id += 1
            teller.wait(1_000)
        return teller.told

    def rows(self, kind: str, numbers: Mapping[str, int], first_sequence: int) -> Rows:
        """The events of one kind of node; `numbers` has those of its strings."""
        told = self.told()[kind]
        rows = np.zeros(len(told), record_dtype())
        for at, event in enumerate(told):
            row = rows[at]
            row["kind"], row["outcome"], row["at_ns"] = KIND_EVENT, event.outcome, event.at_ns
            row["sequence"] = (first_sequence + at) & 0xFFFF_FFFF
            row["action"], row["actor"] = numbers[event.action], numbers[event.actor]
            row["subject"], row["queue_id"] = numbers[event.subject], event.queue_id
            for name, value in event.numbers.items():
                row[name] = value
        return rows
