"""The target `store`: a small store is damaged as the input says, and started twice.

An input is a sequence of edits. Each edit is 8 bytes and what it writes:

    offset  size  type  field
    0       1     u8    which file, modulo their number
    1       1     u8    what: 0 write, 1 cut the file there, 2 remove it, 3 write zeros; modulo 4
    2       4     u32   where, modulo the size of the file
    6       2     u16   how many bytes, modulo 64; for a write they follow
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Coroutine, Iterator
from functools import cache
from typing import Any, Final, TypeVar

from fuzz.targets import target
from refmq.errors import RefmqError
from refmq.inspect.verify import verify_store
from refmq.model.ids import HostAddress, QueueOffset, TimestampMs
from refmq.sim.disk import SimulatedDisk
from refmq.store import MessageToStore, StoreConfig
from refmq.store.direct import put
from refmq.store.store import ReferenceStore

T = TypeVar("T")

NOW: Final = TimestampMs(1_700_000_000_000)
HOST: Final = HostAddress(bytes((10, 9, 8, 7)), 10911)
CONFIG: Final = StoreConfig(
    log_file_bytes=4096, queue_file_bytes=200, index_slots=10, index_entries=8, ext_file_bytes=256, page_bytes=512
)
EDIT: Final = struct.Struct(">BBIH")
EDITS_MAX: Final = 64
QUEUES: Final = (("TopicA", 0), ("TopicA", 1), ("TopicB", 0))


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs to the end what never really waits: flushes of a simulated disk are done at once."""
    try:
        coroutine.send(None)
    except StopIteration as result:
        value: T = result.value
        return value
    raise AssertionError("it waits for something")


def new_disk(contents: dict[str, bytes]) -> SimulatedDisk:
    disk = SimulatedDisk(clock=lambda: NOW, page_bytes=512)
    disk.put_contents(contents)
    return disk


@cache
def small_store(clean: bool) -> dict[str, bytes]:
    """The files of a store with some messages, stopped in good order or not."""
    disk = new_disk({})
    store = ReferenceStore(disk, CONFIG)
    run(store.start(NOW))
    for number in range(40):
        topic, queue_id = QUEUES[number % 3]
        properties = f"TAGS\x01t{number % 2}\x02KEYS\x01k{number}\x02UNIQ_KEY\x01U{number}".encode()
        message = MessageToStore(topic, queue_id, b"%d" % number * 20, properties, NOW, HOST, HOST)
        put(store, message, TimestampMs(NOW + number))
    run(store.flush())
    store.dispatch(100)
    if clean:
        run(store.stop(NOW))
    return dict(sorted(disk.contents().items()))


def edits(data: bytes) -> Iterator[tuple[int, int, int, bytes, int]]:
    at = 0
    for _ in range(EDITS_MAX):
        if at + EDIT.size > len(data):
            return
        file, what, where, count = EDIT.unpack_from(data, at)
        at += EDIT.size
        count %= 64
        written = data[at : at + count] if what % 4 == 0 else b""
        at += len(written)
        yield file, what % 4, where, written, count


def damaged_store(data: bytes) -> dict[str, bytes]:
    """The store that an input stands for: its first byte chooses the clean one or the other."""
    contents = dict(small_store(bool(data[:1] and data[0] & 1)))
    for file, what, where, written, count in edits(data[1:]):
        names = list(contents)
        if not names:
            break
        name = names[file % len(names)]
        content = bytearray(contents[name])
        at = where % max(1, len(content))
        match what:
            case 0:
                content[at : at + len(written)] = written
            case 1:
                del content[at:]
            case 2:
                del contents[name]
                continue
            case _:
                content[at : at + count] = bytes(min(count, max(0, len(content) - at)))
        contents[name] = bytes(content)
    return contents


def readout(store: ReferenceStore) -> list[list[bytes]]:
    """Every message of every queue, pulled as a consumer does."""
    found = []
    for topic, queue_id in QUEUES:
        records: list[bytes] = []
        offset = store.min_offset(topic, queue_id)
        while offset < store.max_offset(topic, queue_id):
            result = store.get_message(topic, queue_id, QueueOffset(offset), 32)
            if result.next_offset <= offset:
                break
            records += result.records
            offset = result.next_offset
        found.append(records)
        for number in (0, 7, 39):
            store.query_by_key(topic, f"k{number}", 32, TimestampMs(0), TimestampMs(1 << 60))
    return found


@target
def store(data: bytes) -> None:
    contents = damaged_store(data)
    with contextlib.suppress(RefmqError):
        verify_store(new_disk(contents))
    disk = new_disk(contents)
    first = ReferenceStore(disk, CONFIG)
    try:
        run(first.start(NOW))
        seen = readout(first)
        run(first.flush())
        run(first.stop(NOW))
    except RefmqError:
        return
    second = ReferenceStore(disk.another_process(), CONFIG)
    try:
        run(second.start(NOW))
    except RefmqError as error:
        raise AssertionError(f"a store that was started and stopped does not start again: {error}") from error
    again = readout(second)
    lost = [record for before, after in zip(seen, again, strict=True) for record in before if record not in after]
    assert not lost, "a second start shows fewer messages"
