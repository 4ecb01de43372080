"""The messages of a pull response: in C where it was built, record by record where C leaves one to the reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import refmq_fast
from refmq.client.message import ReceivedMessage, Settler, received_message
from refmq.errors import WireError
from refmq.model.ids import MessageQueue
from refmq.protocol.record import decode_record, read_size_and_magic

READER: Final = refmq_fast.MessageReader(ReceivedMessage) if refmq_fast.AVAILABLE else None


def read_messages(
    data: bytes,
    queue: MessageQueue,
    *,
    namespace: str | None = None,
    group: str = "",
    renamed: bool = False,
    settler: Settler | None = None,
    recorded: bool = False,
) -> Iterator[ReceivedMessage]:
    """The messages that ``queue`` gave, in their order. ``WireError`` at the first that is damaged.

    ``renamed`` says that the application may know their topic by another name: those of a namespace, and retries.
    What is ``recorded`` in a trace has a fingerprint. C makes neither.
    """
    at = 0
    while at < len(data):
        if READER is not None and not renamed and not recorded:
            found, at = READER.read(data, at, queue, queue.topic, queue.queue_id, settler)
            yield from found
            if at == len(data):
                return
        record = decode_record(data, at, error=WireError)
        at += read_size_and_magic(data, at)[0]
        yield received_message(
            record, queue.broker, namespace=namespace, group=group, settler=settler, recorded=recorded
        )
