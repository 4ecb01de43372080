"""The files of a store that was stopped cleanly, read without the store: what Java, or any other reader, will find.

A start could repair what a stop has left undone, and nobody would notice. So everything is looked at here, every byte:
every file of the log but the last ends with a blank, every record has its unit and its index entries, nothing else
stands there, and behind the ends there are zeros.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from conformance.store import messages, raw
from conformance.store.history import Setting
from conformance.store.record import BLANK_BYTES, Record, decode, java_hash

ADDRESS_MAX: Final = -(2**31) - 1
ADDRESS_BASE: Final = -(2**63)
INDEX_HEADER_BYTES: Final = 40
ENTRY_BYTES: Final = 20
EXTENSIONS: Final = "consumequeue_ext"
EXT_END_MARK: Final = b"\xff\xff"


def faults(contents: Mapping[str, bytes], setting: Setting, deleted_to: Mapping[str, int]) -> Iterator[str]:
    """A sentence for everything that is not as it should be. Records of a deleted topic need no units."""
    files = raw.log_files(contents)
    yield from _log_faults(contents, files)
    records = {record.physical_offset: record for record in raw.log_records(contents)}
    log_min = files[0][0] if files else 0
    log_ms = _int(contents.get("checkpoint", bytes(8)), 0, 8)
    if any(record.store_ms > log_ms for record in records.values()):
        yield f"the checkpoint says that the log ends at {log_ms} ms"
    queue_ms = _int(contents.get("checkpoint", bytes(16)), 8, 8)
    if not setting.index and any(record.store_ms > queue_ms for record in records.values()):
        yield f"the checkpoint says that the queues end at {queue_ms} ms"
    named: set[int] = set()
    for directory in raw.queue_directories(contents):
        yield from _queue_faults(contents, setting, directory, records, log_min, named)
        yield from _ext_faults(contents, directory.replace(raw.QUEUES, EXTENSIONS, 1))
    queues = {directory.replace(raw.QUEUES, EXTENSIONS, 1) for directory in raw.queue_directories(contents)}
    for path in contents if setting.ext else ():
        if path.startswith(f"{EXTENSIONS}/") and path.rpartition("/")[0] not in queues:
            yield f"{path} belongs to no queue"
    for record in records.values():
        is_due = record.has_queue_unit and record.physical_offset >= deleted_to.get(record.topic, 0)
        if is_due and record.physical_offset not in named:
            yield f"the record at {record.physical_offset} has no unit"
    if setting.index:
        yield from _index_faults(contents, setting, records, log_min)


def _int(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "big", signed=True)


def _log_faults(contents: Mapping[str, bytes], files: list[tuple[int, str]]) -> Iterator[str]:
    for (begin, path), following in pairwise([*files, None]):  # type: ignore[misc]  # only the last one is None
        data, at = contents[path], 0
        while at + BLANK_BYTES <= len(data) and any(data[at : at + BLANK_BYTES]):
            found = decode(data[at : at + max(BLANK_BYTES, _int(data, at, 4))], begin + at)
            if found is None and _int(data, at, 4) == len(data) - at:
                at = len(data)
            elif isinstance(found, Record):
                at += found.size_bytes
            else:
                yield f"{path} is broken at {at}: {found or 'a blank of another length'}"
                return
        if any(data[at:]):
            yield f"{path} has something after its end at {at}"
        # On a full disk the next file may be there before it is needed.
        if following is not None and at < len(data) and any(contents[following[1]]):
            yield f"{path} ends at {at} without a blank"


def _queue_faults(
    contents: Mapping[str, bytes],
    setting: Setting,
    directory: str,
    records: Mapping[int, Record],
    log_min: int,
    named: set[int],
) -> Iterator[str]:
    _, topic, queue_id = directory.split("/")
    paths = sorted(path for path in contents if path.startswith(f"{directory}/"))
    if len(paths) > 1 and not any(contents[paths[-1]]):
        yield f"{paths[-1]} is empty"
    data = b"".join(contents[path] for path in paths).rstrip(b"\0")
    first = int(paths[0].rpartition("/")[2]) // raw.UNIT_BYTES
    data += bytes(-len(data) % raw.UNIT_BYTES)
    for at in range(0, len(data), raw.UNIT_BYTES):
        number = first + at // raw.UNIT_BYTES
        physical_offset, size, tags_code = _int(data, at, 8), _int(data, at + 8, 4), _int(data, at + 12, 8)
        if size == raw.BLANK_UNIT_SIZE or (size > 0 and physical_offset < log_min):
            continue
        record = records.get(physical_offset)
        if record is None or (record.topic, record.queue_id) != (topic, int(queue_id)):
            yield f"unit {number} of {directory} names {physical_offset}"
            continue
        named.add(physical_offset)
        if (record.queue_offset, record.size_bytes) != (number, size):
            yield f"unit {number} of {directory} has size {size} and names {record}"
        yield from _tags_faults(contents, setting, directory, record, tags_code)


def _tags_faults(
    contents: Mapping[str, bytes], setting: Setting, directory: str, record: Record, tags_code: int
) -> Iterator[str]:
    """The tags code of a unit, or what stands at its address in the extension file."""
    expected = messages.tags_code(record)
    where = f"the unit of {record.physical_offset} in {directory}"
    if tags_code > ADDRESS_MAX:
        if setting.ext and messages.has_ext_unit(record, setting.ext_file_bytes):
            yield f"{where} has no address in the extension file"
        if tags_code != expected:
            yield f"{where} has the tags code {tags_code} instead of {expected}"
        return
    position = tags_code - ADDRESS_BASE
    base = position // setting.ext_file_bytes * setting.ext_file_bytes
    path = f"{directory.replace(raw.QUEUES, EXTENSIONS, 1)}/{base:020}"
    data = contents.get(path, b"")[position - base :]
    size, bitmap_bytes = _int(data, 0, 2), _int(data, 18, 2)
    found = (size, _int(data, 2, 8), _int(data, 10, 8), data[20 : 20 + max(0, bitmap_bytes)])
    bitmap = messages.bitmap_of(record.topic, messages.wire(record.properties))
    if found != (messages.EXT_HEAD_BYTES + len(bitmap), expected, record.store_ms, bitmap):
        yield f"{where} leads to {found} in the extension file"


def _ext_faults(contents: Mapping[str, bytes], directory: str) -> Iterator[str]:
    """The files of an extension: units one after the other, an end mark in all but the last, and then zeros."""
    paths = sorted(path for path in contents if path.startswith(f"{directory}/"))
    for path in paths:
        data, at = contents[path], 0
        while (size := _int(data, at, 2)) > 0:
            if size != messages.EXT_HEAD_BYTES + _int(data, at + 18, 2) or at + size > len(data):
                yield f"{path} is broken at {at}"
                return
            at += size
        if at + messages.EXT_END_BYTES > len(data):
            yield f"{path} has no room for its end mark after {at}"
        if path != paths[-1] and data[at : at + 2] != EXT_END_MARK:
            yield f"{path} ends at {at} without an end mark"
        if any(data[at + 2 :]) or (path == paths[-1] and any(data[at:])):
            yield f"{path} has something after its end at {at}"


def _index_faults(
    contents: Mapping[str, bytes], setting: Setting, records: Mapping[int, Record], log_min: int
) -> Iterator[str]:
    entries: list[tuple[int, int]] = []
    previous_offset = -1
    for path in sorted(path for path in contents if path.startswith("index/")):
        data = contents[path]
        if len(data) != INDEX_HEADER_BYTES + 4 * setting.index_slots + ENTRY_BYTES * setting.index_entries:
            yield f"{path} has {len(data)} bytes"
            continue
        count = _int(data, 36, 4) - 1
        slots = [_int(data, INDEX_HEADER_BYTES + 4 * number, 4) for number in range(setting.index_slots)]
        newest = [0] * setting.index_slots
        offsets = []
        for number in range(1, count + 1):
            at = INDEX_HEADER_BYTES + 4 * setting.index_slots + ENTRY_BYTES * number
            key_hash, offset = _int(data, at, 4), _int(data, at + 4, 8)
            seconds, older = _int(data, at + 12, 4), _int(data, at + 16, 4)
            if older != newest[key_hash % setting.index_slots]:
                yield f"entry {number} of {path} leads to {older}"
            newest[key_hash % setting.index_slots] = number
            offsets.append(offset)
            record = records.get(offset)
            if record is not None and seconds != (record.store_ms - _int(data, 0, 8)) // 1000:
                yield f"entry {number} of {path} has {seconds} s"
            if offset >= log_min:
                entries.append((key_hash, offset))
        if slots != newest or _int(data, 32, 4) != sum(map(bool, newest)):
            yield f"the slots of {path} are {slots} ({_int(data, 32, 4)} used) instead of {newest}"
        if offsets != sorted(offsets) or (offsets and offsets[0] < previous_offset):
            yield f"the entries of {path} are not in the order of the log: {offsets}"
        if offsets:
            previous_offset = offsets[-1]
            yield from _header_faults(path, data, offsets, records)
    expected = [
        (min(abs(java_hash(f"{record.topic}#{key}")), 2**31) % 2**31, offset)
        for offset, record in records.items()
        for key in record.keys
    ]
    if entries != expected:
        too_much, too_little = Counter(entries) - Counter(expected), Counter(expected) - Counter(entries)
        yield f"the index has {dict(too_much)} too much and {dict(too_little)} too little, or another order"


def _header_faults(path: str, data: bytes, offsets: list[int], records: Mapping[int, Record]) -> Iterator[str]:
    if (_int(data, 16, 8), _int(data, 24, 8)) != (offsets[0], offsets[-1]):
        yield f"the header of {path} speaks of {_int(data, 16, 8)} .. {_int(data, 24, 8)}"
    for at, offset in ((0, offsets[0]), (8, offsets[-1])):
        record = records.get(offset)
        if record is not None and _int(data, at, 8) != record.store_ms:
            yield f"the header of {path} has the time {_int(data, at, 8)} for the record at {offset}"
