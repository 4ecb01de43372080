"""Queue locks over the wire."""

from __future__ import annotations

from refmq.model.ids import MessageQueue
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.offsets import LockBatchRequestBody, LockBatchResponseBody
from refmq.protocol.codes import RequestCode
from tests.broker.harness import Harness


def test_queues_are_locked_and_unlocked() -> None:
    world = Harness()
    queue = MessageQueue("T", "broker-a", 0)

    def lock(client: str, code: RequestCode = RequestCode.LOCK_BATCH_MQ) -> bytes:
        body = encode_body(LockBatchRequestBody(consumer_group="g", client_id=client, mq_set=(queue,)))
        return world.ask(code, body=body).body

    assert decode_body(LockBatchResponseBody, lock("a")).lock_ok_mq_set == (queue,)
    assert decode_body(LockBatchResponseBody, lock("b")).lock_ok_mq_set == ()
    lock("a", RequestCode.UNLOCK_BATCH_MQ)
    assert decode_body(LockBatchResponseBody, lock("b")).lock_ok_mq_set == (queue,)
    assert [event.action for event in world.events] == ["LockQueue", "UnlockQueue", "LockQueue"]
