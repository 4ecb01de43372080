"""The broker of a test cluster: it crashes, freezes and forgets when it is told to."""

from __future__ import annotations

import pytest

from refmq import sync
from refmq.errors import RefmqError, SendNotDurable
from refmq.model.broker_config import BrokerConfig
from refmq.testing import TestCluster


def test_a_crash_keeps_what_was_written_and_a_power_loss_what_was_flushed(cluster: TestCluster) -> None:
    cluster.topic("Orders", queues=1)
    cluster.send("Orders", b"1")
    address = cluster.broker.address
    cluster.broker.crash()
    assert not cluster.broker.is_up
    with pytest.raises(RefmqError):
        cluster.send("Orders", b"lost")
    cluster.broker.restart()
    assert cluster.broker.address == address
    assert cluster.messages("Orders").bodies() == [b"1"]
    cluster.clock.advance(seconds=5)  # flushed every half second
    cluster.send("Orders", b"2")
    cluster.broker.crash(lose_unflushed=True)
    cluster.broker.restart()
    assert cluster.messages("Orders").bodies() == [b"1"]
    cluster.send("Orders", b"3")
    assert cluster.messages("Orders").bodies() == [b"1", b"3"]


def test_a_frozen_flush_is_told_and_a_power_loss_then_takes_the_message() -> None:
    config = BrokerConfig(sync_flush_timeout=200)
    with TestCluster(config=config, sync_flush=True) as cluster:
        cluster.topic("Orders", queues=1)
        cluster.send("Orders", b"safe")
        cluster.faults.freeze_flush()
        with pytest.raises(SendNotDurable, match="FLUSH_DISK_TIMEOUT"):
            cluster.send("Orders", b"unsafe")
        cluster.broker.crash(lose_unflushed=True)
        cluster.broker.restart()
        assert cluster.messages("Orders").bodies() == [b"safe"]


def test_clients_that_fell_silent_are_forgotten_when_asked(cluster: TestCluster) -> None:
    cluster.topic("Orders")
    with sync.Consumer(cluster.namesrv, group="g", topics="Orders"):
        cluster.wait_for(lambda: len(cluster.members("g")) == 1)
        cluster.clock.advance(minutes=3)
        assert len(cluster.members("g")) == 1

        def forgotten() -> bool:
            """A heartbeat may have come just before the look; the next jump finds the client silent again."""
            cluster.expire_clients()
            if any("RemoveMember g" in line for line in cluster.events()):
                return True
            cluster.clock.advance(minutes=3)
            return False

        cluster.wait_for(forgotten)
