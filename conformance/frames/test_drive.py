"""Both engines answer random frames alike and keep the same; and who does not is seen."""

from __future__ import annotations

import pytest

import refmq_fast
from conformance.frames.drive import compare, compare_pair

pytestmark = [
    pytest.mark.extension,
    pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
]

FRAMES = 4_000
EMPTY_WANTS_ALL = ("refmq.plane.pull", "frozenset(subscription.code_set)", "frozenset(subscription.code_set) or None")
OTHER_HASHES = ("refmq.store.index_file", "else value", "else value // 2 * 2")


@pytest.mark.parametrize("seed", [0, 1], ids=["async flush", "sync flush"])
def test_both_engines_answer_alike_and_keep_the_same(seed: int) -> None:
    count, found = compare(seed, FRAMES, progress=False)
    assert found is None
    assert count >= FRAMES


def test_another_answer_is_seen() -> None:
    """The reference takes a subscription without codes for one that wants everything."""
    _, found = compare_pair(2, 20 * FRAMES, progress=False, change=EMPTY_WANTS_ALL)
    assert found is not None
    assert "pulls, request" in found


def test_another_file_is_seen() -> None:
    """The reference puts keys under other numbers, and finds them there."""
    _, found = compare_pair(4, FRAMES // 4, progress=False, change=OTHER_HASHES)
    assert found is not None
    assert "index/0 differs" in found
