"""Counters of a broker, now and a minute, an hour and a day ago: what 315 VIEW_BROKER_STATS_DATA returns.

Every counter is sampled: each 10 s for the last minute, each 10 min for the last hour, each hour for the last day. A
figure over a window is the difference between its newest and its oldest sample. (StatsItem, 4.9.8.)
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from refmq.model.ids import TimestampMs
from refmq.plane.counts import Counts

COUNTERS_MAX: Final = 100_000
"""The most counters kept; further names are not counted, so that random topics cannot fill the memory."""


class Stat(StrEnum):
    """What is counted; the comment after each names its key."""

    TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"  # topic
    TOPIC_PUT_SIZE = "TOPIC_PUT_SIZE"  # topic
    GROUP_GET_NUMS = "GROUP_GET_NUMS"  # topic@group
    GROUP_GET_SIZE = "GROUP_GET_SIZE"  # topic@group
    GROUP_GET_LATENCY = "GROUP_GET_LATENCY"  # queue@topic@group, ms
    SNDBCK_PUT_NUMS = "SNDBCK_PUT_NUMS"  # topic@group
    BROKER_PUT_NUMS = "BROKER_PUT_NUMS"  # cluster
    BROKER_GET_NUMS = "BROKER_GET_NUMS"  # cluster


class Period(StrEnum):
    """The window of a figure."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


SAMPLING: Final = {Period.MINUTE: (10_000, 7), Period.HOUR: (600_000, 7), Period.DAY: (3_600_000, 25)}
"""How often a sample is taken, in ms, and how many are kept."""


@dataclass(frozen=True, slots=True)
class Sample:
    at_ms: TimestampMs
    total: int
    calls: int


@dataclass(frozen=True, slots=True)
class Figure:
    """A counter over a window."""

    sum: int = 0
    tps: float = 0.0
    average: float = 0.0


class Counter:
    """One running total with its samples."""

    def __init__(self) -> None:
        self.total = 0
        self.calls = 0
        self.samples: dict[Period, deque[Sample]] = {
            period: deque(maxlen=kept) for period, (_, kept) in SAMPLING.items()
        }

    def add(self, amount: int, calls: int = 1) -> None:
        assert calls >= 1, "only what has happened is counted"
        self.total += amount
        self.calls += calls

    def sample(self, period: Period, now_ms: TimestampMs) -> None:
        samples = self.samples[period]
        if not samples:
            samples.append(Sample(TimestampMs(now_ms - SAMPLING[period][0]), 0, 0))
        samples.append(Sample(now_ms, self.total, self.calls))

    def figure(self, period: Period) -> Figure:
        samples = self.samples[period]
        if not samples:
            return Figure()
        first, last = samples[0], samples[-1]
        total, calls = last.total - first.total, last.calls - first.calls
        seconds = (last.at_ms - first.at_ms) / 1000
        return Figure(total, total / seconds if seconds else 0.0, total / calls if calls else 0.0)


RATE_WINDOWS_S: Final = (10, 60, 600)
SAMPLES_KEPT: Final = max(RATE_WINDOWS_S) + 1


class Totals(NamedTuple):
    """What a rate measures."""

    put: int = 0
    """Messages stored."""
    found: int = 0
    """Pulls that found messages."""
    missed: int = 0
    """Pulls that found none."""
    transferred: int = 0
    """Messages returned by pulls."""

    @property
    def pulled(self) -> int:
        return self.found + self.missed


class RateMeter:
    """Totals sampled once a second: how many per second over the last 10, 60 and 600 s."""

    def __init__(self) -> None:
        self._samples: deque[tuple[TimestampMs, Totals]] = deque(maxlen=SAMPLES_KEPT)

    def sample(self, now_ms: TimestampMs, totals: Totals) -> None:
        self._samples.append((now_ms, totals))

    def rates(self, which: Callable[[Totals], int]) -> str:
        """Three numbers separated by spaces; a window that is not full yet is left empty."""
        texts = []
        for window in RATE_WINDOWS_S:
            if len(self._samples) <= window:
                texts.append("")
                continue
            (first_ms, first), (last_ms, last) = self._samples[-1 - window], self._samples[-1]
            seconds = max(1, last_ms - first_ms) / 1000
            texts.append(str((which(last) - which(first)) / seconds))
        return " ".join(texts)


BUCKETS: Final = (
    ("<=0ms", 0), ("0~10ms", 10), ("10~50ms", 50), ("50~100ms", 100), ("100~200ms", 200), ("200~500ms", 500),
    ("500ms~1s", 1_000), ("1~2s", 2_000), ("2~3s", 3_000), ("3~4s", 4_000), ("4~5s", 5_000), ("5~10s", 10_000),
    ("10s~", 1 << 62),
)  # fmt: skip
"""The buckets times are sorted into: name and longest time, in ms."""


class Times:
    """How long something took: the longest ever, and the distribution over the last full minute."""

    def __init__(self) -> None:
        self.longest_ms = 0
        self._counts = [0] * len(BUCKETS)
        self._last: list[int] | None = None

    def add(self, took_ms: int, times: int = 1) -> None:
        assert took_ms >= 0 and times >= 1, "only what has happened is counted"
        self.longest_ms = max(self.longest_ms, took_ms)
        self._counts[bisect_left(BUCKETS, took_ms, key=lambda bucket: bucket[1])] += times

    def turn(self) -> None:
        """A minute is over."""
        self._last, self._counts = self._counts, [0] * len(BUCKETS)

    def distribution(self) -> str:
        """The last minute as upstream prints it; `null` before there is one."""
        if self._last is None:
            return "null"
        return "".join(f"[{name}]:{count} " for (name, _), count in zip(BUCKETS, self._last, strict=True))

    def percentile_ms(self, share: float) -> float:
        """The time that this share of the last minute did not exceed, interpolated within its bucket."""
        assert 0 < share <= 1, f"{share} is not a share of something"
        counts = self._last or []
        wanted, seen = share * sum(counts), 0
        for number, count in enumerate(counts):
            if count and seen + count >= wanted:
                low = BUCKETS[number - 1][1] if number else 0
                high = BUCKETS[number][1] if number < len(BUCKETS) - 1 else self.longest_ms
                return low + (high - low) * (wanted - seen) / count
            seen += count
        return 0.0


class StatsTable:
    """All counters of a broker."""

    def __init__(self) -> None:
        self._counters: dict[tuple[Stat, str], Counter] = {}
        self.put_total = 0
        self.put_bytes_total = 0
        self.put_failed_total = 0
        self.get_total = 0
        self.found_total = 0
        self.missed_total = 0
        self.put_times = Times()
        self.get_times = Times()
        self._mornings = {"Put": (0, 0), "Get": (0, 0)}

    def totals(self) -> Totals:
        return Totals(self.put_total, self.found_total, self.missed_total, self.get_total)

    def mornings(self) -> dict[str, tuple[int, int]]:
        """The totals of puts and gets as they were yesterday and today at midnight."""
        return dict(self._mornings)

    def turn_day(self) -> None:
        """At midnight: the totals of this morning become yesterday's."""
        self._mornings = {
            "Put": (self._mornings["Put"][1], self.put_total),
            "Get": (self._mornings["Get"][1], self.get_total),
        }

    def get(self, stat: str, key: str) -> Counter | None:
        try:
            return self._counters.get((Stat(stat), key))
        except ValueError:
            return None

    def add(self, stat: Stat, key: str, amount: int = 1, calls: int = 1) -> None:
        counter = self._counters.get((stat, key))
        if counter is None:
            if len(self._counters) >= COUNTERS_MAX:
                return
            counter = self._counters[(stat, key)] = Counter()
        counter.add(amount, calls)

    def take(self, cluster: str, counts: Counts) -> None:
        """Adds what the plane has counted since the last time."""
        self.put_failed_total += counts.refused_sends
        for topic, sent in counts.sends.items():
            self.put_total += sent.messages
            self.put_bytes_total += sent.size_bytes
            self.add(Stat.TOPIC_PUT_NUMS, topic, sent.messages, sent.calls)
            self.add(Stat.TOPIC_PUT_SIZE, topic, sent.size_bytes, sent.calls)
            self.add(Stat.BROKER_PUT_NUMS, cluster, sent.messages, sent.calls)
        for (topic, queue_id, group), pulled in counts.pulls.items():
            self.add(Stat.GROUP_GET_LATENCY, f"{queue_id}@{topic}@{group}", pulled.took_ms, pulled.calls)
            self.missed_total += pulled.calls
        for (topic, _, group), found in counts.found.items():
            self.missed_total -= found.calls
            self.found_total += found.calls
            self.get_total += found.messages
            self.add(Stat.GROUP_GET_NUMS, f"{topic}@{group}", found.messages, found.calls)
            self.add(Stat.GROUP_GET_SIZE, f"{topic}@{group}", found.size_bytes, found.calls)
            self.add(Stat.BROKER_GET_NUMS, cluster, found.messages, found.calls)
        for took_ms, times in counts.put_times_ms.items():
            self.put_times.add(took_ms, times)
        for took_ms, times in counts.pull_times_ms.items():
            self.get_times.add(took_ms, times)

    def sample(self, period: Period, now_ms: TimestampMs) -> None:
        """Takes a sample; call it once per period of `SAMPLING`."""
        for counter in self._counters.values():
            counter.sample(period, now_ms)

    def forget_topic(self, topic: str) -> None:
        """Drops every figure of a deleted topic."""
        for stat, key in [k for k in self._counters if topic in (k[1], *k[1].split("@")[-2:-1])]:
            del self._counters[(stat, key)]

    def forget_group(self, group: str) -> None:
        for stat, key in [k for k in self._counters if k[1].endswith(f"@{group}")]:
            del self._counters[(stat, key)]
