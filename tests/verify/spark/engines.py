"""Two judges for one trace: the oracles alone, and the judge of Spark on DuckDB."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from refmq.verify.local import judge_here
from refmq.verify.oracles import Line, Promises
from refmq.verify.recordings import Recordings, find_recordings
from refmq.verify.spark.judge import Wishes, judge_by
from refmq.verify.verdicts import Judgement
from tests.verify.spark.duck import DuckEngine
from tests.verify.spark.files import write_lines

Statuses = dict[str, str]
Sentences = dict[str, frozenset[str]]


def statuses(judgement: Judgement) -> Statuses:
    return {verdict.invariant: str(verdict.status) for verdict in judgement.verdicts}


def sentences(judgement: Judgement) -> Sentences:
    """What was found of each promise; as often as it is said, it is one finding."""
    return {each.invariant: frozenset(shown.sentence for shown in each.shown) for each in judgement.verdicts}


def by_oracles(recordings: Recordings, promises: Promises) -> Judgement:
    return judge_here(recordings, promises)


def by_digests(recordings: Recordings, promises: Promises, *, exact: bool = False) -> Judgement:
    return judge_by(DuckEngine(), recordings, Wishes(promises, exact=exact))


def recorded(lines: Iterable[Line], folder: Path) -> Recordings:
    return find_recordings([write_lines(lines, folder)])
