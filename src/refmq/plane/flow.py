"""Flow control: a request that would wait too long is refused at once, so that its sender can go elsewhere.

Upstream puts requests into queues before pools of threads, and refuses what finds its queue full or has waited in it
for too long. Here one event loop serves everything, so the queue of a kind is what has begun and is not answered yet
(sends that wait for their flush, mostly), and a request's time in the queue is that between the arrival of its last
byte and its turn. Above these bounds there is another one: a connection that asks faster than it is served is not read
from (`refmq.net.connection`).

    kind          requests         at most at once                   waited less than (with brokerFastFailureEnable)
    send          10 310 320 36    sendThreadPoolQueueCapacity       waitTimeMillsInSendQueue
    pull          11 361           pullThreadPoolQueueCapacity       waitTimeMillsInPullQueue
    heartbeat     34               heartbeatThreadPoolQueueCapacity  waitTimeMillsInHeartbeatQueue
    transaction   37               endTransactionPoolQueueCapacity   waitTimeMillsInTransactionQueue

Everything else is served whenever its turn comes, as upstream. (BrokerFastFailure, NettyRemotingAbstract, 4.9.8.)
"""

from __future__ import annotations

from collections.abc import Awaitable
from enum import Enum
from typing import Final, TypeVar

from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import TimestampMs
from refmq.protocol.codes import RequestCode

T = TypeVar("T")


class Kind(Enum):
    """Requests that share a queue."""

    SEND = "send"
    PULL = "pull"
    HEARTBEAT = "heartbeat"
    TRANSACTION = "transaction"


KINDS: Final[dict[int, Kind]] = {
    RequestCode.SEND_MESSAGE: Kind.SEND,
    RequestCode.SEND_MESSAGE_V2: Kind.SEND,
    RequestCode.SEND_BATCH_MESSAGE: Kind.SEND,
    RequestCode.CONSUMER_SEND_MSG_BACK: Kind.SEND,
    RequestCode.PULL_MESSAGE: Kind.PULL,
    RequestCode.LITE_PULL_MESSAGE: Kind.PULL,
    RequestCode.HEART_BEAT: Kind.HEARTBEAT,
    RequestCode.END_TRANSACTION: Kind.TRANSACTION,
}


def capacity(config: BrokerConfig, kind: Kind) -> int:
    """How many requests of a kind may be served at once."""
    match kind:
        case Kind.SEND:
            return config.send_thread_pool_queue_capacity
        case Kind.PULL:
            return config.pull_thread_pool_queue_capacity
        case Kind.HEARTBEAT:
            return config.heartbeat_thread_pool_queue_capacity
        case Kind.TRANSACTION:
            return config.end_transaction_pool_queue_capacity


def wait_limit_ms(config: BrokerConfig, kind: Kind) -> int:
    """How long a request of a kind may have waited for its turn."""
    match kind:
        case Kind.SEND:
            return config.wait_time_mills_in_send_queue
        case Kind.PULL:
            return config.wait_time_mills_in_pull_queue
        case Kind.HEARTBEAT:
            return config.wait_time_mills_in_heartbeat_queue
        case Kind.TRANSACTION:
            return config.wait_time_mills_in_transaction_queue


class FlowControl:
    """What is being served, by kind."""

    def __init__(self) -> None:
        self._begun: dict[Kind, dict[int, TimestampMs]] = {kind: {} for kind in Kind}
        self._last = 0

    def size(self, kind: Kind) -> int:
        return len(self._begun[kind])

    def head_wait_ms(self, kind: Kind, now_ms: TimestampMs) -> int:
        """For how long the oldest request of a kind has been waiting for its answer."""
        oldest = next(iter(self._begun[kind].values()), now_ms)
        return max(0, now_ms - oldest)

    def refusal(self, config: BrokerConfig, kind: Kind, waited_ms: int) -> str | None:
        """Why a request is refused, in upstream's words, or None. Both are answered with SYSTEM_BUSY."""
        size = self.size(kind)
        if size >= capacity(config, kind):
            return "[OVERLOAD]system busy, start flow control for a while"
        if config.broker_fast_failure_enable and waited_ms >= wait_limit_ms(config, kind):
            return (
                "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
                f"period in queue: {waited_ms}ms, size of queue: {size}"
            )
        return None

    async def serve(self, kind: Kind, work: Awaitable[T], now_ms: TimestampMs) -> T:
        """Serves a request that takes its time."""
        self._last += 1
        number, begun = self._last, self._begun[kind]
        begun[number] = now_ms
        try:
            return await work
        finally:
            del begun[number]
