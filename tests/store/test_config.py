from __future__ import annotations

import pytest

from refmq.errors import UsageError
from refmq.store import StoreConfig


def test_the_defaults_are_those_of_java() -> None:
    config = StoreConfig()
    assert config.log_file_bytes == 1 << 30
    assert config.queue_file_bytes == 6_000_000
    assert config.index_file_bytes == 420_000_040
    assert config.ext_file_bytes == 48 << 20
    assert config.read_units_min == 800
    assert config.flush_page_bytes == 4096


def test_the_size_of_a_queue_file_is_rounded_up_to_whole_units() -> None:
    assert StoreConfig(queue_file_bytes=201).queue_file_bytes == 220
    assert StoreConfig(queue_file_bytes=200).queue_file_bytes == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"log_file_bytes": 0},
        {"log_file_bytes": 2**31},
        {"queue_file_bytes": 0},
        {"index_slots": 0},
        {"index_entries": 1},
        {"index_slots": 500_000_000},
        {"index_entries": 110_000_000},
        {"message_bytes_max": 9},
        {"page_bytes": 1000},
        {"ext_file_bytes": 10},
        {"piece_bytes": 19},
        {"flush_page_bytes": 0},
        {"read_units_min": 0},
    ],
)
def test_a_value_that_cannot_be_right_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        StoreConfig(**wrong)  # type: ignore[arg-type]  # names and values from the table above
