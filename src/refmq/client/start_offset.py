"""Where a group begins in a queue: at its committed offset, or where the consumer says when there is none.

    start          a normal topic                the retry topic of the group
    -------------  ----------------------------  --------------------------------------------
    last           the end of the queue          0: what was sent back waits to be consumed
    first          0                             0
    a time         the first message from then   the end of the queue, as upstream has it

(RebalancePushImpl.computePullFromWhere, 4.9.8.) Brokers answer 0 instead of "no offset" for a queue whose first
messages they still have in memory, so a new group on a young queue begins at 0 even with "last".
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Literal

from refmq.errors import UsageError
from refmq.protocol.bodies.heartbeat import ConsumeFromWhere
from refmq.protocol.names import RETRY_PREFIX

StartAt = Literal["first", "last"] | datetime


class Ask(Enum):
    """What has to be asked before the beginning is known."""

    NOTHING = 0
    END = 1
    TIME = 2


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where to begin: ``offset`` when nothing has to be asked, ``at_ms`` when a time decides."""

    ask: Ask
    offset: int = 0
    at_ms: int = 0


def beginning(start: StartAt, topic: str) -> Beginning:
    """Where a group without a committed offset begins in a queue of ``topic``."""
    is_retry = topic.startswith(RETRY_PREFIX)
    if isinstance(start, datetime):
        return Beginning(Ask.END) if is_retry else Beginning(Ask.TIME, at_ms=int(start.timestamp() * 1000))
    if start == "first" or is_retry:
        return Beginning(Ask.NOTHING)
    return Beginning(Ask.END)


def checked_start(start: object) -> StartAt:
    if isinstance(start, datetime):
        if start.tzinfo is None:
            raise UsageError("A time to start from needs a time zone: datetime(..., tzinfo=UTC).")
        return start
    if start == "first":
        return "first"
    if start == "last":
        return "last"
    raise UsageError(f"start is 'first', 'last' or a datetime, not {start!r}.")


def from_where(start: StartAt) -> ConsumeFromWhere:
    """What a heartbeat says of it."""
    if isinstance(start, datetime):
        return ConsumeFromWhere.CONSUME_FROM_TIMESTAMP
    if start == "first":
        return ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    return ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
