"""The reference store as an engine."""

from __future__ import annotations

from conformance.store.history import Setting
from conformance.store.messages import FILTERS
from refmq.model.disk import Disk
from refmq.store import FlushMode, MessageStore, OnDamage, ReferenceStore, StoreConfig
from refmq.store.parts import Emit


def config_of(setting: Setting) -> StoreConfig:
    """The configuration of a history's store."""
    memory, from_disk = setting.from_memory, setting.from_disk
    return StoreConfig(
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
        piece_bytes=setting.piece_bytes,
        read_units_min=setting.units_at_once,
        flush_page_bytes=setting.flush_page_bytes,
        memory_bytes=setting.memory_bytes,
        memory_transfer_count_max=memory[0],
        memory_transfer_bytes_max=memory[1],
        disk_transfer_count_max=from_disk[0],
        disk_transfer_bytes_max=from_disk[1],
        delete_files_max=setting.files_max,
        message_bytes_max=setting.message_bytes_max,
        on_damage=OnDamage.CUT if setting.cut_damage else OnDamage.REFUSE,
    )


def refuses(setting: Setting) -> str | None:
    """Nothing."""
    return None


def open_store(disk: Disk, setting: Setting, emit: Emit | None = None) -> MessageStore:
    return ReferenceStore(disk, config_of(setting), emit=emit, filters=FILTERS)
