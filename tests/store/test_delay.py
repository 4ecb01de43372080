from __future__ import annotations

import pytest

from refmq.errors import UsageError
from refmq.protocol.record import decode_properties
from refmq.store.config import DELAY_LEVELS_DEFAULT
from refmq.store.delay import DelayLevels, clamped_offset, redirect


def test_the_levels_of_java() -> None:
    levels = DelayLevels.parse(DELAY_LEVELS_DEFAULT)
    assert levels.level_max == 18
    assert [levels.delay_ms(level) for level in (1, 5, 17, 18)] == [1000, 60_000, 3_600_000, 7_200_000]
    assert levels.delay_ms(19) == levels.delay_ms(0) == 1000
    assert DelayLevels.parse("2d 1H").delays_ms == (2 * 86_400_000, 3_600_000)


@pytest.mark.parametrize("text", ["1", "s", "1x", "-1s", "1.5s", "1s,5s"])
def test_a_wrong_table_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="delay level"):
        DelayLevels.parse(text)


def test_a_message_keeps_its_real_place_in_its_properties() -> None:
    levels = DelayLevels.parse("1s 5s")
    queue_id, properties = redirect(levels, 7, "T", 3, b"a\x01b\x02DELAY\x017")
    assert queue_id == 1
    assert decode_properties(properties) == {"a": "b", "DELAY": "2", "REAL_TOPIC": "T", "REAL_QID": "3"}


@pytest.mark.parametrize(("text", "due_ms"), [("1", 1100), ("2", 5100), ("02", 5100), ("9999999999", 5100)])
def test_a_level_says_when_a_message_is_due(text: str, due_ms: int) -> None:
    assert DelayLevels.parse("1s 5s").deliver_ms(text, 100) == due_ms


@pytest.mark.parametrize("text", ["", "0", "-1", "+1", " 1", "1_0", "1.0", "x", "\u0663", "00000000001", "9" * 5000])
def test_what_is_no_level_says_nothing(text: str) -> None:
    assert DelayLevels.parse("1s 5s").deliver_ms(text, 100) is None


@pytest.mark.parametrize(("offset", "clamped"), [(50, 10), (3, 5), (7, 7), (10, 10)])
def test_a_delivered_offset_is_put_back_into_its_queue(offset: int, clamped: int) -> None:
    assert clamped_offset(offset, 5, 10) == clamped
