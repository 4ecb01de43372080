"""What a broker answers, one module for each family of requests.

Importing this package fills the dispatch table; `SERVED` is what it holds.
"""

from __future__ import annotations

from typing import Final

from refmq.broker.handlers import (
    acl_admin,
    admin_tables,
    broker_info,
    clients,
    connections,
    locks,
    progress,
    query,
    queue_bounds,
    reply,
    send_back,
    transaction,
)
from refmq.broker.handlers._registry import HANDLERS, Answer, Handler, handle
from refmq.plane.serve import SERVERS

__all__ = [
    "HANDLERS",
    "SERVED",
    "Answer",
    "Handler",
    "acl_admin",
    "admin_tables",
    "broker_info",
    "clients",
    "connections",
    "handle",
    "locks",
    "progress",
    "query",
    "queue_bounds",
    "reply",
    "send_back",
    "transaction",
]

SERVED: Final = frozenset(HANDLERS) | frozenset(SERVERS)
"""The request codes our broker serves, here and in the plane."""
