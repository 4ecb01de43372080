"""Headers of the POP family of 5.3.3 (200050 to 200056). The codes do not fit a binary header: JSON only."""

from __future__ import annotations

from dataclasses import dataclass

from refmq.protocol.headers.codec import Int32, Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class PopMessageRequest:
    """200050 POP_MESSAGE. Queue -1 means any; ``init_mode`` 0 starts at the minimum, 1 at the maximum."""

    consumer_group: str
    topic: str
    queue_id: Int32
    max_msg_nums: Int32
    invisible_time: Int64
    poll_time: Int64
    born_time: Int64
    init_mode: Int32
    exp_type: str | None = None
    exp: str | None = None
    order: bool | None = None
    attempt_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PopMessageResponse:
    """Answer to 200050."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32
    rest_num: Int64
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AckMessageRequest:
    """200051 ACK_MESSAGE."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class PeekMessageRequest:
    """200052 PEEK_MESSAGE."""

    topic: str
    queue_id: Int32
    max_msg_nums: Int32
    consumer_group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeInvisibleTimeRequest:
    """200053 CHANGE_MESSAGE_INVISIBLETIME."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    invisible_time: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeInvisibleTimeResponse:
    """Answer to 200053."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRequest:
    """200054 NOTIFICATION."""

    consumer_group: str
    topic: str
    queue_id: Int32
    poll_time: Int64
    born_time: Int64
    order: bool | None = None
    attempt_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationResponse:
    """Answer to 200054."""

    has_msg: bool
    polling_full: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingInfoRequest:
    """200055 POLLING_INFO."""

    consumer_group: str
    topic: str
    queue_id: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingInfoResponse:
    """Answer to 200055."""

    polling_num: Int32
