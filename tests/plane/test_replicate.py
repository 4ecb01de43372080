"""How far slaves have the log."""

from __future__ import annotations

import pytest

from refmq.model.ids import PhysicalOffset
from refmq.plane.replicate import Replicas, lose_slave, master_read_report

END = PhysicalOffset(100)


def reported(*ends: int, wanted: int = 1) -> Replicas:
    replicas = Replicas(wanted)
    for slave, end in enumerate(ends):
        replicas = master_read_report(replicas, slave, PhysicalOffset(end), END)
    return replicas


@pytest.mark.parametrize(
    ("ends", "wanted", "expected"),
    [((), 0, None), ((50,), 0, None), ((), 1, 0), ((50,), 1, 50), ((50, 70), 1, 70), ((50, 70), 2, 50), ((50,), 2, 0)],
)
def test_the_log_counts_as_far_as_enough_slaves_have_it(
    ends: tuple[int, ...], wanted: int, expected: int | None
) -> None:
    assert reported(*ends, wanted=wanted).replicated_to() == expected


@pytest.mark.parametrize("report", [101, 49, -1])
def test_a_report_beyond_the_log_or_behind_an_earlier_one_is_refused(report: int) -> None:
    before = reported(50)
    assert master_read_report(before, 0, PhysicalOffset(report), END) == before


def test_a_slave_that_is_gone_counts_no_more() -> None:
    assert lose_slave(reported(50), 0).replicated_to() == 0
    assert lose_slave(reported(50), 7) == reported(50)
