"""What a stored message must be beside what its sender said: the properties that brokers add, and what copies keep.

Copies are delayed messages that are delivered, finals of transactions, retries and dead letters. Whatever is not as it
should be makes another message of it, which nobody has sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Final

from refmq.protocol.record import Record, decode_properties

BY_BROKER: Final = {"CLUSTER": "DefaultCluster"}
"""What a broker adds to every message."""
SENDING: Final = frozenset({"WAIT"})
REDIRECTED: Final = frozenset({"REAL_TOPIC", "REAL_QID"})
DELAYED: Final = REDIRECTED | {"DELAY"}
TRANSACTION: Final = REDIRECTED | {
    *("TRAN_MSG", "PGROUP", "TRANSACTION_CHECK_TIMES", "CHECK_IMMUNITY_TIME_IN_SECONDS", "TRAN_PREPARED_QUEUE_OFFSET"),
}
SENT_BACK: Final = DELAYED | {"RETRY_TOPIC", "ORIGIN_MESSAGE_ID"}
FINAL: Final = 12
"""The bits of the system flag that say that a transaction is decided."""


def differences(record: Record, sent: Mapping[str, str], topic: str, ids: Set[str]) -> Iterator[str]:
    """How a record differs from what it must be, given what was sent to `topic`, and the ids of the original."""
    found = decode_properties(record.properties)
    is_copy = record.topic != topic
    for name, value in {**sent, **BY_BROKER, **({"RETRY_TOPIC": topic} if is_copy else {})}.items():
        if found.get(name) != value:
            yield f"{name} is {found.get(name)!r}, not {value!r}"
    known = sent.keys() | BY_BROKER.keys() | SENDING | DELAYED | TRANSACTION | (SENT_BACK if is_copy else set())
    if "DELAY" not in found and not record.sys_flag & FINAL and not is_copy:
        known -= REDIRECTED
    for name in found.keys() - known:
        yield f"nobody has set {name}"
    if is_copy and ids and found.get("ORIGIN_MESSAGE_ID") not in ids:
        yield f"it came from {found.get('ORIGIN_MESSAGE_ID')!r}, and the original is {sorted(ids)}"
    if bool(record.reconsume_times) is not is_copy:
        yield f"it was sent back {record.reconsume_times} times"
