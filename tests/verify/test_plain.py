"""Lines as sentences: every template fits the vocabulary, and what is rare is left to the words of the trace."""

from __future__ import annotations

from string import Formatter

import pytest

from refmq.model.vocabulary import fields_of
from refmq.trace.record import Outcome
from refmq.verify.plain import SENTENCES, sentence_of
from tests.verify.oracles.stories import CONSUMED, GOOD, find


@pytest.mark.parametrize(("action", "outcome"), list(SENTENCES))
def test_a_sentence_speaks_of_fields_that_the_event_has(action: str, outcome: str) -> None:
    known = {"actor", "queue", *fields_of(action, outcome)}
    wanted = {name for _, name, _, _ in Formatter().parse(SENTENCES[action, outcome]) if name}
    assert wanted <= known


def test_a_line_is_told_as_somebody_would_who_was_there() -> None:
    got = GOOD[find(GOOD, outcome=CONSUMED, c=2)]
    assert sentence_of(got) == "g@1 receives offset 1 of t/0 at b: message 2"
    append = GOOD[find(GOOD, action="AppendMessage")]
    assert sentence_of(append).startswith("stores message 1 as offset 0 of t/0 at b, at ")


def test_answers_and_decisions_are_told_in_words() -> None:
    lock = GOOD[0]._replace(action="LockQueue", outcome=Outcome.OK, actor="g@1", subject="t@b", queue_id=3, a=0)
    assert sentence_of(lock) == "g@1 is told whether it has the lock of t/3 at b: no"
    end = lock._replace(action="EndTransaction", outcome=Outcome.INVOKE, a=12, c=0xAB)
    assert sentence_of(end) == "g@1 decides to roll back: the half message ab"
    assert sentence_of(end._replace(a=0)) == "g@1 decides to wait: the half message ab"


def test_what_is_rare_has_no_sentence() -> None:
    assert sentence_of(GOOD[0]._replace(action="Unheard", outcome=Outcome.STEP)) == ""
