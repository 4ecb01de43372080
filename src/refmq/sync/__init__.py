"""The clients for programs without an event loop.

    with refmq.sync.Producer("127.0.0.1:9876", group="g") as producer:
        producer.send("Orders", b"...")

Each object has a loop of its own in a thread of its own, on which the asynchronous client runs; the methods here hand a
call over and wait for it. Nothing is done twice: names, arguments, results and errors are those of the asynchronous
classes. The thread ends with ``close``, and never keeps a program from ending.
"""

from __future__ import annotations

from refmq.sync.clients import Admin, Consumer, Producer, PullConsumer, Transaction

__all__ = ["Admin", "Consumer", "Producer", "PullConsumer", "Transaction"]
