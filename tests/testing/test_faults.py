"""Faults on request."""

from __future__ import annotations

import pytest

from refmq import sync
from refmq.errors import SendFailed, UsageError
from refmq.testing import TestCluster


def test_faults_strike_as_often_as_they_shall(cluster: TestCluster) -> None:
    cluster.topic("Orders")
    with sync.Producer(cluster.namesrv, group="p") as producer:
        producer.send("Orders", b"0")
        cluster.faults.respond("SEND_MESSAGE_V2", "SYSTEM_BUSY", times=2)
        producer.send("Orders", b"1")  # the third attempt
        assert cluster.faults.waiting == 0
        assert len(cluster.faults.happened) == 2
        cluster.faults.respond("SEND_MESSAGE_V2", "SYSTEM_BUSY", times=3)
        with pytest.raises(SendFailed, match="SYSTEM_BUSY"):
            producer.send("Orders", b"2")
        cluster.faults.drop_answer("SEND_MESSAGE_V2")
        with pytest.raises(SendFailed) as caught:
            producer.send("Orders", b"3", timeout=0.3)
        assert caught.value.maybe_stored
        cluster.faults.close_connection("SEND_MESSAGE_V2")
        producer.send("Orders", b"4")
        cluster.faults.delay("SEND_MESSAGE_V2", 0.05)
        producer.send("Orders", b"5")
        cluster.faults.respond("*", 16)
        cluster.faults.clear()
    assert sorted(cluster.messages("Orders").bodies()) == [b"0", b"1", b"3", b"4", b"5"]
    with pytest.raises(UsageError, match="SEND_MESSAGE_V2"):
        cluster.faults.respond("SEND_MASSAGE", "SYSTEM_BUSY")
    with pytest.raises(UsageError, match="no response code"):
        cluster.faults.respond("SEND_MESSAGE", "BUSY")
