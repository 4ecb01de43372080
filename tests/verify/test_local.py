"""The engine without Spark: what the oracles find, with witnesses, and what is missing."""

from __future__ import annotations

from pathlib import Path

from refmq.verify.local import judge_here, judge_one
from refmq.verify.oracles import Promises, judge
from refmq.verify.recordings import find_recordings
from tests.verify.oracles.stories import CONSUMED, GOOD, dropped
from tests.verify.spark.files import write_lines


def test_what_is_judged_from_files_is_what_the_oracles_say(tmp_path: Path) -> None:
    lines = dropped(GOOD, outcome=CONSUMED, c=2, actor="g@1")
    told: list[tuple[float, str]] = []
    judgement = judge_here(find_recordings([write_lines(lines, tmp_path)]), Promises(), lambda *at: told.append(at))
    expected = {finding.invariant for finding in judge(lines)}
    assert {verdict.invariant for verdict in judgement.broken} == expected != set()
    assert judgement.census.total == len(lines)
    assert told[-1][0] > 0.9
    (shown, *_) = judgement.broken[0].shown
    assert shown.witness


def test_a_torn_file_makes_unknown_what_needs_all_of_it(tmp_path: Path) -> None:
    write_lines(GOOD, tmp_path)
    path = min(tmp_path.iterdir())
    path.write_bytes(path.read_bytes() + b"\x04")
    judgement = judge_here(find_recordings([tmp_path]), Promises())
    assert judgement.broken == []
    assert "WellFormed" in {verdict.invariant for verdict in judgement.doubtful}


def test_findings_are_counted_and_the_first_ones_shown() -> None:
    lines = [line for line in GOOD if line.outcome != CONSUMED or line.c % 2]
    found = judge_one("AckedSurvives", lines, Promises())
    assert found.count == len(found.shown) > 1
