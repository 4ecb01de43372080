"""Transactional messages at the broker: the steps of spec/transaction_check_back, under their names.

A half message lies in the half topic until its producer decides. `end_transaction` takes a decision: a commit appends
the final message to the real topic, and both kinds owe an op message (`write_op`) that marks the half message as done.

What is repaired here, each a switch of the specification:

    CheckUniqKey        a decision must name the message that it decides on; after a power loss offsets are used again
    CheckHalfTopic      ... and that must be a half message
    FinishedSet         a message is committed once: finished ones are remembered, and looked up in the index

The check rounds are in `refmq.broker.check_rounds`.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import IntEnum
from typing import Final

from refmq.broker.environment import Environment
from refmq.broker.message_copy import copy_of
from refmq.broker.named_record import named_record
from refmq.broker.real_place import real_place
from refmq.model.fingerprint import message_fingerprint
from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs
from refmq.model.step import Event
from refmq.plane.engine import HotPath
from refmq.plane.property_rules import waits_for_flush
from refmq.protocol import names
from refmq.protocol.headers.messages import EndTransactionRequest
from refmq.protocol.names import TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC
from refmq.protocol.record import (
    SYS_FLAG_TRANSACTION,
    TRANSACTION_COMMIT,
    TRANSACTION_ROLLBACK,
    Record,
    decode_properties,
    decode_record,
    encode_properties,
)
from refmq.store.values import MessageToStore, PutResult, PutStatus

FINISHED_MAX: Final = 200_000
"""Keys of finished messages kept in memory; older ones are found in the index while it retains them."""

INDEX_HITS_MAX: Final = 32
OP_TAG: Final = "d"
FOREVER_MS: Final = TimestampMs(2**62)


class Decision(IntEnum):
    """`commitOrRollback` of END_TRANSACTION."""

    UNKNOWN = 0
    COMMIT = TRANSACTION_COMMIT
    ROLLBACK = TRANSACTION_ROLLBACK


class WrongHalf(Exception):
    """A decision does not match the record it points at. The text is the remark of the answer."""


class HalfMessage:
    """A half record with its properties at hand."""

    __slots__ = ("place", "properties", "record")

    def __init__(self, record: Record) -> None:
        self.record = record
        self.properties = decode_properties(record.properties)
        self.place = real_place(self.properties)

    @property
    def unique_key(self) -> str:
        return self.properties.get(names.UNIQ_KEY, "")

    @property
    def real_topic(self) -> str:
        return "" if self.place is None else self.place.topic

    @property
    def real_queue(self) -> int:
        return 0 if self.place is None else self.place.queue_id

    @property
    def group(self) -> str:
        return self.properties.get(names.PRODUCER_GROUP, "")

    @property
    def fingerprint(self) -> int:
        return message_fingerprint(self.unique_key.encode(), self.record.body)


class Transactions:
    """The producers' decisions, and what is known to be finished."""

    def __init__(self, engine: HotPath, environment: Environment, store_host: HostAddress) -> None:
        self._engine = engine
        self._environment = environment
        self._store_host = store_host
        self._finished: OrderedDict[str, None] = OrderedDict()
        self._committing: set[str] = set()
        """Keys of messages whose final form is stored and not yet as durable as the broker promises."""
        self.pending_ops: dict[QueueOffset, int] = {}
        """Half messages that are decided but have no op message yet: half offset -> fingerprint."""

    # --- what is finished ------------------------------------------------------------------------------------------

    def is_finished(self, half: HalfMessage) -> bool:
        """Whether the message was committed or rolled back: remembered, or committed according to the index."""
        key = half.unique_key
        return bool(key) and (key in self._finished or self._is_delivered(half))

    def _is_delivered(self, half: HalfMessage) -> bool:
        """Whether a final message with this unique key is in the real topic."""
        found = self._engine.store.query_by_key(
            half.real_topic, half.unique_key, INDEX_HITS_MAX, TimestampMs(0), FOREVER_MS
        )
        # What the body holds does not matter here, so a damaged one does not either.
        return any(self._is_final_of(half, decode_record(data, check_crc=False)) for data in found.records)

    @staticmethod
    def _is_final_of(half: HalfMessage, record: Record) -> bool:
        if record.topic != half.real_topic or record.transaction_type != TRANSACTION_COMMIT:
            return False
        properties = decode_properties(record.properties)
        same = (names.UNIQ_KEY, names.PRODUCER_GROUP)
        return all(properties.get(name) == half.properties.get(name) for name in same)

    def _remember(self, half: HalfMessage) -> None:
        if half.unique_key:
            self._finished[half.unique_key] = None
            self._finished.move_to_end(half.unique_key)
            if len(self._finished) > FINISHED_MAX:
                self._finished.popitem(last=False)
        assert len(self._finished) <= FINISHED_MAX

    # --- EndTransaction ----------------------------------------------------------------------------------------------

    def matching_half(self, header: EndTransactionRequest) -> HalfMessage:
        """The half message a decision refers to. `WrongHalf` if it refers to another record, or none."""
        found = named_record(self._engine.store, PhysicalOffset(header.commit_log_offset))
        if found is None:
            raise WrongHalf("Find prepared transaction message failed")
        record, _ = found
        half = HalfMessage(record)
        if record.topic != TRANS_HALF_TOPIC:
            raise WrongHalf("The message is not a half message")
        if half.place is None:
            raise WrongHalf("The real topic and queue of the message are wrong")
        if half.group != header.producer_group:
            raise WrongHalf("The producer group wrong")
        if record.queue_offset != header.tran_state_table_offset:
            raise WrongHalf("The transaction state table offset wrong")
        named = {header.msg_id, header.transaction_id}
        if half.unique_key and not named & {half.unique_key, record.message_id}:
            raise WrongHalf("The message id wrong")
        return half

    async def end_transaction(self, header: EndTransactionRequest, half: HalfMessage) -> PutStatus:
        """Applies a decision. Committing a message that is already finished is accepted and changes nothing. While it
        is being committed a second commit is refused, or that would be over before the first one is safe."""
        # Enabled
        decision = Decision(header.commit_or_rollback)
        if decision is Decision.COMMIT and half.unique_key in self._committing:
            return PutStatus.SERVICE_NOT_AVAILABLE
        offset = half.record.queue_offset
        # Next
        status = PutStatus.PUT_OK
        if decision is Decision.COMMIT and not self.is_finished(half):
            self._remember(half)  # before we wait: a second commit may come meanwhile
            status = await self._store_final(half)
            if not status.is_stored:
                self._finished.pop(half.unique_key, None)
                return status
        self._remember(half)
        self.pending_ops[offset] = half.fingerprint
        # Trace
        self._environment.emit(
            Event(
                "EndTransaction", half.group, half.real_topic, half.real_queue,
                a=decision, b=offset, c=half.fingerprint, d=status,
            )
        )  # fmt: skip
        await self.write_op(offset)
        return status

    async def _store_final(self, half: HalfMessage) -> PutStatus:
        if half.unique_key:
            self._committing.add(half.unique_key)
        try:
            result = await self._engine.put(self._final_message(half), wait_durable=waits_for_flush(half.properties))
        finally:
            self._committing.discard(half.unique_key)
        return result.status

    def _final_message(self, half: HalfMessage) -> MessageToStore:
        record = half.record
        assert half.place is not None, "a half message without a place is not decided"
        return copy_of(record)._replace(
            topic=half.real_topic,
            queue_id=half.real_queue,
            sys_flag=record.sys_flag & ~SYS_FLAG_TRANSACTION | TRANSACTION_COMMIT,
            prepared_transaction_offset=record.physical_offset,
        )

    # --- WriteOp -----------------------------------------------------------------------------------------------------

    def write_op_enabled(self, half_offset: QueueOffset) -> bool:
        return half_offset in self.pending_ops

    async def write_op(self, half_offset: QueueOffset) -> None:
        """Marks a half message as done. If the store refuses the mark, the next round tries again."""
        # Enabled
        if not self.write_op_enabled(half_offset):
            return
        now_ms = self._environment.now_ms()
        result: PutResult = await self._engine.put(
            MessageToStore(
                topic=TRANS_OP_HALF_TOPIC,
                queue_id=0,
                body=str(half_offset).encode(),
                properties=encode_properties({names.WAIT_STORE_MSG_OK: "true", names.TAGS: OP_TAG}),
                born_timestamp_ms=now_ms,
                born_host=self._store_host,
                store_host=self._store_host,
            ),
            wait_durable=False,
        )
        # Next
        if not result.status.is_stored:
            return
        fingerprint = self.pending_ops.pop(half_offset, 0)
        # Trace
        self._environment.emit(
            Event("WriteOp", "", TRANS_OP_HALF_TOPIC, 0, a=result.queue_offset, b=half_offset, c=fingerprint)
        )
