"""refmq: RocketMQ as an executable specification.

The meaning lives here, in pure typed Python that reads beside the TLA+ specifications in ``spec/``.
``refmq_fast`` replaces parts of it with C and may only be faster.

The clients are names of this package and are imported when they are first used, so ``import refmq`` stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from refmq import sync as sync
    from refmq.aio.admin import Admin as Admin
    from refmq.aio.app import App as App
    from refmq.aio.consumer import Consumer as Consumer
    from refmq.aio.producer import Producer as Producer
    from refmq.aio.pull_consumer import PullConsumer as PullConsumer
    from refmq.client.message import Message as Message
    from refmq.client.message import ReceivedMessage as ReceivedMessage
    from refmq.client.message import SendResult as SendResult
    from refmq.client.message import SendStatus as SendStatus
    from refmq.client.subscription import sql as sql
    from refmq.client.transaction import TransactionState as TransactionState
    from refmq.errors import RefmqError as RefmqError
    from refmq.model.ids import MessageQueue as MessageQueue
    from refmq.protocol.acl import Credentials as Credentials

__version__ = "0.1.0"

_PLACES = {
    "Admin": "refmq.aio.admin",
    "App": "refmq.aio.app",
    "Consumer": "refmq.aio.consumer",
    "Credentials": "refmq.protocol.acl",
    "Message": "refmq.client.message",
    "MessageQueue": "refmq.model.ids",
    "Producer": "refmq.aio.producer",
    "PullConsumer": "refmq.aio.pull_consumer",
    "ReceivedMessage": "refmq.client.message",
    "RefmqError": "refmq.errors",
    "SendResult": "refmq.client.message",
    "SendStatus": "refmq.client.message",
    "TransactionState": "refmq.client.transaction",
    "sql": "refmq.client.subscription",
    "sync": "refmq.sync",
}

__all__ = [
    "Admin",
    "App",
    "Consumer",
    "Credentials",
    "Message",
    "MessageQueue",
    "Producer",
    "PullConsumer",
    "ReceivedMessage",
    "RefmqError",
    "SendResult",
    "SendStatus",
    "TransactionState",
    "__version__",
    "sql",
    "sync",
]


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'refmq' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(place)
    found: object = module if name == "sync" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
