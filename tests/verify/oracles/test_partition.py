"""Judged in parts or as a whole: the findings are the same."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from refmq.trace.record import Outcome
from refmq.verify.oracles import ORACLES, Finding, Line, Oracle, Partition, Promises, judge_in_parts, parts_of
from tests.verify.oracles.group_stories import GROUP_BAD, GROUP_GOOD
from tests.verify.oracles.stories import GOOD, Lines
from tests.verify.oracles.test_oracles import BAD, GOOD_STORIES

WORLD = frozenset(
    {
        *("ProcessCrash", "PowerLoss", "JumpClock", "FailFlush", "FullDisk", "Disconnect", "Settled", "Parting"),
        *("RestartBroker", "StopBroker", "ConsumerPause", "ConsumerResume", "CrashPlanned", "Cut", "HalfOpen"),
    }
)

STORIES = [
    ("good", GOOD),
    *[(f"good story {number}", lines) for number, lines in enumerate(GOOD_STORIES)],
    *[(f"good story of a group {number}", lines) for number, lines in enumerate(GROUP_GOOD)],
    *[
        (f"{name}: {what}", lines)
        for table in (BAD, GROUP_BAD)
        for name in table
        for what, lines in table[name].items()
    ],
]


def told_by_the_world(lines: Lines) -> Lines:
    """Faults as the world records them: the node is the actor."""
    return [line._replace(actor=line.node) if line.action in WORLD and not line.actor else line for line in lines]


AT_THE_END = frozenset({"EveryMessageConsumed", "LeaveCommits"})
"""Some of what these find is at the last line, and a part may end before the whole does."""


def told(findings: Iterable[Finding], *, with_lines: bool) -> set[tuple[str, int]]:
    return {(finding.sentence, finding.line if with_lines else 0) for finding in findings}


@pytest.mark.parametrize("name", ORACLES)
def test_what_is_found_in_all_parts_is_what_is_found_in_the_whole(name: str) -> None:
    for what, story in STORIES:
        lines, oracle, with_lines = told_by_the_world(story), ORACLES[name], name not in AT_THE_END
        whole = told(oracle(lines, Promises()), with_lines=with_lines)
        assert told(judge_in_parts(lines, oracle, Promises()), with_lines=with_lines) == whole, what


@pytest.mark.parametrize("name", [name for name, oracle in ORACLES.items() if oracle.partition is not Partition.WHOLE])
def test_a_story_has_more_than_one_part(name: str) -> None:
    assert max(len(parts_of(told_by_the_world(lines), ORACLES[name])) for _, lines in STORIES) > 1


WRONG = {
    "CommittedOnce": (Partition.GROUP, ()),
    "NeverEarly": (Partition.QUEUE, ()),
    "QueueMatchesLog": (Partition.QUEUE, ()),
    "EveryMessageConsumed": (Partition.GROUP, ()),
    "BoundsExact": (Partition.MESSAGE, ()),
    "AllQueuesOwned": (Partition.QUEUE, ()),
}
"""Promises with a key by which they cannot be judged."""


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_key_is_noticed(name: str) -> None:
    partition, shared = WRONG[name]
    wrong, right = Oracle(ORACLES[name].judge, partition, shared), ORACLES[name]
    assert any(
        told(judge_in_parts(lines, wrong, Promises()), with_lines=False)
        != told(right(lines, Promises()), with_lines=False)
        for lines in (told_by_the_world(story) for _, story in STORIES)
    )


def test_the_world_speaks_to_every_part() -> None:
    send = Line("client", "Send", Outcome.INVOKE, 1, 1, "g@1", "t@b", 0, -1, -1, 7, 0)
    loss = Line("b", "PowerLoss", Outcome.STEP, 0, 2, "b", "", -1, 0, 0, 0, 0)
    flush = Line("b", "FlushLog", Outcome.STEP, 0, 3, "", "", -1, 100, 0, 0, 0)
    lines = [send, loss, flush, send._replace(queue_id=1)]
    by_queue = ORACLES["AckedSurvives"]
    assert parts_of(lines, by_queue) == {("t", "b", 0): [0, 1, 2], ("t", "b", 1): [1, 2, 3]}
    assert parts_of(lines, ORACLES["NoInvention"]) == {(7,): [0, 1, 3]}, "a flush is about no message"


def test_the_key_of_a_member_is_its_group_whoever_tells_of_it() -> None:
    by_group = ORACLES["AllQueuesOwned"]
    by_broker = Line("b", "Heartbeat", Outcome.STEP, 0, 1, "c1", "g", -1, 0, 0, 0, 0)
    by_client = Line("c", "Heartbeat", Outcome.INVOKE, 1, 1, "g@c1", "@b", -1, 0, 0, 0, 0)
    assert by_group.key_of(by_broker) == by_group.key_of(by_client) == ("g",)
