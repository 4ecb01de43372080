"""Trace files as numpy columns, a few blocks at a time, with names as hashes.

Spark's tasks look at millions of events each, so nothing here happens once per event in Python. A name (a topic and
its broker, a group, a node) is a keyed 64-bit hash of its text, the same in every file and every task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, cast
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from refmq.model.vocabulary import CLIENT_FIELDS, FIELDS
from refmq.trace.columns import record_dtype
from refmq.trace.reader import Block, Strings, TraceReader
from refmq.trace.record import (
    COLUMNS,
    KIND_DROP,
    KIND_EVENT,
    KIND_STRING,
    RECORD_BYTES,
    STRINGS_MAX,
    Dropped,
    Outcome,
    unpack_string,
)
from refmq.verify.oracles import Line
from refmq.verify.recordings import Gap, Stream, dropped_gap
from refmq.verify.spark import native

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

Rows = NDArray[np.void]
PLAIN_ROW: Final = np.dtype((np.void, RECORD_BYTES))

CHUNK_RECORDS: Final = 1 << 17
"""Events that are looked at together: 8 MiB."""

ACTIONS: Final = ("", *sorted({*FIELDS, *CLIENT_FIELDS}))
"""The names of the vocabulary; a name's place here is its code. 0 is any other name."""
ACTION_CODE: Final = {name: code for code, name in enumerate(ACTIONS)}
assert len(ACTIONS) < 256, "a code is a byte"

MEMBERSHIP: Final = ("Heartbeat", "Leave", "RemoveMember")
"""Steps of a broker whose subject is the group."""

HASH_KEY: Final = b"refmq verify"


def text_hash(*texts: str) -> int:
    """The number of a name. Texts are told apart, not only what they are together."""
    digest = blake2b(digest_size=8, key=HASH_KEY)
    for text in texts:
        data = text.encode(errors="replace")
        digest.update(len(data).to_bytes(4, "little") + data)
    return int.from_bytes(digest.digest(), "little")


def mix(values: U64) -> U64:
    """Scatters 64-bit numbers: the end of splitmix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)), np.uint64)


@dataclass(slots=True)
class Names:
    """What the strings of one file stand for, as arrays by the number of a string."""

    node: str
    texts: list[str] = field(default_factory=list)
    action: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    topic: U64 = field(default_factory=lambda: np.empty(0, np.uint64))
    """Of a string as a subject: topic and broker."""
    broker: U64 = field(default_factory=lambda: np.empty(0, np.uint64))
    text: U64 = field(default_factory=lambda: np.empty(0, np.uint64))
    group: U64 = field(default_factory=lambda: np.empty(0, np.uint64))
    """Of a string as an actor."""
    is_node: Mask = field(default_factory=lambda: np.empty(0, np.bool_))

    def extend(self, strings: Strings) -> None:
        """Takes what has been defined since. A number that is defined again has the text it had."""
        count = max(strings, default=0) + 1
        if count <= len(self.texts):
            return
        fresh = [strings.get(number, f"?{number}") for number in range(len(self.texts), count)]
        places = [self.place_of(text) for text in fresh]
        self.texts += fresh
        self.action = np.append(self.action, np.array([ACTION_CODE.get(text, 0) for text in fresh], np.uint8))
        self.topic = np.append(self.topic, np.array([text_hash(*place) for place in places], np.uint64))
        self.broker = np.append(self.broker, np.array([text_hash(place[1]) for place in places], np.uint64))
        self.text = np.append(self.text, np.array([text_hash(text) for text in fresh], np.uint64))
        groups = [text_hash(text.partition("@")[0]) for text in fresh]
        self.group = np.append(self.group, np.array(groups, np.uint64))
        self.is_node = np.append(self.is_node, np.array([text == self.node for text in fresh], np.bool_))

    def place_of(self, subject: str) -> tuple[str, str]:
        """Topic and broker, as `Line.queue` has them."""
        topic, at, broker = subject.rpartition("@")
        return (topic, broker) if at else (subject, self.node)

    def numbers_with(self, chosen: Sequence[str]) -> NDArray[np.intp]:
        """The numbers of strings that begin with one of these."""
        return np.array([n for n, text in enumerate(self.texts) if text.startswith(tuple(chosen))], np.intp)


@dataclass
class Chunk:
    """Some events of one file, in their order."""

    node: str
    rows: NDArray[np.void]
    names: Names
    order_ns: I64
    """When each happened as far as the order goes: no earlier than what stands before it in the stream."""

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> NDArray[Any]:
        return np.ascontiguousarray(self.rows[name])

    @cached_property
    def action(self) -> NDArray[np.uint8]:
        return np.asarray(self.names.action[self.rows["action"]], np.uint8)

    @cached_property
    def outcome(self) -> NDArray[np.uint8]:
        return np.asarray(self.column("outcome"), np.uint8)

    @cached_property
    def queue(self) -> U64:
        """The number of each event's queue."""
        return queue_key(self.names.topic[self.rows["subject"]], self.rows["queue_id"])

    @cached_property
    def broker(self) -> U64:
        return np.asarray(self.names.broker[self.rows["subject"]], np.uint64)

    @cached_property
    def group(self) -> U64:
        is_member_step = (self.outcome == Outcome.STEP) & np.isin(self.action, codes(MEMBERSHIP))
        subjects, actors = self.names.text[self.rows["subject"]], self.names.group[self.rows["actor"]]
        return np.asarray(np.where(is_member_step, subjects, actors), np.uint64)

    @cached_property
    def actor(self) -> U64:
        return np.asarray(self.names.text[self.rows["actor"]], np.uint64)

    @cached_property
    def is_world(self) -> Mask:
        """Faults, and other notes of the world about a node."""
        return np.asarray((self.outcome == Outcome.STEP) & self.names.is_node[self.rows["actor"]], np.bool_)

    def of(self, actions: Sequence[str], *outcomes: int) -> Mask:
        """Which events are of these actions, and have one of these outcomes if any are given."""
        table = np.zeros(256, np.bool_)
        table[codes(actions)] = True
        chosen = table[self.action]
        return np.asarray(chosen & np.isin(self.outcome, outcomes) if outcomes else chosen, np.bool_)

    def only(self, chosen: Mask | NDArray[np.intp]) -> Chunk:
        """Some of the events, by a mask or by their places."""
        return Chunk(self.node, taken(self.rows, chosen), self.names, self.order_ns[chosen])

    def lines(self, *, counted: bool = True) -> Iterator[tuple[int, Line]]:
        """The events as lines, each with its order."""
        texts, node = self.names.texts, self.node
        for order_ns, row in zip(self.order_ns.tolist(), self.rows.tolist(), strict=True):
            _, outcome, action, sequence, at_ns, a, b, c, d, actor, subject, queue_id, operation = row
            line = Line(
                *(node, texts[action], outcome, operation, at_ns, texts[actor], texts[subject], queue_id),
                *(a, b, c, d, sequence if counted else -1),
            )
            yield order_ns, line


def taken(rows: Rows, chosen: Mask | NDArray[np.intp]) -> Rows:
    """Some rows; as plain bytes they are copied in one piece and not field by field."""
    plain = np.ascontiguousarray(rows).view(PLAIN_ROW)
    return np.asarray(plain[chosen].view(rows.dtype))


def queue_key(topic: U64, queue_id: NDArray[np.int32]) -> U64:
    """The number of a queue, from that of its topic and broker."""
    return mix(topic + (queue_id.astype(np.int64).astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


def codes(actions: Sequence[str]) -> NDArray[np.uint8]:
    return np.array([ACTION_CODE[action] for action in actions], np.uint8)


@dataclass(slots=True)
class StreamReader:
    """Reads a stream in chunks; what cannot be read goes to `gaps`."""

    stream: Stream
    chunk_records: int = CHUNK_RECORDS
    """With 1 each block is a chunk, and no event is copied."""
    ordered: bool = True
    """Whether chunks need the order of their events; it costs as much as reading them."""
    gaps: list[Gap] = field(default_factory=list)
    _order_ns: int = 0

    def chunks(self) -> Iterator[Chunk]:
        for piece in self.stream.pieces:
            try:
                source = Path(piece.path).open("rb", buffering=0)  # noqa: SIM115 - closed below
            except OSError as error:
                self.gaps.append(Gap(self.stream.name, piece.path, f"it cannot be read: {error.strerror}"))
                continue
            with source:
                yield from self._of_file(piece.path, TraceReader(source, checksum()))

    def _of_file(self, path: str, reader: TraceReader) -> Iterator[Chunk]:
        names = Names(self.stream.name)
        names.extend(reader.strings)
        waiting: list[bytes] = []
        count = 0
        for block in reader.blocks():
            records = block.records
            if not reader.has_only_events(block) or not _is_plain(records, names):
                records = self._closely(path, reader, block)
                names.extend(reader.strings)
            waiting.append(records)
            count += len(records) // RECORD_BYTES
            if count >= self.chunk_records:
                yield self._chunk(b"".join(waiting), names)
                waiting, count = [], 0
        if count:
            yield self._chunk(b"".join(waiting), names)
        self.gaps += [Gap(self.stream.name, path, str(damage)) for damage in reader.damage]

    def _closely(self, path: str, reader: TraceReader, block: Block) -> bytes:
        """The events of a block that has other records as well, or something invalid."""
        rows = np.frombuffer(block.records, record_dtype())
        if not define_strings(block, reader.strings, rows):
            entries = list(reader.entries_of(block))  # finds what is damaged, event by event
            rows = rows[_undamaged(block, reader)]
            drops = [entry for entry in entries if isinstance(entry, Dropped)]
        else:
            chosen = rows[rows["kind"] == KIND_DROP]
            drops = [Dropped(int(row["a"]), int(row["sequence"]), int(row["at_ns"])) for row in chosen]
        self.gaps += [dropped_gap(self.stream.name, path, drop) for drop in drops]
        return bytes(rows[rows["kind"] == KIND_EVENT].tobytes())

    def _chunk(self, records: bytes, names: Names) -> Chunk:
        rows = np.frombuffer(records, record_dtype())
        if not self.ordered:
            return Chunk(self.stream.name, rows, names, np.empty(0, np.int64))
        order_ns = np.maximum.accumulate(np.maximum(rows["at_ns"], self._order_ns))
        self._order_ns = int(order_ns[-1])
        return Chunk(self.stream.name, rows, names, order_ns)


def checksum() -> Callable[[bytes], int]:
    """The fastest CRC-32 there is."""
    kernels = native.kernels()
    return crc32 if kernels is None else cast("Callable[[bytes], int]", kernels.crc32)


def _is_plain(records: bytes, names: Names) -> bool:
    """Whether these events are valid, and all their strings known."""
    rows = np.frombuffer(records, record_dtype())
    return bool(rows["outcome"].max(initial=0) <= max(Outcome)) and _highest(rows) < len(names.texts)


def _highest(rows: NDArray[np.void]) -> int:
    return max(int(rows[name].max(initial=0)) for name in ("action", "actor", "subject"))


def define_strings(block: Block, strings: Strings, rows: NDArray[np.void]) -> bool:
    """Takes the strings of a block where everything in it is plainly valid; if not, False and nothing is changed."""
    if not np.isin(rows["kind"], (KIND_EVENT, KIND_STRING, KIND_DROP)).all():
        return False
    fresh: dict[int, str] = {}
    text, wanted = b"", 0
    for at in np.flatnonzero(rows["kind"] == KIND_STRING).tolist():
        number, piece, more = _piece(block.records, at * RECORD_BYTES)
        if number == 0 or (wanted and number != wanted):
            return False
        text, wanted = text + piece, number if more else 0
        if not more:
            fresh[number], text = text.decode(errors="replace"), b""
    known = {**strings, **fresh}
    events = rows[rows["kind"] == KIND_EVENT]
    is_valid = (
        not wanted
        and set(range(len(known))) == set(known)
        and int(events["outcome"].max(initial=0)) <= max(Outcome)
        and _highest(events) < len(known)
    )
    if is_valid:
        strings.update(fresh)
    return is_valid


def _piece(records: bytes, at: int) -> tuple[int, bytes, bool]:
    """A piece of a string; number 0 where it is none."""
    length, number = records[at + 1], int.from_bytes(records[at + 4 : at + 8], "little")
    if length > RECORD_BYTES - 8 or records[at + 2 : at + 4] not in (b"\0\0", b"\1\0") or number > STRINGS_MAX:
        return 0, b"", False
    return unpack_string(records, at)


def _undamaged(block: Block, reader: TraceReader) -> Mask:
    chosen = np.ones(block.head.count, np.bool_)
    for stretch in reader.damage:
        first, last = ((place - block.position) // RECORD_BYTES for place in (stretch.position, stretch.end))
        chosen[max(first, 0) : max(last, 0)] = False
    return chosen


assert [name for name, _, _ in COLUMNS][:2] == ["kind", "outcome"], "`Chunk.lines` takes the columns in this order"
