"""The streams of a synthetic cluster: chunks for Spark's tasks, or trace files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from refmq.trace.reader import SUFFIX, Strings
from refmq.trace.record import BLOCK_RECORDS_MAX, RECORD_BYTES, Encoder, encode_file_head, seal_block
from refmq.verify.recordings import Gap, Recordings, Stream
from refmq.verify.spark.columns import CHUNK_RECORDS, Chunk, Names
from refmq.verify.synth.cluster import BEGIN_NS, BROKER, KINDS, Cluster, Node, Rows
from refmq.verify.synth.plants import KIND, Plant, planted
from refmq.verify.synth.tales import TALE_STRINGS, Tales

FILE_BLOCKS_MAX: Final = (256 << 20) // (BLOCK_RECORDS_MAX * RECORD_BYTES)
"""256 MiB, as those of a node."""


@dataclass(frozen=True)
class Synthetic:
    """A cluster, how long it ran, and what is wrong with it."""

    cluster: Cluster
    rounds: int
    plants: tuple[Plant, ...] = ()
    tales: tuple[str, ...] = ()
    """Names of tales that are told badly; all are told well before."""

    @property
    def breaks(self) -> frozenset[str]:
        """The promises that are known to be broken."""
        by_plants = (name for plant in self.plants for name in KIND[plant.kind].breaks)
        return frozenset([*by_plants, *(name for tale in self.tales for name in Tales.breaks(tale))])

    @property
    def event_count(self) -> int:
        return sum(sum(len(chunk) for chunk in SyntheticNode(self, *key).tail()) for key in self._keys()) + (
            self.rounds * self.cluster.brokers * self.cluster.events_of_round
        )

    def _keys(self) -> list[tuple[str, int]]:
        return [(kind, broker) for broker in range(self.cluster.brokers) for kind in KINDS]

    def recordings(self) -> Recordings:
        """The streams, which have no files."""
        return Recordings(tuple(Stream(f"{kind}-{broker}", BEGIN_NS, ()) for kind, broker in self._keys()))

    def node(self, stream: Stream) -> SyntheticNode:
        kind, _, broker = stream.node.rpartition("-")
        return SyntheticNode(self, kind, int(broker))


def synthetic(
    events: int, seed: int = 0, violations: int = 0, *, cluster: Cluster | None = None, flush_sync: bool = True
) -> Synthetic:
    """A cluster that makes about so many events, with so many violations of each kind."""
    shape = cluster if cluster is not None else shape_for(events, seed)
    rounds = max(round(events / (shape.brokers * shape.events_of_round)), 3)
    plants = planted(shape, rounds, violations, flush_sync=flush_sync)
    return Synthetic(shape, rounds, plants, Tales.names() if violations else ())


def shape_for(events: int, seed: int) -> Cluster:
    """Small clusters for small traces."""
    if events < 200_000:
        return Cluster(2, 4, 2, seed)
    return Cluster(4, 64, 4, seed)


@dataclass(frozen=True)
class SyntheticNode:
    """The stream of one node."""

    whole: Synthetic
    kind: str
    broker: int

    @cached_property
    def node(self) -> Node:
        return Node(self.whole.cluster, self.kind, self.broker)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        own = self.node.texts
        return (*own, *(text for text in TALE_STRINGS if text not in own))

    @cached_property
    def _edits(self) -> dict[int, list[Callable[[Rows, Node], Rows]]]:
        edits: dict[int, list[Callable[[Rows, Node], Rows]]] = {}
        for plant in self.whole.plants:
            edit = KIND[plant.kind].edits.get(self.kind)
            if plant.broker == self.broker and edit is not None:
                edits.setdefault(plant.round, []).append(edit)
        return edits

    def names(self) -> Names:
        names = Names(self.node.name)
        names.extend(Strings(enumerate(self.texts)))
        return names

    def pieces(self, rounds_at_once: int) -> Iterator[Rows]:
        """All events, with the numbers that they have after what was left out or added."""
        shift = 0
        if len(self.node.prologue()):
            yield self.node.prologue()
        first = 0
        while first < self.whole.rounds:
            if first in self._edits:
                before = rows = self.node.rounds(first, first + 1)
                for edit in self._edits[first]:
                    rows = edit(rows, self.node)
                yield self._numbered(rows, before, shift)
                shift += len(rows) - len(before)
                shift += int(rows["sequence"][-1]) - int(before["sequence"][-1]) if len(rows) == len(before) else 0
                first += 1
                continue
            last = min([first + rounds_at_once, self.whole.rounds, *(at for at in self._edits if at > first)])
            rows = self.node.rounds(first, last)
            rows["sequence"] += np.uint32(shift & 0xFFFF_FFFF)
            yield rows
            first = last
        yield from self._tail(shift)

    @staticmethod
    def _numbered(rows: Rows, before: Rows, shift: int) -> Rows:
        """Numbers one by one, unless a number was left out on purpose."""
        rows = rows.copy()
        if len(rows) != len(before) or set(rows["sequence"].tolist()) == set(before["sequence"].tolist()):
            rows["sequence"] = before["sequence"][0] + np.arange(len(rows), dtype=np.uint32)
        rows["sequence"] += np.uint32(shift & 0xFFFF_FFFF)
        return rows

    def tail(self) -> Iterator[Rows]:
        """What stands beside the rounds."""
        if len(self.node.prologue()):
            yield self.node.prologue()
        yield from self._tail(0)

    def _tail(self, shift: int) -> Iterator[Rows]:
        if self.broker == 0:
            tales = Tales(self.whole.cluster, self.whole.rounds, self.whole.tales)
            numbers = {text: number for number, text in enumerate(self.texts)}
            base = self.whole.rounds * self.node.events_of_round + len(self.node.prologue()) + shift
            rows = tales.rows(self.kind, numbers, base)
            if len(rows):
                yield rows

    def chunks(self, chunk_records: int = CHUNK_RECORDS) -> Iterator[Chunk]:
        names, last_ns = self.names(), 0
        for rows in self.pieces(max(chunk_records // max(self.node.events_of_round, 1), 1)):
            order_ns = np.maximum.accumulate(np.maximum(rows["at_ns"], last_ns))
            last_ns = int(order_ns[-1])
            yield Chunk(self.node.name, rows, names, order_ns)


@dataclass(frozen=True, slots=True)
class SyntheticReader:
    """Makes the streams of a cluster where they are read: `tasks.Reader`."""

    whole: Synthetic

    def __call__(self, stream: Stream) -> tuple[Iterator[Chunk], list[Gap]]:
        return self.whole.node(stream).chunks(), []


@dataclass(slots=True)
class SyntheticWriter:
    """Writes the streams of a cluster as trace files, as its nodes would have."""

    folder: Path
    written: int = 0
    paths: list[Path] = field(default_factory=list)

    def write(self, whole: Synthetic, progress: Callable[[int], None] = lambda written: None) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for stream in whole.recordings().streams:
            self._stream(whole.node(stream), progress)

    def _stream(self, node: SyntheticNode, progress: Callable[[int], None]) -> None:
        """One file after another, in whole blocks."""
        rows_at_once = max(CHUNK_RECORDS // max(node.node.events_of_round, 1), 1)
        waiting, output, blocks, number = b"", None, 0, 0
        block_bytes = BLOCK_RECORDS_MAX * RECORD_BYTES
        try:
            for rows in chain(node.pieces(rows_at_once), [None]):
                waiting += b"" if rows is None else rows.tobytes()
                while len(waiting) >= block_bytes or (rows is None and waiting):
                    if output is None or blocks >= FILE_BLOCKS_MAX:
                        if output is not None:
                            output.close()
                        output, blocks, number = self._begin(node, number), 1, number + 1
                    part, waiting = waiting[:block_bytes], waiting[block_bytes:]
                    output.write(seal_block(part, blocks, int.from_bytes(part[4:8], "little")))
                    blocks += 1
                self.written += 0 if rows is None else len(rows)
                progress(self.written)
        finally:
            if output is not None:
                output.close()

    def _begin(self, node: SyntheticNode, number: int) -> BinaryIO:
        """A file, with its strings."""
        encoder = Encoder(node.node.name, BEGIN_NS)
        encoder.begin_table()
        strings = b"".join(encoder.define(text) for text in node.texts[1:])
        path = self.folder / f"{node.node.name}-{BEGIN_NS}-{number:05}{SUFFIX}"
        output = path.open("wb")
        output.write(encode_file_head(number, BEGIN_NS, BEGIN_NS) + seal_block(strings, 0, 0))
        self.paths.append(path)
        return output


assert BROKER in KINDS
