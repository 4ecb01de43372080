"""The one sum that the door to files does itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.model.disk import DiskUsage


@given(st.integers(1, 1 << 60), st.data())
def test_a_disk_is_used_by_what_is_not_free(total: int, data: st.DataObject) -> None:
    free = data.draw(st.integers(0, total))
    ratio = DiskUsage(total, free).used_ratio
    assert 0.0 <= ratio <= 1.0
    assert ratio == pytest.approx((total - free) / total)


def test_a_disk_of_no_size_is_not_full() -> None:
    """Some file systems give no size; a store on one goes on."""
    assert DiskUsage(0, 0).used_ratio == 0.0
