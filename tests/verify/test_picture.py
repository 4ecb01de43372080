"""What a report draws, from lines."""

from __future__ import annotations

from collections import Counter

from refmq.verify.picture import BINS_MAX, Picture, picture_of_lines
from tests.verify.oracles.lines import Paper
from tests.verify.oracles.stories import GOOD


def test_a_picture_counts_what_it_draws() -> None:
    picture = picture_of_lines(GOOD)
    _, series = picture.binned()
    assert sum(series["stored"]) == sum(line.action == "AppendMessage" for line in GOOD)
    assert picture.consumed["g"] == 7 and picture.again["g"] == 0
    assert sum(count for (name, _), count in picture.latencies.items() if name == "Send") == 7
    assert [loan.granted for loan in picture.loans] == [True, False, False, True, True]
    assert {(lag.group, lag.end - lag.consumed_to) for lag in picture.lags if lag.group == "auditor"} == {
        ("auditor", 0)
    }


def test_duplicates_and_lag_are_seen() -> None:
    paper = Paper()
    for message in range(4):
        paper.send(message)
    paper.pull(0, 2)
    paper.pull(0, 2)
    picture = picture_of_lines(paper.lines)
    assert (picture.consumed["g"], picture.again["g"]) == (4, 2)
    assert [(lag.consumed_to, lag.end) for lag in picture.lags] == [(2, 4)]


def test_bins_are_few_however_long_a_trace_is() -> None:
    picture = Picture(Counter({(second, "handed out"): 1 for second in range(0, 100_000, 7)}))
    width, series = picture.binned()
    assert len(series["handed out"]) <= BINS_MAX and sum(series["handed out"]) == len(picture.seconds)
    assert width == 200
    assert Picture().binned() == (1, {})
