"""The tallies of the hot path."""

from __future__ import annotations

from refmq.plane.counts import Counts, Tally
from refmq.plane.effects import CountPull, CountPut, CountRefusedSend, CountSend


def test_sends_are_tallied_by_topic_and_pulls_by_queue_and_group() -> None:
    counts = Counts()
    for count in (CountSend("T", 1, 10, 0), CountSend("T", 16, 100, 8), CountSend("U", 1, 10, 0), CountRefusedSend()):
        counts.add(count)
    counts.add_pull(CountPull("g", "T", 0, 0, 0), 2)
    counts.add_pull(CountPull("g", "T", 0, 3, 30), 4)
    counts.add(CountPut(7))
    assert counts.sends == {"T": Tally(2, 17, 110, 8), "U": Tally(1, 1, 10, 0)}
    assert counts.refused_sends == 1
    assert counts.pulls == {("T", 0, "g"): Tally(2, 3, 30, 6)}
    assert counts.found == {("T", 0, "g"): Tally(1, 3, 30, 4)}
    assert counts.pull_times_ms == {2: 1, 4: 1}
    assert counts.put_times_ms == {0: 2, 8: 1, 7: 1}
