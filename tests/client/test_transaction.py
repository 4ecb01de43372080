"""What tells the broker how a transaction came out."""

from __future__ import annotations

from refmq.client.message import Message
from refmq.client.send import SendSettings, plan_send, sent
from refmq.client.transaction import TransactionState, end_of_check, end_of_send
from refmq.model.ids import MessageQueue
from refmq.protocol.command import request, response
from refmq.protocol.headers.messages import CheckTransactionStateRequest

SETTINGS = SendSettings(group="g")
QUEUE = MessageQueue("T", "b", 3)
ID = "0A000001" + "0" * 24


def test_a_decision_names_the_half_message() -> None:
    plan = plan_send(SETTINGS, Message("T", b"x"), ID)
    offset_id = bytes([127, 0, 0, 1, 0, 0, 0x2A, 0x9F, 0, 0, 0, 0, 0, 0, 1, 0]).hex()
    fields = {"msgId": offset_id, "queueId": "0", "queueOffset": "5", "transactionId": "tx"}
    result = sent(response(request(310), 0, fields), plan, QUEUE, None)
    assert result is not None
    header = end_of_send("g", result, TransactionState.COMMIT)
    assert (header.commit_log_offset, header.tran_state_table_offset, header.commit_or_rollback) == (256, 5, 8)
    assert not header.from_transaction_check
    asked = CheckTransactionStateRequest(tran_state_table_offset=5, commit_log_offset=256, transaction_id="tx")
    answer = end_of_check("g", asked, ID, TransactionState.ROLLBACK)
    assert (answer.commit_or_rollback, answer.from_transaction_check, answer.msg_id) == (12, True, ID)
