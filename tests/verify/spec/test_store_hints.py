"""Hints: every one leads to the event that it should."""

from __future__ import annotations

import pytest

from refmq.errors import UsageError
from refmq.model.step import Event
from refmq.verify.spec.store_hints import NAMES, Hinted, Row, checked_number, hinted

START = [
    Event("StartStore", a=1),
    Event("ScanLog"),
    Event("TruncateLog"),
    Event("WriteCheckpoint"),
    Event("FinishRecovery"),
]
FIRST = Event("AppendMessage", "", "T", 0, a=0, b=0, c=900, d=100)
SECOND = Event("AppendMessage", "", "T", 0, a=100, b=1, c=901, d=100)


def told(made: Hinted, number: int) -> dict[str, int]:
    """Row `number`, from 1, with the names of what it holds."""
    row = made.rows[number - 1]
    return dict(zip(NAMES[row.action], (row.queue, *row.fields, *row.hints), strict=True))


def rows_of(made: Hinted, action: str) -> list[Row]:
    return [row for row in made.rows if row.action == action]


def test_what_speaks_of_a_record_is_led_to_its_append() -> None:
    ack = Event("AckPut", "", "T", 0, a=100, b=1, c=901)
    made = hinted([*START, FIRST, SECOND, ack, ack, Event("FlushLog", a=200, b=5)])
    assert told(made, 8)["of"] == 7
    assert told(made, 7)["ack"] == 8, "the first acknowledgement is the one"
    assert told(made, 6)["ack"] == 0
    assert told(made, 10)["of"] == 7, "the last bytes before the flush"
    assert (told(made, 6)["message"], told(made, 8)["message"]) == (1, 2), "fingerprints are renumbered"


def test_a_record_at_the_same_place_is_another_one_after_a_power_loss() -> None:
    again = [Event("StartStore"), Event("ScanLog", a=0, b=100), Event("TruncateLog", a=100)]
    serve = Event("ServeMessage", "", "T", 0, a=100, b=1, c=902, d=100)
    made = hinted([*START, FIRST, SECOND, Event("PowerLoss"), *again, SECOND._replace(c=902), serve])
    (lost,) = rows_of(made, "Lost")
    assert (lost.fields, lost.hints) == ([1], [7, 6]), "the first that is lost, and the last that is left"
    assert told(made, len(made.rows))["of"] == len(made.rows) - 1


def test_a_process_that_was_killed_says_nothing_and_is_noticed() -> None:
    made = hinted([*START, FIRST, Event("StartStore")])
    assert [row.action for row in made.rows[-2:]] == ["ProcessCrash", "StartStore"]
    assert made.rows[-2].source == made.rows[-1].source == 7
    assert rows_of(hinted([*START, Event("StopStore"), Event("StartStore", a=1)]), "ProcessCrash") == []


def test_a_checkpoint_gets_its_whole_position_back() -> None:
    far = 2**32 + 300
    scan = [Event("StartStore"), Event("ScanLog", b=far), Event("TruncateLog", a=far)]
    with pytest.raises(UsageError, match="more than TLC's 32 bits"):
        hinted(scan)
    assert hinted([*START, FIRST]).base == 0


def test_numbers_that_do_not_fit_are_refused() -> None:
    assert checked_number("flushed_to", 2**31 - 1) == 2**31 - 1
    with pytest.raises(UsageError, match="flushed_to is 2147483648"):
        checked_number("flushed_to", 2**31)


@pytest.mark.parametrize(("first", "by_checkpoint"), [(Event("DispatchMessage", "", "T", 0, d=100), 0), (None, 1)])
def test_what_follows_a_scan_says_whether_recovery_went_by_the_checkpoint(
    first: Event | None, by_checkpoint: int
) -> None:
    stop = [Event("WriteCheckpoint", d=100), Event("StopStore", a=100)]
    start = [Event("StartStore", a=1), Event("ScanLog", a=0, b=100), Event("TruncateLog", a=100)]
    rest = [first] if first is not None else [Event("FinishRecovery", a=100)]
    made = hinted([*START, FIRST, *stop, *start, *rest])
    assert rows_of(made, "ScanLog")[-1].hints[2] == by_checkpoint
