"""A small cluster on paper: writes the lines that a faultless run would leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypedDict

from refmq.trace.record import Outcome
from refmq.verify.oracles import Line

MS = 1_000_000


class Named(TypedDict, total=False):
    """Who did it, and where."""

    actor: str
    operation: int
    subject: str
    queue_id: int


SIZE = 100


@dataclass
class Paper:
    """Brokers that do everything right. Each method appends the lines of one operation."""

    lines: list[Line] = field(default_factory=list)
    now_ms: int = 1_000
    operation: int = 0
    log: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)
    queues: dict[tuple[str, str, int], list[tuple[int, int]]] = field(default_factory=dict)

    def add(
        self,
        node: str,
        action: str,
        outcome: int = 0,
        subject: str = "",
        queue_id: int = -1,
        actor: str = "",
        operation: int = 0,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        d: int = 0,
    ) -> None:
        self.now_ms += 1
        at_ns = self.now_ms * MS
        self.lines.append(Line(node, action, outcome, operation, at_ns, actor, subject, queue_id, a, b, c, d))

    def wait(self, ms: int) -> None:
        self.now_ms += ms

    def _store(self, topic: str, broker: str, queue_id: int, message: int) -> tuple[int, int]:
        log = self.log.setdefault(broker, [])
        queue = self.queues.setdefault((topic, broker, queue_id), [])
        physical, offset = len(log) * SIZE, len(queue)
        log.append((topic, queue_id, message))
        queue.append((physical, message))
        place: Named = {"subject": topic, "queue_id": queue_id}
        self.add(broker, "AppendMessage", a=physical, b=offset, c=message, d=SIZE, **place)
        self.add(broker, "FlushLog", a=physical + SIZE)
        self.add(broker, "DispatchMessage", a=physical, b=offset, d=SIZE, **place)
        return physical, offset

    def send(
        self, message: int, topic: str = "t", broker: str = "b", queue_id: int = 0, outcome: int = Outcome.OK
    ) -> None:
        self.operation += 1
        who: Named = {
            "actor": "producer",
            "operation": self.operation,
            "subject": f"{topic}@{broker}",
            "queue_id": queue_id,
        }
        self.add("client", "Send", Outcome.INVOKE, a=-1, b=-1, c=message, **who)
        physical, offset = (-1, -1)
        if outcome != Outcome.FAIL:
            physical, offset = self._store(topic, broker, queue_id, message)
        if outcome != Outcome.OK:
            physical, offset = (-1, -1)
        if outcome != Outcome.OK:
            self.add(broker, "Disconnect")
        self.add("client", "Send", outcome, a=physical, b=offset, c=message, **who)
        if outcome != Outcome.OK:
            self.wait(200)  # until there is a connection again

    def pull(
        self,
        from_offset: int,
        count: int = 32,
        topic: str = "t",
        broker: str = "b",
        queue_id: int = 0,
        client: str = "g@1",
    ) -> None:
        self.operation += 1
        who: Named = {
            "actor": client,
            "operation": self.operation,
            "subject": f"{topic}@{broker}",
            "queue_id": queue_id,
        }
        queue = self.queues.get((topic, broker, queue_id), [])
        found = queue[from_offset : from_offset + count]
        self.add("client", "Pull", Outcome.INVOKE, a=from_offset, b=-1, c=-1, **who)
        for position, (physical, message) in enumerate(found):
            self.add("client", "Pull", Outcome.CONSUMED, a=physical, b=from_offset + position, c=message, d=SIZE, **who)
        status = 0 if found else 19
        self.add("client", "Pull", Outcome.OK, a=from_offset, b=from_offset + len(found), c=len(queue), d=status, **who)

    def commit(self, before: int, after: int, client: str = "g@1") -> None:
        self.operation += 1
        who: Named = {"actor": client, "operation": self.operation, "subject": "t@b", "queue_id": 0}
        self.add("client", "CommitOffset", Outcome.INVOKE, a=before, b=after, **who)
        self.add("b", "CommitOffset", actor="g", subject="t", queue_id=0, a=before, b=after)
        self.add("client", "CommitOffset", Outcome.OK, a=before, b=after, **who)

    def half(self, message: int, decision: int) -> None:
        """A transaction: 8 commits, 12 rolls back, 0 is set aside in the end."""
        self.operation += 1
        who: Named = {"actor": "producer", "operation": self.operation, "subject": "t@b", "queue_id": 0}
        self.add("client", "SendHalf", Outcome.INVOKE, a=-1, b=-1, c=message, **who)
        self.add("client", "SendHalf", Outcome.OK, c=message, **who)
        if decision:
            self.add("client", "EndTransaction", Outcome.INVOKE, a=decision, c=message, **who)
            if decision == 8:
                self._store("t", "b", 0, message)
            self.add("b", "EndTransaction", subject="t", queue_id=0, a=decision, c=message)
        else:
            self.add("b", "HalfDiscard", subject="t", queue_id=0, c=message)

    def lock(self, client: str, granted: int = 1) -> None:
        self.add("b", "LockQueue", subject="t", queue_id=0, actor=f"g@{client}", a=granted, b=self.now_ms)

    def unlock(self, client: str) -> None:
        self.add("b", "UnlockQueue", subject="t", queue_id=0, actor=f"g@{client}", a=self.now_ms)


def good_run() -> list[Line]:
    """Every kind of operation once or more, with nothing wrong."""
    paper = Paper()
    for message in range(1, 6):
        paper.send(message)
    paper.send(6, queue_id=1)
    paper.send(7, broker="b2")
    paper.send(8, outcome=Outcome.UNKNOWN)
    paper.send(9, outcome=Outcome.FAIL)
    paper.half(20, 8)
    paper.half(21, 12)
    paper.half(22, 0)
    paper.lock("1")
    paper.lock("2", granted=0)
    paper.pull(0, 3)
    paper.commit(-1, 3)
    paper.unlock("1")
    paper.lock("2")
    paper.pull(3, 32, client="g@2")
    paper.commit(3, 7, client="g@2")
    paper.wait(30_000)
    paper.lock("1")
    for broker, queue_id in (("b", 0), ("b", 1), ("b2", 0)):
        paper.pull(0, broker=broker, queue_id=queue_id, client="auditor@1")
        paper.pull(len(paper.queues["t", broker, queue_id]), broker=broker, queue_id=queue_id, client="auditor@1")
    return paper.lines
