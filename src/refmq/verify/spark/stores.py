"""Do the files of a store agree? The log against its queues and its index, by digests, a task for each piece of a file.

The log says what every queue and the index should hold; they are read apart from it, and compared as the sides of a
trace are: sums over the units of `queue_offset >> 10`, and over the keys of 1 MiB of the log. Rows are looked at only
where sums differ. Works on a stopped or copied store, ours or of a real RocketMQ.

With several stores of one broker (a master and its slaves) their logs are compared as well, as far as both have them.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from refmq.inspect.files import INDEX_HEADER, QUEUE_BLANK_SIZE, StoreFiles, look_at_store
from refmq.inspect.verify import DELAY_TOPIC
from refmq.net.files import RealDisk
from refmq.protocol.names import TRACE_TOPIC
from refmq.verify.local import Progress, no_progress
from refmq.verify.spark import plans
from refmq.verify.spark.columns import U64, mix
from refmq.verify.spark.digest import keys_of, signed
from refmq.verify.spark.facts import Columns, as_signed
from refmq.verify.spark.log_pieces import INDEX_ENTRY, QUEUE_UNIT, PieceOfLog, Rows, read_piece, topic_hash
from refmq.verify.spark.message_traces import published_by

PIECE_BYTES: Final = 64 << 20
RANGE_SHIFT: Final = 10
"""Of queue offsets."""
LOG_SHIFT: Final = 20
"""Of physical offsets."""
LOGGED, QUEUED, KEYED, INDEXED, RECORDED = range(1, 6)
"""The sides: what the log says of a queue, what the queue has, the same of the index, and the log itself."""
SIDES: Final = (("queue", LOGGED, QUEUED), ("index", KEYED, INDEXED))
FLAWS_MAX: Final = 1_000
RANGES_MAX: Final = 100_000
DELAYED: Final = topic_hash(DELAY_TOPIC)
TRACES: Final = topic_hash(TRACE_TOPIC)
TRACED_MAX: Final = 1_000_000
"""Messages named by clients that are looked for in one run."""
TRANSACTIONS_QUEUED: Final = (0x0, 0x8)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a file, and what kind of file it is."""

    store: int
    kind: str
    """log, queue, index."""
    path: str
    begin: int
    """Of the file: a physical offset, or a position in the queue."""
    first: int
    last: int
    """The stretch, counted from the beginning of the file."""
    queue: int = 0
    entries_at: int = 0
    """Of an index: where its entries begin."""
    log_begin: int = 0
    """What points before it is expired."""
    has_tags: bool = True
    """Whether tags codes stand in the queue: not where extension units have them, nor for delayed messages."""


@dataclass(frozen=True, slots=True)
class StoreFlaw:
    """One thing that is not as it should be."""

    store: str
    promise: str
    sentence: str
    is_note: bool = False
    """A crash leaves this, and the next start repairs it."""


@dataclass(frozen=True, slots=True)
class StoreJudgement:
    """What was looked at, and what was found."""

    stores: tuple[str, ...]
    records: int
    units: int
    keys: int
    log_bytes: int
    flaws: tuple[StoreFlaw, ...]
    seconds: float

    @property
    def damage(self) -> list[StoreFlaw]:
        return [flaw for flaw in self.flaws if not flaw.is_note]


class StoreEngine(Protocol):
    """What the comparison runs on."""

    @property
    def dialect(self) -> plans.Dialect: ...
    def sql(self, query: str) -> list[tuple[object, ...]]: ...
    def facts_of(self, work: Any, tasks: int, progress: Progress) -> None:
        """Makes the table `facts` of what the tasks yield."""
        ...


def queue_number(store: int, topic: int, queue_id: int) -> int:
    """One number for a queue of a store."""
    both = np.array([topic ^ (store + 1) * 0x9E3779B97F4A7C15 & 0xFFFF_FFFF_FFFF_FFFF], np.uint64)
    return int(_queue_numbers(both, np.array([queue_id], np.int64))[0])


def _queue_numbers(topics: U64, queue_ids: NDArray[np.int64]) -> U64:
    return mix(topics + mix(queue_ids.astype(np.uint64) + np.uint64(1)))


def pieces_of(store: int, root: Path, files: StoreFiles) -> list[Piece]:
    """The tasks of one store."""
    found = []
    has_tags = not files.ext_file_bytes
    for file in files.log.files:
        for first in range(0, file.size_bytes, PIECE_BYTES):
            last = min(first + PIECE_BYTES, file.size_bytes)
            found.append(Piece(store, "log", str(root / file.path), file.begin, first, last, has_tags=has_tags))
    begin = files.log.begin
    for queue in files.queues:
        number = queue_number(store, topic_hash(queue.topic), queue.queue_id)
        for file in queue.sequence.files:
            place = (str(root / file.path), file.begin, 0, file.size_bytes)
            tagged = has_tags and queue.topic != DELAY_TOPIC
            found.append(Piece(store, "queue", *place, queue=number, log_begin=begin, has_tags=tagged))
    for index in files.indexes:
        entries_at = INDEX_HEADER.size + 4 * index.slots
        last = entries_at + INDEX_ENTRY.itemsize * max(min(index.next_entry, index.entries), 0)
        if index.slots:
            place = (str(root / index.path), 0, entries_at + INDEX_ENTRY.itemsize, last)
            found.append(Piece(store, "index", *place, entries_at=entries_at, log_begin=begin))
    return found


@dataclass(frozen=True, slots=True)
class StoreWork:
    """A task for each piece: cells, or with `dirty` the rows of ranges that differ."""

    pieces: tuple[Piece, ...]
    seed: int = 0
    dirty: bytes | None = None
    wanted: bytes | None = None
    """Physical offsets of which the keys are wanted: those that clients named."""

    def run(self, number: int) -> Iterator[Columns]:
        piece = self.pieces[number]
        path = Path(piece.path)
        if path.stat().st_size == 0:
            return
        with path.open("rb") as source, mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as data:
            reader = _Reader(piece, keys_of(self.seed), self._keys(), self._wanted())
            yield from reader.read(memoryview(data).toreadonly())

    def _keys(self) -> U64 | None:
        return None if self.dirty is None else np.frombuffer(self.dirty, np.uint64)

    def _wanted(self) -> NDArray[np.int64]:
        return np.frombuffer(self.wanted or b"", np.int64)


@dataclass(slots=True)
class _Reader:
    piece: Piece
    keys: U64
    dirty: U64 | None
    wanted: NDArray[np.int64]

    def read(self, data: memoryview) -> Iterator[Columns]:
        try:
            match self.piece.kind:
                case "log":
                    yield from self._log(data)
                case "queue":
                    yield from self._queue(data)
                case _:
                    yield from self._index(data)
        finally:
            data.release()

    def _log(self, data: memoryview) -> Iterator[Columns]:
        piece = self.piece
        for item in read_piece(piece.begin, data, piece.first, piece.last):
            if isinstance(item, PieceOfLog):
                if self.dirty is None:
                    yield self._told(item)
                continue
            units, keys = item
            if self.dirty is None:
                yield from self._told_by_clients(data, units)
            elif len(self.wanted):
                named = keys[np.isin(keys["physical_offset"], self.wanted)]
                yield self._places(named["physical_offset"], named["hash"], "key", [""] * len(named))
            queued = units[np.isin(units["transaction"], TRANSACTIONS_QUEUED)]
            salted = queued["topic"] ^ np.uint64((piece.store + 1) * 0x9E3779B97F4A7C15 & 0xFFFF_FFFF_FFFF_FFFF)
            numbers = _queue_numbers(salted, queued["queue_id"].astype(np.int64))
            is_tagged = self.piece.has_tags & (queued["topic"] != np.uint64(DELAYED))
            values = unit_values(queued, np.where(is_tagged, queued["tags_code"], 0))
            yield from self._side(LOGGED, numbers, queued["queue_offset"], RANGE_SHIFT, values)
            yield from self._side(KEYED, self._of_store(keys), keys["physical_offset"], LOG_SHIFT, key_values(keys))
            values = [units["message"], units["size_bytes"], units["queue_offset"]]
            yield from self._side(RECORDED, self._of_store(units), units["physical_offset"], LOG_SHIFT, values)

    def _told_by_clients(self, data: memoryview, units: Rows) -> Iterator[Columns]:
        """What trace messages in the log say to be in it."""
        found = [
            each
            for at in units["physical_offset"][units["topic"] == np.uint64(TRACES)].tolist()
            for each in published_by(data[at - self.piece.begin :], at)
        ]
        if found:
            texts = [f"{each.unique_key} of {each.topic}, sent by {each.group}" for each in found]
            places, hashes = ([getattr(each, name) for each in found] for name in ("physical_offset", "hash"))
            yield self._places(np.array(places, np.int64), np.array(hashes, np.int64), "traced", texts)

    def _places(self, at: NDArray[Any], hashes: NDArray[Any], kind: str, texts: list[str]) -> Columns:
        stores = np.full(len(at), self.piece.store)
        return {"kind": [kind] * len(at), "k2": at.astype(np.int64), "s1": hashes, "k1": stores, "text": texts}

    def _of_store(self, rows: Rows) -> U64:
        return np.full(len(rows), self.piece.store + 1, np.uint64)

    def _told(self, item: PieceOfLog) -> Columns:
        """What a piece of the log was like, and its damage."""
        rows = [("piece", self.piece.path, item.begin, item.end, self.piece.begin + self.piece.first, item.records)]
        rows += [("damage", reason, begin, end, 0, 0) for begin, end, reason in item.damage]
        kinds, names, k1, k2, k3, n = zip(*rows, strict=True)
        ends = [int(item.is_end)] * len(rows)
        stores = [self.piece.store] * len(rows)
        return {"kind": kinds, "name": names, "k1": k1, "k2": k2, "k3": k3, "n": n, "k4": ends, "s1": stores}

    def _queue(self, data: memoryview) -> Iterator[Columns]:
        count = len(data) // QUEUE_UNIT.itemsize
        units = np.frombuffer(data, QUEUE_UNIT, count)
        empty = np.flatnonzero((units["size_bytes"] <= 0) | (units["physical_offset"] < 0))
        units = units[: empty[0] if len(empty) else count]
        offsets = self.piece.begin // QUEUE_UNIT.itemsize + np.arange(len(units), dtype=np.int64)
        live = (units["size_bytes"] != QUEUE_BLANK_SIZE) & (units["physical_offset"] >= self.piece.log_begin)
        numbers = np.full(int(live.sum()), self.piece.queue, np.uint64)
        tags = units["tags_code"][live] * int(self.piece.has_tags)
        yield from self._side(QUEUED, numbers, offsets[live], RANGE_SHIFT, unit_values(units[live], tags))

    def _index(self, data: memoryview) -> Iterator[Columns]:
        count = (min(self.piece.last, len(data)) - self.piece.first) // INDEX_ENTRY.itemsize
        entries = np.frombuffer(data, INDEX_ENTRY, max(count, 0), self.piece.first)
        entries = entries[entries["physical_offset"] >= self.piece.log_begin]
        # A record that is indexed again after a crash has its entries twice.
        pairs = np.unique(entries[["physical_offset", "hash"]])
        yield from self._side(INDEXED, self._of_store(pairs), pairs["physical_offset"], LOG_SHIFT, key_values(pairs))

    def _side(
        self, side: int, numbers: U64, at: NDArray[Any], shift: int, values: Sequence[NDArray[Any]]
    ) -> Iterator[Columns]:
        """What one side holds: cells, or rows in ranges that differ. `at` is the place, `values` stand there."""
        at = at.astype(np.int64)
        ranges = at >> shift
        if self.dirty is not None:
            chosen = np.isin(dirty_key(side, numbers, ranges), self.dirty)
            columns = [value.astype(np.int64)[chosen] for value in values]
            if chosen.any():
                told = dict(zip(("s1", "s2", "s3"), columns, strict=False))
                place: Columns = {"k1": signed(numbers[chosen]), "k2": at[chosen], "k3": ranges[chosen]}
                count = int(chosen.sum())
                yield {"kind": ["row"] * count, **place, "k4": np.full(count, side), **told}
            return
        if not len(at):
            return
        place_hash = mix(at.astype(np.uint64) ^ self.keys[0])
        numbers_of = [value.astype(np.int64).astype(np.uint64) for value in values]
        hashes = [mix(place_hash + mix(value ^ key)) for value, key in zip(numbers_of, self.keys[1:], strict=False)]
        order = np.lexsort((ranges, numbers))
        same = (numbers[order][1:] == numbers[order][:-1]) & (ranges[order][1:] == ranges[order][:-1])
        starts = np.flatnonzero(np.append(True, ~same))
        names = ("s1", "s2", "s3")
        sums = {name: np.add.reduceat(each[order], starts) for name, each in zip(names, hashes, strict=False)}
        yield {
            "kind": ["cell"] * len(starts),
            "k1": signed(numbers[order][starts]),
            "k3": ranges[order][starts],
            "k4": np.full(len(starts), side),
            "n": np.diff(np.append(starts, len(order))),
            **{name: signed(values) for name, values in sums.items()},
        }


def dirty_key(side: int, numbers: U64, ranges: NDArray[np.int64]) -> U64:
    """A range of one kind of side: both sides of a comparison have the same."""
    kind = np.uint64(1 if side in (LOGGED, QUEUED) else 2)
    return mix(mix(numbers + kind) ^ ranges.astype(np.uint64))


def unit_values(units: Rows, tags: NDArray[Any]) -> list[NDArray[Any]]:
    """What must be the same of a unit: where its record is, how long, and its tags as far as they can be compared."""
    return [units["physical_offset"], units["size_bytes"], tags]


def key_values(keys: Rows) -> list[NDArray[Any]]:
    return [keys["hash"]]


# --- the comparison ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Store:
    """One store that is looked at."""

    root: Path
    files: StoreFiles
    queues: dict[int, str] = field(default_factory=dict)
    """Number of a queue, as Spark has it -> its name."""
    log_end: int = 0


def judge_stores(
    engine: StoreEngine,
    roots: Sequence[Path],
    *,
    replicas: bool = False,
    seed: int = 0,
    progress: Progress = no_progress,
) -> StoreJudgement:
    """Compares the files of each store, and the logs of all with each other if they are `replicas` of one broker."""
    begun = time.monotonic()
    stores = [_Store(root, _look(root)) for root in roots]
    pieces = [piece for number, store in enumerate(stores) for piece in pieces_of(number, store.root, store.files)]
    for number, store in enumerate(stores):
        for queue in store.files.queues:
            key = as_signed(queue_number(number, topic_hash(queue.topic), queue.queue_id))
            store.queues[key] = f"{queue.topic}/{queue.queue_id}"
    engine.facts_of(StoreWork(tuple(pieces), seed), len(pieces), progress)
    flaws = _Flaws(stores)
    flaws.look_at_log(
        engine.sql(f"SELECT kind, name, k1, k2, k3, n, k4, s1 FROM facts WHERE kind IN ('piece', 'damage') {FIRST}")
    )
    counted = engine.sql("SELECT k4, CAST(sum(n) AS BIGINT) FROM facts WHERE kind = 'cell' GROUP BY k4")
    counts = {int(str(side)): int(str(count)) for side, count in counted}
    dirty = _differing(engine)
    if replicas:
        flaws.look_at_replicas(_log_sums(engine))
    named = "SELECT k2, s1, min(text) FROM facts WHERE kind = 'traced' GROUP BY k2, s1"
    traced = engine.sql(f"{named} LIMIT {TRACED_MAX}")
    if len(dirty) or traced:
        wanted = np.array(sorted({int(str(row[0])) for row in traced}), np.int64)
        again = StoreWork(tuple(pieces), seed, dirty.tobytes(), wanted.tobytes())
        engine.facts_of(again, len(pieces), progress)
        flaws.look_at_traced(traced, engine.sql("SELECT DISTINCT k2, s1 FROM facts WHERE kind = 'key'"))
        for name, left, right in SIDES:
            flaws.look_at_rows(name, engine.sql(_unmatched(left, right)))
    return StoreJudgement(
        tuple(str(root) for root in roots),
        counts.get(RECORDED, 0),
        counts.get(QUEUED, 0),
        counts.get(INDEXED, 0),
        sum(piece.last - piece.first for piece in pieces if piece.kind == "log"),
        tuple(flaws.found),
        time.monotonic() - begun,
    )


def _look(root: Path) -> StoreFiles:
    disk = RealDisk(root)
    try:
        return look_at_store(disk)
    finally:
        disk.close()


FIRST: Final = f"ORDER BY s1, k3 LIMIT {RANGES_MAX}"


def _log_sums(engine: StoreEngine) -> dict[int, dict[int, tuple[int, ...]]]:
    """Store -> MiB of its log -> what is in it."""
    names = ("n", "s1", "s2", "s3")
    sums = ", ".join(engine.dialect.difference(name, [RECORDED], []) for name in names)
    found: dict[int, dict[int, tuple[int, ...]]] = {}
    query = (
        f"SELECT k1, k3, {sums} FROM facts WHERE kind = 'cell' AND k4 = {RECORDED} GROUP BY k1, k3 LIMIT {RANGES_MAX}"
    )
    for store, at, *values in engine.sql(query):
        whole = tuple(int(str(value)) & 0xFFFF_FFFF_FFFF_FFFF for value in values)
        found.setdefault(int(str(store)) - 1, {})[int(str(at))] = whole
    return found


def _differing(engine: StoreEngine) -> U64:
    """The ranges in which two sides differ."""
    found = [np.empty(0, np.uint64)]
    for _, left, right in SIDES:
        sums = [engine.dialect.difference(name, [left], [right]) for name in ("n", "s1", "s2", "s3")]
        rows = engine.sql(f"""
SELECT k1, k3 FROM facts WHERE kind = 'cell' AND k4 IN ({left}, {right}) GROUP BY k1, k3
HAVING {" OR ".join(f"{each} <> 0" for each in sums)} LIMIT {RANGES_MAX}""")
        pairs = np.array([(int(str(one)), int(str(other))) for one, other in rows], np.int64).reshape(-1, 2)
        numbers = np.ascontiguousarray(pairs[:, 0]).view(np.uint64)
        found.append(dirty_key(left, numbers, np.ascontiguousarray(pairs[:, 1])))
    return np.concatenate(found)


def _unmatched(left: int, right: int) -> str:
    """What one of two sides holds at a place, and the other does not, or not like this; the log first."""
    same_key = " AND mine.s1 = other.s1" if left == KEYED else ""
    return f"""
SELECT coalesce(mine.k1, other.k1), coalesce(mine.k2, other.k2),
  mine.s1, mine.s2, mine.s3, other.s1, other.s2, other.s3
FROM (SELECT * FROM facts WHERE kind = 'row' AND k4 = {left}) AS mine
FULL OUTER JOIN (SELECT * FROM facts WHERE kind = 'row' AND k4 = {right}) AS other
  ON mine.k1 = other.k1 AND mine.k2 = other.k2{same_key}
WHERE mine.k1 IS NULL OR other.k1 IS NULL OR mine.s1 <> other.s1 OR mine.s2 <> other.s2 OR mine.s3 <> other.s3
ORDER BY 1, 2 LIMIT {FLAWS_MAX}"""


@dataclass(slots=True)
class _Flaws:
    """Flaws in sentences."""

    stores: list[_Store]
    found: list[StoreFlaw] = field(default_factory=list)

    def add(self, store: int, promise: str, sentence: str, *, repairable: bool = False) -> None:
        """`repairable`: a crash leaves it. After a clean stop it should not be there."""
        if len(self.found) < FLAWS_MAX:
            is_note = repairable and self.stores[store].files.has_abort
            self.found.append(StoreFlaw(str(self.stores[store].root), promise, sentence, is_note))

    def look_at_log(self, rows: Sequence[tuple[object, ...]]) -> None:
        """Whether the pieces of each log are one log."""
        for number, store in enumerate(self.stores):
            own = [row for row in rows if row[7] == number]
            for _, reason, begin, end, *_ in (row for row in own if row[0] == "damage"):
                self.add(number, "NoInvention", f"the log has no whole record from {begin} to {end}: {reason}")
            expected, ended = store.files.log.begin, False
            for _, _, begin, end, _, count, is_end, _ in (row for row in own if row[0] == "piece"):
                first, last, records = int(str(begin)), int(str(end)), int(str(count))
                if records and (ended or first != expected):
                    self.add(number, "NoInvention", f"the log goes on at {first}, after it ended at {expected}")
                if records:
                    expected = last
                ended = ended or bool(is_end)
                expected = max(expected, last) if not is_end else expected
            store.log_end = max((int(str(row[3])) for row in own if row[0] == "piece" and row[5]), default=expected)

    def look_at_traced(self, traced: Sequence[tuple[object, ...]], known: Sequence[tuple[object, ...]]) -> None:
        """What clients were told to be stored is in one of the logs, unless it has expired in all of them."""
        there = {(int(str(at)), int(str(value))) for at, value in known}
        begin = max(store.files.log.begin for store in self.stores)
        for at, value, text in traced:
            place = int(str(at)), int(str(value))
            if place not in there and place[0] >= begin:
                sentence = f"a client was told that {text} is stored at {place[0]}, and no log has it there"
                self.add(0, "AckedSurvives", sentence)

    def look_at_rows(self, name: str, rows: Sequence[tuple[object, ...]]) -> None:
        for row in rows:
            key, at = int(str(row[0])), int(str(row[1]))
            values = [None if value is None else int(str(value)) for value in row[2:]]
            (self._unit if name == "queue" else self._key)(key, at, values[:3], values[3:])

    def _unit(self, key: int, at: int, logged: list[int | None], queued: list[int | None]) -> None:
        store = next((n for n, each in enumerate(self.stores) if key in each.queues), 0)
        where = f"unit {at} of queue {self.stores[store].queues.get(key, '(which has no folder)')}"
        if queued[0] is None:
            sentence = f"{where} is not there, and the record at {logged[0]} should have it"
            self.add(store, "QueueMatchesLog", sentence, repairable=True)
        elif logged[0] is None:
            beyond = queued[0] >= self.stores[store].log_end
            what = (
                f", past the end of the log at {self.stores[store].log_end}" if beyond else ", where no record has it"
            )
            self.add(store, "QueueMatchesLog", f"{where} names {queued[0]}{what}", repairable=beyond)
        else:
            names = ("physical offset", "size", "tags code")
            wrong = [
                f"{name} {unit}, its record {record}"
                for name, record, unit in zip(names, logged, queued, strict=True)
                if record != unit
            ]
            self.add(store, "QueueMatchesLog", f"{where} has the {' and the '.join(wrong)}")

    def _key(self, key: int, at: int, logged: list[int | None], indexed: list[int | None]) -> None:
        store = key - 1
        if not self.stores[store].files.indexes:
            return
        if indexed[0] is None:
            sentence = f"the index does not know a key ({logged[0]}) of the record at {at}"
            self.add(store, "IndexFindsEveryKey", sentence, repairable=True)
        else:
            beyond = at >= self.stores[store].log_end
            sentence = f"the index has a key ({indexed[0]}) of {at}, where no record has it"
            self.add(store, "IndexFindsEveryKey", sentence, repairable=beyond)

    def look_at_replicas(self, sums: dict[int, dict[int, tuple[int, ...]]]) -> None:
        """Logs are compared with the first one, a MiB at a time, where both have the whole of it."""
        whole = self.stores[0]
        for number, store in list(enumerate(self.stores))[1:]:
            end = min(whole.log_end, store.log_end) >> LOG_SHIFT
            begin = -(-max(whole.files.log.begin, store.files.log.begin) // (1 << LOG_SHIFT))
            for at in range(begin, end):
                if sums.get(0, {}).get(at) != sums.get(number, {}).get(at):
                    sentence = f"the logs of {whole.root} and {store.root} differ between {at << LOG_SHIFT} and "
                    self.add(number, "PrefixReplica", f"{sentence}{(at + 1) << LOG_SHIFT}")
                    break
