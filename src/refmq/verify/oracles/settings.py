"""Promises about what operators change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import Finding, Line, Promises
from refmq.verify.oracles.partition import Partition, oracle

SUCCESS = 0


@oracle(Partition.NODE)
def settings_follow(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """SettingsFollow: a setting that was changed is so when it is read, and one that was refused is as it was before.

    Not judged while two operations change a broker at a time, nor the first refusal of a life, before which nobody
    knows how it was.
    """
    known: dict[str, int] = {}
    under_way: dict[str, set[int]] = {}
    mixed: set[int] = set()
    """Operations that overlap with others, or with a restart: not every broker has a file for its settings."""
    for number, line in enumerate(lines):
        broker = line.queue[1]
        if line.outcome == Outcome.STEP and line.action == "StartStore":
            known.pop(line.node, None)
            mixed |= under_way.get(line.node, set())
        if line.action != "Configure":
            continue
        together = under_way.setdefault(broker, set())
        if line.outcome == Outcome.INVOKE:
            together.add(line.operation)
            if len(together) > 1:
                mixed |= together
                known.pop(broker, None)
            continue
        is_alone = line.operation not in mixed
        together.discard(line.operation)
        if line.outcome != Outcome.OK or not is_alone:
            known.pop(broker, None)
            continue
        expected = line.wanted if line.status == SUCCESS else known.get(broker, line.applied)
        if line.applied != expected:
            what = "was set to" if line.status == SUCCESS else "was refused, and was"
            yield Finding("SettingsFollow", f"{line.topic} of {broker} {what} {expected}; it is {line.applied}", number)
        known[broker] = line.applied
