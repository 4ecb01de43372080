"""The SQL of the judge: which ranges of places differ between sides, and which rows of them explain it.

Digests first: one query over the cells of all files. The roles that should have seen the same events in a range are
compared; where counts and sums are equal there is nothing to look at. Then the rows of the other ranges: each plan
below selects what no event of the other side explains, and says whose oracles must look at it.

The words of SQL are those that Spark and DuckDB share; `Dialect` has what differs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from refmq.verify.spark.digest import Role

SUMS: Final = {"n": "n", "b": "s1", "bc": "s2", "ab": "s3", "bd": "s4"}
"""Sum -> its column."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How sums modulo 2^64 are written."""

    wide: str
    """The type in which values are added."""
    modulus: str
    """What makes the sum one modulo 2^64."""

    def difference(self, column: str, left: Collection[int], right: Collection[int]) -> str:
        """The sum of a column over some roles less that over others, modulo 2^64."""
        value = f"CAST({column} AS {self.wide})"
        cases = f"WHEN k4 IN ({numbers(left)}) THEN {value} WHEN k4 IN ({numbers(right)}) THEN -{value}"
        return f"sum(CASE {cases} ELSE 0 END){self.modulus}"


SPARK: Final = Dialect("BIGINT", "")
"""Its 64-bit numbers wrap around, with `spark.sql.ansi.enabled=false`."""
DUCKDB: Final = Dialect("HUGEINT", " % 18446744073709551616")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides that should have seen the same events of a range."""

    name: str
    left: tuple[Role, ...]
    right: tuple[Role, ...]
    sums: tuple[str, ...]
    by_group: bool = False
    needs_broker: bool = True
    """Whether it is compared only where the broker recorded its log."""
    needs_clients: bool = True
    meaning: str = ""


ACKS: Final = (Role.ACKED, Role.ACKED_WITH_RESERVE)
SENTS: Final = (Role.SENT, Role.SENT_WITH_RESERVE)

COMPARISONS: Final = (
    Comparison(
        "dispatched",
        (Role.APPENDED,),
        (Role.DISPATCHED,),
        ("n", "b", "ab", "bd"),
        needs_clients=False,
        meaning="what is in the log is in its queues",
    ),
    Comparison(
        "acknowledged",
        (Role.ACKED,),
        (Role.SENT,),
        ("n", "bc", "ab"),
        meaning="producers were told what is acknowledged",
    ),
    Comparison(
        "served", (Role.SERVED,), (Role.CONSUMED,), ("n", "bc", "ab", "bd"), meaning="consumers got what was served"
    ),
    Comparison(
        "asked",
        (Role.COMMIT_STORED,),
        (Role.COMMIT_ASKED,),
        ("n", "b"),
        by_group=True,
        meaning="offsets are stored that a client asked for",
    ),
    Comparison(
        "told",
        (Role.COMMIT_STORED,),
        (Role.COMMIT_TOLD,),
        ("n", "b"),
        by_group=True,
        meaning="a client is told of the offsets that are stored",
    ),
)


def numbers(values: Collection[int]) -> str:
    """What stands in the brackets of IN."""
    return ", ".join(str(int(value)) for value in values) or "NULL"


@dataclass(frozen=True, slots=True)
class Scope:
    """What the trace has, so that nothing is compared with a side that nobody recorded."""

    traced: Sequence[int]
    """Hashes of brokers that recorded their log, as signed numbers."""
    has_clients: bool


def applying(scope: Scope, names: Collection[str] | None = None) -> list[Comparison]:
    """The comparisons that make sense."""
    return [
        each
        for each in COMPARISONS
        if (names is None or each.name in names)
        and (scope.has_clients or not each.needs_clients)
        and (scope.traced or not each.needs_broker)
    ]


def differing(dialect: Dialect, comparison: Comparison, scope: Scope) -> str:
    """The ranges in which two sides differ: queue and range."""
    group = ", k2" if comparison.by_group else ""
    conditions = " OR ".join(
        f"{dialect.difference(SUMS[name], comparison.left, comparison.right)} <> 0" for name in comparison.sums
    )
    roles = numbers((*comparison.left, *comparison.right))
    of_traced = f"AND k1 IN (SELECT k1 FROM facts WHERE kind = 'queue' AND k2 IN ({numbers(scope.traced)}))"
    return f"""
SELECT DISTINCT k1, k3 FROM (
  SELECT k1, k3 FROM facts
  WHERE kind = 'cell' AND k4 IN ({roles}) {of_traced if comparison.needs_broker else ""}
  GROUP BY k1, k3{group}
  HAVING {conditions}
) AS differing"""


def consumed_elsewhere(dialect: Dialect, scope: Scope) -> str:
    """The ranges that a group did not consume just as they were stored: queue and range.

    Stored is what brokers appended, or where they recorded nothing what producers were told.
    """
    stored = (Role.APPENDED,) if scope.traced else SENTS
    columns = ", ".join(f"{dialect.difference(SUMS[name], stored, ())} AS {name}" for name in ("n", "bc", "ab"))
    ours = ", ".join(f"{dialect.difference(SUMS[name], (Role.CONSUMED,), ())} AS {name}" for name in ("n", "bc", "ab"))
    return f"""
WITH stored AS (
  SELECT k1, k3, {columns} FROM facts WHERE kind = 'cell' AND k4 IN ({numbers(stored)}) GROUP BY k1, k3
), consumed AS (
  SELECT k1, k3, k2, {ours} FROM facts WHERE kind = 'cell' AND k4 = {int(Role.CONSUMED)} GROUP BY k1, k3, k2
)
SELECT DISTINCT consumed.k1, consumed.k3
FROM consumed LEFT JOIN stored ON consumed.k1 = stored.k1 AND consumed.k3 = stored.k3
WHERE stored.n IS NULL OR stored.n <> consumed.n OR stored.bc <> consumed.bc OR stored.ab <> consumed.ab"""


def out_of_time(scope: Scope) -> str:
    """The ranges in which something was consumed or acknowledged before anything was stored: queue and range."""
    return f"""
SELECT k1, k3 FROM facts WHERE kind = 'cell' AND k1 IN (
  SELECT k1 FROM facts WHERE kind = 'queue' AND k2 IN ({numbers(scope.traced)}))
GROUP BY k1, k3
HAVING min(CASE WHEN k4 = {int(Role.APPENDED)} THEN t0 END)
  > min(CASE WHEN k4 IN ({numbers((Role.DISPATCHED, Role.SERVED, *ACKS, *SENTS, Role.CONSUMED))}) THEN t0 END)"""


# --- exact plans ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """Rows of dirty ranges that nothing explains: queue, message and group."""

    name: str
    meaning: str
    sql: str
    queues: tuple[str, ...] = ()
    """Promises whose oracles look at the queue."""
    messages: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    """... at the broker of the queue."""
    needs_broker: bool = True
    needs_clients: bool = True


def unexplained(left: Collection[Role], right: Collection[Role], same: Sequence[str], condition: str = "TRUE") -> str:
    """Rows of some roles for which there is no row of the others with the same values."""
    on = " AND ".join([*(f"mine.{name} = other.{name}" for name in same), condition])
    return f"""
SELECT DISTINCT mine.queue AS queue, mine.c AS c, mine.grp AS grp FROM rows AS mine ANTI JOIN (
  SELECT * FROM rows WHERE role IN ({numbers(right)})) AS other ON {on}
WHERE mine.role IN ({numbers(left)})"""


def more_often(left: Collection[Role], right: Collection[Role], same: Sequence[str]) -> str:
    """Values that some roles have more often than the others."""
    return f"""
SELECT DISTINCT queue, message AS c, member AS grp FROM (
  SELECT queue, max(c) AS message, max(grp) AS member,
    sum(CASE WHEN role IN ({numbers(left)}) THEN 1 ELSE -1 END) AS balance FROM rows
  WHERE role IN ({numbers((*left, *right))}) GROUP BY {", ".join(same)}) AS counted
WHERE balance > 0"""


PLANS: Final = (
    Plan(
        "invented",
        "something was consumed at a place where it was not stored",
        unexplained((Role.CONSUMED,), (Role.APPENDED, *SENTS), ("queue", "a", "b", "c")),
        queues=("InconsistentOffset", "AckedSurvives", "SkippedPoll"),
        messages=("NoInvention",),
        needs_broker=False,
    ),
    Plan(
        "unsent",
        "something was consumed that no producer was told to be stored there",
        # Of a half or delayed message no producer is told where it is; that somebody meant to send it is enough.
        f"""{unexplained((Role.CONSUMED,), SENTS, ("queue", "b", "c"))} AND NOT EXISTS (
  SELECT 1 FROM rows AS meant
  WHERE meant.role = {int(Role.INTENDED)} AND meant.queue = mine.queue AND meant.c = mine.c AND meant.t <= mine.t)""",
        messages=("NoInvention",),
        needs_broker=False,
    ),
    Plan(
        "two at one place",
        "two messages, or two places of the log, for one place of a queue",
        f"""
SELECT queue, max(c) AS c, max(grp) AS grp FROM rows
WHERE role IN ({numbers((Role.APPENDED, *SENTS, Role.CONSUMED))}) GROUP BY queue, b
HAVING count(DISTINCT c) > 1 OR count(DISTINCT CASE WHEN a <> -1 THEN a END) > 1""",
        queues=("InconsistentOffset",),
        needs_broker=False,
        needs_clients=False,
    ),
    Plan(
        "not acknowledged",
        "a producer was told that something is stored which no broker acknowledged",
        unexplained(SENTS, ACKS, ("queue", "a", "b", "c"), "mine.role = other.role + 2"),
        nodes=("SidesAgree", "DurableAck"),
    ),
    Plan(
        "not sent",
        "something was appended that no producer was told to be stored",
        f"""{unexplained((Role.APPENDED,), SENTS, ("queue", "b", "c"))}
  AND mine.c NOT IN (SELECT c FROM rows WHERE role = {int(Role.INTENDED)})""",
        nodes=("SidesAgree",),
    ),
    Plan(
        "not served",
        "something was consumed that no broker served, or more often",
        more_often((Role.CONSUMED,), (Role.SERVED,), ("queue", "a", "b", "c", "d")),
        nodes=("SidesAgree", "NeverServeUnflushed"),
    ),
    Plan(
        "not dispatched in order",
        "a unit of a queue that is not in the log, or not like this",
        unexplained((Role.DISPATCHED,), (Role.APPENDED,), ("queue", "a", "b", "d")),
        nodes=("QueueMatchesLog", "NodeCoherent"),
        needs_clients=False,
    ),
    Plan(
        "not asked for",
        "an offset is stored that no client asked for, or more often",
        more_often((Role.COMMIT_STORED,), (Role.COMMIT_ASKED,), ("queue", "grp", "b")),
        queues=("CommittedOffsetMonotone",),
        groups=("CommittedOffsetNeverAhead",),
        nodes=("SidesAgree",),
    ),
    Plan(
        "not stored",
        "a client was told that an offset is stored, and it is not",
        more_often((Role.COMMIT_TOLD,), (Role.COMMIT_STORED,), ("queue", "grp", "b")),
        nodes=("SidesAgree",),
    ),
)


def all_of(chosen: Sequence[Plan], limit: int) -> str:
    """All plans in one query: the name of each before its rows."""
    limited = "SELECT * FROM (SELECT '{}' AS plan, queue, c, grp FROM ({}) AS found LIMIT {}) AS limited"
    return " UNION ALL ".join(limited.format(plan.name, plan.sql, limit) for plan in chosen)


def together(ranges: Sequence[str], others: Sequence[tuple[str, str]]) -> str:
    """Ranges that differ by any of some queries, and what queries of one column find, in one query."""
    differing = " UNION ".join(f"SELECT * FROM ({query}) AS q{at}" for at, query in enumerate(ranges))
    parts = [f"SELECT 'range' AS what, k1 AS one, k3 AS other FROM ({differing}) AS ranges"]
    parts += [f"SELECT '{name}', key, 0 FROM ({query}) AS {name}" for name, query in others]
    return " UNION ALL ".join(parts)


DUPLICATES: Final = f"""
SELECT grp, sum(n) AS consumed, sum(n - 1) AS again FROM (
  SELECT grp, queue, b, count(*) AS n FROM rows WHERE role = {int(Role.CONSUMED)} GROUP BY grp, queue, b) AS places
GROUP BY grp"""

# --- what is not about ranges ---------------------------------------------------------------------------------------

LATE_ENDS: Final = """
SELECT acked.k1 AS key FROM (
  SELECT k1, max(s1) AS most FROM facts WHERE kind = 'acked' GROUP BY k1) AS acked
JOIN (SELECT k1, max_by(s1, t0) AS queue_end FROM facts WHERE kind = 'end' GROUP BY k1) AS told ON acked.k1 = told.k1
WHERE acked.most >= told.queue_end"""
"""Queues of which the last pull was told that they end before something that was acknowledged."""

SHARED_QUEUES: Final = """
SELECT DISTINCT k2 AS key FROM (
  SELECT k1, k2 FROM facts WHERE kind = 'progress' GROUP BY k1, k2 HAVING count(*) > 1) AS shared"""
"""Groups of which more than one stream consumed a queue."""
