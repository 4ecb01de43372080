from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import UsageError
from refmq.protocol import versions
from refmq.protocol.headers import codec
from refmq.protocol.versions import HIGHER_VERSION, version_name, version_number

# Positions in upstream's list of versions.
KNOWN = {
    (4, 1, 0, True): 232,
    (4, 5, 2, False): 317,
    (4, 6, 0, False): 333,
    (4, 9, 3, False): 399,
    (4, 9, 4, False): 401,
    (4, 9, 8, False): 409,
    (5, 0, 0, False): 413,
    (5, 3, 1, False): 475,
    (5, 3, 3, False): 479,
}


@pytest.mark.parametrize(("version", "number"), KNOWN.items())
def test_the_numbers_are_those_of_upstream(version: tuple[int, int, int, bool], number: int) -> None:
    major, minor, patch, snapshot = version
    assert version_number(major, minor, patch, snapshot=snapshot) == number


def comes_back(major: int, minor: int, patch: int, snapshot: bool) -> None:
    name = version_name(version_number(major, minor, patch, snapshot=snapshot))
    assert name == f"V{major}_{minor}_{patch}{'_SNAPSHOT' if snapshot else ''}"


@given(st.integers(4, 5), st.integers(0, 9), st.integers(0, 9), st.booleans())
def test_the_name_of_a_number_is_that_of_its_version(major: int, minor: int, patch: int, snapshot: bool) -> None:
    comes_back(major, minor, patch, snapshot)


def test_the_property_catches_a_list_that_begins_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = version_number
    monkeypatch.setitem(
        comes_back.__globals__,
        "version_number",
        lambda major, minor, patch, *, snapshot: genuine(major, minor, patch, snapshot=snapshot) + 1,
    )
    with pytest.raises(AssertionError):
        comes_back(4, 9, 8, False)


def test_the_ends_of_the_list() -> None:
    assert version_number(5, 9, 9) == HIGHER_VERSION - 1
    assert version_name(HIGHER_VERSION) == version_name(10_000) == "HIGHER_VERSION"
    assert [version_name(number) for number in (28, 37, 62, 121)] == [
        "V3_0_7_SNAPSHOT",
        "V3_0_11",
        "V3_1_8_SNAPSHOT",
        "V3_4_9",
    ]
    assert version_name(100) == "V100"
    for wrong in ((3, 9, 9), (6, 0, 0), (4, 10, 0), (4, 0, 10), (4, -1, 0)):
        with pytest.raises(UsageError):
            version_number(*wrong)


@pytest.mark.parametrize("module", [versions, codec])
def test_the_examples_in_the_docstrings_are_true(module: object) -> None:
    found = doctest.testmod(module)  # type: ignore[arg-type] # a module, by parametrization
    assert found.attempted > 0
    assert found.failed == 0
