"""Telling tales: the events of a broker, a producer and a consumer in one time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypedDict

from refmq.trace.record import Outcome
from refmq.verify.synth.cluster import BROKER, CONSUMER, MS, PRODUCER, RECORD_BYTES

INVOKE, OK, UNKNOWN, CONSUMED, STEP = Outcome.INVOKE, Outcome.OK, Outcome.UNKNOWN, Outcome.CONSUMED, Outcome.STEP
TOPIC: Final = "tales"
HALF, OPS, DELAYED = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX"
GROUP: Final = "readers"
READER: Final = f"{GROUP}@{CONSUMER}-0.1"
OTHER: Final = f"{GROUP}@{CONSUMER}-0.2"
SELLER: Final = f"sellers@{PRODUCER}-0.1"
BROKER_0: Final = f"{BROKER}-0"
COMMIT, ROLLBACK = 8, 12
FOUND, NOT_FOUND = 0, 19


class Numbers(TypedDict, total=False):
    """The numbers of an event."""

    a: int
    b: int
    c: int
    d: int
    queue_id: int
    operation: int


@dataclass(slots=True)
class Told:
    """One event of one node."""

    at_ns: int
    action: str
    outcome: int
    actor: str
    subject: str
    queue_id: int
    numbers: dict[str, int]


@dataclass(slots=True)
class Teller:
    """Tells tales: the events of three nodes, in one time."""

    now_ns: int
    log_end: int
    told: dict[str, list[Told]] = field(default_factory=lambda: {BROKER: [], PRODUCER: [], CONSUMER: []})
    operation: int = 0
    message: int = 1 << 40
    queue_id: int = 0
    _ends: dict[tuple[str, int], int] = field(default_factory=dict)

    def wait(self, ms: int) -> None:
        self.now_ns += ms * MS

    def tell(
        self,
        kind: str,
        action: str,
        outcome: int = STEP,
        *,
        actor: str = "",
        subject: str | None = None,
        **numbers: int,
    ) -> None:
        self.now_ns += MS
        if kind != BROKER:
            numbers.setdefault("operation", self.operation)
        about = TOPIC if subject is None else subject
        about = about if kind == BROKER or not about else f"{about}@{BROKER_0}"
        actor = actor or {BROKER: "", PRODUCER: SELLER, CONSUMER: READER}[kind]
        queue_id = numbers.pop("queue_id", self.queue_id if about else -1)
        self.told[kind].append(Told(self.now_ns, action, outcome, actor, about, queue_id, numbers))

    def fresh(self) -> int:
        """A message of its own, and an operation."""
        self.message += 1
        self.operation += 1
        return self.message

    def next_operation(self) -> None:
        self.operation += 1

    def stored(self, message: int, topic: str = TOPIC, *, ack: bool = True) -> Numbers:
        """A broker stores a message."""
        queue_id = self.queue_id if topic == TOPIC else 0
        offset = self._ends.get((topic, queue_id), 0)
        self._ends[topic, queue_id] = offset + 1
        place: Numbers = {"a": self.log_end, "b": offset, "c": message}
        self.log_end += RECORD_BYTES
        self.tell(BROKER, "AppendMessage", subject=topic, queue_id=queue_id, **place, d=RECORD_BYTES)
        self.tell(BROKER, "FlushLog", subject="", a=self.log_end)
        unit: Numbers = {"a": place["a"], "b": offset, "d": RECORD_BYTES}
        self.tell(BROKER, "DispatchMessage", subject=topic, queue_id=queue_id, **unit)
        if ack:
            self.tell(BROKER, "AckPut", subject=topic, queue_id=queue_id, **place)
        return place

    def sent(self, message: int | None = None) -> Numbers:
        """A producer sends a message, and all is well."""
        message = self.fresh() if message is None else message
        self.tell(PRODUCER, "Send", INVOKE, a=-1, b=-1, c=message)
        operation = self.operation
        place = self.stored(message)
        self.tell(PRODUCER, "Send", OK, **place, operation=operation)
        return place

    def pulled(
        self, *places: Numbers, begin: int = 0, end: int | None = None, actor: str = READER, wait_ms: int = 0
    ) -> None:
        """A consumer pulls; the broker serves just that."""
        self.next_operation()
        last = self._ends.get((TOPIC, self.queue_id), 0)
        self.tell(CONSUMER, "Pull", INVOKE, actor=actor, b=-1, c=-1)
        for place in places:
            self.tell(BROKER, "ServeMessage", **place, d=RECORD_BYTES)
            self.tell(CONSUMER, "Pull", CONSUMED, actor=actor, **place, d=RECORD_BYTES)
        to = end if end is not None else len(places)
        status = FOUND if places else NOT_FOUND
        self.tell(CONSUMER, "Pull", OK, actor=actor, b=to, c=last, d=status)

    def half(self) -> tuple[int, int]:
        """A producer sends a half message: the message, and its place among the halves."""
        message = self.fresh()
        self.tell(PRODUCER, "SendHalf", INVOKE, a=-1, b=-1, c=message)
        place = self.stored(message, HALF, ack=False)
        self.tell(BROKER, "SendHalf", **place)
        self.tell(PRODUCER, "SendHalf", OK, **place)
        return message, place["b"]

    def decided(self, message: int, half_offset: int, decision: int) -> Numbers:
        """A producer decides, and the broker does it: the place of the final message."""
        self.next_operation()
        said: Numbers = {"a": decision, "b": half_offset, "c": message}
        self.tell(PRODUCER, "EndTransaction", INVOKE, **said)
        place = self.stored(message) if decision == COMMIT else Numbers()
        self.tell(BROKER, "EndTransaction", **said)
        op = self.stored(message, OPS, ack=False)
        self.tell(BROKER, "WriteOp", subject=OPS, queue_id=0, a=op["b"], b=half_offset, c=message)
        return place

    def locked(self, actor: str, granted: int = 1, *, tell_broker: bool = True) -> None:
        self.next_operation()
        self.tell(CONSUMER, "LockQueue", INVOKE, actor=actor)
        if tell_broker:
            self.tell(BROKER, "LockQueue", actor=actor, a=1, b=(self.now_ns + MS) // MS)
        self.tell(CONSUMER, "LockQueue", OK, actor=actor, a=granted, b=(self.now_ns + MS) // MS)

    def unlocked(self, actor: str) -> None:
        self.next_operation()
        self.tell(CONSUMER, "UnlockQueue", INVOKE, actor=actor)
        self.tell(BROKER, "UnlockQueue", actor=actor, a=(self.now_ns + MS) // MS)
        self.tell(CONSUMER, "UnlockQueue", OK, actor=actor, b=(self.now_ns + MS) // MS)
