"""What a peer may name when it makes the broker remember something: a topic, a group, a client.

Upstream's clients check names before they send. Who does not use one of them can send anything, and what a table holds
is sent to others, written to files and read back: so the same rules hold at every entry. Each check raises `WireError`,
whose text becomes the answer.
"""

from __future__ import annotations

from typing import Final

from refmq.errors import WireError
from refmq.model.ids import MessageQueue
from refmq.plane.offsets import OFFSET_TOPIC_LENGTH_MAX
from refmq.plane.topic_rules import QUEUES_MAX, is_legal_name
from refmq.protocol.names import GROUP_LENGTH_MAX

CLIENT_LENGTH_MAX: Final = 1024
"""Address, process, names of instance and unit: Java's are below 100."""

BROKER_LENGTH_MAX: Final = 255
SHOWN_MAX: Final = 60


def check_group(name: str) -> None:
    _require(is_legal_group(name), "group", f"a legal name of at most {GROUP_LENGTH_MAX} characters", name)


def check_topic(name: str) -> None:
    legal = is_legal_name(name) and len(name) <= OFFSET_TOPIC_LENGTH_MAX
    _require(legal, "topic", f"a legal name of at most {OFFSET_TOPIC_LENGTH_MAX} characters", name)


def check_client(name: str) -> None:
    _require(0 < len(name) <= CLIENT_LENGTH_MAX, "clientId", f"1 to {CLIENT_LENGTH_MAX} characters", name)


def check_queue(queue: MessageQueue) -> None:
    check_topic(queue.topic)
    _require(
        len(queue.broker) <= BROKER_LENGTH_MAX, "brokerName", f"at most {BROKER_LENGTH_MAX} characters", queue.broker
    )
    _require(0 <= queue.queue_id < QUEUES_MAX, "queueId", f"0 .. {QUEUES_MAX - 1}", queue.queue_id)


def is_legal_group(name: str) -> bool:
    return is_legal_name(name) and len(name) <= GROUP_LENGTH_MAX


def _require(holds: bool, field: str, expected: str, found: str | int) -> None:
    if not holds:
        raise WireError(field, 0, expected, found[:SHOWN_MAX] if isinstance(found, str) else found)
