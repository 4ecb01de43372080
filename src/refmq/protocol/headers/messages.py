"""Headers of the requests about single messages: queries (12, 33), send-back (36), transactions, recall (370)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from refmq.protocol.headers.codec import Int32, Int64, Wire

# Values of commitOrRollback; the transaction bits of a message's sysFlag.
TRANSACTION_UNKNOWN: Final = 0x0
TRANSACTION_COMMIT: Final = 0x8
TRANSACTION_ROLLBACK: Final = 0xC


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryMessageRequest:
    """12 QUERY_MESSAGE. With ``unique_key_query`` the key is a client's message id."""

    topic: str
    key: str
    max_num: Int32
    begin_timestamp: Int64
    end_timestamp: Int64
    unique_key_query: Annotated[bool | None, Wire("_UNIQUE_KEY_QUERY")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryMessageResponse:
    """Answer to 12; the body holds the messages. ``indexLastUpdatePhyoffset`` is spelt that way."""

    index_last_update_timestamp: Int64
    index_last_update_phyoffset: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewMessageRequest:
    """33 VIEW_MESSAGE_BY_ID: the physical offset out of the message id."""

    offset: Int64
    topic: str | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewMessageResponse:
    """Answer to 33: no fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSendMsgBackRequest:
    """36 CONSUMER_SEND_MSG_BACK. ``delay_level`` -1 means the dead letter queue, 0 that the broker chooses."""

    offset: Int64
    group: str
    delay_level: Int32
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int32 | None = None
    broker_name: Annotated[str | None, Wire("bname")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionRequest:
    """37 END_TRANSACTION, one-way. ``tran_state_table_offset`` is the queue offset of the half message."""

    producer_group: str
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    commit_or_rollback: Int32
    from_transaction_check: bool = False
    msg_id: str
    transaction_id: str | None = None
    topic: str | None = None  # 5.3.3
    broker_name: Annotated[str | None, Wire("bname")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionResponse:
    """Answer to 37, which no client reads: no fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTransactionStateRequest:
    """39 CHECK_TRANSACTION_STATE, one-way from a broker to a client; the body is the half message."""

    tran_state_table_offset: Int64
    commit_log_offset: Int64
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    topic: str | None = None  # 5.3.3
    broker_name: Annotated[str | None, Wire("bname")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeCheckHalfMessageRequest:
    """323 RESUME_CHECK_HALF_MESSAGE: the offset id of the half message."""

    msg_id: str | None = None
    topic: str | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallMessageRequest:
    """370 RECALL_MESSAGE (5.3.3)."""

    producer_group: str | None = None
    topic: str
    recall_handle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallMessageResponse:
    """Answer to 370."""

    msg_id: str
