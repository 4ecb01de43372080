"""What goes over a connection: one answer for a request that waits for one."""

from __future__ import annotations

import pytest

from refmq.verify.oracles.wire import SeenFrame, one_answer_per_request

ASKED = SeenFrame(1, 1, 7, is_answer=False, wants_answer=True)
ANSWERED = SeenFrame(1, 2, 7, is_answer=True, wants_answer=False)


@pytest.mark.parametrize(
    "frames",
    [
        [ASKED, ANSWERED],
        [ASKED, ASKED, ANSWERED, ANSWERED],
        [ASKED],
        [ASKED._replace(sender=2), ANSWERED._replace(sender=1)],
        [ASKED, ASKED._replace(connection=3, sender=3), ANSWERED._replace(connection=3, sender=4), ANSWERED],
    ],
)
def test_an_answer_for_each_request_is_as_it_should_be(frames: list[SeenFrame]) -> None:
    assert list(one_answer_per_request(frames)) == []


@pytest.mark.parametrize(
    "frames",
    [
        [ASKED, ANSWERED, ANSWERED],
        [ANSWERED],
        [ASKED._replace(wants_answer=False), ANSWERED],
        [ASKED, ANSWERED._replace(sender=1)],
        [ASKED, ANSWERED._replace(opaque=8)],
        [ASKED, ANSWERED._replace(connection=3)],
    ],
)
def test_an_answer_too_much_or_to_nobody_is_found(frames: list[SeenFrame]) -> None:
    (finding,) = one_answer_per_request(frames)
    assert finding.invariant == "OneAnswerPerRequest"
    assert finding.line == len(frames) - 1
