"""Answers that are errors, as exceptions."""

from __future__ import annotations

from typing import Final

from refmq.errors import (
    BrokerError,
    MessageIllegal,
    NoPermission,
    SubscriptionNotLatest,
    SystemBusy,
    TopicNotExist,
)
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand

CLASSES: Final[dict[int, type[BrokerError]]] = {
    ResponseCode.TOPIC_NOT_EXIST: TopicNotExist,
    ResponseCode.NO_PERMISSION: NoPermission,
    ResponseCode.SYSTEM_BUSY: SystemBusy,
    ResponseCode.FLOW_CONTROL: SystemBusy,
    ResponseCode.MESSAGE_ILLEGAL: MessageIllegal,
    ResponseCode.SUBSCRIPTION_NOT_LATEST: SubscriptionNotLatest,
}


def request_name(code: int) -> str:
    return RequestCode(code).name if code in RequestCode._value2member_map_ else f"request {code}"


def response_name(code: int) -> str:
    return ResponseCode(code).name if code in ResponseCode._value2member_map_ else f"response {code}"


def broker_error(address: str, request: int, answer: RemotingCommand) -> BrokerError:
    """The exception for an answer that is not the one hoped for."""
    kind = CLASSES.get(answer.code, BrokerError)
    return kind(address, request_name(request), answer.code, response_name(answer.code), answer.remark or "")
