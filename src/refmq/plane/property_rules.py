"""What the properties of a message ask of the broker that stores it, and which of them it stores."""

from __future__ import annotations

from refmq.protocol import names
from refmq.protocol.record import SYS_FLAG_TRANSACTION, TRANSACTION_COMMIT, TRANSACTION_NONE, join_properties

LEVEL_DIGITS_MAX = 10
"""Delay levels with more digits are no numbers of Java's and count as none."""


def waits_for_flush(properties: dict[str, str]) -> bool:
    """Whether the answer waits until the message is as durable as the broker's mode promises."""
    return properties.get(names.WAIT_STORE_MSG_OK, "true").lower() != "false"


def is_half(properties: dict[str, str]) -> bool:
    """Whether a message is the first half of a transaction."""
    return properties.get(names.TRANSACTION_PREPARED, "").lower() == "true"


def delay_level(sys_flag: int, properties: dict[str, str]) -> int:
    """The level that a message asks for; half messages and rollbacks are never delayed."""
    if sys_flag & SYS_FLAG_TRANSACTION not in (TRANSACTION_NONE, TRANSACTION_COMMIT):
        return 0
    text = properties.get(names.DELAY_TIME_LEVEL, "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LEVEL_DIGITS_MAX else 0


def stored_properties(properties: dict[str, str], level: int) -> bytes:
    """The properties of a producer's message as they are stored: WAIT is for the broker and is left out.

    A delayed message keeps it, because the store writes the properties anew: as upstream does.
    """
    if level == 0 and names.WAIT_STORE_MSG_OK in properties:
        properties = {name: value for name, value in properties.items() if name != names.WAIT_STORE_MSG_OK}
    return join_properties(properties).encode()
