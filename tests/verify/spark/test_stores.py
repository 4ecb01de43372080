"""Store directories in pieces: the same flaws as the reference finds, wherever pieces begin."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import refmq
import refmq_fast
from refmq.client.message_trace import FIELD, RECORD
from refmq.inspect.verify import Severity, verify_store
from refmq.net.files import RealDisk
from refmq.verify.spark import stores
from refmq.verify.spark.log_pieces import PieceOfLog, decode_units, find_record, read_piece, topic_hash
from refmq.verify.spark.message_traces import published_in
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


async def traced_sends(nameserver: str, count: int) -> None:
    async with refmq.Producer(nameserver, group="shop", message_trace=True) as producer:
        for number in range(count):
            await producer.send("orders", b"order %d" % number)


@pytest.fixture
def traced(tmp_path: Path) -> Path:
    """A store with what a client sent, and with what it said about that itself."""
    command = [sys.executable, "-m", "refmq", "serve", "--port=0", "--broker-port=0", f"--dir={tmp_path}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"nameserver (\S+), broker", process.stdout.readline())
            assert found is not None
            asyncio.run(asyncio.wait_for(traced_sends(found[1], 20), 60))
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
    return tmp_path / "store"


def test_a_message_that_a_client_was_told_to_be_stored_is_missed(traced: Path) -> None:
    whole = judged(traced)
    assert whole.flaws == () and whole.records > 20
    # The record of the first message becomes that of another one. Its body, its place and its unit stay as they were.
    log = next(path for path in sorted((traced / "commitlog").iterdir()) if path.stat().st_size)
    at = log.read_bytes().index(b"UNIQ_KEY\x01") + len(b"UNIQ_KEY\x01")
    flipped(log, at + 31)
    missed = [flaw for flaw in judged(traced).flaws if flaw.promise == "AckedSurvives"]
    assert len(missed) == 1 and "of orders, sent by shop is stored at" in missed[0].sentence


def test_only_successful_sends_with_one_place_are_taken_from_a_trace() -> None:
    fields = [
        "Pub",
        "5",
        "r",
        "g",
        "t",
        "ABC",
        "tag",
        "k",
        "h:1",
        "3",
        "1",
        "0",
        "7F00000100002A9F0000000000001000",
        "true",
    ]
    good = FIELD.join(fields) + RECORD
    (found,) = published_in((good + "SubBefore" + FIELD + "x" + RECORD).encode())
    assert (found.topic, found.unique_key, found.physical_offset, found.at_ms) == ("t", "ABC", 4096, 5)
    for at, value in ((13, "false"), (12, "null"), (12, "7F,7F"), (1, "soon"), (0, "Sub")):
        changed = [*fields[:at], value, *fields[at + 1 :]]
        assert list(published_in((FIELD.join(changed) + RECORD).encode())) == []
    assert list(published_in(b"\xff\xfe")) == []


def test_a_record_is_found_from_anywhere(tmp_path: Path) -> None:
    data = memoryview(log_of(extracted("clean", tmp_path)).read_bytes())
    units, _, _ = decode_units(data, 0)
    second = int(units["physical_offset"][1])
    assert [find_record(data, 0, start, len(data)) for start in (0, 1, second)] == [0, second, second]
    assert find_record(data, 5, 0, 10_000) == 10_000, "no record says that it is 5 bytes further"
    *_, told = read_piece(0, data, 1, second)
    assert isinstance(told, PieceOfLog) and (told.records, told.begin, told.end) == (0, second, second)
    assert topic_hash("t") != topic_hash("u")
