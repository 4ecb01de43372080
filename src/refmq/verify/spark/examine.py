"""Asking oracles about their suspects: the events of a few keys, from all streams, in their order.

A task of Spark reads the streams itself and picks the events that its oracles read of their keys. Nothing is shuffled
and nothing goes through the JVM but what was found. Reading costs far less than judging: tasks share the judging and
repeat the reading.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from refmq.trace.record import Outcome
from refmq.verify.local import counted, shown_with
from refmq.verify.oracles import ORACLES, Finding, Line, Promises
from refmq.verify.oracles.calm import ENDS, LASTING
from refmq.verify.recordings import Stream
from refmq.verify.spark.broker_screen import BULK, OWN_TOPICS
from refmq.verify.spark.checks import CHECKS, Check, Part
from refmq.verify.spark.columns import ACTION_CODE, ACTIONS, U64, Chunk, Mask, StreamReader
from refmq.verify.spark.scan import REST, RESTS
from refmq.verify.spark.suspects import EVERYTHING, message_keys, part_keys
from refmq.verify.verdicts import Found, Shown

KEPT_LINES_MAX: Final = 300_000
"""Lines of one job that are kept, some 100 MB; with more the streams are read again, as often as is needed."""


def table_of(actions: Collection[str]) -> Mask:
    """Whether an action is one of these, by its code."""
    table = np.zeros(256, np.bool_)
    table[[ACTION_CODE[action] for action in actions]] = True
    return table


FAULT: Final = table_of(({*LASTING, *ENDS, "Disconnect"} - {"StopStore"}) & set(ACTIONS))
"""What every oracle is told of, whoever recorded it."""
LOG: Final = table_of(BULK)

Chunks = Callable[[Stream], Iterator[Chunk]]
"""Reads a stream."""


@dataclass(frozen=True, slots=True)
class Job:
    """One question to an oracle: about which keys."""

    invariant: str
    """May end with `REST`."""
    keys: tuple[int, ...]
    """`EVERYTHING` among them: all."""
    bucket: int = 0
    buckets: int = 1
    """Keys are shared among so many jobs."""

    @property
    def promise(self) -> str:
        return self.invariant.removesuffix(REST)

    @property
    def check(self) -> Check:
        return CHECKS[self.promise]

    @property
    def is_rest(self) -> bool:
        return self.invariant.endswith(REST)


def read_plainly(stream: Stream) -> Iterator[Chunk]:
    return StreamReader(stream).chunks()


def examine(
    jobs: Sequence[Job], streams: Sequence[Stream], promises: Promises, chunks: Chunks = read_plainly
) -> Iterator[tuple[str, Found]]:
    """What the oracles of some jobs find. The streams are read once for all jobs whose lines can be kept."""
    selections = [Selection(job) for job in jobs]
    for selection in selections:
        selection.look_for_messages(streams, chunks)
    kept = gathered(selections, streams, chunks)
    for selection, placed in zip(selections, kept, strict=True):
        lines: Iterable[Line]
        if placed is not None:
            lines = [line for _, line in heapq.merge(*placed, key=_order)]
        else:
            lines = Replayed(selection, [stream for stream in streams if stream in selection.streams], chunks)
        found = ORACLES[selection.job.promise](lines, promises)
        if selection.rest is not None and selection.rest.own_topics:
            found = unscreened(found, lines, selection)
        count, findings = counted(found)
        yield selection.job.promise, Found(count, shown_with(lines, findings))


def unscreened(found: Iterable[Finding], lines: Iterable[Line], selection: Selection) -> Iterator[Finding]:
    """Findings, without those about lines that a screen has judged together with all the others."""
    listed = list(found)
    wanted = {finding.line for finding in listed}
    screened = {n for n, line in enumerate(lines) if n in wanted and selection.is_screened(line)} if wanted else set()
    return (finding for finding in listed if finding.line not in screened)


Placed = tuple[int, Line]


def _order(placed: Placed) -> int:
    return placed[0]


def gathered(
    selections: Sequence[Selection], streams: Sequence[Stream], chunks: Chunks
) -> list[list[list[Placed]] | None]:
    """The lines of each selection, stream by stream; None where there are too many to be kept."""
    kept: list[list[list[Placed]] | None] = [[] for _ in selections]
    counts = [0] * len(selections)
    for stream in streams:
        for lists in kept:
            if lists is not None:
                lists.append([])
        for chunk in chunks(stream):
            for number, selection in enumerate(selections):
                lists = kept[number]
                if lists is None and stream in selection.streams:
                    continue
                chosen = selection.of(chunk)
                if len(chosen):
                    selection.streams.add(stream)
                if lists is None:
                    continue
                counts[number] += len(chosen)
                if counts[number] > KEPT_LINES_MAX:
                    kept[number] = None
                elif len(chosen):
                    lists[-1].extend(chosen.lines(counted=selection.is_counted))
    return kept


class Selection:
    """Which events an oracle is shown."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.streams: set[Stream] = set()
        """Those that have such events, once `gathered` has looked."""
        self.is_counted = job.invariant != f"WellFormed{REST}"
        """Whether the events still have numbers one after another."""
        self._keys = None if EVERYTHING in job.keys else np.array(sorted(job.keys), np.uint64)
        self.rest = RESTS.get(job.invariant)
        reads = self.rest.reads if self.rest is not None else job.check.reads
        self._reads = table_of(reads) if reads else np.ones(256, np.bool_)
        self._messages: U64 | None = None
        """Of `Rest.messages_of`, once somebody has looked for them."""
        self._shared = table_of(job.check.shared)
        self._thin = table_of(job.check.thin) if job.check.thin else None

    def of(self, chunk: Chunk) -> Chunk:
        """What actions say is asked first: few events are left to be asked for their keys."""
        read = np.flatnonzero(self._is_read(chunk))
        part = chunk.only(read)
        keys = part_keys(part, self.job.check.part)
        ours = in_bucket(keys, self.job)
        if self._keys is not None:
            ours &= np.isin(keys, self._keys)
        chosen = self._shared[chunk.action] | chunk.is_world
        if self.job.check.part is not Part.STREAM:  # there the numbers of events count, and these have others
            chosen |= FAULT[chunk.action] & (chunk.outcome == Outcome.STEP)
        chosen[read[ours]] = True
        return chunk.only(chosen if self._thin is None else self._thinned(chunk, chosen, self._thin))

    @staticmethod
    def _thinned(chunk: Chunk, chosen: Mask, thin: Mask) -> NDArray[np.intp]:
        """The chosen events without those inside a run of `Check.thin`."""
        places = np.flatnonzero(chosen)
        own = np.isin(chunk.rows["subject"][places], chunk.names.numbers_with(OWN_TOPICS))
        is_thin = np.concatenate(([False], thin[chunk.action[places]] & ~own & ~chunk.is_world[places], [False]))
        inside = is_thin[:-2] & is_thin[1:-1] & is_thin[2:]
        return np.asarray(places[~inside], np.intp)

    def _is_read(self, chunk: Chunk) -> Mask:
        chosen, rest = self._reads[chunk.action], self.rest
        if self.job.invariant == f"WellFormed{REST}":
            chosen &= chunk.outcome != Outcome.STEP
        if rest is not None and rest.own_topics:
            own = np.isin(chunk.rows["subject"], chunk.names.numbers_with(OWN_TOPICS))
            chosen |= own & LOG[chunk.action]
        if self._messages is not None:
            chosen |= np.isin(message_keys(chunk), self._messages)
        return np.asarray(chosen, np.bool_)

    def look_for_messages(self, streams: Sequence[Stream], chunks: Chunks) -> None:
        """Finds the messages that `Rest.messages_of` means."""
        if self.rest is None or not self.rest.messages_of:
            return
        found = [np.empty(0, np.uint64)]
        for stream in streams:
            for chunk in chunks(stream):
                keys = message_keys(chunk.only(chunk.of(self.rest.messages_of)))
                found.append(np.unique(keys[keys != EVERYTHING]))
        self._messages = np.unique(np.concatenate(found))

    def is_screened(self, line: Line) -> bool:
        """Whether what is found about a line is the business of a screen."""
        return self.rest is not None and self.rest.own_topics and line.action in BULK


def in_bucket(keys: U64, job: Job) -> Mask:
    return np.asarray((keys >> np.uint64(1)) % np.uint64(job.buckets) == job.bucket, np.bool_)


class Replayed(Iterable[Line]):
    """The chosen lines of all streams in one order, read again as often as somebody asks."""

    def __init__(self, selection: Selection, streams: Sequence[Stream], chunks: Chunks) -> None:
        self._selection = selection
        self._streams = streams
        self._chunks = chunks

    def __iter__(self) -> Iterator[Line]:
        for _, line in heapq.merge(*map(self._of_stream, self._streams), key=_order):
            yield line

    def _of_stream(self, stream: Stream) -> Iterator[Placed]:
        for chunk in self._chunks(stream):
            yield from self._selection.of(chunk).lines(counted=self._selection.is_counted)


def found_to_text(invariant: str, found: Found) -> str:
    """What was found, as a row of a table carries it."""
    return json.dumps({"invariant": invariant, "count": found.count, "shown": [asdict(each) for each in found.shown]})


def found_from_text(text: str) -> tuple[str, Found]:
    data = json.loads(text)
    texts = ("witness", "plain")
    shown = tuple(Shown(**{**each, **{name: tuple(each[name]) for name in texts}}) for each in data["shown"])
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
