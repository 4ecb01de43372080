"""One pass over a stream: its census, its digests, and what its screens could not prove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from refmq.model.vocabulary import CLIENT_FIELDS
from refmq.trace.record import Outcome
from refmq.verify.recordings import Gap
from refmq.verify.spark.broker_screen import START, TABLES, TRANSACTIONS, BrokerScreen
from refmq.verify.spark.checks import AFTER_BROKER, CHECKS, Part
from refmq.verify.spark.client_screen import BULK as CLIENT_BULK
from refmq.verify.spark.client_screen import ClientScreen
from refmq.verify.spark.columns import ACTION_CODE, ACTIONS, U64, Chunk, Names, queue_key, text_hash
from refmq.verify.spark.digest import Cells, added, digest_cells, keys_of
from refmq.verify.spark.facts import Columns, Facts, as_signed, cell_columns
from refmq.verify.spark.record_screen import RecordScreen
from refmq.verify.spark.survey import Seen, Survey, can_survey
from refmq.verify.spark.suspects import Suspects, part_keys, stream_key

REST: Final = ":rest"
"""Ends the name of a promise whose oracle looks only at events that no screen has judged."""


@dataclass(frozen=True, slots=True)
class Rest:
    """What an oracle is shown of events that no screen has judged."""

    reads: tuple[str, ...]
    """Actions; client requests that are screened are never among them."""
    own_topics: bool = False
    """Also the steps of the log in the topics of transactions. What is found about those was screened."""
    messages_of: tuple[str, ...] = ()
    """Also whatever is about a message of one of these actions."""


RARE: Final = tuple(sorted(set(CLIENT_FIELDS) - set(CLIENT_BULK)))
"""Requests that no screen judges."""
SIDES_OF: Final = ("SendHalf", "SendBatch", "SendDelayed", "SendBack", "EndTransaction", "CheckReply")
SIDES_REST: Final = ("StartStore", "LockQueue", "UnlockQueue", "Heartbeat", "Leave", *SIDES_OF)
RESTS: Final = {
    f"WellFormed{REST}": Rest(RARE),
    f"NodeCoherent{REST}": Rest((*START, *TABLES, *TRANSACTIONS), own_topics=True),
    f"SidesAgree{REST}": Rest(SIDES_REST, messages_of=SIDES_OF),
    f"AnsweredWhenCalm{REST}": Rest((*RARE, "FlushLog", "StartStore", "FinishRecovery", "StopStore")),
    f"DurableAck{REST}": Rest(("FlushLog", "FinishRecovery", "SendHalf")),
}
COUNTED_MAX: Final = 1 << 20
CELLS_WAITING_MAX: Final = 1 << 14
"""Cells that are kept to be added before they are handed over."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What a pass looks for."""

    flush_sync: bool = True
    settled: bool = False
    screens: bool = True
    """Whether promises are judged that are not about places."""
    bins: bool = False
    """Whether events are counted by the second, for the report."""
    seed: int = 0
    """Of the keys of the digest."""
    digest: bool = True

    @property
    def is_quick(self) -> bool:
        """Whether digest and census are all that is asked for."""
        return self.digest and not self.screens and not self.bins


@dataclass(slots=True)
class Scan:
    """One pass over one stream."""

    node: str
    options: ScanOptions
    number: int = 0
    """Of the stream."""
    facts: Facts = field(default_factory=Facts)
    suspects: Suspects = field(default_factory=Suspects)
    _counts: Counter[tuple[int, int]] = field(default_factory=Counter)
    _other_counts: Counter[tuple[str, int]] = field(default_factory=Counter)
    _times: list[int] = field(default_factory=list)
    _queues: set[int] = field(default_factory=set)
    _groups: set[int] = field(default_factory=set)
    _cells: list[Cells] = field(default_factory=list)
    _bins: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    _latencies: Counter[tuple[str, int]] = field(default_factory=Counter)

    def run(self, chunks: Iterable[Chunk], gaps: list[Gap]) -> Iterator[Columns]:
        """Facts as they are found. `gaps` may grow as chunks are read."""
        if self.options.is_quick and can_survey():
            yield from self._survey(chunks)
        else:
            yield from self._look(chunks)
        self._tell_counts()
        for gap in gaps:
            self.facts.add("gap", node=gap.node, name=gap.where, text=gap.reason, n=gap.count)
        yield from self.facts.take()

    def _survey(self, chunks: Iterable[Chunk]) -> Iterator[Columns]:
        """The digest and the census, in C."""
        survey = Survey(keys_of(self.options.seed))
        for chunk in chunks:
            for found in survey.take(chunk):
                yield from self._take(found)
        for found in survey.rest():
            yield from self._take(found)
        yield from self._take_cells(at_least=1)

    def _take(self, found: Cells | Seen) -> Iterator[Columns]:
        if isinstance(found, Seen):
            self._counts.update(found.counts)
            self._take_times(found.first_ns, found.last_ns)
            self._name(found.names, found.places, found.actors)
        else:
            self._cells.append(found)
            yield from self._take_cells(at_least=CELLS_WAITING_MAX)

    def _look(self, chunks: Iterable[Chunk]) -> Iterator[Columns]:
        """All that is asked for."""
        options, key = self.options, stream_key(self.node)
        broker = BrokerScreen(options.flush_sync, options.settled)
        client = ClientScreen(self.suspects, key, options.settled)
        records = RecordScreen()
        keys = keys_of(options.seed)
        for chunk in chunks:
            self._count(chunk)
            if options.digest:
                self._cells.append(digest_cells(chunk, keys))
                yield from self._take_cells(at_least=CELLS_WAITING_MAX)
            if options.screens:
                broker.feed(chunk)
                client.feed(chunk)
                records.feed(chunk)
                self._others(chunk)
                self._triggers(chunk)
            if options.bins:
                self._bin(chunk)
            yield from self._some()
        yield from self._take_cells(at_least=1)
        if options.screens:
            broker.finish()
            client.finish()
            self._conclude(broker, client, records)

    def _some(self) -> Iterator[Columns]:
        if len(self.facts.rows) >= CELLS_WAITING_MAX:
            yield from self.facts.take()

    def _take_cells(self, at_least: int) -> Iterator[Columns]:
        if sum(map(len, self._cells)) >= at_least:
            cells = added(np.concatenate(self._cells))
            self._cells.clear()
            yield cell_columns(cells)

    # --- what there is --------------------------------------------------------------------------------------------

    def _count(self, chunk: Chunk) -> None:
        both = chunk.action.astype(np.int64) * len(Outcome) + chunk.outcome
        counts = np.bincount(both)
        for number in np.flatnonzero(counts).tolist():
            self._counts[divmod(number, len(Outcome))] += int(counts[number])
        at_ns = chunk.rows["at_ns"]
        self._take_times(int(at_ns.min()), int(at_ns.max()))
        actors = np.flatnonzero(np.bincount(chunk.rows["actor"])).tolist()
        self._name(chunk.names, places_in(chunk), actors)

    def _take_times(self, *times_ns: int) -> None:
        times = [*self._times, *times_ns]
        self._times = [min(times), max(times)]

    def _name(self, names: Names, places: Iterable[tuple[int, int]], actors: Iterable[int]) -> None:
        """The names of queues and groups that were not met before."""
        for subject, queue_id in places:
            topic, broker = names.place_of(names.texts[subject])
            number = names.topic[subject : subject + 1]
            queue = int(queue_key(number, np.array([queue_id], np.int32))[0])
            if queue not in self._queues:
                self._queues.add(queue)
                place = f"{topic}/{queue_id} at {broker}"
                keys = {"k1": as_signed(queue), "k2": as_signed(text_hash(broker)), "k3": self.number}
                self.facts.add("queue", node=broker, text=place, **keys)
        for actor in actors:
            group = int(names.group[actor])
            if group not in self._groups:
                self._groups.add(group)
                self.facts.add("group", k1=as_signed(group), text=names.texts[actor].partition("@")[0])

    def _tell_counts(self) -> None:
        first, last = self._times or [0, 0]
        for (code, outcome), count in self._counts.items():
            name = ACTIONS[code] or "?"
            self.facts.add("count", node=self.node, name=name, k4=outcome, n=count, t0=first, t1=last)
        for (second, code, outcome), count in self._bins.items():
            self.facts.add("bin", node=self.node, name=ACTIONS[code], k3=second, k4=outcome, n=count)
        for (name, exponent), count in self._latencies.items():
            self.facts.add("latency", node=self.node, name=name, k3=exponent, n=count)

    # --- what needs an oracle ---------------------------------------------------------------------------------------

    def _triggers(self, chunk: Chunk) -> None:
        """The keys of events that no screen judges."""
        triggered = TRIGGERED[chunk.action, chunk.outcome]
        present = np.unique(triggered[triggered > 0])
        for number, invariant in enumerate(TRIGGERING):
            bit = np.uint64(1 << number)
            if (present & bit).any():
                chosen = chunk.only((triggered & bit) > 0)
                self.suspects.add_all((invariant,), part_keys(chosen, CHECKS[invariant].part), "it has to be looked at")

    def _others(self, chunk: Chunk) -> None:
        """Events that oracles look at by themselves, because no screen does."""
        is_client = chunk.outcome != Outcome.STEP
        rest = chunk.only(is_client & ~np.isin(chunk.action, [ACTION_CODE[name] for name in CLIENT_BULK]))
        if len(rest):
            self.suspects.add(f"WellFormed{REST}", stream_key(self.node), "requests of other kinds")
        names = ([name for name in TABLES if name != "CommitOffset"], TRANSACTIONS)
        steps = chunk.only(chunk.of([*names[0], *names[1]], Outcome.STEP))
        if len(steps):
            self.suspects.add_all((f"NodeCoherent{REST}",), part_keys(steps, Part.NODE), "steps beside the log")
        asks = chunk.only(chunk.of(SIDES_REST[1:]))
        if len(asks):
            self.suspects.add_all((f"SidesAgree{REST}",), part_keys(asks, Part.NODE), "requests of other kinds")
        if len(rest):
            self.suspects.add_all((f"AnsweredWhenCalm{REST}",), part_keys(rest, Part.NODE), "requests of other kinds")
        halves = chunk.only(chunk.of(("SendHalf",), Outcome.OK))
        if len(halves):
            self.suspects.add_all((f"DurableAck{REST}",), part_keys(halves, Part.NODE), "half messages")
        hidden = chunk.names.numbers_with(("RMQ_SYS_TRANS_",))
        shown = chunk.only((chunk.outcome == Outcome.CONSUMED) & np.isin(chunk.rows["subject"], hidden))
        if len(shown):
            self.suspects.add_all(("NoHalfVisible",), part_keys(shown, Part.MESSAGE), "a topic of brokers is consumed")
        dead = chunk.names.numbers_with(("%RETRY%", "%DLQ%"))
        again = chunk.only((chunk.outcome == Outcome.CONSUMED) & np.isin(chunk.rows["subject"], dead))
        if len(again):
            self.suspects.add_all(("RetriedOrDead",), part_keys(again, Part.MESSAGE), "it came again")

    def _conclude(self, broker: BrokerScreen, client: ClientScreen, records: RecordScreen) -> None:
        own = text_hash(self.node) | 1
        if broker.reason:
            for invariant in AFTER_BROKER:
                self.suspects.add(invariant, own, broker.reason)
        elif broker.commits_reason:
            self.suspects.add(f"NodeCoherent{REST}", own, broker.commits_reason)
        if broker.commits_reason:
            self.suspects.add("CommittedOffsetMonotone", 0, broker.commits_reason)
            self.suspects.add("CommittedOffsetNeverAhead", 0, broker.commits_reason)
        if records.reason:
            self.suspects.add("WellFormed", stream_key(self.node), records.reason)
        for suspect in self.suspects.all():
            if suspect.invariant.removesuffix(REST) not in CHECKS:
                continue  # nobody judges it
            key = as_signed(suspect.key)
            self.facts.add("suspect", node=self.node, name=suspect.invariant, k1=key, text=suspect.reason)
        for queue, (when, end) in client.ends.items():
            self.facts.add("end", node=self.node, k1=as_signed(queue), s1=end, t0=when)
        for queue, (most, when) in client.acked.items():
            self.facts.add("acked", node=self.node, k1=as_signed(queue), s1=most, t0=when)
        for (group, queue), known in client.progress.items():
            values = {"s1": known.first, "s2": known.consumed_to, "t0": known.first_ns}
            self.facts.add("progress", node=self.node, k1=as_signed(queue), k2=as_signed(group), **values)

    # --- for the report ---------------------------------------------------------------------------------------------

    def _bin(self, chunk: Chunk) -> None:
        seconds = chunk.rows["at_ns"] // 1_000_000_000
        base = int(seconds.min())
        both = ((seconds - base) * 256 + chunk.action) * len(Outcome) + chunk.outcome
        values, counts = np.unique(both, return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            rest, outcome = divmod(value, len(Outcome))
            second, code = divmod(rest, 256)
            self._bins[base + second, code, outcome] += count
        locks = chunk.only(chunk.of(("LockQueue", "UnlockQueue"), Outcome.STEP))
        for at, row in enumerate(locks.rows):
            self.facts.add(
                "lock",
                node=self.node,
                name=locks.names.texts[row["action"]],
                k1=as_signed(int(locks.queue[at])),
                k2=as_signed(int(locks.group[at])),
                k4=int(row["a"] != 0),
                t0=int(row["at_ns"]),
                text=locks.names.texts[row["actor"]],
            )
        for name in CLIENT_BULK:
            self._measure(chunk.only(chunk.of((name,), Outcome.INVOKE, Outcome.OK)), name)

    def _measure(self, rows: Chunk, name: str) -> None:
        """How long requests took whose beginning and end are in one chunk, in powers of two of nanoseconds."""
        if not len(rows):
            return
        order = np.lexsort((rows.outcome, rows.rows["operation"], rows.actor))
        operation, actor = rows.rows["operation"][order], rows.actor[order]
        outcome, at_ns = rows.outcome[order], rows.rows["at_ns"][order]
        pair = (operation[1:] == operation[:-1]) & (actor[1:] == actor[:-1]) & (outcome[:-1] == Outcome.INVOKE)
        took_ns = np.maximum((at_ns[1:] - at_ns[:-1])[pair], 1)
        exponents, counts = np.unique(np.log2(took_ns).astype(np.int64), return_counts=True)
        for exponent, count in zip(exponents.tolist(), counts.tolist(), strict=True):
            self._latencies[name, exponent] += count


def places_in(chunk: Chunk) -> list[tuple[int, int]]:
    """The subjects of a chunk by their strings, each with the queue ids that it has."""
    subjects, queue_ids = chunk.rows["subject"].astype(np.int64), chunk.rows["queue_id"].astype(np.int64)
    least, width = int(queue_ids.min()), int(queue_ids.max() - queue_ids.min()) + 1
    both = subjects * width + (queue_ids - least)
    # Counting is ten times as fast as sorting, and needs a place for each number that there might be.
    few = (int(subjects.max()) + 1) * width <= COUNTED_MAX
    found = np.flatnonzero(np.bincount(both)) if few else np.unique(both)
    return [(number // width, number % width + least) for number in found.tolist()]


def _triggered() -> U64:
    """By action and outcome: the promises that such an event triggers, as bits in the order of `TRIGGERING`."""
    table = np.zeros((len(ACTIONS), len(Outcome)), np.uint64)
    for number, invariant in enumerate(TRIGGERING):
        for action, outcome in CHECKS[invariant].trigger:
            outcomes = list(Outcome) if outcome is None else [outcome]
            table[ACTION_CODE[action], outcomes] |= np.uint64(1 << number)
    return table


TRIGGERING: Final = tuple(invariant for invariant, check in CHECKS.items() if check.trigger)
TRIGGERED: Final = _triggered()

assert len(TRIGGERING) <= 64, "a bit for each"
assert {name.removesuffix(REST) for name in RESTS} <= set(CHECKS)
