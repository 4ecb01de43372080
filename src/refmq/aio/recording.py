"""What a client asks for and is told, in its trace: messages that are sent, and pulls of whole topics.

A client's steps in a group are recorded where they are taken (`Member`). These are its requests, each with an
`invoke` and an outcome, as `refmq verify` wants them to tell what became of a message. Not all requests are recorded:
commits and heartbeats are not, nor pulls with a filter, because a trace does not say what a filter wants. A message of
which the client is not told where it is (one-way, delayed, half, in a batch) has the outcome *unknown*.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from refmq.client.message import SendResult
from refmq.client.send import STATUSES, SendPlan
from refmq.errors import BrokerError
from refmq.model.fingerprint import message_fingerprint
from refmq.model.ids import MessageQueue
from refmq.model.step import Event
from refmq.protocol import names
from refmq.protocol.codes import PRODUCER_RETRIES, RequestCode, ResponseCode
from refmq.protocol.headers.pull import PullMessageResponse
from refmq.protocol.record import decode_batch, decode_properties, decode_records, parse_message_id
from refmq.trace.record import Outcome, Recorder

UNSAID: Final = -1
PRIVATE: Final = (names.RETRY_PREFIX, names.DLQ_PREFIX, "RMQ_SYS_")
"""What the topics begin with that are no application's."""
CODES: Final = {status: code for code, status in STATUSES.items()}


@dataclass(slots=True)
class Told:
    """A request that is under way, and what is to be said of it in the end."""

    result: SendResult | None = None
    answer: PullMessageResponse | None = None
    code: int = 0
    body: bytes = b""


class Requests:
    """Records the requests of one client in one group."""

    def __init__(self, recorder: Recorder, actor: str) -> None:
        self._recorder = recorder
        self._actor = actor
        self._numbers = itertools.count(1)

    @contextmanager
    def sending(self, plan: SendPlan, queue: MessageQueue, *, is_final: bool = True) -> Iterator[Told]:
        """Around one attempt to send. What is set in `result` was told. A refusal is one of the message only where no
        other attempt is made, before or after (`is_final`): what another one did is not taken back."""
        told = Told()
        messages = [(next(self._numbers), message) for message in messages_of(plan)]

        def note(outcome: Outcome, a: int = UNSAID, b: int = UNSAID, d: int = 0) -> None:
            for operation, message in messages:
                self._note("Send", outcome, operation, queue, a, b, message, d)

        note(Outcome.INVOKE)
        outcome = Outcome.UNKNOWN
        try:
            yield told
        except BrokerError as error:
            outcome = Outcome.FAIL if is_final and error.code not in PRODUCER_RETRIES else Outcome.UNKNOWN
            raise
        finally:
            result = told.result
            if result is not None and is_placed(plan):
                _, physical_offset = parse_message_id(result.offset_msg_id)
                note(Outcome.OK, physical_offset, result.queue_offset, CODES[result.status])
            else:
                note(outcome)

    @contextmanager
    def pulling(self, queue: MessageQueue, offset: int, count: int, wait_ms: int) -> Iterator[Told]:
        """Around one pull. What is set in `answer` and `body` was told."""
        told, operation = Told(), next(self._numbers)
        self._note("Pull", Outcome.INVOKE, operation, queue, offset, count, UNSAID, wait_ms)
        outcome = Outcome.UNKNOWN
        try:
            yield told
        except BrokerError as error:
            outcome, told.code = Outcome.FAIL, error.code
            raise
        finally:
            if told.answer is None:
                self._note("Pull", outcome, operation, queue, offset, UNSAID, UNSAID, told.code)
            else:
                self._answered(operation, queue, offset, told, told.answer)

    def _answered(
        self, operation: int, queue: MessageQueue, offset: int, told: Told, answer: PullMessageResponse
    ) -> None:
        for record in decode_records(told.body) if told.code == ResponseCode.SUCCESS else ():
            where = MessageQueue(record.topic, queue.broker, record.queue_id)
            key = decode_properties(record.properties).get(names.UNIQ_KEY, "")
            message = message_fingerprint(key.encode(), record.body)
            place = (record.physical_offset, record.queue_offset, message, record.size_bytes)
            self._note("Pull", Outcome.CONSUMED, operation, where, *place)
        ends = (answer.next_begin_offset, answer.max_offset)
        self._note("Pull", Outcome.OK, operation, queue, offset, *ends, told.code)

    def _note(
        self, action: str, outcome: Outcome, operation: int, queue: MessageQueue, a: int, b: int, c: int, d: int
    ) -> None:
        subject = f"{queue.topic}@{queue.broker}"
        self._recorder.record(Event(action, self._actor, subject, queue.queue_id, a, b, c, d), outcome, operation)


def is_public(topic: str) -> bool:
    """Whether requests about a topic are recorded."""
    return not topic.startswith(PRIVATE)


def is_placed(plan: SendPlan) -> bool:
    """Whether the answer says where in its queue the message is."""
    return plan.code == RequestCode.SEND_MESSAGE_V2 and not plan.batch and plan.message_type == 0


def messages_of(plan: SendPlan) -> list[int]:
    """The names of the messages that a plan sends."""
    if not plan.batch:
        return [message_fingerprint(plan.msg_id.encode(), plan.body)]
    parts = [
        (decode_properties(part.properties).get(names.UNIQ_KEY, ""), part.body) for part in decode_batch(plan.body)
    ]
    return [message_fingerprint(key.encode(), body) for key, body in parts]
