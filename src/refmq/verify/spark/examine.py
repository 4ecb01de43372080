"""Asking an oracle about its suspects: the events of a few keys, from all streams, in their order.

A task of Spark reads the streams itself and picks the events that its oracle reads of its keys. Nothing is shuffled and
nothing goes through the JVM but what was found. Reading costs far less than judging, and the keys of a task are its part
of all keys, so tasks share the judging and repeat the reading.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from refmq.trace.record import Outcome
from refmq.verify.local import counted, shown_with
from refmq.verify.oracles import ORACLES, Line, Promises
from refmq.verify.recordings import Stream
from refmq.verify.spark.checks import CHECKS, Check
from refmq.verify.spark.client_screen import BULK as CLIENT_BULK
from refmq.verify.spark.columns import ACTION_CODE, U64, Chunk, Mask, StreamReader, codes
from refmq.verify.spark.scan import REST, SUBSETS
from refmq.verify.spark.suspects import EVERYTHING, part_keys
from refmq.verify.verdicts import Found, Shown

CACHED_LINES_MAX: Final = 400_000
"""Lines that are kept for a second look; beyond, the streams are read again."""

Chunks = Callable[[Stream], Iterator[Chunk]]
"""Reads a stream."""


@dataclass(frozen=True, slots=True)
class Job:
    """One question to an oracle: about which keys."""

    invariant: str
    """May end with `REST`."""
    keys: tuple[int, ...] | None = None
    """None: those of the events that trigger the promise; `(EVERYTHING,)`: all."""
    bucket: int = 0
    buckets: int = 1
    """Keys are shared among so many tasks."""

    @property
    def promise(self) -> str:
        return self.invariant.removesuffix(REST)

    @property
    def check(self) -> Check:
        return CHECKS[self.promise]


def read_plainly(stream: Stream) -> Iterator[Chunk]:
    return StreamReader(stream).chunks()


def examine(
    job: Job, streams: Sequence[Stream], promises: Promises, chunks: Chunks = read_plainly
) -> tuple[str, Found]:
    """What the oracle of a job finds."""
    selection = Selection(job, keys_of_job(job, streams, chunks))
    lines = Lines(selection, streams, chunks)
    count, kept = counted(ORACLES[job.promise](lines, promises))
    return job.promise, Found(count, shown_with(lines, kept))


def keys_of_job(job: Job, streams: Sequence[Stream], chunks: Chunks) -> U64 | None:
    """The keys that a job is about, without those of other buckets; None: all in its bucket."""
    if job.keys is not None and EVERYTHING in job.keys:
        return None
    found = [np.array(job.keys or (), np.uint64)]
    if job.keys is None:
        for stream in streams:
            for chunk in chunks(stream):
                found.append(np.unique(part_keys(chunk.only(triggering(chunk, job.check)), job.check.part)))
    keys = np.unique(np.concatenate(found))
    return np.asarray(keys[in_bucket(keys, job)], np.uint64)


def triggering(chunk: Chunk, check: Check) -> Mask:
    """Which events trigger a promise."""
    chosen = np.zeros(len(chunk), np.bool_)
    for action, outcome in check.trigger:
        is_action = chunk.action == ACTION_CODE[action]
        chosen |= is_action if outcome is None else is_action & (chunk.outcome == outcome)
    return chosen


def in_bucket(keys: U64, job: Job) -> Mask:
    return np.asarray((keys >> np.uint64(1)) % np.uint64(job.buckets) == job.bucket, np.bool_)


class Selection:
    """Which events an oracle is shown."""

    def __init__(self, job: Job, keys: U64 | None) -> None:
        self.job = job
        self.keys = keys
        self.is_rest = job.invariant.endswith(REST)
        reads = SUBSETS.get(job.invariant, job.check.reads)
        self._reads = codes(tuple(reads)) if reads else None
        self._shared = codes(tuple(job.check.shared))

    def of(self, chunk: Chunk) -> Chunk:
        keys = part_keys(chunk, self.job.check.part)
        chosen = np.isin(keys, self.keys) if self.keys is not None else in_bucket(keys, self.job)
        if self.job.invariant == f"WellFormed{REST}":
            chosen &= (chunk.outcome != Outcome.STEP) & ~np.isin(chunk.action, codes(CLIENT_BULK))
        elif self._reads is not None:
            chosen &= np.isin(chunk.action, self._reads)
        if len(self._shared):
            chosen |= np.isin(chunk.action, self._shared)
        return chunk.only(chosen | chunk.is_world)


class Lines(Sequence[Line]):
    """The chosen lines of all streams in one order, as often as somebody asks. Few are kept, many are read again."""

    def __init__(self, selection: Selection, streams: Sequence[Stream], chunks: Chunks) -> None:
        self._selection = selection
        self._streams = streams
        self._chunks = chunks
        self._cached: list[Line] | None = None

    def __iter__(self) -> Iterator[Line]:
        if self._cached is not None:
            yield from self._cached
            return
        cached: list[Line] = []
        for _, line in heapq.merge(*map(self._of_stream, self._streams), key=lambda placed: placed[0]):
            if len(cached) <= CACHED_LINES_MAX:
                cached.append(line)
            yield line
        if len(cached) <= CACHED_LINES_MAX:
            self._cached = cached

    def _of_stream(self, stream: Stream) -> Iterator[tuple[int, Line]]:
        for chunk in self._chunks(stream):
            chosen = self._selection.of(chunk)
            if len(chosen):
                # What is left of a stream has no numbers one after another.
                yield from chosen.lines(counted=not self._selection.is_rest)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, number: object) -> Line:  # type: ignore[override]  # nobody cuts a trace in slices
        assert isinstance(number, int)
        return next(line for at, line in enumerate(self) if at == number)


def found_to_text(invariant: str, found: Found) -> str:
    """What was found, as a row of a table carries it."""
    return json.dumps({"invariant": invariant, "count": found.count, "shown": [asdict(each) for each in found.shown]})


def found_from_text(text: str) -> tuple[str, Found]:
    data = json.loads(text)
    shown = tuple(Shown(**{**each, "witness": tuple(each["witness"])}) for each in data["shown"])
    return data["invariant"], Found(data["count"], shown)


def together(results: Sequence[tuple[str, Found]]) -> dict[str, Found]:
    """What several jobs found of each promise. What all parts share may be found in more than one of them."""
    shown: dict[str, dict[tuple[object, ...], Shown]] = {}
    hidden: dict[str, int] = {}
    for invariant, found in results:
        for each in found.shown:
            key = (each.sentence, each.node, each.at_ns, each.sequence)
            shown.setdefault(invariant, {}).setdefault(key, each)
        hidden[invariant] = hidden.get(invariant, 0) + found.count - len(found.shown)
    return {
        invariant: Found(len(shown.get(invariant, ())) + more, tuple(shown.get(invariant, {}).values()))
        for invariant, more in hidden.items()
    }
