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
)
"""Beside those of `conformance.mutants.group`."""
