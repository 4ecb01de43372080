"""A trace in memory: what simulated nodes record into, and what oracles read."""

from __future__ import annotations

from collections.abc import Callable

from refmq.model.step import Event, EventFields
from refmq.trace.record import BLOCK_RECORDS_MAX, RECORD_BYTES, Encoder, Outcome, Recorded, seal_block


class MemoryRecorder:
    """A `Recorder` that keeps everything. `on_record` sees every event as it happens."""

    def __init__(
        self, node: str, clock_ns: Callable[[], int], on_record: Callable[[Recorded], None] | None = None
    ) -> None:
        self.node = node
        self.life_ns = clock_ns()
        self.events: list[Recorded] = []
        self._clock_ns = clock_ns
        self._on_record = on_record

    def record(self, event: EventFields, outcome: Outcome = Outcome.STEP, operation: int = 0) -> None:
        recorded = Recorded(Event._make(event), self._clock_ns(), len(self.events), outcome, operation)
        self.events.append(recorded)
        if self._on_record is not None:
            self._on_record(recorded)

    def to_bytes(self) -> bytes:
        """The file that a writer would have written. A number that does not fit its field is an error here."""
        return encode_trace(self.node, self.life_ns, self.events)


def encode_trace(node: str, life_ns: int, events: list[Recorded]) -> bytes:
    """One trace file with these events, times and operation numbers; sequence numbers start over."""
    encoder = Encoder(node, life_ns)
    parts = [encoder.begin_file(life_ns)]
    block = bytearray(encoder.node_name())
    number = first_sequence = 0
    for recorded in events:
        records = encoder.event(recorded.event, recorded.at_ns, recorded.outcome, recorded.operation)
        if len(block) + len(records) > BLOCK_RECORDS_MAX * RECORD_BYTES:
            parts.append(seal_block(bytes(block), number, first_sequence))
            block, number, first_sequence = bytearray(), number + 1, encoder.sequence - 1
        block += records
    parts.append(seal_block(bytes(block), number, first_sequence))
    return b"".join(parts)
