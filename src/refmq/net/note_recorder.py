"""A recorder for a node whose steps are taken by several threads: events are noted in the order in which they happen,
under the lock of the store, and handed to the node's recorder from time to time."""

from __future__ import annotations

import asyncio
import struct
from typing import Final

import refmq_fast
from refmq.model.step import EventFields
from refmq.trace.record import Outcome, Recorder
from refmq.trace.writer import TraceWriter

HAND_ON_PERIOD_S: Final = 0.05
"""How long an event stays noted at most while the loop is not busy."""

NOTE: Final = struct.Struct("=6q3I4x")
"""`rmq_note` in shell/notes.h: when, queue, a, b, c, d; the numbers of action, actor and subject; padding."""


class NoteRecorder:
    """What a node records with. `close` hands on the rest."""

    def __init__(self, recorder: Recorder, seed: int) -> None:
        self.notes = refmq_fast.Notes(seed)
        self._recorder = recorder
        self._names: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(HAND_ON_PERIOD_S, self._on_timer)

    def record(self, event: EventFields, outcome: Outcome = Outcome.STEP, operation: int = 0) -> None:
        assert outcome is Outcome.STEP and operation == 0, "a broker records steps; operations are a client's"
        self.notes.note(event)

    def _on_timer(self) -> None:
        self._timer = self._loop.call_later(HAND_ON_PERIOD_S, self._on_timer)
        self.hand_on()

    def hand_on(self) -> None:
        """Gives everything that is noted to the trace."""
        names, events, dropped = self.notes.take()
        self._names += names
        known, recorder = self._names, self._recorder
        for at_ns, queue_id, a, b, c, d, action, actor, subject in NOTE.iter_unpack(events):
            event = (known[action], known[actor], known[subject], queue_id, a, b, c, d)
            if isinstance(recorder, TraceWriter):
                recorder.record_at(event, at_ns)
            else:
                recorder.record(event)
        if dropped and isinstance(recorder, TraceWriter):
            recorder.drop(dropped)

    def close(self) -> None:
        self._timer.cancel()
        self.hand_on()
