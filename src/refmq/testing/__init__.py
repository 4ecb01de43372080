"""A RocketMQ for tests: real sockets on loopback, a clock that the test owns, faults on request.

The pytest fixture `refmq` is a `TestCluster`; it can also be used without pytest:

    with TestCluster() as refmq:
        run_my_application(namesrv=refmq.namesrv)
"""

from __future__ import annotations

from refmq.testing.cluster import Stored, TestCluster

__all__ = ["Stored", "TestCluster"]
