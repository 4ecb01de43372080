"""The reference store as an engine."""

from __future__ import annotations

from conformance.store.history import Setting
from conformance.store.messages import bitmap_of
from refmq.model.disk import Disk
from refmq.store import FlushMode, MessageStore, ReferenceStore, StoreConfig


def open_store(disk: Disk, setting: Setting) -> MessageStore:
    return ReferenceStore(
        disk,
        StoreConfig(
            log_file_bytes=setting.log_file_bytes,
            queue_file_bytes=setting.queue_file_units * 20,
            ext_enabled=setting.ext,
            ext_file_bytes=setting.ext_file_bytes,
            index_slots=setting.index_slots,
            index_entries=setting.index_entries,
            flush_mode=FlushMode.SYNC if setting.sync_flush else FlushMode.ASYNC,
            transient_pool=setting.transient_pool,
            page_bytes=setting.page_bytes,
            memory_bytes=setting.memory_bytes,
        ),
        filter_bitmap=bitmap_of,
    )
