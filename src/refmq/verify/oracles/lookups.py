"""Promises about questions: by key, and for the ends of a queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import Finding, Line, Power, Promises, Queue, Remembered
from refmq.verify.oracles.messages import LAG_NS, SENDS
from refmq.verify.oracles.partition import Partition, oracle


@oracle(Partition.MESSAGE, shared=("FlushLog",))
def index_finds_every_key(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """IndexFindsEveryKey: a question by key finds the message that has it, once, and no other."""
    acked: Remembered[tuple[str, int], Line] = Remembered()
    asked: Remembered[tuple[str, int], Line] = Remembered()
    power = Power(promises)
    for number, line in enumerate(lines):
        if (forgiven := power.feed(number, line)) is not None:
            broker, from_physical = forgiven
            for known in [k for k, sent in acked.items() if k[0] == broker and sent.physical_offset >= from_physical]:
                del acked[known]
        elif line.action in SENDS and line.outcome == Outcome.OK and line.status == 0 and not power.is_gone(line):
            acked[line.queue[1], line.message] = line
        elif line.action == "QueryKey" and line.outcome == Outcome.INVOKE:
            asked[line.actor, line.operation] = line
        elif line.action == "QueryKey" and line.outcome == Outcome.OK:
            begun, sent = asked.get((line.actor, line.operation)), acked.get((line.queue[1], line.message))
            if line.found > 1 or line.others:
                sentence = (
                    f"{line.actor} asks for one key and gets {line.found + line.others} messages, {line.others} others"
                )
                yield Finding("IndexFindsEveryKey", sentence, number)
            elif not line.found and begun is not None and sent is not None and begun.at_ns - sent.at_ns > LAG_NS:
                yield Finding(
                    "IndexFindsEveryKey", f"{line.queue[1]} does not find {line.message:#x} by its key", number
                )


@oracle(Partition.QUEUE, shared=("ExpireFile",))
def bounds_exact(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """BoundsExact: a queue ends after its last known message, and where the log says.

    Its beginning is 0 as long as no file of the log was removed. Not judged for a queue after a power loss that may
    have shortened it.
    """
    known: dict[Queue, int] = {}  # the end as far as clients know
    acked: dict[Queue, list[tuple[int, int]]] = {}  # time and end, by acknowledgements, which dispatch may lag behind
    appended: dict[Queue, int] = {}
    asked: Remembered[tuple[str, int], tuple[int, int]] = Remembered()
    expired: set[str] = set()
    for number, line in enumerate(lines):
        queue = line.queue
        if line.outcome == Outcome.STEP:
            if line.action in ("AppendMessage", "DispatchMessage"):  # a crash may have come before the first of them
                appended[queue] = max(appended.get(queue, 0), line.queue_offset + 1)
            elif line.action == "ExpireFile" or (line.action == "PowerLoss" and not promises.flush_sync):
                expired.add(line.node)
        elif line.outcome == Outcome.CONSUMED:
            known[queue] = max(known.get(queue, 0), line.queue_offset + 1)
        elif line.action in SENDS and line.outcome == Outcome.OK and line.status == 0:
            acked.setdefault(queue, []).append((line.at_ns, line.queue_offset + 1))
        elif line.action == "QueryBounds" and line.outcome == Outcome.INVOKE:
            late = [end for at_ns, end in acked.get(queue, ()) if line.at_ns - at_ns > LAG_NS]
            asked[line.actor, line.operation] = (max([known.get(queue, 0), *late]), line.at_ns)
        elif line.action == "QueryBounds" and line.outcome == Outcome.OK and queue[1] not in expired:
            least, _ = asked.get((line.actor, line.operation), (0, 0))
            if line.min_offset != 0 or not least <= line.max_offset <= appended.get(queue, line.max_offset):
                sentence = (
                    f"{queue[0]}/{queue[2]} at {queue[1]} is said to be from {line.min_offset} to {line.max_offset}"
                )
                most = appended.get(queue, line.max_offset)
                yield Finding("BoundsExact", f"{sentence}; it ends between {least} and {most}", number)
