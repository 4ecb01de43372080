"""What the properties of a message say to the broker that stores it."""

from __future__ import annotations

from refmq.protocol import names
from refmq.protocol.record import SYS_FLAG_TRANSACTION, TRANSACTION_COMMIT, TRANSACTION_NONE


def waits_for_flush(properties: dict[str, str]) -> bool:
    """Whether the answer waits until the message is as durable as the broker's mode promises."""
    return properties.get(names.WAIT_STORE_MSG_OK, "true").lower() != "false"


def delay_level(sys_flag: int, properties: dict[str, str]) -> int:
    """The level that a message asks for; half messages and rollbacks are never delayed."""
    if sys_flag & SYS_FLAG_TRANSACTION not in (TRANSACTION_NONE, TRANSACTION_COMMIT):
        return 0
    text = properties.get(names.DELAY_TIME_LEVEL, "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else 0
