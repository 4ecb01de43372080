"""What a start does with what it finds. Crashes between effects are in scenarios/test_crash.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from refmq.errors import DamagedLog, DiskFailed, StrayFile
from refmq.model.ids import TimestampMs
from refmq.model.step import Event
from refmq.sim.disk import Fault, SimulatedCrash, SimulatedDisk
from refmq.store import OnDamage, PutStatus, ReferenceStore, StoreConfig, direct
from refmq.store.checkpoint import Checkpoint, encode_checkpoint, read_checkpoint
from tests.store.helpers import NOW, SMALL, at, bodies, into, message, new_disk, put, put_many, run, started

ALL = [b"%d" % number for number in range(100)]


def stopped_store(count: int = 100) -> SimulatedDisk:
    disk = new_disk()
    store = started(disk)
    put_many(store, count)
    run(store.stop(NOW))
    return disk


def killed_store(count: int = 100) -> SimulatedDisk:
    disk = new_disk()
    store = started(disk)
    put_many(store, count)
    return disk.after_process_crash()


def restarted(disk: SimulatedDisk, config: StoreConfig = SMALL) -> tuple[ReferenceStore, tuple[str, ...]]:
    store = ReferenceStore(disk, config)
    report = run(store.start(at(1000)))
    return store, report.notes


def check_whole(store: ReferenceStore, count: int = 100) -> None:
    assert bodies(store) == ALL[:count]
    for number in range(count):
        found = store.query_by_key("TopicA", f"k{number}", 9, TimestampMs(0), TimestampMs(2**62))
        assert len(found.records) == 1, number


def test_a_clean_stop_leaves_nothing_to_do() -> None:
    disk = stopped_store()
    before = disk.contents()
    store, notes = restarted(disk)
    assert notes == ()
    check_whole(store)
    run(store.stop(NOW))
    after = disk.contents()
    assert {name: data for name, data in after.items() if name != "checkpoint"} == {
        name: data for name, data in before.items() if name != "checkpoint"
    }


@pytest.mark.parametrize("make", [stopped_store, killed_store])
@pytest.mark.parametrize(
    "damage",
    [
        "checkpoint missing",
        "checkpoint zero",
        "checkpoint torn",
        "checkpoint of Java, ahead",
        "checkpoint of Java, behind",
        "checkpoint empty",
        "abort turned",
        "queue directory removed",
        "one queue removed",
        "index removed",
        "one index file removed",
        "last queue file empty",
        "leftovers",
    ],
)
def test_derived_data_is_made_again_whatever_happened_to_it(make: Callable[[], SimulatedDisk], damage: str) -> None:
    disk = make()
    contents = disk.contents()
    match damage:
        case "checkpoint missing":
            del contents["checkpoint"]
        case "checkpoint zero":
            contents["checkpoint"] = bytes(4096)
        case "checkpoint torn":
            contents["checkpoint"] = contents["checkpoint"][:100] + bytes(3996)
        case "checkpoint of Java, ahead":
            contents["checkpoint"] = encode_checkpoint(Checkpoint(at(10**9), at(10**9), at(10**9)))
        case "checkpoint of Java, behind":
            contents["checkpoint"] = encode_checkpoint(Checkpoint(at(-(10**9)), at(-(10**9)), at(-(10**9))))
        case "checkpoint empty":
            contents["checkpoint"] = b""
        case "abort turned":
            if contents.pop("abort", None) is None:
                contents["abort"] = b""
        case "queue directory removed":
            contents = {name: data for name, data in contents.items() if not name.startswith("consumequeue/")}
        case "one queue removed":
            contents = {name: data for name, data in contents.items() if not name.startswith("consumequeue/TopicA/0")}
        case "index removed":
            contents = {name: data for name, data in contents.items() if not name.startswith("index/")}
        case "one index file removed":
            del contents[max(name for name in contents if name.startswith("index/"))]
        case "last queue file empty":
            contents[max(name for name in contents if name.startswith("consumequeue/"))] = b""
        case "leftovers":
            contents["creating.tmp"] = b"x"
            contents["checkpoint.tmp"] = b"x"
    changed = new_disk()
    changed.put_contents(contents)
    store, _ = restarted(changed)
    check_whole(store)
    assert read_checkpoint(changed).durable is not None
    assert not changed.exists("creating.tmp")
    put(store, message(body=b"more"), at(2000))
    store.dispatch(10)
    assert bodies(store)[-1] == b"more"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("commitlog/notes.txt", b"x"),
        ("commitlog/00000000000000000001", bytes(4096)),
        ("commitlog/00000000000000409600", bytes(4095)),
        ("commitlog/sub/file", b""),
        ("consumequeue/TopicA/0/backup~", b"x"),
        ("consumequeue/TopicA/0/00000000000000020000", bytes(199)),
        ("index/20200101000000000", b"short"),
    ],
)
def test_a_stray_file_is_named_and_nothing_is_changed(path: str, content: bytes) -> None:
    disk = stopped_store()
    disk.put_contents({path: content})
    before = disk.contents()
    with pytest.raises(StrayFile) as caught:
        restarted(disk)
    assert path.startswith(caught.value.path)
    assert disk.contents() == before
    disk.remove(path)
    if path == "commitlog/sub/file":
        disk.remove("commitlog/sub")
    check_whole(restarted(disk)[0])


def test_what_java_ignores_is_ignored() -> None:
    disk = stopped_store()
    disk.put_contents({"consumequeue/notes.txt": b"x", "consumequeue/TopicA/old/x": b"y", "index/notes": b"z"})
    disk.put_contents({"consumequeue/%LMQ%light/0/00000000000000000000": b"q" * 200})
    store, _ = restarted(disk)
    check_whole(store)
    assert {queue.topic for queue in store.queues()} == {"TopicA"}
    assert disk.contents()["consumequeue/%LMQ%light/0/00000000000000000000"] == b"q" * 200


def test_an_empty_last_file_of_the_log_is_removed() -> None:
    disk = stopped_store()
    last = max(name for name in disk.contents() if name.startswith("commitlog/"))
    empty = f"commitlog/{int(last[-20:]) + 4096:020d}"
    disk.put_contents({empty: b""})
    store, _ = restarted(disk)
    check_whole(store)
    assert not disk.exists(empty)


def test_a_file_that_was_allocated_ahead_is_kept_or_removed_but_never_served() -> None:
    disk = killed_store()
    last = max(name for name in disk.contents() if name.startswith("commitlog/"))
    disk.put_contents({f"commitlog/{int(last[-20:]) + 4096:020d}": bytes(4096)})
    store, _ = restarted(disk)
    check_whole(store)


def damaged(disk: SimulatedDisk, number: int = 50) -> int:
    """Turns one bit in the body of a message in the middle."""
    store, _ = restarted(disk.copy())
    (unit,) = store.units("TopicA", 0, type(store.max_offset("TopicA", 0))(number), 1)
    base, at_byte = divmod(unit.physical_offset + 88, 4096)
    file = disk.open(f"commitlog/{base * 4096:020d}")
    file.write(at_byte, bytes((file.read(at_byte, 1)[0] ^ 1,)))
    return unit.physical_offset


def test_damage_where_the_log_was_durable_is_refused_and_nothing_is_changed() -> None:
    disk = stopped_store()
    disk.remove("checkpoint")  # so that the whole log is scanned
    position = damaged(disk)
    before = disk.contents()
    with pytest.raises(DamagedLog) as caught:
        restarted(disk)
    assert caught.value.offset == position + 8
    assert caught.value.next_valid > position
    assert disk.contents() == before
    assert "good records follow" in str(caught.value)
    store, _ = restarted(disk, replace(SMALL, on_damage=OnDamage.CUT))
    assert bodies(store) == ALL[:50]


def test_a_missing_file_in_the_middle_of_the_log_is_damage() -> None:
    disk = stopped_store()
    disk.remove("commitlog/00000000000000004096")
    before = disk.contents()
    with pytest.raises(DamagedLog) as caught:
        restarted(disk)
    assert 4000 < caught.value.offset <= 4096
    assert caught.value.next_valid == 8192
    assert disk.contents() == before


def test_the_end_of_a_log_that_was_never_durable_is_cut_although_good_records_follow() -> None:
    disk = new_disk()
    store = started(disk)
    put_many(store, 20)
    run(store.maintain(at(60_000)))
    results = [put(store, message(body=b"n%d" % number), at(70_000)) for number in range(10)]
    store.dispatch(100)
    at_byte = results[3].physical_offset
    store.parts.log.files.write(at_byte, bytes(results[3].size_bytes))
    again, _ = restarted(disk.after_process_crash())
    assert bodies(again) == [*ALL[:20], b"n0", b"n1", b"n2"]
    assert again.log_max == at_byte
    assert again.parts.log.files.zero_from(at_byte) == 0
    assert put(again, message(), at(80_000)).queue_offset == 23


def test_records_that_java_cut_off_without_erasing_them_stay_dead() -> None:
    # Java truncates by moving its position: old records stay past the end until they are overwritten.
    disk = new_disk()
    store = started(disk)
    results = [put(store, message(body=b"old%d" % number), at(number)) for number in range(9)]
    run(store.stop(NOW))
    contents = disk.contents()
    other = new_disk()
    store = started(other)
    for number in range(2):
        put(store, message(body=b"old%d" % number), at(number))
    put(store, message(body=b"new" * 20), at(1000))
    end = store.log_max
    run(store.stop(NOW))
    mixed = other.contents()
    name = "commitlog/00000000000000000000"
    mixed[name] = mixed[name][:end] + contents[name][end:]
    mixed["checkpoint"] = encode_checkpoint(Checkpoint(at(1000), at(1000), at(0)))
    assert results[4].physical_offset > end
    java = new_disk()
    java.put_contents(mixed)
    again, _ = restarted(java)
    assert bodies(again) == [b"old0", b"old1", b"new" * 20]


def test_an_empty_log_has_no_queues() -> None:
    disk = stopped_store(30)
    contents = {name: data for name, data in disk.contents().items() if not name.startswith("commitlog/")}
    changed = new_disk()
    changed.put_contents(contents)
    store, _ = restarted(changed)
    assert store.queues() == ()
    assert put(store, message(), at(5000)).queue_offset == 0


def test_messages_that_expired_while_the_queues_are_rebuilt_leave_their_places_free() -> None:
    disk = stopped_store()
    disk.remove("commitlog/00000000000000000000")
    contents = {name: data for name, data in disk.contents().items() if not name.startswith("consumequeue/")}
    changed = new_disk()
    changed.put_contents(contents)
    store, _ = restarted(changed)
    left = bodies(store)
    assert left == ALL[-len(left) :]
    assert 0 < len(left) < 100
    assert store.min_offset("TopicA", 0) == 100 - len(left)
    assert store.max_offset("TopicA", 0) == 100


def test_the_checkpoint_is_taken_back_before_anything_is_rebuilt() -> None:
    found = set()
    for step in range(30):
        disk = stopped_store(30)
        disk.remove("consumequeue/TopicA/0/00000000000000000400")  # the sum of the queues is wrong now
        begin = disk.operations
        disk.crash_at(begin + step)
        with pytest.raises(SimulatedCrash):
            restarted(disk)
        done = [what.split(maxsplit=2) for what in disk.recent]
        changed = any(int(number) >= begin and "consumequeue/TopicA" in what for number, _, what in done)
        durable = read_checkpoint(disk.after_process_crash()).durable
        found.add((changed, durable is None or durable.queue_sum != 30))
    assert (True, False) not in found, "a queue was changed while the old checkpoint was still there"
    assert (True, True) in found


def test_recovery_tells_its_steps_in_order() -> None:
    events: list[Event] = []
    disk = killed_store(30)
    store = ReferenceStore(disk, SMALL, emit=into(events))
    run(store.start(at(1000)))
    actions = list(dict.fromkeys(event.action for event in events))
    assert actions[:3] == ["StartStore", "ScanLog", "TruncateQueue"] or actions[:3] == [
        "StartStore",
        "ScanLog",
        "TruncateLog",
    ]
    assert actions[-2:] == ["WriteCheckpoint", "FinishRecovery"]
    assert actions.index("TruncateLog") < actions.index("DispatchMessage") < actions.index("WriteCheckpoint")
    assert events[0].a == 0
    run(store.stop(NOW))
    assert events[-1] == Event("StopStore", a=store_end(disk))


def store_end(disk: SimulatedDisk) -> int:
    durable = read_checkpoint(disk).durable
    assert durable is not None
    assert durable.is_clean
    return durable.log_to


def test_a_start_that_fails_gives_the_lock_back() -> None:
    disk = stopped_store(5)
    disk.put_contents({"commitlog/stray": b""})
    store = ReferenceStore(disk, SMALL)
    for _ in range(2):
        with pytest.raises(StrayFile):
            run(store.start(NOW))
    disk.remove("commitlog/stray")
    run(store.start(NOW))
    assert bodies(store) == ALL[:5]


def test_a_stop_that_fails_is_not_clean_and_gives_the_lock_back() -> None:
    disk = new_disk()
    store = started(disk)
    put_many(store, 5)
    disk.inject(Fault.FLUSH_FAILS)
    with pytest.raises(DiskFailed):
        run(store.stop(NOW))
    assert disk.exists("abort")
    disk = disk.after_process_crash()
    again, _ = restarted(disk)
    assert bodies(again) == ALL[:5]
    assert direct.put(again, message(), at(9000)).status is PutStatus.PUT_OK


@pytest.mark.parametrize("lost", [0, 1, 2, 3])
def test_index_files_of_java_may_be_kept_and_hold_whole_messages(lost: int) -> None:
    """Seven keys of a file, three of a message: most files end within a message, and the last ones are missing."""
    disk = new_disk()
    store = started(disk)
    for number in range(8):
        put(store, message(body=b"%d" % number, keys=f"a{number} b{number}", unique=f"U{number}"), at(number))
    run(store.stop(NOW))
    contents = disk.contents()
    contents["checkpoint"] = encode_checkpoint(Checkpoint(at(10**9), at(10**9), at(10**9)))
    files = sorted(name for name in contents if name.startswith("index/"))
    assert len(files) == 4
    for name in files[len(files) - lost :]:
        del contents[name]
    changed = new_disk()
    changed.put_contents(contents)
    store, _ = restarted(changed, replace(SMALL, rebuild_index=False))
    for key in (f"{kind}{number}" for kind in "abU" for number in range(8)):
        found = store.query_by_key("TopicA", key, 9, TimestampMs(0), TimestampMs(2**62))
        assert len(found.records) == 1, key
    if lost < 3:
        kept = changed.contents()
        assert [kept[name] for name in files[: 2 - lost]] == [contents[name] for name in files[: 2 - lost]]
