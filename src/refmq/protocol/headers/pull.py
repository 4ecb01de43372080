"""Headers of 11 PULL_MESSAGE and 361 LITE_PULL_MESSAGE, and the bits of their ``sysFlag``.

bit   name           meaning
----  -------------  ---------------------------------------------------------------
0x01  COMMIT_OFFSET  ``commitOffset`` is valid and is to be stored
0x02  SUSPEND        the broker may hold the request until a message comes
0x04  SUBSCRIPTION   use the expression of this request, not the heartbeat's
0x08  CLASS_FILTER   the subscription filters by class
0x10  LITE_PULL      sent by a lite pull consumer (4.9.8; 5.3.3 uses code 361)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import Annotated

from refmq.protocol.headers.codec import Int32, Int64, Wire


class PullSysFlag(IntFlag):
    """Bits of ``PullMessageRequest.sys_flag``."""

    COMMIT_OFFSET = 0x1
    SUSPEND = 0x2
    SUBSCRIPTION = 0x4
    CLASS_FILTER = 0x8
    LITE_PULL = 0x10


@dataclass(frozen=True, slots=True, kw_only=True)
class PullMessageRequest:
    """11 and 361."""

    consumer_group: str
    topic: str
    queue_id: Int32
    queue_offset: Int64
    max_msg_nums: Int32
    sys_flag: Int32
    commit_offset: Int64 = 0  # this and the next two are mandatory on paper; brokers take a missing one for 0
    suspend_timeout_millis: Int64 = 0
    subscription: str | None = None
    sub_version: Int64 = 0
    expression_type: str | None = None
    max_msg_bytes: Int32 | None = None  # 5.3.3
    request_source: Int32 | None = None  # 5.3.3, from a proxy
    proxy_forward_client_id: Annotated[str | None, Wire("proxyFrowardClientId")] = None  # 5.3.3; spelt that way
    broker_name: Annotated[str | None, Wire("bname")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PullMessageResponse:
    """Answer to 11 and 361. Codes 0, 19, 20 and 21 carry the first four: the Java client takes them for granted."""

    suggest_which_broker_id: Int64
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64
    offset_delta: Int64 | None = None  # 5.3.3
    topic_sys_flag: Int32 | None = None  # 5.3.3
    group_sys_flag: Int32 | None = None  # 5.3.3
    forbidden_type: Int32 | None = None  # 5.3.3
