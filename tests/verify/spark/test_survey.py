"""The quick look says what the long one says, of any events, in any pieces, and from damaged files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import refmq_fast
from refmq.verify.recordings import Gap, Stream, find_recordings
from refmq.verify.spark import scan, survey, tasks
from refmq.verify.spark.columns import Chunk
from refmq.verify.spark.digest import CELL, added, keys_of
from refmq.verify.spark.facts import Columns
from refmq.verify.spark.scan import Scan, ScanOptions
from refmq.verify.spark.survey import Seen, Survey
from refmq.verify.spark.tasks import ScanWork
from refmq.verify.synth.streams import SyntheticWriter, synthetic
from tests.verify.spark.test_digest import chunk_of, events

QUICK = ScanOptions(screens=False)
SUMS = ("n", "s1", "s2", "s3", "s4")

pytestmark = [
    pytest.mark.extension,
    pytest.mark.skipif(not refmq_fast.AVAILABLE, reason="the extension is not built"),
]


def facts_of(found: Iterable[Columns]) -> tuple[Counter[tuple[object, ...]], dict[tuple[object, ...], list[int]]]:
    """What is said once, and the cells with their parts added."""
    said: Counter[tuple[object, ...]] = Counter()
    cells: dict[tuple[object, ...], list[int]] = {}
    for columns in found:
        names = list(columns)
        for values in zip(*(columns[name] for name in names), strict=True):
            row = {
                name: value if isinstance(value, str) else int(value) for name, value in zip(names, values, strict=True)
            }
            if row["kind"] != "cell":
                said[tuple(sorted((name, str(value)) for name, value in row.items()))] += 1
                continue
            cell = cells.setdefault(tuple(row[name] for name in ("k1", "k2", "k3", "k4")), [0, 0, 0, 0, 0, 2**63, 0])
            for at, name in enumerate(SUMS):
                cell[at] = (cell[at] + int(row[name])) % 2**64
            cell[5], cell[6] = min(cell[5], int(row["t0"])), max(cell[6], int(row["t1"]))
    return said, cells


def looked(chunks: Sequence[Chunk], gaps: list[Gap], monkeypatch: pytest.MonkeyPatch) -> list[Columns]:
    """What a pass says without the kernel."""
    with monkeypatch.context() as patch:
        patch.setattr(scan, "can_survey", lambda: False)
        return list(Scan("broker-0", QUICK).run(chunks, gaps))


@given(rows=events, pieces=st.integers(1, 7))
def test_it_says_what_a_pass_in_numpy_says(rows: list[tuple[int, ...]], pieces: int) -> None:
    chunks = [chunk_of(part) for at in range(pieces) if (part := rows[at::pieces])]
    with pytest.MonkeyPatch.context() as monkeypatch:
        expected = facts_of(looked(chunks, [], monkeypatch))
        assert facts_of(Scan("broker-0", QUICK).run(chunks, [])) == expected


@given(rows=events)
def test_full_tables_are_emptied_and_nothing_is_lost(rows: list[tuple[int, ...]]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(survey, "CELLS", 8)
        monkeypatch.setattr(survey, "PLACES", 8)
        chunks = [chunk_of(rows)] if rows else []
        expected = facts_of(looked(chunks, [], monkeypatch))
        assert facts_of(Scan("broker-0", QUICK).run(chunks, [])) == expected


def test_the_tables_are_emptied_when_they_are_full() -> None:
    """Else the test above would show nothing."""
    quick = Survey(keys_of(0), _cells=np.zeros(8, CELL))
    chunk = chunk_of([(2, 0, 9, 0, 1, at, at << 10, 1, 1) for at in range(20)])
    parts: list[Seen | np.ndarray] = [*quick.take(chunk), *quick.cells()]
    cells = [part for part in parts if not isinstance(part, Seen)]
    assert len(cells) > 2 and len(added(np.concatenate(cells))) == 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster with mistakes; one file is torn, one has a damaged block."""
    folder = tmp_path_factory.mktemp("made")
    writer = SyntheticWriter(folder)
    writer.write(synthetic(60_000, 3, violations=1))
    torn, damaged = writer.paths[0], writer.paths[1]
    torn.write_bytes(torn.read_bytes()[:-100])
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    return folder


def test_a_file_says_the_same_block_by_block(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = find_recordings([folder]).streams
    work = ScanWork(streams, options=QUICK)
    assert work.options.is_quick
    for number, stream in enumerate(streams):
        quick = facts_of(work.run(number))
        with monkeypatch.context() as patch:
            patch.setattr(scan, "can_survey", lambda: False)
            patch.setattr(tasks, "can_survey", lambda: False)
            assert facts_of(work.run(number)) == quick, stream.name
    gaps = [fact for number in range(len(streams)) for fact in facts_of(work.run(number))[0] if ("kind", "gap") in fact]
    assert len(gaps) == 2


def test_nothing_else_is_looked_at_quickly() -> None:
    others = (ScanOptions(), ScanOptions(screens=False, bins=True), ScanOptions(screens=False, digest=False))
    assert not any(options.is_quick for options in others)


def test_other_readers_are_left_alone() -> None:
    """What makes its events has no files."""

    def nothing(stream: Stream) -> tuple[Iterator[Chunk], list[Gap]]:
        return iter(()), [Gap(stream.name, "here", "nothing was made", 1)]

    said, _ = facts_of(ScanWork((Stream("one", 0, ()),), nothing, QUICK).run(0))
    assert len(said) == 1


def test_tables_that_do_not_belong_together_are_refused() -> None:
    def numbers(count: int) -> bytearray:
        return bytearray(8 * count)

    cells, places = bytearray(8 * CELL.itemsize), numbers(8)
    call: Callable[..., int] = refmq_fast.survey_rows
    good = (bytes(64), bytes(6), bytes(8), bytes(8), bytes(32), numbers(6), bytearray(1), numbers(4), cells, places)
    assert call(*good) == 0, "a row of nothing is no event"
    for position, wrong in ((0, bytes(63)), (1, bytes(7)), (5, numbers(5)), (7, numbers(3)), (8, cells[:-88])):
        with pytest.raises(ValueError, match="belong together"):
            call(*good[:position], wrong, *good[position + 1 :])
