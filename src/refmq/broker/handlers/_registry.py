"""The dispatch table of a broker: request code -> handler.

A handler gets the broker, the peer and the command, and returns the answer, None when there is none (now), or an
awaitable of either. What it raises of `RefmqError` becomes an answer with code 1 at the connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from refmq.broker.control_plane import Broker
from refmq.plane.engine import Peer
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, response

Answer: TypeAlias = RemotingCommand | None
Handler: TypeAlias = Callable[[Broker, Peer, RemotingCommand], Answer | Awaitable[Answer]]

HANDLERS: Final[dict[int, Handler]] = {}

BODY_BYTES_MAX: Final = 1 << 20
"""The longest JSON body of a client's request; a heartbeat with a thousand subscriptions takes a tenth of it."""


def handles(*codes: RequestCode) -> Callable[[Handler], Handler]:
    """Adds a function to the dispatch table."""

    def enter(handler: Handler) -> Handler:
        for code in codes:
            assert code not in HANDLERS, f"{code.name} has two handlers"
            HANDLERS[code] = handler
        return handler

    return enter


def handle(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer | Awaitable[Answer]:
    """Serves one request, or answers that its code is not supported."""
    handler = HANDLERS.get(command.code)
    if handler is None:
        return refuse(command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {command.code} not supported")
    return handler(broker, peer, command)


def done(command: RemotingCommand, fields: dict[str, str] | None = None, body: bytes = b"") -> RemotingCommand:
    """The answer to a request that succeeded."""
    return response(command, ResponseCode.SUCCESS, fields, body)


def refuse(
    command: RemotingCommand, code: ResponseCode, remark: str, fields: dict[str, str] | None = None
) -> RemotingCommand:
    """The answer to a request that failed."""
    return response(command, code, fields, remark=remark)
