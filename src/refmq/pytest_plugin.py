"""The pytest plugin: the fixture `refmq`, a RocketMQ of the test's own.

    def test_refund(refmq):
        refmq.topic("Orders")
        start_service(namesrv=refmq.namesrv)
        refmq.send("Orders", b"...")
        refmq.clock.advance(minutes=30)
        assert refmq.dlq("billing").bodies() == [b"..."]

A test that does not ask for it pays nothing: everything is imported when the fixture is first used.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from refmq.testing import TestCluster

FIXTURES = ("refmq", "refmq_session")
LINES_SHOWN = 60


@pytest.fixture
def refmq() -> Iterator[TestCluster]:
    """A nameserver and a broker on loopback, fresh for this test, in a thread of their own."""
    from refmq.testing import TestCluster

    with TestCluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def refmq_session() -> Iterator[TestCluster]:
    """The same for a whole run: topics and groups stay from test to test."""
    from refmq.testing import TestCluster

    with TestCluster() as cluster:
        yield cluster


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None]:
    """A test that fails shows what its brokers saw."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]  # pluggy's result, which has no type here
    used = [name for name in FIXTURES if name in getattr(item, "funcargs", {})]
    if report.when == "call" and report.failed:
        for name in used:
            events = item.funcargs[name].events()  # type: ignore[attr-defined]  # of a test function
            left_out = len(events) - LINES_SHOWN
            shown = [f"({left_out} earlier lines left out)", *events[-LINES_SHOWN:]] if left_out > 0 else events
            report.sections.append((f"what {name} saw", "\n".join(shown) or "nothing: no request came"))
