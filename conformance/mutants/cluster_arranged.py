"""Mistakes that show where operators arrange something, where somebody forges a decision, where few requests may be in
flight, in records and copies, and where a broker stops.
"""

from __future__ import annotations

from typing import Final

from conformance.mutants.mistake import Seeded

SEEDED_ARRANGED: Final = (
    Seeded(
        "batch-born-at-the-broker",
        "",
        "The messages of a batch are born at the broker.",
        "refmq.plane.send",
        "host_of(frame.peer)",
        "snapshot.store_host",
        "sent_batch",
    ),
    Seeded(
        "sys-flags-dropped",
        "",
        "A broker drops the system flags that a message came with.",
        "refmq.plane.send",
        "else sys_flag",
        "else 0",
        "with_tag_flag",
    ),
    Seeded(
        "clock-back-delays",
        "",
        "A message that is due by a clock from before it was set back waits until that time comes again.",
        "refmq.broker.delay",
        "if unit.tags_code <= now_ms + self._levels.delay_ms(level) else now_ms",
        "",
        "DelayService._due_ms",
    ),
    Seeded(
        "member-of-last-group-only",
        "",
        "Of the groups of a connection only the last one is left when it closes.",
        "refmq.broker.clients",
        "(table.consumer_groups_of.get(member.connection) or frozenset()) | {name}",
        "frozenset({name})",
        "heartbeat",
    ),
    Seeded(
        "final-points-elsewhere",
        "",
        "A committed message names the place of its half in the queue, not in the log.",
        "refmq.broker.transactions",
        "prepared_transaction_offset=record.physical_offset",
        "prepared_transaction_offset=record.queue_offset",
        "Transactions._final_message",
    ),
    Seeded(
        "any-group-decides",
        "",
        "A producer of any group may decide on a half message.",
        "refmq.broker.transactions",
        "half.group != header.producer_group",
        "False",
        "Transactions.matching_half",
    ),
    Seeded(
        "immunity-starts-anew",
        "",
        "The immunity of a half message begins anew with each copy.",
        "refmq.broker.check_rounds",
        "first_ms if original is None else original.store_timestamp_ms",
        "first_ms",
        "CheckRounds._is_young",
    ),
    Seeded(
        "op-of-first-half-done",
        "",
        "The op message for the first half of a round counts as done, and the half is not passed.",
        "refmq.broker.check_rounds",
        "half_offset < before.first_half",
        "half_offset <= before.first_half",
        "CheckRounds.pull_ops",
    ),
    Seeded(
        "level-zero-is-dead",
        "",
        "A message that is sent back with the level left to the broker is dead at once.",
        "refmq.broker.handlers.send_back",
        "header.delay_level < 0",
        "header.delay_level <= 0",
        "consumer_send_msg_back",
    ),
    Seeded(
        "pump-forgotten",
        "",
        "A request that waited because others were in flight is not served when they are done.",
        "refmq.net.connection",
        "self._schedule_pump()",
        "pass",
        "Connection._finish",
    ),
    Seeded(
        "close-loses-answers",
        "",
        "What was written in the turn in which a connection is closed is lost.",
        "refmq.net.connection",
        "self._flush()\n    self.close_reason",
        "self.close_reason",
        "Connection.close",
    ),
    Seeded(
        "route-reads-as-writes",
        "",
        "A nameserver says that a topic has as many queues to read as to write.",
        "refmq.nameserver.registration",
        "read_queue_nums=topic.read_queue_nums",
        "read_queue_nums=topic.write_queue_nums",
        "with_topics",
    ),
    Seeded(
        "perm-always-all",
        "",
        "A nameserver says that everybody may read and write every topic.",
        "refmq.nameserver.registration",
        "perm=topic.perm",
        "perm=6",
        "with_topics",
    ),
    Seeded(
        "delete-leaves-route",
        "",
        "A topic that is deleted at a nameserver stays there.",
        "refmq.nameserver.topics",
        "tuple(queues) if cluster is None else tuple(table.clusters.get(cluster, ()))",
        "()",
        "delete_topic",
    ),
)
"""Beside those of `conformance.mutants.cluster`."""
