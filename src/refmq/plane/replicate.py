"""How far the slaves have the log: what an acknowledgement waits for beside the flush.

A broker that waits for nobody has `wanted` 0, and its slaves never hold an acknowledgement back. With `wanted` 1 (a
master that writes twice before it answers) a put is acknowledged when some slave has it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rpds import HashTrieMap

from refmq.model.ids import PhysicalOffset


@dataclass(frozen=True, slots=True)
class Replicas:
    """What each slave reported last: the number of its connection -> the end of its log."""

    wanted: int = 0
    """How many slaves must have a record before it may be acknowledged."""
    reported: HashTrieMap[int, PhysicalOffset] = field(default_factory=HashTrieMap)

    def replicated_to(self) -> PhysicalOffset | None:
        """How far the log is on as many slaves as are wanted; None when none are."""
        assert self.wanted >= 0
        if self.wanted == 0:
            return None
        ends = sorted(self.reported.values(), reverse=True)
        return ends[self.wanted - 1] if len(ends) >= self.wanted else PhysicalOffset(0)


def master_read_report_enabled(replicas: Replicas, slave: int, to: PhysicalOffset, log_end: PhysicalOffset) -> bool:
    """A slave has at most what the master has, and what it had it keeps: any other report is refused."""
    return replicas.reported.get(slave, PhysicalOffset(0)) <= to <= log_end


def master_read_report(replicas: Replicas, slave: int, to: PhysicalOffset, log_end: PhysicalOffset) -> Replicas:
    # Enabled
    if not master_read_report_enabled(replicas, slave, to, log_end):
        return replicas
    assert to >= 0, "a position of a log"
    # Next
    after = replace(replicas, reported=replicas.reported.insert(slave, to))
    assert (after.replicated_to() or 0) >= (replicas.replicated_to() or 0), "what is replicated only grows"
    return after


def lose_slave(replicas: Replicas, slave: int) -> Replicas:
    """A slave's connection is gone: what it reported counts no more."""
    return replace(replicas, reported=replicas.reported.discard(slave))
