"""The steps of producers and consumers: routes, rebalancing, retries, offsets.

Pure: time and randomness are arguments, requests are effects.
"""

from __future__ import annotations

from typing import Final

from refmq.protocol.codes import RequestCode

__all__ = ["SERVED"]

SERVED: Final = frozenset(
    {
        RequestCode.CHECK_TRANSACTION_STATE,
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
        RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT,
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        RequestCode.CONSUME_MESSAGE_DIRECTLY,
        RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
    }
)
"""The requests of brokers that clients serve; the shells in `refmq.aio` dispatch them."""
