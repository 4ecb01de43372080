"""Mistakes of producers, of copies for another attempt, and of what members believe."""

from __future__ import annotations

from typing import Final

from conformance.mutants.mistake import Seeded

SEEDED_ATTEMPTS: Final = (
    Seeded(
        "copy-dead-one-late",
        "",
        "A copy of a message that failed is dead one attempt late.",
        "refmq.plane.send",
        "(header.reconsume_times or 0) < retries_max",
        "(header.reconsume_times or 0) <= retries_max",
        "check_retry",
    ),
    Seeded(
        "newer-filter-ignored",
        "",
        "A broker keeps the filter that a group had first.",
        "refmq.broker.clients",
        "subscription.sub_version > known.sub_version",
        "subscription.sub_version < known.sub_version",
        "_update_subscriptions",
    ),
    Seeded(
        "retry-same-broker",
        "",
        "A message that one broker did not take is tried there again.",
        "refmq.client.faults",
        "queue.broker != last_broker",
        "queue.broker == last_broker or last_broker is None",
        "choose_queue",
    ),
    Seeded(
        "copy-loses-properties",
        "",
        "A copy for another attempt loses the properties of its message.",
        "refmq.aio.retries",
        "            **kept,\n",
        "",
    ),
    Seeded(
        "last-queue-unused",
        "",
        "A producer never uses the last queue of a broker.",
        "refmq.client.route",
        "range(data.write_queue_nums)",
        "range(max(1, data.write_queue_nums - 1))",
        "publish_queues",
    ),
    Seeded(
        "renews-only-one",
        "",
        "A member renews the lock of its first queue only.",
        "refmq.aio.member",
        "await self._lock(held)",
        "await self._lock(held[:1])",
        "GroupMember._renew_locks",
    ),
    Seeded(
        "locks-trusted-from-the-answer",
        "",
        "A member trusts a lock for twice as long as it may.",
        "refmq.client.rebalance",
        "asked_at_ms + TRUST_MS",
        "asked_at_ms + 2 * TRUST_MS",
        "lock_queue",
    ),
)
"""Beside those of `conformance.mutants.group`."""
