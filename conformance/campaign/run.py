"""The loop of a campaign: stretches of seeds go out, what came of them is written down, and nothing stops it early."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.campaign.findings import Findings
from conformance.campaign.ledger import ROOT, Ledger, Stretch, total, version
from conformance.campaign.workers import Job, Told, Workers

FOLDER: Final = ROOT / "build" / "campaign"
"""Where the ledger is, and what was found."""
PROGRESS_EVERY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Result:
    """What one campaign came to."""

    histories: int
    findings: Findings

    @property
    def is_clean(self) -> bool:
        return not self.findings.classes


def run_campaign(
    job: Job, *, minutes: float, jobs: int = 1, first_seed: int = 0, folder: Path = FOLDER, is_quiet: bool = False
) -> Result:
    """Lives through seeds that this version has not seen until the time is over."""
    say = _silent if is_quiet else _say
    ledger, begin_s = Ledger(folder / "ledger.jsonl"), time.monotonic()
    findings = Findings(job, folder / "found", say, time.monotonic)
    shown_s, stretches = begin_s, list[Stretch]()
    todo = ledger.todo(job.kind, job.engine, version(), job.steps, first_seed)
    for told in Workers(job, jobs).outcomes(todo, begin_s + minutes * 60):
        stretch = _stretch(job, told)
        for each in told:
            if each.lived.violations:
                findings.add(each.seed, each.lived.violations)
        ledger.add(stretch)
        stretches.append(stretch)
        if time.monotonic() - shown_s >= PROGRESS_EVERY_S:
            shown_s = time.monotonic()
            say(_progress(job, stretches, shown_s - begin_s))
    say(_progress(job, stretches, time.monotonic() - begin_s))
    for line in findings.table():
        say(line)
    return Result(total(stretches)[0], findings)


def _stretch(job: Job, told: list[Told]) -> Stretch:
    assert told
    cells: dict[str, int] = {}
    for each in told:
        for cell, count in each.lived.cells.items():
            cells[cell] = cells.get(cell, 0) + count
    return Stretch(
        kind=job.kind,
        engine=job.engine,
        version=version(),
        steps=job.steps,
        begin=told[0].seed,
        end=told[-1].seed + 1,
        seconds=round(sum(each.seconds for each in told), 2),
        events=sum(each.lived.events for each in told),
        refused=sum(each.lived.refused for each in told),
        findings={str(each.seed): len(each.lived.violations) for each in told if each.lived.violations},
        cells=cells,
    )


def _progress(job: Job, stretches: list[Stretch], elapsed_s: float) -> str:
    histories, findings, _ = total(stretches)
    events, seconds = sum(each.events for each in stretches), sum(each.seconds for each in stretches)
    cost_ms = 1000 * seconds / max(1, histories)
    last = max((each.end for each in stretches), default=0)
    return (
        f"{job.kind} on {job.engine}: {histories} histories up to seed {last}, {events} events, "
        f"{elapsed_s:.0f} s, {cost_ms:.0f} ms of processor each, {findings or 'none'} broke a promise"
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _silent(text: str) -> None:
    pass
