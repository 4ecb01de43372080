"""Where a message really belongs that lies elsewhere for a while: a half message, a delayed one.

The properties say it, and nothing protects them: a record may be damaged, or somebody may have made it up. A topic that
no record can name, or a queue with a number of 5,000 digits, must not reach whoever delivers the message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from refmq.plane.topic_rules import QUEUES_MAX, name_mistake
from refmq.protocol import names
from refmq.protocol.names import SCHEDULE_TOPIC, TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC

_DIGITS_MAX: Final = len(str(QUEUES_MAX))
_NEVER: Final = frozenset({SCHEDULE_TOPIC, TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC})
"""Where only the broker puts messages, each for a reason of its own: there a message would be delivered for ever."""


class RealPlace(NamedTuple):
    """A topic, and a queue of it."""

    topic: str
    queue_id: int


def real_place(properties: Mapping[str, str]) -> RealPlace | None:
    """Where a message with these properties belongs. None if they name no place to which one may go."""
    topic, queue = properties.get(names.REAL_TOPIC, ""), properties.get(names.REAL_QUEUE_ID, "")
    if name_mistake(topic) is not None or topic in _NEVER:
        return None
    if not (queue.isascii() and queue.isdigit() and len(queue) <= _DIGITS_MAX) or int(queue) >= QUEUES_MAX:
        return None
    return RealPlace(topic, int(queue))
