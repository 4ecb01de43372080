"""Charts: everything lies inside its frame, and what a bar or a percentile says is what was counted."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from refmq.verify.charts import HEIGHT, WIDTH, latencies, loans_chart, rates_chart, span, within
from refmq.verify.picture import Loan, Picture, picture_of_lines
from tests.verify.oracles.stories import GOOD

SECOND = 1_000_000_000


def picture_of(counts: list[int]) -> Picture:
    picture = Picture()
    for second, count in enumerate(counts):
        picture.seconds[1_700_000_000 + second, "stored"] += count
    return picture


@given(counts=st.lists(st.integers(0, 10_000), min_size=1, max_size=40).filter(any), at=st.integers(0, 100))
def test_lines_and_marks_lie_inside_the_frame(counts: list[int], at: int) -> None:
    marked_ns = (1_700_000_000 + at % len(counts)) * SECOND
    chart = rates_chart(picture_of(counts), [marked_ns])
    (points,) = re.findall(r'points="([^"]*)"', chart)
    pairs = [tuple(map(float, pair.split(","))) for pair in points.split()]
    assert all(0 <= x <= WIDTH + 0.1 and -0.1 <= y <= HEIGHT for x, y in pairs)
    assert len(pairs) == 2 * len(counts)
    (mark,) = re.findall(r'd="M([\d.]+) ', chart)
    assert 0 <= float(mark) <= WIDTH
    assert "something was found here" in chart and "something was found" not in rates_chart(picture_of(counts), [])


def test_a_bin_of_several_seconds_shows_events_a_second() -> None:
    chart = rates_chart(picture_of([100] * 1_000), [])
    assert ">100<" in chart and ">200<" not in chart


@given(st.dictionaries(st.integers(0, 40), st.integers(1, 1_000), min_size=1))
def test_so_many_requests_were_answered_within_a_time(counts: dict[int, int]) -> None:
    total = sum(counts.values())
    for part in (0.5, 0.9, 0.99, 1.0):
        exponent = within(counts, part)
        assert sum(count for each, count in counts.items() if each < exponent) >= part * total
        assert sum(count for each, count in counts.items() if each < exponent - 1) < part * total


def test_requests_have_a_row_each() -> None:
    picture = picture_of_lines(GOOD)
    rows = "".join(latencies(picture))
    assert rows.count("<tr>") == 1 + len({name for name, _ in picture.latencies})
    assert ET.fromstring(rows).tag == "table"


def test_a_loan_that_is_not_given_back_lasts_to_the_end() -> None:
    loan = Loan("t/0 at b", "g@1", SECOND, True)
    (width,) = re.findall(r'width="([\d.]+)" height="14"', loans_chart([loan], 11 * SECOND))
    (shorter,) = re.findall(
        r'width="([\d.]+)" height="14"', loans_chart([loan, Loan("t/0 at b", "g@1", 6 * SECOND, False)], 11 * SECOND)
    )
    assert float(width) > 1.9 * float(shorter) > 100


def test_times_are_told_in_their_unit() -> None:
    assert [span(exponent) for exponent in (3, 10, 20, 30, 34)] == ["8 ns", "1.02 µs", "1.05 ms", "1.07 s", "17.2 s"]
