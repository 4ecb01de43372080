"""The judgement, step by step: scan, compare, look at the rows that differ, ask the oracles about what is left.

It does not know what it runs on. An `Engine` is Spark (`session.SparkEngine`); tests have DuckDB in this process.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from refmq.trace.record import Outcome
from refmq.verify.local import Progress, no_progress
from refmq.verify.oracles import ORACLES, Promises
from refmq.verify.picture import LOANS_MAX, QUEUES_MAX, SERIES, Lag, Loan, Picture
from refmq.verify.recordings import Gap, Recordings, Stream
from refmq.verify.spark import plans
from refmq.verify.spark.checks import CHECKS, EVERYTHING_READ, Part
from refmq.verify.spark.columns import U64, text_hash
from refmq.verify.spark.digest import Role
from refmq.verify.spark.examine import Job, together
from refmq.verify.spark.facts import as_signed, as_unsigned
from refmq.verify.spark.rows import range_keys
from refmq.verify.spark.scan import REST, ScanOptions
from refmq.verify.spark.suspects import EVERYTHING, KEYS_MAX, message_key
from refmq.verify.verdicts import Census, Found, Judgement, conclude, why_not_judged

RANGES_MAX: Final = 200_000
"""Dirty ranges that are named to the tasks; with more of them all ranges are taken for dirty."""
KEYS_OF_JOB_MAX: Final = 2_000
"""With more keys a promise is judged by several jobs."""
PLACES: Final = ("AckedSurvives", "NoInvention", "QueueMatchesLog", "InconsistentOffset")
"""What digests alone can show: the same messages at the same places, whoever looks."""
PLACE_COMPARISONS: Final = ("dispatched", "acknowledged", "served")

Row = tuple[object, ...]
Scanned = Callable[[float, str], None]


class Engine(Protocol):
    """What a judgement runs on."""

    @property
    def name(self) -> str: ...
    @property
    def dialect(self) -> plans.Dialect: ...
    @property
    def parallelism(self) -> int: ...
    @property
    def has_rows(self) -> bool:
        """Whether the table `rows` was made for the last judgement."""
        ...

    def scan(self, streams: Sequence[Stream], options: ScanOptions, progress: Progress) -> None:
        """Makes the table `facts`."""
        ...

    def rows(self, streams: Sequence[Stream], dirty: U64 | None, progress: Progress) -> None:
        """Makes the table `rows` of the events in dirty ranges; in all ranges with None."""
        ...

    def sql(self, query: str) -> list[Row]:
        """The answer, which is small."""
        ...

    def examine(
        self, tasks: Sequence[Sequence[Job]], streams: Sequence[Stream], promises: Promises, progress: Progress
    ) -> list[tuple[str, Found]]:
        """What the oracles of the jobs find, each list of jobs in a task of its own."""
        ...


@dataclass(frozen=True, slots=True)
class Wishes:
    """How a trace is to be judged."""

    promises: Promises = Promises()  # noqa: RUF009 - frozen as well
    exact: bool = False
    """Ask the oracles about everything."""
    places_only: bool = False
    """Only what digests show."""
    bins: bool = False
    seed: int = 0


@dataclass(slots=True)
class Accused:
    """Keys by promise, with the reasons of the first ones."""

    keys: dict[str, set[int]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def add(self, invariant: str, keys: Iterable[int], reason: str) -> None:
        known = self.keys.setdefault(invariant, set())
        for key in keys:
            known.add(key)
            if len(known) > KEYS_MAX:
                known.clear()
                known.add(EVERYTHING)
        if known:
            self.reasons.setdefault(invariant, reason)

    def settle(self) -> None:
        """Where everything is looked at no keys need to be named, and what an oracle sees it need not see twice."""
        for invariant, keys in self.keys.items():
            if EVERYTHING in keys:
                self.keys[invariant] = {EVERYTHING}
        for invariant in [name for name in self.keys if name.endswith(REST)]:
            whole = self.keys.get(invariant.removesuffix(REST), set())
            left = set() if EVERYTHING in whole else self.keys[invariant] - whole
            self.keys[invariant] = left
        self.keys = {invariant: keys for invariant, keys in self.keys.items() if keys}


def judge_by(engine: Engine, recordings: Recordings, wishes: Wishes, progress: Progress = no_progress) -> Judgement:
    """All promises, judged on an engine."""
    begun = time.monotonic()
    options = ScanOptions(
        wishes.promises.flush_sync, wishes.promises.settled, not wishes.places_only, wishes.bins, wishes.seed
    )
    engine.scan(recordings.streams, options, progress)
    small = small_facts(engine)
    census, gaps = small.census, (*recordings.gaps, *small.gaps)
    promises = replace(wishes.promises, complete=wishes.promises.complete and not gaps)
    judged = [
        invariant
        for invariant in (PLACES if wishes.places_only else ORACLES)
        if not why_not_judged(invariant, census, promises)
    ]
    accused = small.suspects if not wishes.exact else everything(judged)
    for invariant in judged:
        if CHECKS[invariant] is EVERYTHING_READ:
            accused.add(invariant, [EVERYTHING], "nothing proves it")
    if not wishes.exact:
        _Comparing(engine, recordings.streams, accused, scope_of(census), small, wishes, progress).look()
    accused.settle()
    tasks = tasks_of(accused, judged, engine.parallelism)
    results = engine.examine(tasks, recordings.streams, promises, progress) if tasks else []
    how = {invariant: how_judged(invariant, accused, wishes.exact) for invariant in judged}
    found = together(results)
    judgement = conclude(engine.name, census, promises, found, gaps, how=how, seconds=time.monotonic() - begun)
    return only_of(judgement, judged) if wishes.places_only else judgement


def only_of(judgement: Judgement, invariants: Collection[str]) -> Judgement:
    verdicts = tuple(each for each in judgement.verdicts if each.invariant in invariants)
    return Judgement(
        judgement.engine, judgement.census, judgement.promises, verdicts, judgement.gaps, judgement.seconds
    )


def number(value: object) -> int:
    assert isinstance(value, int)
    return value


SMALL_FACTS: Final = """
SELECT kind, node, name, '' AS text, k4 AS k, CAST(sum(n) AS BIGINT) AS n, min(t0) AS t0, max(t1) AS t1
FROM facts WHERE kind = 'count' GROUP BY kind, node, name, k4
UNION ALL SELECT kind, '', name, min(text), k1, 0, 0, 0 FROM facts WHERE kind = 'suspect' GROUP BY kind, name, k1
UNION ALL SELECT DISTINCT kind, '', '', '', k1, k2, k3, 0 FROM facts WHERE kind = 'queue'
UNION ALL SELECT kind, node, name, text, 0, n, 0, 0 FROM facts WHERE kind = 'gap'"""
"""All that is small of the facts, in one query: each costs Spark the better part of a second."""
GAPS_MAX: Final = 1_000


@dataclass(slots=True)
class Small:
    """What one pass says beside its digests."""

    census: Census
    gaps: tuple[Gap, ...]
    suspects: Accused
    brokers: dict[int, int]
    """Queue -> broker, as signed hashes."""
    speakers: dict[int, set[int]]
    """Queue -> the streams that speak of it."""


def small_facts(engine: Engine) -> Small:
    counts: Counter[tuple[str, str, int]] = Counter()
    times, gaps, suspects, brokers = list[int](), set[Gap](), Accused(), dict[int, int]()
    speakers: dict[int, set[int]] = {}
    for kind, node, name, text, key, count, first, last in engine.sql(SMALL_FACTS):
        match kind:
            case "count":
                counts[str(node), str(name), number(key)] += number(count)
                times += [number(first), number(last)]
            case "suspect":
                suspects.add(str(name), [as_unsigned(number(key))], str(text))
            case "queue":
                brokers[number(key)] = number(count)
                speakers.setdefault(number(key), set()).add(number(first))
            case "gap" if len(gaps) < GAPS_MAX:
                gaps.add(Gap(str(node), str(name), str(text), number(count)))
    census = Census(counts, min(times, default=0), max(times, default=0))
    listed = tuple(sorted(gaps, key=lambda gap: (gap.node, gap.where, gap.reason)))
    return Small(census, listed, suspects, brokers, speakers)


def scope_of(census: Census) -> plans.Scope:
    """Who recorded what."""
    traced = sorted({node for node, action, _ in census.counts if action == "AppendMessage"})
    has_clients = census.has(("Send", "SendBatch"), (Outcome.OK,))
    return plans.Scope([as_signed(text_hash(node)) for node in traced], has_clients)


def everything(invariants: Iterable[str]) -> Accused:
    accused = Accused()
    for invariant in invariants:
        accused.add(invariant, [EVERYTHING], "everything was asked for")
    return accused


@dataclass(slots=True)
class _Comparing:
    """The comparison of digests, and the exact plans over what differs."""

    engine: Engine
    streams: Sequence[Stream]
    accused: Accused
    scope: plans.Scope
    small: Small
    wishes: Wishes
    progress: Progress

    def look(self) -> None:
        found = self._differing()
        if not len(found):
            return
        queues, places = np.ascontiguousarray(found[:, 0]), np.ascontiguousarray(found[:, 1])
        dirty = range_keys(queues.view(np.uint64), places) if len(found) <= RANGES_MAX else None
        speakers = set[int]().union(*(self.small.speakers.get(queue, ()) for queue in np.unique(queues).tolist()))
        streams = [stream for number, stream in enumerate(self.streams) if number in speakers or dirty is None]
        self.engine.rows(streams, dirty, self.progress)
        chosen = {
            plan.name: plan
            for plan in plans.PLANS
            if (self.scope.traced or not plan.needs_broker) and (self.scope.has_clients or not plan.needs_clients)
        }
        told: dict[str, list[Row]] = {}
        for name, *row in self.engine.sql(plans.all_of(list(chosen.values()), KEYS_MAX + 1)):
            told.setdefault(str(name), []).append(tuple(row))
        for name, rows in told.items():
            self._accuse(chosen[name], rows)

    def _differing(self) -> NDArray[np.int64]:
        """The ranges in which sides differ: queue and range. Accuses what is not about ranges."""
        dialect, scope, places_only = self.engine.dialect, self.scope, self.wishes.places_only
        names = PLACE_COMPARISONS if places_only else None
        queries = [plans.differing(dialect, each, scope) for each in plans.applying(scope, names)]
        queries += [plans.consumed_elsewhere(dialect, scope)]
        queries += [plans.out_of_time(scope)] if scope.traced else []
        others = [] if places_only else [("shared", plans.SHARED_QUEUES)]
        others += [("late", plans.LATE_ENDS)] if self.wishes.promises.settled and not places_only else []
        found: dict[str, list[tuple[int, int]]] = {"range": [], "shared": [], "late": []}
        for what, one, other in self.engine.sql(plans.together(queries, others)):
            found[str(what)].append((number(one), number(other)))
        late = [as_unsigned(queue) | 1 for queue, _ in found["late"]]
        self.accused.add("AckedSurvives", late, "a queue ended before something that was acknowledged")
        shared = [as_unsigned(group) | 1 for group, _ in found["shared"]]
        self.accused.add("CommittedOffsetNeverAhead", shared, "a queue was consumed by more than one member")
        return np.array(found["range"], np.int64).reshape(-1, 2)

    def _accuse(self, plan: plans.Plan, rows: Sequence[Row]) -> None:
        queues = {number(row[0]) for row in rows}
        for invariant in plan.queues:
            self.accused.add(invariant, {as_unsigned(queue) | 1 for queue in queues}, plan.meaning)
        for invariant in plan.messages:
            self.accused.add(invariant, {message_key(number(row[1])) for row in rows}, plan.meaning)
        for invariant in plan.groups:
            self.accused.add(invariant, {as_unsigned(number(row[2])) | 1 for row in rows}, plan.meaning)
        for invariant in plan.nodes:
            keys = {as_unsigned(self.small.brokers[queue]) | 1 for queue in queues if queue in self.small.brokers}
            self.accused.add(invariant, keys, plan.meaning)


def tasks_of(accused: Accused, judged: Collection[str], parallelism: int) -> list[list[Job]]:
    """Jobs for all suspects, dealt out to tasks."""
    jobs = []
    for invariant, keys in sorted(accused.keys.items()):
        promise = invariant.removesuffix(REST)
        if promise not in judged:
            continue
        part = CHECKS[promise].part
        is_many = EVERYTHING in keys or len(keys) > KEYS_OF_JOB_MAX
        # All that a node did is much: nodes are dealt out one by one.
        can_split = part is not Part.WHOLE and (is_many or (part is Part.NODE and len(keys) > 1))
        buckets = parallelism if can_split else 1
        jobs += [Job(invariant, tuple(sorted(keys)), bucket, buckets) for bucket in range(buckets)]
    tasks: list[list[Job]] = [[] for _ in range(min(parallelism, len(jobs)))]
    for position, job in enumerate(jobs):
        tasks[position % len(tasks)].append(job)
    return tasks


def how_judged(invariant: str, accused: Accused, exact: bool) -> str:
    """By what a promise was judged, in words."""
    names = [name for name in (invariant, f"{invariant}{REST}") if name in accused.keys]
    if exact:
        return "the oracle, over all events"
    if not names:
        return CHECKS[invariant].proof
    keys = set[int]().union(*(accused.keys[name] for name in names))
    part = CHECKS[invariant].part
    of = "all of it" if EVERYTHING in keys or part is Part.WHOLE else f"{len(keys)} of its parts ({part})"
    return f"{CHECKS[invariant].proof}; the oracle looked at {of}, because {accused.reasons[names[0]]}"


# --- for the report ---------------------------------------------------------------------------------------------------


def _names(engine: Engine, kind: str) -> dict[int, str]:
    found = engine.sql(f"SELECT k1, min(text) FROM facts WHERE kind = '{kind}' GROUP BY k1")
    return {number(key): str(name) for key, name in found}


def picture_by(engine: Engine) -> Picture:
    """What a report draws, from the facts of the last judgement with `bins`."""
    picture = Picture()
    binned = "SELECT name, k4, k3, sum(n) FROM facts WHERE kind = 'bin' GROUP BY name, k4, k3"
    for action, outcome, second, count in engine.sql(binned):
        series = SERIES.get((str(action), number(outcome)))
        if series is not None:
            picture.seconds[number(second), series] += int(str(count))
    for request, exponent, count in engine.sql(
        "SELECT name, k3, sum(n) FROM facts WHERE kind = 'latency' GROUP BY name, k3"
    ):
        picture.latencies[str(request), number(exponent)] += int(str(count))
    names, groups = _names(engine, "queue"), _names(engine, "group")
    loans = f"SELECT k1, text, t0, name, k4 FROM facts WHERE kind = 'lock' ORDER BY t0, k1, text LIMIT {LOANS_MAX}"
    for queue, member, at_ns, action, granted in engine.sql(loans):
        is_granted = action == "LockQueue" and granted == 1
        picture.loans.append(Loan(names.get(number(queue), "?"), str(member), number(at_ns), is_granted))
    lagging = f"""
SELECT progress.k2, progress.k1, max(progress.s2), max_by(told.s1, told.t0) FROM facts AS progress
JOIN facts AS told ON told.kind = 'end' AND told.k1 = progress.k1
WHERE progress.kind = 'progress' GROUP BY progress.k2, progress.k1
ORDER BY max(progress.s2) - max_by(told.s1, told.t0), progress.k2, progress.k1 LIMIT {QUEUES_MAX}"""
    for group, queue, consumed_to, end in engine.sql(lagging):
        names_of = (groups.get(number(group), "?"), names.get(number(queue), "?"))
        picture.lags.append(Lag(*names_of, number(consumed_to), number(end)))
    consumed = f"SELECT k2, sum(n) FROM facts WHERE kind = 'cell' AND k4 = {int(Role.CONSUMED)} GROUP BY k2"
    for group, count in engine.sql(consumed):
        picture.consumed[groups.get(number(group), "?")] += int(str(count))
    if engine.has_rows:
        for group, _, again in engine.sql(plans.DUPLICATES):
            picture.again[groups.get(number(group), "?")] += number(again)
    return picture
