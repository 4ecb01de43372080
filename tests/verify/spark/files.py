"""Lines written as the trace files that would have been read as these lines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from refmq.model.step import Event
from refmq.trace.reader import SUFFIX
from refmq.trace.record import BLOCK_RECORDS_MAX, RECORD_BYTES, Encoder, Outcome, seal_block
from refmq.verify.oracles import Line

LIFE_NS = 1_700_000_000_000_000_000


def write_lines(lines: Iterable[Line], folder: Path) -> Path:
    """A file for each node, and one for what the world did to it. Lines of one moment get times one after another, so
    that files keep the order of the whole."""
    folder.mkdir(parents=True, exist_ok=True)
    streams: dict[str, list[Line]] = {}
    last_ns = 0
    for line in lines:
        at_ns = line.at_ns if line.at_ns > last_ns else last_ns + 1 if last_ns - line.at_ns < 1_000_000 else line.at_ns
        last_ns = max(last_ns, at_ns)
        is_fault = line.outcome == Outcome.STEP and line.actor == line.node
        streams.setdefault(f"{line.node}#world" if is_fault else line.node, []).append(line._replace(at_ns=at_ns))
    for number, (node, written) in enumerate(streams.items()):
        (folder / f"{number:03}{SUFFIX}").write_bytes(encoded(node, written))
    return folder


def encoded(node: str, lines: list[Line]) -> bytes:
    """One file, with the numbers that the lines have; a line without one gets the next."""
    encoder = Encoder(node, LIFE_NS)
    parts, block, sequence = [encoder.begin_file(LIFE_NS)], bytearray(encoder.node_name()), 0
    number = 0
    for line in lines:
        sequence = line.sequence if line.sequence >= 0 else sequence
        encoder.sequence = sequence
        sequence += 1
        event = Event(line.action, line.actor, line.subject, line.queue_id, line.a, line.b, line.c, line.d)
        records = encoder.event(event, line.at_ns, line.outcome, line.operation)
        if len(block) + len(records) > BLOCK_RECORDS_MAX * RECORD_BYTES:
            parts.append(seal_block(bytes(block), number, 0))
            block, number = bytearray(), number + 1
        block += records
    return b"".join([*parts, seal_block(bytes(block), number, 0)])
