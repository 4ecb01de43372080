"""Flow control refuses what would wait too long, and nothing else."""

from __future__ import annotations

import pytest

from refmq.broker.handlers import SERVED
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import TimestampMs
from refmq.plane.flow import KINDS, FlowControl, Kind, capacity, wait_limit_ms

CONFIG = BrokerConfig()
BUSY = "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: {}ms, size of queue: {}"
OVERLOAD = "[OVERLOAD]system busy, start flow control for a while"


def test_the_limits_are_upstreams() -> None:
    limits = {kind: (capacity(CONFIG, kind), wait_limit_ms(CONFIG, kind)) for kind in Kind}
    assert limits == {
        Kind.SEND: (10_000, 200),
        Kind.PULL: (100_000, 5_000),
        Kind.HEARTBEAT: (50_000, 31_000),
        Kind.TRANSACTION: (100_000, 3_000),
    }
    assert set(KINDS) <= SERVED


@pytest.mark.parametrize("kind", Kind)
def test_what_waited_as_long_as_the_limit_is_refused(kind: Kind) -> None:
    flow, limit_ms = FlowControl(), wait_limit_ms(CONFIG, kind)
    assert flow.refusal(CONFIG, kind, limit_ms - 1) is None
    assert flow.refusal(CONFIG, kind, limit_ms) == BUSY.format(limit_ms, 0)
    assert flow.refusal(BrokerConfig(broker_fast_failure_enable=False), kind, 10 * limit_ms) is None


def test_what_finds_as_many_as_the_capacity_is_refused_until_one_is_done() -> None:
    flow, config = FlowControl(), BrokerConfig(send_thread_pool_queue_capacity=2, broker_fast_failure_enable=False)

    class Never:
        def __await__(self):  # type: ignore[no-untyped-def]
            yield

    first, second = (flow.serve(Kind.SEND, Never(), TimestampMs(at)) for at in (1_000, 1_500))
    first.send(None)
    assert flow.refusal(config, Kind.SEND, 0) is None
    second.send(None)
    assert flow.refusal(config, Kind.SEND, 0) == OVERLOAD
    assert flow.refusal(config, Kind.PULL, 0) is None
    assert (flow.size(Kind.SEND), flow.head_wait_ms(Kind.SEND, TimestampMs(1_600))) == (2, 600)
    with pytest.raises(StopIteration):
        first.send(None)
    assert (flow.size(Kind.SEND), flow.head_wait_ms(Kind.SEND, TimestampMs(1_600))) == (1, 100)
    assert flow.refusal(config, Kind.SEND, 0) is None
    second.close()  # the connection's task was cancelled
    assert flow.size(Kind.SEND) == 0
    assert flow.head_wait_ms(Kind.SEND, TimestampMs(9_000)) == 0
