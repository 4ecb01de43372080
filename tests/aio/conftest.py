"""Brokers on each engine, for the tests that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines import EACH_ENGINE, on_engine


@pytest.fixture(params=EACH_ENGINE)
def each_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """The brokers of the test run on each engine, one after the other."""
    with on_engine(request):
        yield
