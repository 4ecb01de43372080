"""What a broker reads when it starts: its tables, their backups, and no nonsense."""

from __future__ import annotations

import pytest

from refmq.broker.config_files import DELAY_FILE, OFFSETS_FILE, TOPICS_FILE, StoredTables, read_tables
from refmq.errors import DiskFailed

Files = dict[str, tuple[bytes | None, bytes | None]]

OFFSETS = b'{"offsetTable":{"T@g":{0:7}}}'


def read(files: Files) -> StoredTables:
    return read_tables(lambda name: files.get(name, (None, None)))


def test_without_files_there_is_nothing() -> None:
    assert read({}).is_empty
    assert read({TOPICS_FILE: (b"", None), OFFSETS_FILE: (b" \n", b"")}).is_empty


def test_a_file_is_read_as_upstream_writes_it() -> None:
    stored = read({OFFSETS_FILE: (OFFSETS, b"not looked at"), DELAY_FILE: (b'{"offsetTable":{3:5}}', None)})
    assert stored.offsets is not None and dict(stored.offsets.offset_table) == {"T@g": {0: 7}}
    assert stored.delays is not None and dict(stored.delays.offset_table) == {3: 5}
    assert stored.notes == ()


@pytest.mark.parametrize("wrong", [b"{", b"\xff\xfe", b'{"offsetTable":[1]}', b"0" * 100])
def test_a_file_that_makes_no_sense_is_replaced_by_its_backup_and_that_is_said(wrong: bytes) -> None:
    stored = read({OFFSETS_FILE: (wrong, OFFSETS)})
    assert stored.offsets is not None and dict(stored.offsets.offset_table) == {"T@g": {0: 7}}
    (note,) = stored.notes
    assert note.startswith("consumerOffset.json is not readable (") and note.endswith("using its backup")
    missing = read({OFFSETS_FILE: (None, OFFSETS)})
    assert missing.offsets == stored.offsets
    assert missing.notes == ()


@pytest.mark.parametrize("backup", [None, b"", b"]"])
def test_without_a_good_backup_the_file_is_named(backup: bytes | None) -> None:
    with pytest.raises(DiskFailed, match=r"cannot parse topics\.json: "):
        read({TOPICS_FILE: (b"{", backup)})
