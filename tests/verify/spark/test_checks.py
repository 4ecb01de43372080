"""Every promise that an oracle judges has a way in which Spark checks it, and the book says so."""

from __future__ import annotations

import pytest

from conformance.vocabulary import as_markdown
from refmq.verify.oracles import ORACLES
from refmq.verify.spark.checks import AFTER_BROKER, CHECKS, EVERYTHING_READ, NOT_CHECKED, Part, with_checks
from refmq.verify.spark.columns import ACTION_CODE


def test_every_promise_of_the_oracles_has_a_check() -> None:
    assert {*CHECKS, *NOT_CHECKED} == set(ORACLES)
    assert [name for name, check in CHECKS.items() if check is EVERYTHING_READ] == [], "say how Spark checks it"
    assert set(CHECKS).isdisjoint(NOT_CHECKED)
    assert set(AFTER_BROKER) <= set(CHECKS)


def test_a_check_names_actions_of_the_vocabulary() -> None:
    for name, check in CHECKS.items():
        named = {*check.reads, *check.shared, *(action for action, _ in check.trigger)}
        assert named <= set(ACTION_CODE), name
        assert check.proof, name
        assert check.screened or check.trigger, f"{name} would never be looked at"


@pytest.mark.parametrize("name", ORACLES)
def test_a_check_splits_a_trace_as_its_oracle_may_be_split(name: str) -> None:
    partition = getattr(ORACLES[name], "partition", None)
    if partition is None:
        pytest.skip("this oracle does not say by which key it may be split")
    ours, theirs = CHECKS[name].part, {"transaction": "message"}.get(str(partition), str(partition))
    assert str(ours) == theirs or (ours is Part.STREAM and theirs == "whole")
    reads = CHECKS[name].reads
    shared = {action for action in ORACLES[name].shared if not reads or action in {*reads, *CHECKS[name].shared}}
    assert shared <= set(CHECKS[name].shared), "what every part needs"


def test_the_vocabulary_page_has_the_check_of_each_promise() -> None:
    page = with_checks(as_markdown())
    header = next(line for line in page.splitlines() if line.startswith("| Promise |"))
    column = header.split("|").index(" Spark ")
    for name, check in CHECKS.items():
        rows = [line for line in page.splitlines() if line.startswith(f"| `{name}` |") and line.count("|") == 7]
        assert rows, f"{name} is in no table of promises"
        assert {row.split("|")[column].strip() for row in rows} == {f"{check.proof} (by {check.part})"}
