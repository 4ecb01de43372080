"""The figures of a broker: counters, rates and times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.broker.stats import BUCKETS, RateMeter, StatsTable, Times, Totals
from refmq.model.ids import TimestampMs
from refmq.plane.counts import Counts
from refmq.plane.effects import CountPull, CountPut, CountSend


def test_times_are_sorted_into_upstreams_buckets() -> None:
    times = Times()
    assert times.distribution() == "null"
    for took_ms in (0, 0, 1, 10, 11, 1_000, 1_001, 99_999):
        times.add(took_ms)
    assert times.distribution() == "null"  # the first minute is not over
    times.turn()
    assert times.distribution() == (
        "[<=0ms]:2 [0~10ms]:2 [10~50ms]:1 [50~100ms]:0 [100~200ms]:0 [200~500ms]:0 [500ms~1s]:1 "
        "[1~2s]:1 [2~3s]:0 [3~4s]:0 [4~5s]:0 [5~10s]:0 [10s~]:1 "
    )
    times.turn()
    assert times.distribution().count(":0 ") == len(BUCKETS)
    assert times.longest_ms == 99_999


@given(st.lists(st.integers(0, 30_000), min_size=1), st.sampled_from([0.5, 0.99, 0.999]))
def test_a_percentile_lies_in_the_bucket_of_the_exact_one(took_ms: list[int], share: float) -> None:
    times = Times()
    for each in took_ms:
        times.add(each)
    times.turn()
    rank = max(1, -(-len(took_ms) * share // 1))
    exact = sorted(took_ms)[int(rank) - 1]
    low, high = max((b for _, b in BUCKETS if b < exact), default=0), min(b for _, b in BUCKETS if b >= exact)
    assert low <= times.percentile_ms(share) <= min(high, max(times.longest_ms, high if high < 1 << 62 else 0))


def test_a_minute_without_puts_has_no_latency() -> None:
    times = Times()
    assert times.percentile_ms(0.99) == 0.0
    times.turn()
    assert times.percentile_ms(0.99) == 0.0


def test_rates_are_told_for_windows_that_are_full() -> None:
    meter = RateMeter()
    for second in range(62):
        meter.sample(TimestampMs(second * 1_000), Totals(put=5 * second, found=second, missed=2 * second))
    assert meter.rates(lambda totals: totals.put) == "5.0 5.0 "
    assert meter.rates(lambda totals: totals.pulled) == "3.0 3.0 "
    assert meter.rates(lambda totals: totals.transferred) == "0.0 0.0 "


@pytest.mark.parametrize("took_ms", [bound for _, bound in BUCKETS[:-1]])
def test_a_bound_belongs_to_the_bucket_below_it(took_ms: int) -> None:
    times = Times()
    times.add(took_ms)
    times.turn()
    name = next(name for name, bound in BUCKETS if bound == took_ms)
    assert f"[{name}]:1 " in times.distribution()


def counted(*effects: CountPull | CountSend | CountPut) -> Counts:
    counts = Counts()
    for effect in effects:
        if isinstance(effect, CountPull):
            counts.add_pull(effect, 3)
        else:
            counts.add(effect)
    return counts


def test_what_the_plane_counted_is_added_once_with_its_calls() -> None:
    table = StatsTable()
    sends = (CountSend("T", 16, 1_000, 0), CountSend("T", 1, 60, 5), CountSend("U", 1, 60, 0))
    pulls = (CountPull("g", "T", 0, 0, 0), CountPull("g", "T", 0, 4, 240), CountPull("g", "T", 1, 1, 60))
    table.take("c", counted(*sends, *pulls, CountPut(700)))
    assert (table.put_total, table.put_bytes_total) == (18, 1_120)
    assert (table.get_total, table.found_total, table.missed_total) == (5, 2, 1)
    found = {name: table.get(name, key) for name, key in (("TOPIC_PUT_NUMS", "T"), ("GROUP_GET_NUMS", "T@g"))}
    assert {name: (c.total, c.calls) for name, c in found.items() if c is not None} == {
        "TOPIC_PUT_NUMS": (17, 2),
        "GROUP_GET_NUMS": (5, 2),
    }
    latency = table.get("GROUP_GET_LATENCY", "0@T@g")
    assert latency is not None and (latency.total, latency.calls) == (6, 2)
    assert (table.put_times.longest_ms, table.get_times.longest_ms) == (700, 3)


def test_a_deleted_topic_or_group_leaves_no_figures() -> None:
    table = StatsTable()
    for topic, group in (("T", "g"), ("U", "g"), ("T", "h")):
        table.take("c", counted(CountPull(group, topic, 0, 1, 10)))
    table.take("c", counted(CountSend("T", 1, 10, 0)))
    table.forget_topic("T")
    assert table.get("GROUP_GET_LATENCY", "0@T@g") is None
    assert table.get("TOPIC_PUT_NUMS", "T") is None
    assert table.get("GROUP_GET_NUMS", "U@g") is not None
    table.forget_group("g")
    assert table.get("GROUP_GET_NUMS", "U@g") is None
    assert table.get("BROKER_GET_NUMS", "c") is not None
