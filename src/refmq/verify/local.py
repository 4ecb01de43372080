"""Judging with the oracles alone, in this process: at once, for traces of up to some hundred thousand events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from refmq.verify.oracles import ORACLES, Finding, Line, Promises
from refmq.verify.recordings import Reading, Recordings
from refmq.verify.verdicts import (
    FINDINGS_MAX,
    WITNESSED_MAX,
    Counting,
    Found,
    Judgement,
    Shown,
    conclude,
    shown_of,
    why_not_judged,
)
from refmq.verify.words import witnesses

Progress = Callable[[float, str], None]
"""Called now and then with the part that is done, 0 to 1, and what is done just now."""

LOCAL_BYTES_MAX: Final = 32 << 20
"""Half a million events: some ten seconds, about what Spark needs to start."""


def no_progress(part: float, what: str) -> None:
    """Says nothing."""


def judge_here(recordings: Recordings, promises: Promises, progress: Progress = no_progress) -> Judgement:
    """All promises, judged by their oracles. Everything is read into memory."""
    begun = time.monotonic()
    reading, counting = Reading(), Counting()
    lines = []
    for line in reading.of_all(recordings.streams):
        counting.feed(line)
        lines.append(line)
        if len(lines) % 65_536 == 0:
            progress(0.5 * reading.bytes_read / max(recordings.size_bytes, 1), "reading")
    gaps = (*recordings.gaps, *reading.gaps)
    known = replace(promises, complete=promises.complete and not gaps)
    census = counting.census()
    found: dict[str, Found] = {}
    for number, invariant in enumerate(ORACLES):
        progress(0.5 + 0.5 * number / len(ORACLES), invariant)
        if not why_not_judged(invariant, census, known):
            found[invariant] = judge_one(invariant, lines, known)
    how = dict.fromkeys(ORACLES, "the oracle, over all events")
    return conclude("local", census, known, found, gaps, how=how, seconds=time.monotonic() - begun)


def judge_one(invariant: str, lines: Sequence[Line], promises: Promises) -> Found:
    """What the oracle of one promise finds, with witnesses."""
    count, kept = counted(ORACLES[invariant](lines, promises))
    return Found(count, shown_with(lines, kept))


def counted(findings: Iterable[Finding]) -> tuple[int, list[Finding]]:
    """How many findings there are, and the first ones."""
    count, kept = 0, list[Finding]()
    for finding in findings:
        count += 1
        if len(kept) < FINDINGS_MAX:
            kept.append(finding)
    return count, kept


def shown_with(lines: Iterable[Line], findings: Sequence[Finding]) -> tuple[Shown, ...]:
    """Findings with their lines; the first ones with witnesses."""
    numbers = [finding.line for finding in findings]
    known = witnesses(lines, numbers, WITNESSED_MAX) if findings else {}
    return tuple(shown_of(finding, *known.get(finding.line, (None, ()))) for finding in findings)
