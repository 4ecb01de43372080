"""Bytes on disk and the values they stand for, and the steps of the store: append, dispatch, flush, read, recover.

Pure: everything goes through a `Disk` (refmq.model.disk), time is an argument. Other packages use `api` and `values`.
"""

from __future__ import annotations

from refmq.store.api import MessageStore, StoreClockwork, StoreReader, StoreWriter
from refmq.store.config import FlushMode, OnDamage, StoreConfig
from refmq.store.store import ReferenceStore
from refmq.store.values import (
    AppendPlan,
    BatchToStore,
    Boundary,
    Dispatched,
    GetResult,
    GetStatus,
    LogPiece,
    MessageToStore,
    Place,
    PutResult,
    PutStatus,
    QueryResult,
    QueueId,
    QueueUnit,
    RecoveryReport,
)

__all__ = [
    "AppendPlan",
    "BatchToStore",
    "Boundary",
    "Dispatched",
    "FlushMode",
    "GetResult",
    "GetStatus",
    "LogPiece",
    "MessageStore",
    "MessageToStore",
    "OnDamage",
    "Place",
    "PutResult",
    "PutStatus",
    "QueryResult",
    "QueueId",
    "QueueUnit",
    "RecoveryReport",
    "ReferenceStore",
    "StoreClockwork",
    "StoreConfig",
    "StoreReader",
    "StoreWriter",
]
