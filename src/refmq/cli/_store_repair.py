"""What ``refmq store repair`` does: a start and a clean stop, on the files themselves or on a picture of them."""

from __future__ import annotations

from typing import Any

from refmq.errors import RefmqError
from refmq.inspect.files import StoreFiles
from refmq.inspect.overlay import OverlayDisk
from refmq.model.disk import Disk
from refmq.model.ids import TimestampMs
from refmq.net.files import RealDisk
from refmq.store import OnDamage, ReferenceStore, StoreConfig


def config_of(files: StoreFiles, *, cut_damage: bool) -> StoreConfig:
    """The settings that fit the files of a store."""
    default = StoreConfig()
    index = next((index for index in files.indexes if index.slots), None)
    if files.indexes and index is None:
        raise RefmqError("the size of the index files fits no number of slots and entries; remove them first")
    return StoreConfig(
        log_file_bytes=files.log.file_bytes or default.log_file_bytes,
        queue_file_bytes=files.queue_file_bytes or default.queue_file_bytes,
        ext_enabled=bool(files.ext_file_bytes),
        ext_file_bytes=files.ext_file_bytes or default.ext_file_bytes,
        index_slots=index.slots if index else default.index_slots,
        index_entries=index.entries if index else default.index_entries,
        on_damage=OnDamage.CUT if cut_damage else OnDamage.REFUSE,
    )


async def repair(
    disk: RealDisk, files: StoreFiles, now_ms: TimestampMs, *, dry_run: bool, cut_damage: bool
) -> dict[str, Any]:
    """Recovers the store and stops it, or finds out what that would change."""
    overlay = OverlayDisk(disk, now_ms)
    chosen: Disk = overlay if dry_run else disk
    store = ReferenceStore(chosen, config_of(files, cut_damage=cut_damage))
    report = await store.start(now_ms)
    await store.stop(now_ms)
    changed = overlay.changes() if dry_run else ()
    return {
        "dry_run": dry_run,
        "was_clean": report.was_clean,
        "scanned_from": report.scanned_from,
        "valid_to": report.valid_to,
        "bytes_cut": report.bytes_cut,
        "records_dispatched": report.records_dispatched,
        "queues": report.queues,
        "notes": list(report.notes),
        "files": [list(change) for change in changed],
    }
