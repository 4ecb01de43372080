"""The promise about what operators arrange at brokers and nameservers: it is so when it is read back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import Finding, Line
from refmq.verify.oracles.calm import NAMESERVER, Quiet

SUCCESS: Final = 0
SILENT: Final = -1
"""The status when an answer is missing: it may have been done, now or later."""
UNDONE_BY_REGISTRATION: Final = ("DeleteTopic", "WipeWritePerm", "AddWritePerm")
"""Steps of a nameserver that hold until the broker registers with another version of its topics."""
NAMESERVER_BACK_NS: Final = 15_000_000_000
"""So long after a nameserver was disturbed brokers have found it again."""


class SeenArrangement(NamedTuple):
    """What somebody asked for, and what was there afterwards."""

    what: str
    broker: str
    wanted: int
    found: int
    status: int
    """The code with which the node answered."""
    begin: int
    """How many events there were before it began,"""
    end: int
    """... and when it had been read back."""
    asks_nameserver: bool


def arranged_is_so(arrangements: Sequence[SeenArrangement], lines: Sequence[Line]) -> Iterator[Finding]:
    """ArrangedIsSo: what an operator arranges is so, and is not refused, when nobody else arranges anything meanwhile
    and nothing disturbs the nodes that have to do with it."""
    quiet, fed = Quiet(), 0
    for seen in sorted(arrangements, key=lambda seen: seen.begin):
        while fed < seen.begin:
            quiet.feed(fed, lines[fed])
            fed += 1
        if any(seen is not other and seen.begin <= other.end and other.begin <= seen.end for other in arrangements):
            continue
        if seen.status == SILENT or _is_disturbed(seen, lines, quiet) or _is_undone(lines[seen.begin : seen.end]):
            continue
        where = f"{seen.what} at {seen.broker}"
        if seen.status != SUCCESS:
            yield Finding("ArrangedIsSo", f"{where} is refused, code {seen.status}", seen.begin)
        elif seen.found != seen.wanted:
            yield Finding("ArrangedIsSo", f"{where} is {seen.found}, and was made {seen.wanted}", seen.begin)


def _is_disturbed(seen: SeenArrangement, lines: Sequence[Line], quiet: Quiet) -> bool:
    """Whether a fault strikes while it is arranged, or lasts from before."""
    if any(line.outcome == Outcome.STEP and line.actor == line.node for line in lines[seen.begin : seen.end]):
        return True
    nameservers = {line.node for line in lines[: seen.begin] if line.node.startswith(NAMESERVER)}
    if quiet.is_broken(seen.broker) or (seen.asks_nameserver and quiet.is_broken(*nameservers)):
        return True
    if not seen.asks_nameserver or seen.begin >= len(lines):
        return False
    last = quiet.last_fault_of_any(*nameservers)
    return last >= 0 and lines[seen.begin].at_ns - lines[last].at_ns < NAMESERVER_BACK_NS


def _is_undone(lines: Sequence[Line]) -> bool:
    """Whether a broker registers after a nameserver did what a registration undoes."""
    did = False
    for line in lines:
        if line.outcome == Outcome.STEP and line.action in UNDONE_BY_REGISTRATION:
            did = True
        elif line.outcome == Outcome.STEP and line.action == "RegisterBroker" and did:
            return True
    return False
