"""What producers are told."""

from __future__ import annotations

import pytest

from refmq.plane import answers
from refmq.plane.needs import Refusal
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request
from refmq.store.values import AppendPlan, PutStatus
from tests.plane.runner import running, send_command, snapshot
from tests.store.helpers import message

STORED = {
    PutStatus.PUT_OK: ResponseCode.SUCCESS,
    PutStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
    PutStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
}


@pytest.mark.parametrize("status", PutStatus)
def test_only_what_is_stored_is_answered_with_its_place(status: PutStatus) -> None:
    runner = running()
    plan = runner.store.plan_message(message(), runner.now.wall_ms)
    assert isinstance(plan, AppendPlan)
    assert status.is_stored is (status in STORED)
    if status in STORED:
        answer = answers.sent(snapshot(), send_command(), plan, 3, status)
        assert (answer.code, answer.remark) == (STORED[status], None)
        assert (answer.fields["msgId"], answer.fields["queueId"]) == (plan.message_id, "3")
    else:
        with pytest.raises(AssertionError):
            answers.sent(snapshot(), send_command(), plan, 3, status)


@pytest.mark.parametrize("status", [status for status in PutStatus if not status.is_stored])
def test_every_other_status_has_words(status: PutStatus) -> None:
    refusal = answers.store_refusal(snapshot(), running().store, status)
    assert refusal.code not in STORED.values()
    assert refusal.remark


def test_a_refused_send_carries_the_fields_that_java_reads_without_asking() -> None:
    refusal = Refusal(ResponseCode.TOPIC_NOT_EXIST, "no")
    answer = answers.refused(snapshot(), send_command(), refusal)
    assert set(answer.fields) == {"MSG_REGION", "TRACE_ON"}
    assert not answers.refused(snapshot(), request(RequestCode.PULL_MESSAGE), refusal).fields
