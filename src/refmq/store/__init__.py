"""Bytes on disk and the values they stand for, and the steps of the store: append, dispatch, flush, read, recover.

Pure: everything goes through a `Disk` (refmq.model.disk), time is an argument. `api` is what other packages use.
"""

from __future__ import annotations

from refmq.store.api import (
    BatchToStore,
    Boundary,
    Dispatched,
    ExtTest,
    GetResult,
    GetStatus,
    LogPiece,
    MatchAll,
    MessageFilter,
    MessageStore,
    MessageToStore,
    PutResult,
    PutStatus,
    QueryResult,
    QueueId,
    QueueUnit,
    RecoveryReport,
)
from refmq.store.config import FlushMode, OnDamage, StoreConfig
from refmq.store.store import ReferenceStore

__all__ = [
    "BatchToStore",
    "Boundary",
    "Dispatched",
    "ExtTest",
    "FlushMode",
    "GetResult",
    "GetStatus",
    "LogPiece",
    "MatchAll",
    "MessageFilter",
    "MessageStore",
    "MessageToStore",
    "OnDamage",
    "PutResult",
    "PutStatus",
    "QueryResult",
    "QueueId",
    "QueueUnit",
    "RecoveryReport",
    "ReferenceStore",
    "StoreConfig",
]
