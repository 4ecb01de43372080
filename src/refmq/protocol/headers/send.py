"""Headers of a send: requests 10, 310, 320, 324 and 325, their answer, and the push of a reply (326).

The same fourteen fields travel under two sets of names: in full (10, 324) and as one letter each (310, 320, 325).

    long name              letter  type  must be there  meaning
    ---------------------  ------  ----  -------------  --------------------------------------------------------
    producerGroup          a       str   no
    topic                  b       str   yes
    defaultTopic           c       str   no             template when the topic is to be created, TBW102
    defaultTopicQueueNums  d       i32   no             queues wanted when the topic is to be created
    queueId                e       i32   yes            negative: the broker chooses
    sysFlag                f       i32   yes            compression and transaction bits, see ``sys_flag``
    bornTimestamp          g       i64   yes            milliseconds
    flag                   h       i32   yes            the user's own
    properties             i       str   no             see ``properties``
    reconsumeTimes         j       i32   no             absent means 0
    unitMode               k       bool  no
    maxReconsumeTimes      l       i32   no             only for retry topics
    batch                  m       bool  no             true: the body is a batch, whatever the request code is
    bname                  n       str   no             name of the broker that the client means to talk to
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Final

from refmq.errors import UsageError
from refmq.protocol.command import RemotingCommand
from refmq.protocol.headers.codec import Int32, Int64, Wire, decode_header, encode_header


@dataclass(frozen=True, slots=True, kw_only=True)
class SendMessageRequest:
    """10, 310, 320, 324, 325. Encode with ``encode_send_header``, which knows the names that a code uses."""

    producer_group: str = ""  # this and the default topic are mandatory on paper, but never checked
    topic: str
    default_topic: str = ""
    default_topic_queue_nums: Int32 = 0
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool | None = False
    max_reconsume_times: Int32 | None = None
    batch: bool | None = False
    broker_name: Annotated[str | None, Wire("bname")] = None


SEND_MESSAGE: Final = 10
SEND_MESSAGE_V2: Final = 310
SEND_BATCH_MESSAGE: Final = 320
SEND_REPLY_MESSAGE: Final = 324
SEND_REPLY_MESSAGE_V2: Final = 325

LETTERS: Final = {
    "producerGroup": "a",
    "topic": "b",
    "defaultTopic": "c",
    "defaultTopicQueueNums": "d",
    "queueId": "e",
    "sysFlag": "f",
    "bornTimestamp": "g",
    "flag": "h",
    "properties": "i",
    "reconsumeTimes": "j",
    "unitMode": "k",
    "maxReconsumeTimes": "l",
    "batch": "m",
    "bname": "n",
}

_NAMES: Final = {
    SEND_MESSAGE: None,
    SEND_REPLY_MESSAGE: None,
    SEND_MESSAGE_V2: LETTERS,
    SEND_BATCH_MESSAGE: LETTERS,
    SEND_REPLY_MESSAGE_V2: LETTERS,
}


def encode_send_header(header: SendMessageRequest, code: int = SEND_MESSAGE_V2) -> dict[str, str]:
    """The ext fields of a send under the names that request code ``code`` uses."""
    if code not in _NAMES:
        raise UsageError(f"Request code {code} does not send a message; {sorted(_NAMES)} do.")
    return encode_header(header, names=_NAMES[code])


def decode_send_header(command: RemotingCommand) -> SendMessageRequest:
    """The header of a send request, whichever of the five codes it has."""
    if command.code not in _NAMES:
        raise UsageError(f"Request code {command.code} does not send a message; {sorted(_NAMES)} do.")
    return decode_header(SendMessageRequest, command, names=_NAMES[command.code])


@dataclass(frozen=True, slots=True, kw_only=True)
class SendMessageResponse:
    """Answer to a send.

    Codes 0, 10, 11 and 12 carry all of the first three. ``MSG_REGION`` and ``TRACE_ON`` belong in every answer, errors
    included: a Java client reads them without looking whether there are ext fields at all.
    """

    msg_id: str | None = None
    queue_id: Int32 | None = None
    queue_offset: Int64 | None = None
    transaction_id: str | None = None
    region: Annotated[str | None, Wire("MSG_REGION")] = None
    trace_on: Annotated[str | None, Wire("TRACE_ON")] = None
    batch_uniq_id: str | None = None  # 5.3.3
    recall_handle: str | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyMessageRequest:
    """326 PUSH_REPLY_MESSAGE_TO_CLIENT: a send header with the two hosts (``ip:port``) and the time of the store."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool | None = False
    born_host: str
    store_host: str
    store_timestamp: Int64


def reply_header(
    send: SendMessageRequest, *, born_host: str, store_host: str, store_timestamp: int
) -> ReplyMessageRequest:
    """The header that pushes the message of a send on."""
    shared = {
        field.name: getattr(send, field.name) for field in fields(ReplyMessageRequest) if hasattr(send, field.name)
    }
    return ReplyMessageRequest(**shared, born_host=born_host, store_host=store_host, store_timestamp=store_timestamp)
