"""The settings of a store. Java's name for each (`MessageStoreConfig`, 4.9.8) is in the comment after it.

The settings at the end are switches: each turns off one of our corrections and makes the store behave as 4.9.8 does.
They are described in docs/reference/store-differences.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from refmq.errors import UsageError

MIB: Final = 1024 * 1024

QUEUE_UNIT_BYTES: Final = 20

PIECE_BYTES_DEFAULT: Final = 64 * 1024

FILE_BYTES_MAX: Final = 2**31 - 1
"""Java addresses inside a file with signed 32-bit numbers."""

DELAY_LEVELS_DEFAULT: Final = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"


class FlushMode(StrEnum):
    """When the log is made durable (`flushDiskType`)."""

    ASYNC = "async"
    """Soon. A power loss can take acknowledged messages back."""
    SYNC = "sync"
    """Before the acknowledgement."""


class OnDamage(StrEnum):
    """What a start does about a damaged record that was durable and has good ones after it."""

    REFUSE = "refuse"
    """Nothing is changed; the error names the place."""
    CUT = "cut"
    """As 4.9.8 does: the log ends there, and everything after it is lost."""


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Everything that can be configured. The defaults are Java's."""

    # --- files -------------------------------------------------------------------------------------------------
    log_file_bytes: int = 1024 * MIB  # mappedFileSizeCommitLog
    queue_file_bytes: int = 300_000 * QUEUE_UNIT_BYTES  # mappedFileSizeConsumeQueue
    ext_enabled: bool = False  # enableConsumeQueueExt
    ext_file_bytes: int = 48 * MIB  # mappedFileSizeConsumeQueueExt
    index_enabled: bool = True  # messageIndexEnable
    index_slots: int = 5_000_000  # maxHashSlotNum
    index_entries: int = 20_000_000  # maxIndexNum
    page_bytes: int = 4096
    """What a disk writes in one piece: recovery looks for lost pages. A power of two."""
    piece_bytes: int = PIECE_BYTES_DEFAULT
    """How much of a file is read, zeroed or filled at once where the whole would not fit memory. Only speed depends on
    it; a record that is larger is read alone."""

    # --- limits ------------------------------------------------------------------------------------------------
    message_bytes_max: int = 4 * MIB  # maxMessageSize
    query_count_max: int = 64  # maxMsgsNumBatch
    read_units_min: int = 800  # maxFilterMessageCount, a constant in Java: 16,000 bytes
    """How many units one read looks at, if it asks for fewer messages: a filter may pass over that many."""
    memory_transfer_bytes_max: int = 256 * 1024  # maxTransferBytesOnMessageInMemory
    memory_transfer_count_max: int = 32  # maxTransferCountOnMessageInMemory
    disk_transfer_bytes_max: int = 64 * 1024  # maxTransferBytesOnMessageInDisk
    disk_transfer_count_max: int = 8  # maxTransferCountOnMessageInDisk
    memory_bytes: int = 24 * 1024 * MIB  # physical memory of the machine
    memory_ratio_percent: int = 40  # accessMessageInMemoryMaxRatio

    # --- flush -------------------------------------------------------------------------------------------------
    flush_mode: FlushMode = FlushMode.ASYNC  # flushDiskType
    flush_page_bytes: int = 4096  # MappedFile.OS_PAGE_SIZE
    """The page of the rules that flush by full pages."""
    maintain_period_ms: int = 100
    """How often an engine asks the store to do what is due by the clock. Java has a thread for each of these tasks."""
    log_flush_interval_ms: int = 500  # flushIntervalCommitLog
    log_flush_pages: int = 4  # flushCommitLogLeastPages
    log_flush_thorough_ms: int = 10_000  # flushCommitLogThoroughInterval
    queue_flush_interval_ms: int = 1000  # flushIntervalConsumeQueue
    queue_flush_pages: int = 2  # flushConsumeQueueLeastPages
    queue_flush_thorough_ms: int = 60_000  # flushConsumeQueueThoroughInterval
    transient_pool: bool = False  # transientStorePoolEnable
    commit_interval_ms: int = 200  # commitIntervalCommitLog
    commit_pages: int = 4  # commitCommitLogLeastPages
    commit_thorough_ms: int = 200  # commitCommitLogThoroughInterval

    # --- cleaning ----------------------------------------------------------------------------------------------
    delete_when: tuple[int, ...] = (4,)  # deleteWhen, hours of the day
    file_reserved_ms: int = 72 * 3600 * 1000  # fileReservedTime
    delete_files_max: int = 10  # per run; a constant in Java
    disk_used_percent_max: int = 75  # diskMaxUsedSpaceRatio
    disk_clean_forcibly_percent: int = 85  # rocketmq.broker.diskSpaceCleanForciblyRatio
    disk_full_percent: int = 90  # rocketmq.broker.diskSpaceWarningLevelRatio
    clean_forcibly: bool = True  # cleanFileForciblyEnable

    # --- delay -------------------------------------------------------------------------------------------------
    delay_levels: str = DELAY_LEVELS_DEFAULT  # messageDelayLevel

    # --- role --------------------------------------------------------------------------------------------------
    is_slave: bool = False  # brokerRole
    correct_offsets_on_slave: bool = False  # offsetCheckInSlave

    # --- switches: 4.9.8 instead of ours -----------------------------------------------------------------------
    on_damage: OnDamage = OnDamage.REFUSE
    dispatch_unflushed: bool = False
    ignore_flush_failure: bool = False
    keep_clock_steps: bool = False
    """Store times follow the clock even if it is set back; ours never go back."""
    rebuild_index: bool = True
    """After an unclean stop, scan as much of the log as it takes to have every key in the index again."""
    check_crc: bool = True  # checkCRCOnRecover

    def __post_init__(self) -> None:
        _require(1024 <= self.log_file_bytes <= FILE_BYTES_MAX, "log_file_bytes must be 1024 .. 2^31-1")
        _require(0 < self.queue_file_bytes <= FILE_BYTES_MAX - QUEUE_UNIT_BYTES, "queue_file_bytes must be positive")
        _require(64 <= self.ext_file_bytes <= FILE_BYTES_MAX, "ext_file_bytes must be 64 .. 2^31-1")
        _require(self.index_slots >= 1, "index_slots must be at least 1")
        _require(self.index_entries >= 2, "index_entries must be at least 2")
        too_large = "index_slots and index_entries make an index file of more than 2^31-1 bytes"
        _require(self.index_file_bytes <= FILE_BYTES_MAX, too_large)
        _require(self.page_bytes > 0 and self.page_bytes & self.page_bytes - 1 == 0, "page_bytes must be a power of 2")
        _require(self.piece_bytes >= QUEUE_UNIT_BYTES, f"piece_bytes must be at least {QUEUE_UNIT_BYTES}")
        _require(self.flush_page_bytes >= 1, "flush_page_bytes must be at least 1")
        _require(self.read_units_min >= 1, "read_units_min must be at least 1")
        _require(self.message_bytes_max >= 10, "message_bytes_max must be at least 10")
        if self.queue_file_bytes % QUEUE_UNIT_BYTES:
            rounded = -(-self.queue_file_bytes // QUEUE_UNIT_BYTES) * QUEUE_UNIT_BYTES  # up, as Java does
            object.__setattr__(self, "queue_file_bytes", rounded)

    @property
    def index_file_bytes(self) -> int:
        return 40 + 4 * self.index_slots + 20 * self.index_entries

    @property
    def uses_transient_pool(self) -> bool:
        """The pool keeps appended bytes in memory until they are committed. It makes no sense with sync flush."""
        return self.transient_pool and self.flush_mode is FlushMode.ASYNC and not self.is_slave


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise UsageError(text)
