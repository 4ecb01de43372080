"""Where a group begins."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from refmq.client.start_offset import Ask, Beginning, beginning, checked_start, from_where
from refmq.errors import UsageError

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_group_without_an_offset_begins_where_it_is_told() -> None:
    assert beginning("first", "T") == Beginning(Ask.NOTHING, 0)
    assert beginning("last", "T") == Beginning(Ask.END)
    assert beginning(WHEN, "T") == Beginning(Ask.TIME, at_ms=1_767_225_600_000)
    assert beginning("last", "%RETRY%g") == Beginning(Ask.NOTHING, 0)
    assert beginning(WHEN, "%RETRY%g") == Beginning(Ask.END)


def test_heartbeats_say_where_a_group_begins() -> None:
    names = [from_where(checked_start(start)).name for start in ("first", "last", WHEN)]
    assert names == ["CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_TIMESTAMP"]
    with pytest.raises(UsageError, match="'first', 'last' or a datetime"):
        checked_start("end")
