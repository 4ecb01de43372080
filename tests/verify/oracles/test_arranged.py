"""What operators arrange is judged when nothing else explains what was found."""

from __future__ import annotations

import pytest

from refmq.trace.record import Outcome
from refmq.verify.oracles import Line
from refmq.verify.oracles.arranged import SILENT, SeenArrangement, arranged_is_so

WHAT = SeenArrangement("a topic", "b", wanted=5, found=4, status=0, begin=1, end=3, asks_nameserver=False)


def line(action: str, node: str, at_s: int = 100, *, is_fault: bool = False) -> Line:
    return Line(node, action, Outcome.STEP, 0, at_s * 1_000_000_000, node if is_fault else "", "", -1, 0, 0, 0, 0)


CALM = [
    line("RegisterBroker", "namesrv-1"),
    line("AppendMessage", "b"),
    line("AppendMessage", "b"),
    line("FlushLog", "b"),
]


def found(*arrangements: SeenArrangement, lines: list[Line] = CALM) -> list[str]:
    return [finding.sentence for finding in arranged_is_so(arrangements, lines)]


def test_what_is_as_it_was_made_breaks_nothing() -> None:
    assert found(WHAT._replace(found=5)) == []


def test_what_is_otherwise_is_found() -> None:
    assert found(WHAT) == ["a topic at b is 4, and was made 5"]


def test_what_is_refused_is_found() -> None:
    assert found(WHAT._replace(status=1)) == ["a topic at b is refused, code 1"]


def test_without_an_answer_nobody_knows() -> None:
    assert found(WHAT._replace(status=SILENT)) == []


def test_what_overlaps_with_another_arrangement_is_not_judged() -> None:
    assert found(WHAT, WHAT._replace(begin=3, end=4, found=5)) == []
    assert len(found(WHAT, WHAT._replace(begin=4, end=4, found=5))) == 1


@pytest.mark.parametrize("number", [0, 1, 2])
def test_what_is_disturbed_is_not_judged(number: int) -> None:
    lines = list(CALM)
    lines[number] = line("SlowDisk", "b", is_fault=True)
    assert found(WHAT, lines=lines) == []


def test_a_fault_of_another_broker_excuses_nothing_that_came_before_it() -> None:
    lines = [line("SlowDisk", "other", is_fault=True), *CALM[1:]]
    assert len(found(WHAT, lines=lines)) == 1


@pytest.mark.parametrize(("since_s", "count"), [(1, 0), (30, 1)])
def test_a_nameserver_that_was_restarted_is_given_time(since_s: int, count: int) -> None:
    lines = [line("ProcessCrash", "namesrv-1", 100 - since_s, is_fault=True), *CALM[1:]]
    assert len(found(WHAT._replace(asks_nameserver=True), lines=lines)) == count
    assert len(found(WHAT, lines=lines)) == 1


@pytest.mark.parametrize(
    ("steps", "count"), [(("DeleteTopic", "RegisterBroker"), 0), (("RegisterBroker", "DeleteTopic"), 1)]
)
def test_a_registration_brings_back_what_was_deleted(steps: tuple[str, str], count: int) -> None:
    lines = [CALM[0], *(line(action, "namesrv-1") for action in steps), CALM[3]]
    assert len(found(WHAT, lines=lines)) == count
