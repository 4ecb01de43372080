"""Flow control refuses what would wait too long, and nothing else."""

from __future__ import annotations

import pytest

from refmq.broker.handlers import SERVED
from refmq.model.broker_config import BrokerConfig
from refmq.plane.flow import KINDS, Flow, Kind, busy, capacity, wait_limit_ms
from refmq.protocol.codes import RequestCode

CONFIG = BrokerConfig()
BUSY = "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: {}ms, size of queue: {}"
OVERLOAD = "[OVERLOAD]system busy, start flow control for a while"
SEND, PULL = RequestCode.SEND_MESSAGE, RequestCode.PULL_MESSAGE


def test_the_limits_are_upstreams() -> None:
    limits = {kind: (capacity(CONFIG, kind), wait_limit_ms(CONFIG, kind)) for kind in Kind}
    assert limits == {
        Kind.SEND: (10_000, 200),
        Kind.PULL: (100_000, 5_000),
        Kind.HEARTBEAT: (50_000, 31_000),
        Kind.TRANSACTION: (100_000, 3_000),
    }
    assert set(KINDS) <= SERVED


@pytest.mark.parametrize("code", KINDS)
def test_what_waited_as_long_as_the_limit_is_refused(code: int) -> None:
    limit_ms = wait_limit_ms(CONFIG, KINDS[code])
    assert busy(Flow(), CONFIG, code, limit_ms - 1) is None
    assert busy(Flow(), CONFIG, code, limit_ms) == BUSY.format(limit_ms, 0)
    assert busy(Flow(), BrokerConfig(broker_fast_failure_enable=False), code, 10 * limit_ms) is None


def test_what_has_no_kind_is_never_refused() -> None:
    assert busy(Flow(), CONFIG, RequestCode.GET_MAX_OFFSET, 1 << 40) is None
    assert Flow().begin(RequestCode.GET_MAX_OFFSET, 1, 0) == Flow()


def test_what_finds_as_many_as_the_capacity_is_refused_until_one_is_done() -> None:
    config = BrokerConfig(send_thread_pool_queue_capacity=2, broker_fast_failure_enable=False)
    flow = Flow().begin(SEND, 1, 1_000)
    assert busy(flow, config, SEND, 0) is None
    flow = flow.begin(SEND, 2, 1_500)
    assert busy(flow, config, SEND, 0) == OVERLOAD
    assert busy(flow, config, PULL, 0) is None
    assert (flow.size(Kind.SEND), flow.head_wait_ms(Kind.SEND, 1_600)) == (2, 600)
    flow = flow.end(SEND, 1)
    assert (flow.size(Kind.SEND), flow.head_wait_ms(Kind.SEND, 1_600)) == (1, 100)
    assert busy(flow, config, SEND, 0) is None
    flow = flow.end(SEND, 2)
    assert (flow.size(Kind.SEND), flow.head_wait_ms(Kind.SEND, 9_000)) == (0, 0)


def test_only_what_began_can_end() -> None:
    with pytest.raises(AssertionError):
        Flow().end(SEND, 1)
