"""The client's half of a transaction: what decides it, and the request that tells the broker."""

from __future__ import annotations

from enum import Enum

from refmq.client.message import SendResult
from refmq.protocol.headers.messages import (
    TRANSACTION_COMMIT,
    TRANSACTION_ROLLBACK,
    TRANSACTION_UNKNOWN,
    CheckTransactionStateRequest,
    EndTransactionRequest,
)
from refmq.protocol.record import parse_message_id


class TransactionState(Enum):
    """How a local transaction came out. ``UNKNOWN`` lets the broker ask again later."""

    COMMIT = TRANSACTION_COMMIT
    ROLLBACK = TRANSACTION_ROLLBACK
    UNKNOWN = TRANSACTION_UNKNOWN

    @property
    def upstream_name(self) -> str:
        return {"COMMIT": "COMMIT_MESSAGE", "ROLLBACK": "ROLLBACK_MESSAGE", "UNKNOWN": "UNKNOW"}[self.name]


def end_of_send(group: str, result: SendResult, state: TransactionState) -> EndTransactionRequest:
    """The decision of who sent the half message."""
    _, physical_offset = parse_message_id(result.offset_msg_id)
    return EndTransactionRequest(
        producer_group=group,
        tran_state_table_offset=result.queue_offset,
        commit_log_offset=physical_offset,
        commit_or_rollback=state.value,
        from_transaction_check=False,
        msg_id=result.msg_id,
        transaction_id=result.transaction_id or None,
        broker_name=result.queue.broker,
    )


def end_of_check(
    group: str, asked: CheckTransactionStateRequest, msg_id: str, state: TransactionState
) -> EndTransactionRequest:
    """The answer to a check-back."""
    return EndTransactionRequest(
        producer_group=group,
        tran_state_table_offset=asked.tran_state_table_offset,
        commit_log_offset=asked.commit_log_offset,
        commit_or_rollback=state.value,
        from_transaction_check=True,
        msg_id=msg_id,
        transaction_id=asked.transaction_id,
        broker_name=asked.broker_name,
    )
