"""A recorder for a node whose steps are taken by several threads: events are noted in the order in which they happen,
under the lock of the store, and handed to the node's recorder from time to time."""

from __future__ import annotations

import asyncio
from typing import Final

import refmq_fast
from refmq.model.step import EventFields
from refmq.trace.record import Outcome, Recorder
from refmq.trace.writer import NOTE, TraceWriter

HAND_ON_PERIOD_S: Final = 0.05
"""How long an event stays noted at most while the loop is not busy."""

NOTES_AT_ONCE: Final = 131_072
"""After more of them the next ones are taken at once: half of what there is room for."""


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
        many = self.hand_on() > NOTES_AT_ONCE
        self._timer = self._loop.call_later(0 if many else HAND_ON_PERIOD_S, self._on_timer)

    def hand_on(self) -> int:
        """Gives everything that is noted to the trace; how many events that were."""
        names, events, dropped = self.notes.take()
        self._names += names
        recorder = self._recorder
        if isinstance(recorder, TraceWriter):
            recorder.record_noted(events, self._names)
            if dropped:
                recorder.drop(dropped)
            return len(events) // NOTE.size
        known = self._names
        for _, queue_id, a, b, c, d, action, actor, subject in NOTE.iter_unpack(events):
            recorder.record((known[action], known[actor], known[subject], queue_id, a, b, c, d))
        return len(events) // NOTE.size

    def close(self) -> None:
        self._timer.cancel()
        self.hand_on()
