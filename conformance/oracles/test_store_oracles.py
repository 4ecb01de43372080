"""Each promise is seen to hold of a sound list of observations, and to be broken by one small change of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from conformance.oracles.store import STORE_ORACLES, judge
from conformance.oracles.store_events import (
    AckPut,
    Checkpoint,
    ConfigLost,
    ConfigRead,
    ConfigSaved,
    Cut,
    Damaged,
    DeleteTopic,
    DeletionsKept,
    DiskFault,
    ExpireFile,
    Failed,
    FaultsOver,
    FlushLog,
    Observation,
    PowerLoss,
    ProcessCrash,
    Promoted,
    Pulled,
    PutRefused,
    Queue,
    Readout,
    Recovered,
    Replicated,
    SaveConfig,
    Sent,
    ServeMessage,
    StartFailed,
    StartStore,
    StopStore,
    Stored,
    Unit,
    Wanted,
)
from conformance.store.record import Record, java_hash
from refmq.model.vocabulary import STORE_RECOVERY

SIZE = 100


def sent(number: int) -> Sent:
    body = number.to_bytes(4, "big")
    return Sent(number, "t", 0, 0, 0, 0, 5, body, (("KEYS", "k"), ("TAGS", "TagA")), at_ms=10 + number)


def record(number: int, place: int | None = None) -> Record:
    place = number if place is None else place
    origin = sent(number)
    return Record(place * SIZE, SIZE, "t", 0, place, 0, 0, 5, 10 + number, 0, origin.body, origin.properties)


def readout(*numbers: int) -> Readout:
    records = tuple(record(number, place) for place, number in enumerate(numbers))
    units = tuple(Unit(r.queue_offset, r.physical_offset, SIZE, java_hash("TagA")) for r in records)
    times = tuple((r.store_ms, kind, r.queue_offset) for r in records for kind in ("lower", "upper", "nearest"))
    queue = Queue(0, len(records), units, records, times, tuple(r.store_ms for r in records))
    return Readout(
        log_min=0,
        log_max=SIZE * len(records),
        flushed_to=0,
        dispatched_to=SIZE * len(records),
        records=records,
        log_end=SIZE * len(records),
        log_fault="",
        queues={("t", 0): queue} if records else {},
        by_key={("t", "k"): tuple(r.physical_offset for r in records)},
        by_key_between={("t", "k", r.store_ms, r.store_ms): (r.physical_offset,) for r in records},
        by_offset={r.physical_offset: True for r in records},
    )


EMPTY = Queue(2, 2, (), (), (), ())

PROMOTED = Promoted(readout(0, 1), SIZE + 50, (sent(2),), readout(0, 2), readout(0, 2), True)
"""It had the first of two messages and half of the second, and was sent another one."""
OFFSET_TWICE = replace(readout(0, 2), records=(record(0, 0), replace(record(2, 1), queue_offset=0)))


def put(number: int, *, promises_power: bool = False) -> list[Observation]:
    stored = Stored(number, number * SIZE, SIZE, number, 10 + number)
    return [sent(number), stored, AckPut(number, promises_power)]


TWO = [*put(0), *put(1)]
SAVED: list[Observation] = [SaveConfig(1), ConfigSaved(1), SaveConfig(2), ConfigSaved(2)]
DELETED = DeleteTopic("t", 200, 200)
DURABLE = Checkpoint(0, 0, 0, log_to=200)
NOTES = ("the queues are not those of the checkpoint",)
EXPIRY = ExpireFile(((0, 100), (1000, 200), (2000, 300)), (1000, 2000), 1, 1100, 1000, False, True, True, 10)
PULL = Pulled("t", 0, 0, 2, "FOUND", 2, 0, 3, (0, 1), tuple(Wanted(n, n * SIZE, SIZE) for n in range(3)), log_max=300)

SOUND: dict[str, list[Observation]] = {
    "nothing happened": [],
    "two messages": [*TWO, readout(0, 1)],
    "a process crash": [*TWO, ProcessCrash(), StartStore(False, 200), readout(0, 1)],
    "a power loss takes what was not flushed": [*TWO, FlushLog(100), PowerLoss(), StartStore(False, 100), readout(0)],
    "... and keeps what was promised": [*put(0, promises_power=True), PowerLoss(), StartStore(False, 100), readout(0)],
    "a message of unknown fate is there": [sent(0), ProcessCrash(), StartStore(False, 100), readout(0)],
    "... or not": [sent(0), ProcessCrash(), StartStore(False, 0), readout()],
    "a slave": [*TWO, Replicated(readout(0, 1), readout(0, 1), True)],
    "a slave that becomes the master": [*TWO, PROMOTED],
    "a cleaning that removes nothing and makes nothing durable": [
        *TWO,
        replace(EXPIRY, interrupted=True),
        replace(EXPIRY, files=((1000, 0), (2000, 0)), begins_after=(1000, 2000), removed_count=0, required=False),
        PowerLoss(),
        readout(0, 1),
    ],
    "a file is back whose removal could not be made durable": [
        replace(EXPIRY, interrupted=True),
        replace(readout(), log_min=1000, is_full=False),
        PowerLoss(),
        readout(),
    ],
    "an expired file": [EXPIRY],
    "a checkpoint": [Checkpoint(50, 50, 50, 700, 700, 700, ((50, 700),), ((50, 700),), ((50, 700),))],
    "an expired file that is not dispatched": [
        replace(EXPIRY, begins_after=(0, 1000, 2000), removed_count=0, safe_to=999)
    ],
    "an expired file that was dispatched too late": [
        replace(EXPIRY, begins_after=(0, 1000, 2000), removed_count=0, safe_before=999)
    ],
    "a message in the pool": [*TWO, replace(readout(0), hides_unwritten=True, is_full=False), readout(0, 1)],
    "an abort file made by hand": [StopStore(), Damaged("abort"), StartStore(False, 0)],
    "an interrupted cleaning": [replace(EXPIRY, interrupted=True), replace(readout(), log_min=1000)],
    "a file without a durable name": [PowerLoss(), replace(readout(), log_min=1000)],
    "a refused message": [sent(0), PutRefused(0, "MESSAGE_ILLEGAL"), readout()],
    "an expired queue whose files somebody removed": [
        *TWO,
        EXPIRY,
        StopStore(),
        Damaged("LoseDerived"),
        replace(readout(), log_min=1000, log_max=1000),
    ],
    "an expired queue": [*TWO, EXPIRY, replace(readout(), log_min=1000, log_max=1000, queues={("t", 0): EMPTY})],
    "a deleted topic": [*TWO, DeleteTopic("t", 200), replace(readout(0, 1), queues={})],
    "a deletion that was not written down": [*TWO, DELETED, ProcessCrash(), readout(0, 1), StopStore(), readout(0, 1)],
    "a log that was cut": [*TWO, Cut(readout(0))],
    "a lost configuration": [*SAVED, ConfigRead(2), ConfigLost(), ConfigRead(1)],
    "a lost configuration after a save that changed nothing": [
        *SAVED,
        SaveConfig(2),
        ConfigSaved(2),
        ConfigLost(),
        ConfigRead(1),
    ],
    "a lost configuration after an interrupted save": [*SAVED, SaveConfig(3), ConfigLost(), ConfigRead(2)],
    "queues that were built again after a fault": [*TWO, DURABLE, DiskFault(), StartStore(False, 200, 2, NOTES)],
    "queues that were built again": [*TWO, DELETED, ProcessCrash(), StartStore(False, 200, 2, NOTES)],
    "a read": [PULL, replace(PULL, offset=3, status="OFFSET_OVERFLOW_ONE", next_offset=3, found=())],
    "a clean stop": [*TWO, StopStore(), PowerLoss(), StartStore(False, 200), readout(0, 1)],
}

READ = readout(0, 1)
QUEUE = READ.queues["t", 0]
SECOND_UNIT = QUEUE.units[1]


def with_queue(**changes: object) -> Readout:
    return replace(READ, queues={("t", 0): replace(QUEUE, **changes)})  # type: ignore[arg-type]


BROKEN: dict[str, list[tuple[str, list[Observation]]]] = {
    "AckedSurvives": [
        ("gone after a process crash", [*TWO, ProcessCrash(), readout(0)]),
        ("gone without any crash", [*TWO, readout(0)]),
        ("gone although flushed", [*TWO, FlushLog(200), PowerLoss(), readout(0)]),
        ("gone although promised", [*put(0, promises_power=True), PowerLoss(), readout()]),
        ("gone after a clean stop", [*TWO, StopStore(), PowerLoss(), readout(0)]),
        ("another message in its place", [*TWO, *put(2), readout(0, 2)]),
        (
            "at another queue offset",
            [*TWO, replace(READ, records=(READ.records[0], replace(READ.records[1], queue_offset=5)))],
        ),
        ("its queue begins anew", [*TWO, ProcessCrash(), EXPIRY, replace(readout(), log_min=1000, log_max=1000)]),
        ("its file is gone", [*put(0, promises_power=True), PowerLoss(), replace(readout(), log_min=1000)]),
        ("no start any more", [*TWO, StartFailed("CorruptRecord")]),
        ("a configuration of before", [*SAVED, ConfigRead(1)]),
        ("a lost configuration without its backup", [*SAVED, ConfigLost(), ConfigRead(-1)]),
        ("a lost configuration with a backup of before", [*SAVED, *SAVED, ConfigLost(), ConfigRead(-1)]),
    ],
    "NoInvention": [
        ("never sent", [sent(0), readout(0, 1)]),
        ("refused", [sent(0), PutRefused(0, "MESSAGE_ILLEGAL"), readout(0)]),
        ("twice", [sent(0), readout(0, 0)]),
        ("back again", [sent(0), sent(1), readout(0), readout(0, 1)]),
        ("another body", [sent(0), replace(readout(0), records=(replace(record(0), body=b"\0\0\0\0x"),))]),
        ("another property", [sent(0), replace(readout(0), records=(replace(record(0), properties=()),))]),
        (
            "properties in another order",
            [sent(0), replace(readout(0), records=(replace(record(0), properties=sent(0).properties[::-1]),))],
        ),
        ("a hole in the log", [*TWO, replace(READ, log_fault="magic 00000000")]),
        ("garbage served", [*TWO, ServeMessage("magic 00000000", "t", 0, 0, True, False)]),
        ("stored before it was sent", [sent(0), replace(readout(0), records=(replace(record(0), store_ms=1),))]),
    ],
    "QueueMatchesLog": [
        ("a unit is missing", [*TWO, with_queue(units=QUEUE.units[:1], max_offset=1, served=QUEUE.served[:1])]),
        ("a hole", [*TWO, with_queue(units=QUEUE.units[1:])]),
        ("no record there", [*TWO, with_queue(units=(QUEUE.units[0], replace(SECOND_UNIT, physical_offset=150)))]),
        ("another record", [*TWO, with_queue(units=(QUEUE.units[0], replace(SECOND_UNIT, physical_offset=0)))]),
        ("another size", [*TWO, with_queue(units=(QUEUE.units[0], replace(SECOND_UNIT, size_bytes=99)))]),
        ("another tag", [*TWO, with_queue(units=(QUEUE.units[0], replace(SECOND_UNIT, tags_code=1)))]),
        ("not served", [*TWO, with_queue(served=QUEUE.served[:1])]),
        ("not found by its id", [*TWO, replace(READ, by_offset={0: True, 100: False})]),
        ("served from another queue", [*TWO, ServeMessage(record(0), "t", 1, 0, True, False)]),
        ("a queue without messages", [*TWO, replace(READ, queues={**READ.queues, ("t", 1): Queue(0, 0, (), ())})]),
        ("passed over", [replace(PULL, found=(1,))]),
        ("too few at once", [*TWO, with_queue(reads=(replace(PULL, found=(0,), next_offset=1),))]),
        ("a deleted topic is back", [*TWO, DELETED, DeletionsKept(), ProcessCrash(), readout(0, 1)]),
        ("a unit of what was cut", [*TWO, Cut(with_queue(units=(replace(SECOND_UNIT, physical_offset=150),)))]),
        ("stuck", [replace(PULL, next_offset=0, found=())]),
        ("too many", [replace(PULL, count_max=1)]),
        ("begin instead of end", [replace(PULL, offset=7, status="OFFSET_OVERFLOW_BADLY", next_offset=0, found=())]),
    ],
    "IndexFindsEveryKey": [
        ("not found", [*TWO, replace(READ, by_key={("t", "k"): (0,)})]),
        ("a stranger", [*TWO, replace(READ, by_key={("t", "k"): (0, 100, 200)})]),
        ("an old one as newest", [*TWO, replace(READ, newest_by_key={("t", "k"): (0,)})]),
        ("twice", [*TWO, replace(READ, by_key={("t", "k"): (0, 100, 100)})]),
        ("not found at its time", [*TWO, replace(READ, by_key_between={("t", "k", 10, 10): ()})]),
    ],
    "RecoveryIdempotent": [("another outcome", [*TWO, Recovered(READ, replace(READ, log_max=100))])],
    "NeverServeUnflushed": [("not durable", [*TWO, ServeMessage(record(0), "t", 0, 0, False, True)])],
    "TimeSearchExact": [
        ("the neighbour", [*TWO, with_queue(times=((11, "lower", 0),))]),
        ("the end", [*TWO, with_queue(times=((99, "lower", 1),))]),
        ("the last before", [*TWO, with_queue(times=((10, "upper", 1),))]),
        ("the nearer one", [*TWO, with_queue(times=((12, "nearest", 0),))]),
        ("another store time", [*TWO, with_queue(store_times=(10, 12))]),
        ("times go back", [*TWO, replace(READ, records=READ.records[::-1])]),
    ],
    "RetentionPrefix": [
        ("a hole", [replace(EXPIRY, begins_after=(0, 2000))]),
        ("the last", [replace(EXPIRY, begins_after=(), removed_count=3, now_ms=5000)]),
        ("too young", [replace(EXPIRY, begins_after=(2000,), removed_count=2)]),
        ("too much after an interrupted cleaning", [replace(EXPIRY, interrupted=True), replace(READ, log_min=2000)]),
        ("not dispatched", [replace(EXPIRY, safe_to=999)]),
        ("kept", [replace(EXPIRY, begins_after=(0, 1000, 2000), removed_count=0)]),
        ("at the wrong hour", [replace(EXPIRY, allowed=False, required=False)]),
        ("a wrong count", [replace(EXPIRY, removed_count=2)]),
        ("too many at once", [replace(EXPIRY, files_max=0)]),
        ("come back", [EXPIRY, READ]),
        ("gone without cleaning", [replace(READ, log_min=100)]),
    ],
    "CheckpointMonotone": [
        ("ahead of the log", [Checkpoint(50, 0, 0, missing_in_log=((49, 700),))]),
        ("keys lost for Java", [Checkpoint(0, 0, 0, missing_for_java=(700,))]),
        ("ahead of the queues", [Checkpoint(0, 50, 0, missing_in_queues=((49, 700),))]),
        ("ahead of the index", [Checkpoint(0, 0, 50, missing_in_index=((49, 700),))]),
        ("offset ahead of the log", [Checkpoint(0, 0, 0, log_to=701, missing_in_log=((49, 700),))]),
    ],
    "RecoveryFinishes": [
        ("no start", [StartFailed("DiskFailed")]),
        ("a clean stop forgotten", [StopStore(), StartStore(False, 0)]),
        ("a clean stop not believed", [StopStore(), StartStore(True, 0, 5)]),
        ("not dispatched", [*TWO, replace(READ, dispatched_to=100)]),
        ("rebuilt without a reason", [*TWO, ProcessCrash(), StartStore(False, 200, 2, NOTES)]),
        ("rebuilt after a power loss", [*TWO, DURABLE, PowerLoss(), StartStore(False, 200, 2, NOTES)]),
        (
            "rebuilt after a fault that is over",
            [*TWO, DiskFault(), FaultsOver(), DURABLE, ProcessCrash(), StartStore(False, 200, 2, NOTES)],
        ),
    ],
    "PrefixReplica": [
        ("a record less", [*TWO, Replicated(READ, readout(0), False)]),
        ("another queue", [*TWO, Replicated(READ, with_queue(min_offset=1), True)]),
        ("a new master without its own message", [*TWO, replace(PROMOTED, slave=readout(0), restarted=readout(0))]),
        ("a new master without what it had", [*TWO, replace(PROMOTED, arrived_to=2 * SIZE)]),
        ("a new master with an offset twice", [*TWO, replace(PROMOTED, slave=OFFSET_TWICE, restarted=OFFSET_TWICE)]),
        ("a new master that is another after a restart", [*TWO, replace(PROMOTED, restarted=readout(0))]),
    ],
    "UnexpectedError": [("an error", [Failed("put", "ZeroDivisionError")])],
}


@pytest.mark.parametrize("observations", SOUND.values(), ids=list(SOUND))
def test_a_sound_history_breaks_nothing(observations: list[Observation]) -> None:
    assert judge(observations) == []


@pytest.mark.parametrize(
    ("invariant", "observations"),
    [pytest.param(name, seen, id=f"{name}: {what}") for name, cases in BROKEN.items() for what, seen in cases],
)
def test_a_broken_promise_is_named(invariant: str, observations: list[Observation]) -> None:
    assert invariant in {violation.invariant for violation in judge(observations)}


def test_every_promise_of_the_specification_has_its_oracle() -> None:
    promised = {invariant.name for invariant in STORE_RECOVERY.invariants}
    assert set(STORE_ORACLES) == promised
    assert promised <= set(BROKEN)
    names: dict[str, Callable[..., object]] = dict(STORE_ORACLES)
    for name, oracle in names.items():
        expected = "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")
        assert oracle.__name__ == expected
