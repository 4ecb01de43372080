"""The oracles and the judge of Spark say the same of the same trace, or the table of `checks` names the difference.

The judge runs on DuckDB here: the same tasks and the same SQL, without a JVM. `test_session` has Spark itself.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from conformance.cluster.test_alterations import alterations
from conformance.cluster.test_alterations import recorded as recorded_history
from refmq.verify.oracles import Line, Promises
from refmq.verify.recordings import find_recordings
from refmq.verify.spark.checks import CHECKS
from refmq.verify.synth.streams import SyntheticWriter, synthetic
from tests.verify.oracles.stories import GOOD
from tests.verify.oracles.test_oracles import CASES
from tests.verify.spark.engines import by_digests, by_oracles, recorded, sentences, statuses

STORIES = [(f"{name}: {what}", lines) for name, what, lines in CASES]
EVERY = 9
"""One in so many stories is a test of its own."""


def differences(lines: list[Line], folder: Path, promises: Promises, *, exact: bool) -> set[str]:
    """Promises of which the two judges do not say the same."""
    recordings = recorded(lines, folder)
    ours, theirs = by_oracles(recordings, promises), by_digests(recordings, promises, exact=exact)
    differ = {name for name, status in statuses(ours).items() if statuses(theirs)[name] != status}
    if exact:
        differ |= {name for name, found in sentences(ours).items() if sentences(theirs)[name] != found}
    return differ


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("flush_sync", [False, True])
def test_a_good_run_is_good_for_both(tmp_path: Path, flush_sync: bool, exact: bool) -> None:
    assert differences(GOOD, tmp_path, Promises(flush_sync), exact=exact) == set()


@pytest.mark.parametrize(("what", "lines"), STORIES[::EVERY], ids=[what for what, _ in STORIES[::EVERY]])
def test_a_story_is_judged_the_same(what: str, lines: list[Line], tmp_path: Path) -> None:
    for exact in (False, True):
        assert differences(lines, tmp_path / f"{exact}", Promises(), exact=exact) == set()


@pytest.mark.slow
def test_every_story_is_judged_the_same(tmp_path: Path) -> None:
    for number, (what, lines) in enumerate(STORIES):
        promises, exact = Promises(flush_sync=number % 2 == 0), number % 4 == 0
        assert differences(lines, tmp_path / str(number), promises, exact=exact) == set(), what


def altered(every: int) -> list[tuple[str, list[Line]]]:
    """A recorded run of a cluster with one event dropped, swapped, doubled or changed: each kind of event once."""
    lines, seen, found = list(recorded_history()), Counter[tuple[str, int]](), []
    for at, line in enumerate(lines):
        seen[line.action, line.outcome] += 1
        if seen[line.action, line.outcome] == 1:
            found += [(f"{line.action} {line.outcome} {what}", changed) for what, changed in alterations(lines, at)]
    return found[::every]


def unseen(lines: list[Line], folder: Path) -> set[str]:
    """Differences that no row of the table names."""
    assert differences(lines, folder / "exact", Promises(), exact=True) == set()
    return {name for name in differences(lines, folder / "quick", Promises(), exact=False) if not CHECKS[name].blind}


def test_a_recorded_history_is_good_for_both(tmp_path: Path) -> None:
    lines = list(recorded_history())
    recordings = recorded(lines, tmp_path)
    for judgement in (by_oracles(recordings, Promises()), by_digests(recordings, Promises())):
        assert [verdict.invariant for verdict in judgement.verdicts if verdict.status != "kept"] == []


def test_an_altered_history_is_judged_the_same(tmp_path: Path) -> None:
    for number, (what, lines) in enumerate(altered(every=29)):
        assert unseen(lines, tmp_path / str(number)) == set(), what


@pytest.mark.slow
def test_more_altered_histories_are_judged_the_same(tmp_path: Path) -> None:
    for number, (what, lines) in enumerate(altered(every=5)):
        assert unseen(lines, tmp_path / str(number)) == set(), what


def test_what_is_planted_is_found_by_both(tmp_path: Path) -> None:
    whole = synthetic(8_000, seed=3, violations=1)
    SyntheticWriter(tmp_path).write(whole)
    recordings = find_recordings([tmp_path])
    ours, theirs = by_oracles(recordings, Promises()), by_digests(recordings, Promises())
    assert statuses(ours) == statuses(theirs)
    assert sentences(ours) == sentences(theirs)
    assert whole.breaks <= {verdict.invariant for verdict in theirs.broken}


def test_a_faultless_cluster_is_proved_clean_without_oracles(tmp_path: Path) -> None:
    whole = synthetic(8_000, seed=4)
    SyntheticWriter(tmp_path).write(whole)
    judgement = by_digests(find_recordings([tmp_path]), Promises())
    assert judgement.broken == []
    for name in ("AckedSurvives", "QueueMatchesLog", "DurableAck", "InconsistentOffset", "SkippedPoll", "NodeCoherent"):
        (verdict,) = [each for each in judgement.verdicts if each.invariant == name]
        if name not in ("NodeCoherent", "QueueMatchesLog", "DurableAck", "AckedSurvives"):
            assert "oracle" not in verdict.how, verdict.how
