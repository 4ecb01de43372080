"""A broker process is killed at any moment, again and again: see `tests.net.killing` for what must hold.

A few rounds run with the tests; `REFMQ_KILLS=300` makes it a campaign, and `REFMQ_KILL_SEED` another one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import refmq_fast
from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs
from refmq.protocol.record import TRANSACTION_COMMIT, TRANSACTION_ROLLBACK, Record
from tests.net.killing import (
    ASYNC,
    FAST_ASYNC,
    FAST_SYNC,
    POOL,
    SYNC,
    Acked,
    Ledger,
    Mode,
    campaign,
    judge_decided,
    judge_delayed,
    judge_plain,
)

KILLS = int(os.environ.get("REFMQ_KILLS", "3"))
IN_C = [FAST_SYNC, FAST_ASYNC] if refmq_fast.AVAILABLE else []
SEED = int(os.environ.get("REFMQ_KILL_SEED", "7"))


@pytest.mark.slow
@pytest.mark.parametrize("mode", [SYNC, ASYNC, POOL, *IN_C], ids=lambda mode: f"{mode.engine}-{mode.conf.split()[-1]}")
def test_a_broker_that_is_killed_keeps_what_it_promised(tmp_path: Path, mode: Mode) -> None:
    ledger = asyncio.run(campaign(tmp_path, mode, KILLS, SEED))
    print(
        f"{KILLS} kills, {len(ledger.acked)} plain, {len(ledger.delayed)} delayed, {len(ledger.halves)} half messages"
    )


# --- the judges see what they are for ---------------------------------------------------------------------------------


def acked(queue_offset: int, physical_offset: int = 0, at_s: float = 0.0) -> Acked:
    return Acked(0, queue_offset, physical_offset, 1, at_s)


def test_the_judge_sees_a_loss_a_repetition_and_an_invention() -> None:
    ledger = Ledger(acked={b"a": acked(0)}, sent={b"a", b"b"})
    judge_plain(ledger, {0: [b"a", b"b"]}, SYNC)
    wrongs: list[dict[int, list[bytes]]] = [{0: [b"b"]}, {0: [b"a", b"a"]}, {0: [b"a", b"c"]}, {0: []}]
    for wrong in wrongs:
        with pytest.raises(AssertionError):
            judge_plain(ledger, wrong, SYNC)


def test_with_the_pool_only_the_newest_messages_may_be_lost() -> None:
    ledger = Ledger(
        acked={b"a": acked(0, 0), b"b": acked(1, 100), b"c": acked(2, 200)},
        sent={b"a", b"b", b"c"},
        killed_at_s={1: 1.0},
    )
    judge_plain(ledger, {0: [b"a"]}, POOL)
    with pytest.raises(AssertionError, match="later ones"):
        judge_plain(ledger, {0: [b"c", b"b"]}, POOL)
    with pytest.raises(AssertionError, match="are not where they were"):
        judge_plain(ledger, {0: [b"a"]}, ASYNC)
    ledger.killed_at_s[1] = 60.0
    with pytest.raises(AssertionError, match="that was old"):
        judge_plain(ledger, {0: [b"a"]}, POOL)


def record(body: bytes, store_ms: int) -> Record:
    host = HostAddress(bytes(4), 1)
    return Record(
        topic="T", queue_id=0, queue_offset=QueueOffset(0), physical_offset=PhysicalOffset(0), body=body,
        properties=b"", flag=0, sys_flag=0, born_timestamp_ms=TimestampMs(0), born_host=host,
        store_timestamp_ms=TimestampMs(store_ms), store_host=host, reconsume_times=0, prepared_transaction_offset=0,
    )  # fmt: skip


def test_the_judge_sees_a_delayed_message_that_is_lost_or_early() -> None:
    ledger = Ledger(delayed={b"a": 5_000}, sent={b"a"})
    judge_delayed(ledger, [record(b"a", 6_000), record(b"a", 6_001)])
    for wrong in ([], [record(b"a", 5_999)], [record(b"a", 6_000), record(b"b", 6_000)]):
        with pytest.raises(AssertionError):
            judge_delayed(ledger, wrong)


Change = Callable[[list[Record]], list[Record]]


@pytest.mark.parametrize(
    "change",
    [lambda found: [], lambda found: found * 2, lambda found: [*found, record(b"no", 0)]],
    ids=["lost", "twice", "rolled back"],
)
def test_the_judge_sees_a_wrong_end_of_a_transaction(change: Change) -> None:
    ledger = Ledger(decisions={"yes": TRANSACTION_COMMIT, "no": TRANSACTION_ROLLBACK}, halves={"yes", "no"})
    found = [record(b"yes", 0)]
    judge_decided(ledger, found)
    with pytest.raises(AssertionError):
        judge_decided(ledger, change(found))
