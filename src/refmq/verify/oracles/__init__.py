"""Oracles over traces: one small pure function per promise, under the promise's name in `refmq.model.vocabulary`.

They read what clients saw and what nodes say they did, never the nodes themselves, so they judge refmq, its
fast path and a real RocketMQ alike. `judge` runs all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from refmq.verify.oracles.agreement import sides_agree
from refmq.verify.oracles.base import Finding, Line, Promises, line_of
from refmq.verify.oracles.calm import answered_when_calm, held_pull_wakes
from refmq.verify.oracles.coherence import node_coherent
from refmq.verify.oracles.consumers import (
    committed_offset_kept,
    committed_offset_monotone,
    committed_offset_never_ahead,
    free_queue_lent,
    one_owner_per_queue,
)
from refmq.verify.oracles.delivery import (
    batch_whole,
    delayed_delivered,
    filtered_pull,
    never_early,
    retried_or_dead,
)
from refmq.verify.oracles.groups import (
    committed_in_time,
    every_message_consumed,
    leave_commits,
    no_skipped_offset,
    orderly_in_order,
)
from refmq.verify.oracles.lookups import bounds_exact, index_finds_every_key
from refmq.verify.oracles.members import (
    all_queues_owned,
    consumed_when_calm,
    dead_after_retries,
    listened_is_wanted,
    one_listener_per_queue,
    only_holders_act,
)
from refmq.verify.oracles.messages import (
    aborted_read,
    acked_survives,
    inconsistent_offset,
    no_invention,
    queue_matches_log,
)
from refmq.verify.oracles.partition import Key, Oracle, Partition, judge_in_parts, parts_of
from refmq.verify.oracles.polls import (
    durable_ack,
    flushed_in_time,
    never_serve_unflushed,
    nonmonotonic_poll,
    pull_within_limits,
    skipped_poll,
)
from refmq.verify.oracles.presence import members_known, members_told, route_known
from refmq.verify.oracles.records import well_formed
from refmq.verify.oracles.settings import settings_follow
from refmq.verify.oracles.transactions import (
    committed_once,
    committed_visible,
    decided_is_marked,
    every_half_decided,
    never_asked_early,
    no_half_visible,
    rolled_back_never_visible,
)

__all__ = [
    "NEED_INVOKES",
    "ORACLES",
    "Finding",
    "Key",
    "Line",
    "Oracle",
    "Partition",
    "Promises",
    "judge",
    "judge_group",
    "judge_in_parts",
    "line_of",
    "parts_of",
]

ORACLES: Final[Mapping[str, Oracle]] = {
    "AckedSurvives": acked_survives,
    "NoInvention": no_invention,
    "QueueMatchesLog": queue_matches_log,
    "DurableAck": durable_ack,
    "NeverServeUnflushed": never_serve_unflushed,
    "NoHalfVisible": no_half_visible,
    "RolledBackNeverVisible": rolled_back_never_visible,
    "CommittedOnce": committed_once,
    "EveryHalfDecided": every_half_decided,
    "CommittedVisible": committed_visible,
    "DecidedIsMarked": decided_is_marked,
    "CommittedOffsetNeverAhead": committed_offset_never_ahead,
    "CommittedOffsetMonotone": committed_offset_monotone,
    "OneOwnerPerQueue": one_owner_per_queue,
    "InconsistentOffset": inconsistent_offset,
    "SkippedPoll": skipped_poll,
    "NonmonotonicPoll": nonmonotonic_poll,
    "AbortedRead": aborted_read,
    "HeldPullWakes": held_pull_wakes,
    "AnsweredWhenCalm": answered_when_calm,
    "CommittedOffsetKept": committed_offset_kept,
    "NeverEarly": never_early,
    "DelayedDelivered": delayed_delivered,
    "BatchWhole": batch_whole,
    "RetriedOrDead": retried_or_dead,
    "FilteredPull": filtered_pull,
    "RouteKnown": route_known,
    "MembersKnown": members_known,
    "MembersTold": members_told,
    "FreeQueueLent": free_queue_lent,
    "FlushedInTime": flushed_in_time,
    "IndexFindsEveryKey": index_finds_every_key,
    "BoundsExact": bounds_exact,
    "WellFormed": well_formed,
    "SidesAgree": sides_agree,
    "NodeCoherent": node_coherent,
    "NeverAskedEarly": never_asked_early,
    "PullWithinLimits": pull_within_limits,
    "SettingsFollow": settings_follow,
    "NoSkippedOffset": no_skipped_offset,
    "EveryMessageConsumed": every_message_consumed,
    "OrderlyInOrder": orderly_in_order,
    "LeaveCommits": leave_commits,
    "CommittedInTime": committed_in_time,
    "AllQueuesOwned": all_queues_owned,
    "OneListenerPerQueue": one_listener_per_queue,
    "OnlyHoldersAct": only_holders_act,
    "ListenedIsWanted": listened_is_wanted,
    "DeadAfterRetries": dead_after_retries,
    "ConsumedWhenCalm": consumed_when_calm,
}
"""Promise -> the function that judges it. `ORACLES[name].partition` says by which key its lines may be judged apart."""

NEED_INVOKES: Final = frozenset({"SidesAgree", "AnsweredWhenCalm", "CommittedOffsetMonotone"})
"""They compare what brokers did with each request that a client noted down. Real clients note their steps only."""


def judge(lines: Sequence[Line], promises: Promises | None = None) -> list[Finding]:
    """Everything that is broken, in the order of the oracles."""
    chosen = promises or Promises()
    return [finding for oracle in ORACLES.values() for finding in oracle(lines, chosen)]


def judge_group(lines: Sequence[Line], promises: Promises | None = None) -> list[Finding]:
    """The same for a trace whose clients are real ones, which do not leave an `invoke` for each of their requests."""
    chosen = promises or Promises()
    return [f for name, oracle in ORACLES.items() if name not in NEED_INVOKES for f in oracle(lines, chosen)]
