"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from refmq.testing import TestCluster


@pytest.fixture
def cluster() -> Iterator[TestCluster]:
    with TestCluster() as running:
        yield running
