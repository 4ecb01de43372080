"""TLC for the tests that hold traces against a specification."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from refmq.errors import MissingTool
from refmq.verify.spec.tlc import Tlc, find_tlc


@pytest.fixture(scope="session")
def tlc() -> Iterator[Tlc]:
    """TLC in a JVM that stays up: most of these runs take a tenth of a second, and a new JVM for each two or three.

    That a run finds the same there as in a process of its own is what tests/verify/spec/test_host.py shows.
    """
    try:
        found = find_tlc()
    except MissingTool as error:
        pytest.skip(str(error))
    with found.threads(1):
        yield found
