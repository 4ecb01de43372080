"""Message trace: the records that say what became of a message, in the form that `queryMsgTraceById` reads.

Fields are separated by U+0001, a record ends with U+0002. What is missing is the word `null`, as Java writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

FIELD: Final = "\x01"
RECORD: Final = "\x02"
TRACE_BODY_MAX: Final = 128_000 - 10_000
"""Records are sent together up to so many characters (AsyncTraceDispatcher, 4.9.8)."""


class ConsumeReturn(IntEnum):
    """How a listener came out, by upstream's numbers."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    RETURN_NULL = 3
    FAILED = 4


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One record, and the keys by which it can be found: the id of the message and the message's own keys."""

    text: str
    keys: tuple[str, ...]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if value not in (None, "") else "null"


def _entry(keys: Iterable[str], *fields: object) -> TraceEntry:
    return TraceEntry(FIELD.join(_text(field) for field in fields) + RECORD, tuple(key for key in keys if key))


def pub_entry(
    *,
    at_ms: int,
    region: str,
    group: str,
    topic: str,
    msg_id: str,
    tag: str,
    keys: tuple[str, ...],
    broker_address: str,
    body_length: int,
    cost_ms: int,
    message_type: int,
    offset_msg_id: str,
    success: bool,
) -> TraceEntry:
    """A message was sent."""
    return _entry(
        (msg_id, *keys),
        "Pub",
        at_ms,
        region,
        group,
        topic,
        msg_id,
        tag,
        " ".join(keys),
        broker_address,
        body_length,
        cost_ms,
        message_type,
        offset_msg_id,
        success,
    )


def sub_before_entry(
    *, at_ms: int, region: str, group: str, request_id: str, msg_id: str, retry_times: int, keys: tuple[str, ...]
) -> TraceEntry:
    """A message is about to be consumed."""
    joined = " ".join(keys)
    return _entry((msg_id, *keys), "SubBefore", at_ms, region, group, request_id, msg_id, retry_times, joined)


def sub_after_entry(
    *,
    request_id: str,
    msg_id: str,
    cost_ms: int,
    success: bool,
    keys: tuple[str, ...],
    outcome: ConsumeReturn,
    at_ms: int,
    group: str,
) -> TraceEntry:
    """A message has been consumed, or not."""
    joined = " ".join(keys)
    fields = ("SubAfter", request_id, msg_id, cost_ms, success, joined, int(outcome), at_ms, group)
    return _entry((msg_id, *keys), *fields)


def end_transaction_entry(
    *,
    at_ms: int,
    region: str,
    group: str,
    topic: str,
    msg_id: str,
    tag: str,
    keys: tuple[str, ...],
    broker_address: str,
    transaction_id: str,
    state: str,
    from_check: bool,
) -> TraceEntry:
    """A transaction was decided. Its message type is always 2, commit."""
    joined = " ".join(keys)
    fields = (at_ms, region, group, topic, msg_id, tag, joined, broker_address, 2, transaction_id, state, from_check)
    return _entry((msg_id, *keys), "EndTransaction", *fields)


def packed(entries: Iterable[TraceEntry]) -> list[tuple[bytes, tuple[str, ...]]]:
    """Entries as message bodies with their keys, several to a body as long as it is not too long."""
    found: list[tuple[bytes, tuple[str, ...]]] = []
    texts: list[str] = []
    keys: dict[str, None] = {}
    length = 0
    for entry in entries:
        if texts and length + len(entry.text) > TRACE_BODY_MAX:
            found.append(("".join(texts).encode(), tuple(keys)))
            texts, keys, length = [], {}, 0
        texts.append(entry.text)
        keys.update(dict.fromkeys(entry.keys))
        length += len(entry.text)
    if texts:
        found.append(("".join(texts).encode(), tuple(keys)))
    return found
