"""What all oracles read with: lines, tables that forget, pulls put together, and what a power loss may take."""

from __future__ import annotations

import pytest

from refmq.model.step import Event
from refmq.trace.record import Outcome, Recorded
from refmq.verify.oracles import base
from refmq.verify.oracles.base import Finding, Line, Polls, Power, Promises, Remembered, line_of

PLAIN = Line("b", "Pull", Outcome.INVOKE, 1, 0, "g@1", "t@b", 0, 0, 0, 0, 0)


def test_a_recorded_event_is_a_line_with_every_field_in_its_place() -> None:
    recorded = Recorded(Event("Send", "g@1", "t@b", 3, 4, 5, 6, 7), 8, 9, Outcome.OK, 10)
    line = line_of("broker-a#2", recorded)
    assert line == Line("broker-a", "Send", Outcome.OK, 10, 8, "g@1", "t@b", 3, 4, 5, 6, 7, 9)
    assert (line.queue, line.topic, line.group) == (("t", "b", 3), "t", "g")
    of_a_node = line._replace(subject="t", actor="g")
    assert (of_a_node.queue, of_a_node.group) == (("t", "broker-a", 3), "g"), "one queue, whoever tells of it"
    assert line._replace(subject="a@b@c").queue == ("a@b", "c", 3), "a topic may hold the sign itself"


def test_a_table_forgets_its_oldest_entry_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "REMEMBERED_MAX", 3)
    table: Remembered[int, str] = Remembered()
    for number in range(5):
        table[number] = "x"
    assert list(table) == [2, 3, 4]
    table[3] = "again"
    assert list(table) == [2, 3, 4]


def test_a_pull_is_put_together_from_what_it_brought() -> None:
    polls = Polls()
    other = PLAIN._replace(operation=2, outcome=Outcome.CONSUMED, b=9)
    one, two = (PLAIN._replace(outcome=Outcome.CONSUMED, b=number) for number in (0, 1))
    for line in (PLAIN, one, other, two, PLAIN._replace(action="Send", outcome=Outcome.OK)):
        assert polls.feed(line) is None
    poll = polls.feed(PLAIN._replace(outcome=Outcome.OK, a=0, b=2, c=5))
    assert poll is not None
    assert (poll.messages, poll.from_offset, poll.next_offset, poll.max_offset) == ((one, two), 0, 2, 5)
    assert polls.feed(PLAIN._replace(operation=2, outcome=Outcome.UNKNOWN)) is None
    gone = polls.feed(PLAIN._replace(operation=2, outcome=Outcome.OK))
    assert gone is not None and gone.messages == (), "a pull without an outcome takes its messages with it"


FLUSH = Line("b", "FlushLog", Outcome.STEP, 0, 0, "", "", -1, 100, 0, 0, 0)
LOSS = Line("b", "PowerLoss", Outcome.STEP, 0, 0, "", "", -1, 0, 0, 0, 0)


def test_a_power_loss_takes_what_no_flush_has_covered_when_nothing_more_was_promised() -> None:
    power = Power(Promises(flush_sync=False))
    assert power.feed(0, FLUSH) is None
    assert power.feed(1, FLUSH._replace(a=50)) is None, "a flush takes nothing back"
    begun_before = PLAIN._replace(action="Send", operation=5)
    assert power.feed(2, begun_before) is None
    assert power.feed(3, LOSS) == ("b", 100)
    assert power.feed(4, LOSS._replace(node="c")) == ("c", 0)
    begun_after = PLAIN._replace(action="Send", operation=6)
    power.feed(5, begun_after)
    news = begun_before._replace(outcome=Outcome.OK, a=100)
    assert power.is_gone(news)
    assert not power.is_gone(news._replace(a=99)), "it was flushed"
    assert not power.is_gone(begun_after._replace(outcome=Outcome.OK, a=100)), "it came after the loss"
    assert not power.is_gone(news._replace(subject="t@d")), "that broker lost nothing"


def test_with_synchronous_flush_nothing_is_forgiven() -> None:
    power = Power(Promises(flush_sync=True))
    assert power.feed(0, LOSS) is None
    assert not power.is_gone(PLAIN)


def test_a_finding_says_its_promise_and_what_is_wrong() -> None:
    assert str(Finding("NoInvention", "nobody sent it", 7)) == "NoInvention: nobody sent it"
