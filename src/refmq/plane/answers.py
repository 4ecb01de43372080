"""What producers are told: where their message is, or why it is not stored."""

from __future__ import annotations

from typing import Final

from refmq.plane.needs import Refusal
from refmq.plane.snapshot import Snapshot
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, response
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.send import SendMessageResponse
from refmq.store.api import StoreReader
from refmq.store.values import AppendPlan, PutStatus

STORED_CODES: Final = {
    PutStatus.PUT_OK: ResponseCode.SUCCESS,
    PutStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
}
"""The message is in the log: these answers carry its place."""

SENDS: Final = frozenset({RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE})


def send_header(snapshot: Snapshot) -> SendMessageResponse:
    """What every answer to a send says, refusals included: a Java client reads these two fields without asking."""
    config = snapshot.config
    return SendMessageResponse(region=config.region_id, trace_on="true" if config.trace_on else "false")


def sent(
    snapshot: Snapshot, command: RemotingCommand, plan: AppendPlan, queue_id: int, status: PutStatus
) -> RemotingCommand:
    """The answer to a send whose message is in the log."""
    assert status in STORED_CODES, "a refusal has no place to tell"
    assert queue_id >= 0, "an answer names the queue that was chosen"
    config = snapshot.config
    header = SendMessageResponse(
        msg_id=plan.message_id,
        queue_id=queue_id,
        queue_offset=plan.queue_offset,
        region=config.region_id,
        trace_on="true" if config.trace_on else "false",
    )
    return response(command, STORED_CODES[status], encode_header(header))


def not_sent(snapshot: Snapshot, command: RemotingCommand, refusal: Refusal) -> RemotingCommand:
    """The answer to a send whose message is not in the log."""
    assert refusal.code not in STORED_CODES.values(), "a refusal must not read like a place in the log"
    return response(command, refusal.code, encode_header(send_header(snapshot)), remark=refusal.remark)


def store_refusal(snapshot: Snapshot, store: StoreReader, status: PutStatus) -> Refusal:
    """Why the store did not take a message, in upstream's words."""
    assert not status.is_stored, "what is stored is not refused"
    match status:
        case PutStatus.CREATE_MAPEDFILE_FAILED:
            return Refusal(ResponseCode.SYSTEM_ERROR, "create mapped file failed, server is busy or broken.")
        case PutStatus.MESSAGE_ILLEGAL | PutStatus.PROPERTIES_SIZE_EXCEEDED:
            limit = snapshot.store_config.message_bytes_max
            return Refusal(
                ResponseCode.MESSAGE_ILLEGAL,
                "the message is illegal, maybe msg body or properties length not matched. "
                f"msg body length limit {limit}B, msg properties length limit 32KB.",
            )
        case PutStatus.SERVICE_NOT_AVAILABLE:
            ratio = store.disk_used_ratio
            return Refusal(
                ResponseCode.SERVICE_NOT_AVAILABLE,
                "service not available now. It may be caused by one of the following reasons: the broker's disk is "
                f"full [CL: {ratio:5.2f} CQ: {ratio:5.2f} INDEX: {ratio:5.2f}], messages are put to the slave, "
                "message store has been shut down, etc.",
            )
        case PutStatus.OS_PAGECACHE_BUSY:
            return Refusal(ResponseCode.SYSTEM_ERROR, "[PC_SYNCHRONIZED]broker busy, start flow control for a while")
        case _:
            return Refusal(ResponseCode.SYSTEM_ERROR, "UNKNOWN_ERROR")


def refused(snapshot: Snapshot, command: RemotingCommand, refusal: Refusal) -> RemotingCommand:
    """The answer to a request whose need could not be met."""
    if command.code in SENDS:
        return not_sent(snapshot, command, refusal)
    assert refusal.code is not ResponseCode.SUCCESS
    return response(command, refusal.code, remark=refusal.remark)
