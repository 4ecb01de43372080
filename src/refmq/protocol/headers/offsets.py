"""Headers of the requests about offsets: consumer offsets (14, 15) and the bounds of a queue (29 to 32).

``bname`` is the name of the broker that the client means to talk to; 4.9.8 clients send it with all of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from refmq.protocol.headers.codec import Int32, Int64, Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryConsumerOffsetRequest:
    """14 QUERY_CONSUMER_OFFSET."""

    consumer_group: str
    topic: str
    queue_id: Int32
    set_zero_if_not_found: bool | None = None  # 5.3.3
    broker_name: Annotated[str | None, Wire("bname")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryConsumerOffsetResponse:
    """Answer to 14. An unknown offset is response code 22, not an offset."""

    offset: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateConsumerOffsetRequest:
    """15 UPDATE_CONSUMER_OFFSET."""

    consumer_group: str
    topic: str
    queue_id: Int32
    commit_offset: Int64
    broker_name: Annotated[str | None, Wire("bname")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateConsumerOffsetResponse:
    """Answer to 15: no fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOffsetRequest:
    """29 SEARCH_OFFSET_BY_TIMESTAMP."""

    topic: str
    queue_id: Int32
    timestamp: Int64
    boundary_type: str | None = None  # 5.3.3: LOWER or UPPER in any case
    broker_name: Annotated[str | None, Wire("bname")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOffsetResponse:
    """Answer to 29."""

    offset: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class GetMaxOffsetRequest:
    """30 GET_MAX_OFFSET."""

    topic: str
    queue_id: Int32
    committed: bool | None = None  # 5.3.3
    broker_name: Annotated[str | None, Wire("bname")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetMaxOffsetResponse:
    """Answer to 30."""

    offset: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class GetMinOffsetRequest:
    """31 GET_MIN_OFFSET."""

    topic: str
    queue_id: Int32
    broker_name: Annotated[str | None, Wire("bname")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetMinOffsetResponse:
    """Answer to 31."""

    offset: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class GetEarliestMsgStoretimeRequest:
    """32 GET_EARLIEST_MSG_STORETIME."""

    topic: str
    queue_id: Int32
    broker_name: Annotated[str | None, Wire("bname")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetEarliestMsgStoretimeResponse:
    """Answer to 32."""

    timestamp: Int64
