"""The reference store as an engine."""

from __future__ import annotations

from typing import Any, Final

from conformance.store.history import Setting
from conformance.store.messages import FILTERS
from refmq.model.disk import Disk
from refmq.store import (
    FlushMode,
    MessageStore,
    OnDamage,
    ReferenceStore,
    StoreConfig,
    commit_log,
    consume_queue,
    dispatch,
    file_sequence,
    flush,
    get,
    index_file,
    recover,
    scan,
)

PIECES: Final[tuple[tuple[Any, str, int], ...]] = (
    (dispatch, "READ_BYTES", 1),
    (scan, "SCAN_CHUNK_BYTES", 1),
    (recover, "SCAN_CHUNK_BYTES", 1),
    (file_sequence, "ZERO_CHUNK_BYTES", 1),
    (consume_queue, "READ_UNITS", 20),
    (consume_queue, "FILL_UNITS", 20),
    (index_file, "ENTRIES_READ", 20),
    (recover, "DISPATCH_AT_ONCE", 100),
)
"""Where the reference reads and writes in pieces: the constant that says how large they are, and bytes of one."""

ORIGINAL: Final = {(module, name): getattr(module, name) for module, name, _ in PIECES}


def open_store(disk: Disk, setting: Setting) -> MessageStore:
    for module, name, each in PIECES:
        setattr(module, name, min(ORIGINAL[module, name], max(1, setting.piece_bytes // each)))
    setattr(get, "UNITS_LOOKED_AT_MIN", setting.units_at_once)  # noqa: B010 - it is final for everybody else
    for module in (commit_log, flush):
        setattr(module, "PAGE_BYTES", setting.flush_page_bytes)  # noqa: B010 - the same
    memory, from_disk = setting.from_memory, setting.from_disk
    return ReferenceStore(
        disk,
        StoreConfig(
            log_file_bytes=setting.log_file_bytes,
            queue_file_bytes=setting.queue_file_units * 20,
            ext_enabled=setting.ext,
            ext_file_bytes=setting.ext_file_bytes,
            index_enabled=setting.index,
            index_slots=setting.index_slots,
            index_entries=setting.index_entries,
            flush_mode=FlushMode.SYNC if setting.sync_flush else FlushMode.ASYNC,
            transient_pool=setting.transient_pool,
            page_bytes=setting.page_bytes,
            memory_bytes=setting.memory_bytes,
            memory_transfer_count_max=memory[0],
            memory_transfer_bytes_max=memory[1],
            disk_transfer_count_max=from_disk[0],
            disk_transfer_bytes_max=from_disk[1],
            delete_files_max=setting.files_max,
            message_bytes_max=setting.message_bytes_max,
            on_damage=OnDamage.CUT if setting.cut_damage else OnDamage.REFUSE,
        ),
        filters=FILTERS,
    )
