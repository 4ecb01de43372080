"""A judgement for people and for programs: the text of a terminal, and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from refmq.verify.verdicts import Judgement, Shown, Status, Verdict
from refmq.verify.words import stamp

FINDINGS_TOLD: Final = 3
"""Findings of one promise in the text of a terminal."""
GAPS_TOLD: Final = 5
FORMAT: Final = 1
"""Of the JSON; raised when a field changes its meaning."""


def text_lines(judgement: Judgement) -> Iterator[str]:
    """The report for a terminal."""
    census = judgement.census
    nodes = sorted({node for node, _, _ in census.counts})
    duration_s = (census.last_ns - census.first_ns) / 1e9
    yield f"{census.total} events of {len(nodes)} nodes in {duration_s:.3f} s: {in_short(nodes)}"
    yield f"judged by {judgement.engine} in {judgement.seconds:.1f} s; {assumed(judgement)}"
    for gap in judgement.gaps[:GAPS_TOLD]:
        yield f"missing: {gap}"
    if len(judgement.gaps) > GAPS_TOLD:
        yield f"missing: and {len(judgement.gaps) - GAPS_TOLD} more stretches"
    for verdict in (*judgement.broken, *judgement.doubtful):
        yield ""
        yield from verdict_lines(verdict)
    yield ""
    yield from summary_lines(judgement)


def in_short(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 12 else f"{', '.join(names[:12])} and {len(names) - 12} more"


def assumed(judgement: Judgement) -> str:
    """What was taken for granted."""
    flush = "brokers flush before they answer" if judgement.promises.flush_sync else "brokers flush after they answer"
    settled = "everything had come to rest at the end" if judgement.promises.settled else "it may have gone on"
    return f"{flush}, {settled}"


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """A promise that was not kept, and what shows it."""
    times = f", {verdict.found} times" if verdict.found > 1 else ""
    yield f"{verdict.status.upper()}  {verdict.invariant}{times}: {verdict.meaning}"
    if verdict.reason:
        yield f"  {verdict.reason}"
    for shown in verdict.shown[:FINDINGS_TOLD]:
        yield f"  - {shown.sentence}" + (f" ({where(shown)})" if shown.node else "")
        for line in shown.witness:
            yield f"      {line}"
    if verdict.found > FINDINGS_TOLD:
        yield f"  ... and {verdict.found - FINDINGS_TOLD} more"


def where(shown: Shown) -> str:
    return f"{shown.node}, {stamp(shown.at_ns)}"


def summary_lines(judgement: Judgement) -> Iterator[str]:
    """How many promises there are of each status, and the names of those that were not judged."""
    counts = Counter(verdict.status for verdict in judgement.verdicts)
    yield ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
    left = [verdict for verdict in judgement.verdicts if verdict.status is Status.NOT_JUDGED]
    for reason in dict.fromkeys(verdict.reason for verdict in left):
        names = ", ".join(verdict.invariant for verdict in left if verdict.reason == reason)
        yield f"not judged, {reason}: {names}"


def as_data(judgement: Judgement) -> dict[str, object]:
    """The report for programs."""
    census = judgement.census
    actions: Counter[str] = Counter()
    for (_, action, _), count in census.counts.items():
        actions[action] += count
    return {
        "format": FORMAT,
        "engine": judgement.engine,
        "seconds": round(judgement.seconds, 3),
        "events": census.total,
        "nodes": sorted({node for node, _, _ in census.counts}),
        "first": stamp(census.first_ns),
        "last": stamp(census.last_ns),
        "actions": dict(sorted(actions.items())),
        "assumed": {"flush_sync": judgement.promises.flush_sync, "settled": judgement.promises.settled},
        "gaps": [{"node": gap.node, "where": gap.where, "reason": gap.reason} for gap in judgement.gaps],
        "verdicts": [verdict_data(verdict) for verdict in judgement.verdicts],
    }


def verdict_data(verdict: Verdict) -> dict[str, object]:
    return {
        "promise": verdict.invariant,
        "status": str(verdict.status),
        "meaning": verdict.meaning,
        "reason": verdict.reason,
        "how": verdict.how,
        "found": verdict.found,
        "findings": [
            {
                "sentence": shown.sentence,
                "node": shown.node,
                "at": stamp(shown.at_ns) if shown.at_ns else None,
                "sequence": shown.sequence,
                "witness": list(shown.witness),
                "plain": list(shown.plain),
                "doubt": shown.doubt,
            }
            for shown in verdict.shown
        ],
    }
