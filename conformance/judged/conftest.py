"""TLC for the tests that let it judge."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from refmq.errors import MissingTool
from refmq.verify.spec.tlc import Tlc, find_tlc


@pytest.fixture(scope="session")
def tlc() -> Iterator[Tlc]:
    """TLC in a JVM that stays up."""
    try:
        found = find_tlc()
    except MissingTool as error:
        pytest.skip(str(error))
    with found.threads(1):
        yield found
