"""The runtime table of a broker, as mqadmin reads it."""

from __future__ import annotations

import pytest

from refmq.broker.runtime import human_size, runtime_info
from tests.broker.harness import START_MS, Harness


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (3 << 19, "1.5 MiB"),
        (4 << 30, "4.0 GiB"),
        (1 << 60, "1024.0 PiB"),
    ],
)
def test_a_size_reads_as_upstream_prints_it(size_bytes: int, text: str) -> None:
    assert human_size(size_bytes) == text


def test_the_running_time_is_counted_from_the_start() -> None:
    world = Harness()
    world.now += (26 * 3600 + 3 * 60 + 4) * 1000
    table = runtime_info(world.broker, world.broker.meter)
    assert table["bootTimestamp"] == str(START_MS)
    assert table["runtime"] == "[ 1 days, 2 hours, 3 minutes, 4 seconds ]"


def test_every_value_is_text_and_an_empty_log_has_no_earliest_message() -> None:
    world = Harness()
    table = runtime_info(world.broker, world.broker.meter)
    assert {type(value) for value in table.values()} == {str}
    assert table["earliestMessageTimeStamp"] == "-1"
    world.send()
    table = runtime_info(world.broker, world.broker.meter)
    assert table["earliestMessageTimeStamp"] == str(START_MS)
