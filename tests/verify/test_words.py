"""Witnesses: the lines that show a finding, in words."""

from __future__ import annotations

from refmq.trace.record import Outcome
from refmq.verify.words import AROUND_MAX, in_words, message_of, witnesses
from tests.verify.oracles.stories import CONSUMED, GOOD, find


def test_a_line_in_words_has_the_names_of_the_vocabulary() -> None:
    line = GOOD[find(GOOD, outcome=CONSUMED, c=2)]
    told = in_words(line)
    assert "client Pull consumed#" in told and "by g@1 on t@b/0" in told
    assert "queue_offset=1 message=0x2 size_bytes=100" in told
    assert "a=7" in in_words(line._replace(action="Unheard", outcome=Outcome.STEP, a=7))


def test_the_message_of_a_line_is_where_the_vocabulary_says() -> None:
    assert message_of(GOOD[find(GOOD, action="AppendMessage")]) == 1
    assert message_of(GOOD[find(GOOD, action="FlushLog")]) is None


def test_a_witness_ends_with_the_line_and_has_what_belongs_to_it() -> None:
    at = find(GOOD, outcome=CONSUMED, c=3)
    line, witness = witnesses(GOOD, [at], 1)[at]
    assert line == GOOD[at]
    assert witness[-1] == in_words(line)
    assert 1 < len(witness) <= AROUND_MAX
    assert any("AppendMessage" in told or "Send" in told for told in witness)
    assert witnesses(GOOD, [at], 0)[at] == (line, ())
    assert witnesses(GOOD, [len(GOOD) + 5], 1) == {}
