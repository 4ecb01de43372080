"""The files of a trace: when one ends, what the next one opens with, and what a disk that fails leaves behind."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import BinaryIO

import pytest

from refmq.model.step import Event
from refmq.trace.files import TraceFiles
from refmq.trace.reader import read_file
from refmq.trace.record import Encoder, Outcome

FILE_BYTES_MAX = 2_000


def files_in(folder: Path, node: str = "node", *, open_with: object = None) -> TraceFiles:
    def opener(path: Path) -> BinaryIO:
        return path.open("xb", buffering=0)

    chosen = open_with or opener
    return TraceFiles(folder, node, 7, clock_ns=lambda: 1, file_bytes_max=FILE_BYTES_MAX, opener=chosen)  # type: ignore[arg-type]  # an opener


def write_events(files: TraceFiles, encoder: Encoder, count: int, action: str = "AckPut") -> None:
    for number in range(count):
        files.write(encoder.event(Event(action, a=number), number, Outcome.STEP, 0))


def test_every_file_can_be_read_alone_and_together_they_hold_every_event_once(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    write_events(files, Encoder("node", 7), 60)
    files.close()
    paths = sorted(tmp_path.iterdir())
    assert len(paths) > 2
    read = [read_file(path) for path in paths]
    assert [recorded.event.a for file in read for recorded in file.events] == list(range(60))
    assert [recorded.sequence for file in read for recorded in file.events] == list(range(60))
    assert all(recorded.event.action == "AckPut" for file in read for recorded in file.events)
    assert [file.head.file_number for file in read] == list(range(len(paths)))
    assert all(file.damage == [] for file in read)
    assert all(path.stat().st_size <= FILE_BYTES_MAX + 1_000 for path in paths)


def test_a_new_table_of_strings_begins_with_a_new_file(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    write_events(files, Encoder("node", 7), 1, "FlushLog")
    files.begin_table()
    write_events(files, Encoder("node", 7), 1, "AckPut")
    files.close()
    first, second = (read_file(path) for path in sorted(tmp_path.iterdir()))
    assert [recorded.event.action for recorded in (*first.events, *second.events)] == ["FlushLog", "AckPut"]
    assert b"FlushLog" not in sorted(tmp_path.iterdir())[1].read_bytes(), "strings of the table before are forgotten"


@pytest.mark.parametrize(("node", "name"), [("a/b\\c:d é", "a_b_c_d__"), ("", "node"), ("../x", ".._x")])
def test_a_name_of_a_node_is_no_path(tmp_path: Path, node: str, name: str) -> None:
    files = files_in(tmp_path / "traces", node)
    write_events(files, Encoder(node, 7), 1)
    files.close()
    (path,) = (tmp_path / "traces").iterdir()
    assert path.name.startswith(f"{name}-7-00000")
    assert list(tmp_path.iterdir()) == [tmp_path / "traces"]


class Full:
    """A file that takes so much and then nothing more."""

    def __init__(self, path: Path, room: int) -> None:
        self._file = path.open("xb", buffering=0)
        self._room = room

    def write(self, data: bytes) -> int:
        taken = min(self._room, len(data))
        if not taken:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._room -= taken
        return self._file.write(data[:taken])

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


def test_a_block_that_found_no_room_is_nowhere_and_a_file_without_one_is_removed(tmp_path: Path) -> None:
    files = files_in(tmp_path, open_with=lambda path: Full(path, 100))
    with pytest.raises(OSError, match="No space"):
        write_events(files, Encoder("node", 7), 1)
    assert list(tmp_path.iterdir()) == []
    room = [700, 10_000, 10_000, 10_000]
    files = files_in(tmp_path, open_with=lambda path: Full(path, room.pop(0)))
    encoder = Encoder("node", 7)
    records = [encoder.event(Event("AckPut", a=number), number, Outcome.STEP, 0) for number in range(20)]
    lost = []
    for number, record in enumerate(records):
        try:
            files.write(record)
        except OSError:
            lost.append(number)
    files.close()
    read = [read_file(path) for path in sorted(tmp_path.iterdir())]
    assert all(file.damage == [] for file in read), "a part of a block was cut off"
    assert len(lost) == 1
    found = [recorded.event.a for file in read for recorded in file.events]
    assert found == [number for number in range(20) if number not in lost]
