"""A line's numbers have the names of the vocabulary, and no others."""

from __future__ import annotations

import pytest

from refmq.model.vocabulary import CLIENT_FIELDS, CONSUMED_FIELDS, FIELDS, INVOKED_FIELDS, fields_of
from refmq.trace.record import Outcome
from refmq.verify.oracles import Line
from refmq.verify.oracles.fields import Fields

NUMBERS = {"a": 10, "b": 20, "c": 30, "d": 40}
NAMES = {
    name
    for table in (FIELDS, CLIENT_FIELDS, INVOKED_FIELDS, {"": CONSUMED_FIELDS})
    for names in table.values()
    for name in names
    if name
}


def line(action: str, outcome: Outcome) -> Line:
    return Line("n", action, outcome, 1, 2, "g@1", "t@b", 3, **NUMBERS)


def test_every_name_of_the_vocabulary_can_be_read() -> None:
    assert {name for name in vars(Fields) if not name.startswith("_")} == NAMES - {"count"}


@pytest.mark.parametrize("outcome", Outcome)
def test_a_name_reads_the_number_that_the_vocabulary_says(outcome: Outcome) -> None:
    for action in {**FIELDS, **CLIENT_FIELDS}:
        names = fields_of(action, outcome.name.lower())
        told = line(action, outcome)
        for number, name in enumerate(names):
            if name and name != "count":
                assert getattr(told, name) == list(NUMBERS.values())[number], (action, name)


def test_what_a_line_does_not_hold_cannot_be_read() -> None:
    with pytest.raises(AssertionError, match="Pull with outcome 2 has no physical_offset"):
        line("Pull", Outcome.OK).physical_offset  # noqa: B018 - reading it is the point
    assert line("Pull", Outcome.CONSUMED).physical_offset == 10


def test_a_changed_line_is_a_line() -> None:
    told = line("Send", Outcome.OK)._replace(d=5)
    assert told.status == 5
    assert line("Send", Outcome.INVOKE).message_class == 40
