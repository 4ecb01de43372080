"""What is known of a broker from its own steps, for `NodeCoherent`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from refmq.verify.oracles.base import Line, Queue, Remembered

HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
ASIDE_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
STARTING: Final = ("StartStore", "ScanLog", "TruncateLog", "FinishRecovery")
"""The steps of a start, in this order."""
UNKNOWN_TIMES: Final = -1
"""Stands for how often a producer was asked, where nobody has said it."""


@dataclass(slots=True)
class KnownRound:
    """A check round under way."""

    half: int
    next_op: int
    first_half: int
    first_op: int
    removed: set[int] = field(default_factory=set)
    """Op messages whose half message this round has passed."""


@dataclass(slots=True)
class KnownBroker:
    """What is known of a broker from its steps."""

    phase: str = ""
    """The last step of a start; empty while it is down."""
    stopped_at: int | None = None
    """Where its log ended when it was stopped in good order; None after a crash."""
    lives: int = 0
    lost_power: bool = False
    has_unseen: bool = False
    """A crash fell between a write and its event: the log holds what nobody has told of."""
    valid_to: int = 0
    log_end: int = 0
    flushed_to: int = 0
    records: Remembered[int, Line] = field(default_factory=Remembered)
    """By physical offset: everything that the log holds, as far as it was seen."""
    waiting: Remembered[int, None] = field(default_factory=Remembered)
    """Records that are not dispatched yet, in the order of the log."""
    acked: Remembered[int, None] = field(default_factory=Remembered)
    ends: set[int] = field(default_factory=set)
    """Where records end: a flush covers whole ones."""
    store_ms: set[int] = field(default_factory=set)
    last_ms: int = 0
    next_offset: dict[Queue, int] = field(default_factory=dict)
    flushed_units: dict[Queue, int] = field(default_factory=dict)
    grown: set[Queue] = field(default_factory=set)
    """Queues that grew in this life."""
    file_starts: set[int] = field(default_factory=lambda: {0})
    min_offset: int = 0
    checkpoint: tuple[int, int, int] = (0, 0, 0)
    halves: dict[int, int] = field(default_factory=dict)
    """Half offset -> message."""
    check_times: dict[int, int] = field(default_factory=dict)
    ops: dict[int, int] = field(default_factory=dict)
    """Op offset -> half offset that it names."""
    op_end: int = 0
    """Where the queue of op messages ends, as far as this life has dispatched them."""
    own_ops: set[int] = field(default_factory=set)
    """Op messages that were appended in this life."""
    decided: set[int] = field(default_factory=set)
    finished: set[int] = field(default_factory=set)
    """Messages that were decided in this life."""
    set_aside: set[int] = field(default_factory=set)
    """Messages of which there is a copy among those that are set aside."""
    old: set[int] = field(default_factory=set)
    """Messages that are old enough to be asked for."""
    persisted: tuple[int, int] | None = None
    unsaved: bool = False
    """Offsets were committed since they were last written down."""
    round: KnownRound | None = None
    progress: tuple[int, int] | None = None
    offsets: dict[tuple[str, Queue], int] = field(default_factory=dict)
    loans: dict[tuple[str, Queue], str] = field(default_factory=dict)
    members: set[tuple[str, str]] = field(default_factory=set)
    damaged: set[int] = field(default_factory=set)
    """Where records are of which a bit has flipped."""

    def forget_the_unseen(self) -> None:
        """The log is longer than was told: what came behind the last record that was seen may be anything."""
        self.has_unseen = True
        self.next_offset.clear()
        self.halves.clear()
        self.check_times.clear()
        self.ops.clear()

    def _forget_untold_copies(self) -> None:
        """Of a copy of a half message that was written last nobody may have said how often its producer was asked."""
        seen = set[int]()
        for offset, message in sorted(self.halves.items()):
            if message in seen:
                self.check_times.setdefault(offset, UNKNOWN_TIMES)
            seen.add(message)

    def end(self, *, power: bool, clean: bool = False) -> None:
        """The process is gone, and its memory. Without power so is what was not flushed."""
        self.phase, self.round, self.progress, self.persisted, self.unsaved = "", None, None, None, False
        self.offsets = self.offsets if clean else {}
        self.grown.clear()
        self.op_end = 0
        self.own_ops.clear()
        self.finished.clear()
        self.old.clear()
        self.loans.clear()
        self.members.clear()
        self.acked.clear()
        self.waiting.clear()
        self.flushed_units.clear()
        self.checkpoint = (0, 0, 0)
        self.lost_power = self.lost_power or power
        if not clean:
            self._forget_untold_copies()
        if power:
            self.next_offset.clear()
            self.halves.clear()
            self.check_times.clear()
            self.ops.clear()
            for at in [at for at, record in self.records.items() if at + record.size_bytes > self.flushed_to]:
                del self.records[at]
