"""Store directories in pieces: the same flaws as the reference finds, wherever pieces begin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import refmq_fast
from refmq.inspect.verify import Severity, verify_store
from refmq.net.files import RealDisk
from refmq.verify.spark import stores
from refmq.verify.spark.log_pieces import PieceOfLog, decode_units, find_record, read_piece, topic_hash
from refmq.verify.spark.stores import StoreJudgement, judge_stores
from tests.cli.test_store import extracted
from tests.verify.spark.duck import DuckEngine


def judged(*roots: Path, replicas: bool = False) -> StoreJudgement:
    return judge_stores(DuckEngine(), roots, replicas=replicas)


def log_of(store: Path) -> Path:
    return min((store / "commitlog").iterdir())


def queue_of(store: Path, number: int = 0) -> Path:
    return [path for path in sorted((store / "consumequeue").rglob("*")) if path.is_file()][number]


def overwritten(path: Path, at: int, data: bytes) -> None:
    whole = bytearray(path.read_bytes())
    whole[at : at + len(data)] = data
    path.write_bytes(whole)


@pytest.mark.parametrize("name", ["clean", "killed"])
def test_a_store_of_a_real_broker_has_the_counts_of_the_reference(name: str, tmp_path: Path) -> None:
    store = extracted(name, tmp_path)
    ours, reference = judged(store), verify_store(RealDisk(store))
    assert (ours.records, ours.units, ours.keys) == (reference.records, reference.units, reference.index_entries)
    assert ours.flaws == ()


def test_where_pieces_begin_makes_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = extracted("clean", tmp_path)
    whole = judged(store)
    monkeypatch.setattr(stores, "PIECE_BYTES", 4_099)
    assert log_of(store).stat().st_size > 4_099 * 10
    pieces = judged(store)
    assert (pieces.records, pieces.units, pieces.keys, pieces.flaws) == (whole.records, whole.units, whole.keys, ())


@pytest.mark.extension
@pytest.mark.skipif(not refmq_fast.AVAILABLE, reason="the extension is not built")
def test_c_reads_from_a_log_what_the_reference_reads(tmp_path: Path) -> None:
    data = memoryview(log_of(extracted("clean", tmp_path)).read_bytes())
    fast, plain = decode_units(data, 0, fast=True), decode_units(data, 0, fast=False)
    assert fast[2] == plain[2] > 50_000
    for one, other in zip(fast[:2], plain[:2], strict=True):
        assert np.array_equal(one, other)


def flipped(path: Path, at: int) -> None:
    overwritten(path, at, bytes([path.read_bytes()[at] ^ 1]))


ALTERATIONS = {
    "a unit names another place": lambda store: flipped(queue_of(store), 7),
    "a unit has another size": lambda store: flipped(queue_of(store), 11),
    "a unit is gone": lambda store: overwritten(queue_of(store), 0, bytes(20)),
    "a queue is gone": lambda store: queue_of(store).unlink(),
    "a record is gone": lambda store: overwritten(log_of(store), 0, bytes(91)),
    "a body is changed": lambda store: overwritten(log_of(store), 90, b"\xff\xfe"),
}


@pytest.mark.parametrize("what", ALTERATIONS)
def test_what_the_reference_calls_damage_is_found(what: str, tmp_path: Path) -> None:
    store = extracted("clean", tmp_path)
    ALTERATIONS[what](store)
    reference = verify_store(RealDisk(store))
    assert [flaw for flaw in reference.flaws if flaw.severity is Severity.DAMAGE]
    assert judged(store).damage, reference.flaws


def test_a_message_that_is_missing_in_the_queue_of_a_killed_store_is_a_note(tmp_path: Path) -> None:
    store = extracted("killed", tmp_path)
    queue = next(
        q for n in range(20) if (q := queue_of(store, n)).stat().st_size and q.read_bytes()[20:40].strip(b"\0")
    )
    units = queue.read_bytes().rstrip(b"\0")
    last = (len(units) - 1) // 20 * 20
    overwritten(queue, last, bytes(20))
    flaws = judged(store).flaws
    assert flaws and all(flaw.is_note and flaw.promise == "QueueMatchesLog" for flaw in flaws)


def test_logs_of_replicas_are_compared_where_both_have_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = extracted("clean", tmp_path / "a"), extracted("clean", tmp_path / "b")
    monkeypatch.setattr(stores, "LOG_SHIFT", 12)
    assert judged(master, slave, replicas=True).flaws == ()
    log = log_of(slave)
    at = log.read_bytes().index(b"UNIQ_KEY") + 12
    overwritten(log, at, b"Z")
    (flaw,) = [flaw for flaw in judged(master, slave, replicas=True).flaws if flaw.promise == "PrefixReplica"]
    assert "differ between" in flaw.sentence


def test_a_record_is_found_from_anywhere(tmp_path: Path) -> None:
    data = memoryview(log_of(extracted("clean", tmp_path)).read_bytes())
    units, _, _ = decode_units(data, 0)
    second = int(units["physical_offset"][1])
    assert [find_record(data, 0, start, len(data)) for start in (0, 1, second)] == [0, second, second]
    assert find_record(data, 5, 0, 10_000) == 10_000, "no record says that it is 5 bytes further"
    *_, told = read_piece(0, data, 1, second)
    assert isinstance(told, PieceOfLog) and (told.records, told.begin, told.end) == (0, second, second)
    assert topic_hash("t") != topic_hash("u")
