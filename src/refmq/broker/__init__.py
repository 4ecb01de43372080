"""A broker, pure: its tables, its request handlers, and the steps of its services.

`Broker` is the control plane, `handlers` what it answers, `SERVED` the request codes that it serves. Sockets, timers
and files are in `refmq.net`.
"""

from __future__ import annotations

from refmq.broker.handlers import SERVED

__all__ = ["SERVED"]
