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

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from rpds import HashTrieMap

from refmq.model.broker_config import BrokerConfig
from refmq.protocol.codes import RequestCode


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


_NOBODY: Final[HashTrieMap[int, int]] = HashTrieMap()


@dataclass(frozen=True, slots=True)
class Flow:
    """Requests that have begun and are not answered: kind -> number of the frame -> since when, in uptime."""

    begun: HashTrieMap[Kind, HashTrieMap[int, int]] = field(default_factory=HashTrieMap)

    def size(self, kind: Kind) -> int:
        return len(self.begun.get(kind) or _NOBODY)

    def head_wait_ms(self, kind: Kind, uptime_ms: int) -> int:
        """How long the oldest request of a kind has been waiting for its answer."""
        since = min((self.begun.get(kind) or _NOBODY).values(), default=uptime_ms)
        return max(0, uptime_ms - since)

    def begin(self, code: int, number: int, uptime_ms: int) -> Flow:
        """A request is being served. Requests without a kind are not counted."""
        kind = KINDS.get(code)
        if kind is None:
            return self
        numbers = self.begun.get(kind) or _NOBODY
        assert number not in numbers, "a request begins once"
        return replace(self, begun=self.begun.insert(kind, numbers.insert(number, uptime_ms)))

    def end(self, code: int, number: int) -> Flow:
        """A request that began has been answered."""
        kind = KINDS.get(code)
        if kind is None:
            return self
        numbers = self.begun.get(kind) or _NOBODY
        assert number in numbers, "only what began can end"
        return replace(self, begun=self.begun.insert(kind, numbers.remove(number)))


def busy(flow: Flow, config: BrokerConfig, code: int, waited_ms: int) -> str | None:
    """Why a request is refused, in upstream's words, or None. It is answered with SYSTEM_BUSY."""
    assert waited_ms >= 0, "nobody is served before asking"
    kind = KINDS.get(code)
    if kind is None:
        return None
    size = flow.size(kind)
    if size >= capacity(config, kind):
        return "[OVERLOAD]system busy, start flow control for a while"
    if config.broker_fast_failure_enable and waited_ms >= wait_limit_ms(config, kind):
        return (
            "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
            f"period in queue: {waited_ms}ms, size of queue: {size}"
        )
    return None
