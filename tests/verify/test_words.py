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
    assert witness[-1] == line
    assert 1 < len(witness) <= AROUND_MAX
    assert any(told.action in ("AppendMessage", "Send") for told in witness)
    assert witnesses(GOOD, [at], 0)[at] == (line, ())
    assert witnesses(GOOD, [len(GOOD) + 5], 1) == {}


def test_a_pull_that_passed_something_is_shown_with_what_it_passed() -> None:
    lines = [line for line in GOOD if not (line.outcome == CONSUMED and line.c == 2)]
    at = find(lines, action="Pull", outcome=Outcome.OK)
    assert lines[at].a <= 1 < lines[at].b
    _, witness = witnesses(lines, [at], 1)[at]
    assert [line.action for line in witness if line.b == 1 and line.c == 2] == ["AppendMessage", "Send"]
    assert witness[-1] == lines[at] and len(witness) <= AROUND_MAX
    _, whole = witnesses(GOOD, [find(GOOD, action="Pull", outcome=Outcome.OK)], 1).popitem()[1]
    assert not any(line.action == "AppendMessage" and line.c == 2 for line in whole)
