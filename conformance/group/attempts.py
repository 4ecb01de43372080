"""Where a producer that may choose sends to: one queue after the other, and after a failure to another broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from refmq.model.ids import MessageQueue
from refmq.protocol.bodies.route import TopicRouteData
from refmq.verify.oracles.base import Finding

MASTER = 0
PERM_WRITE = 2


@dataclass(slots=True)
class Choice:
    """The attempts of one message whose queue the producer chose."""

    queues: tuple[MessageQueue, ...] = ()
    """What it could choose from at its first attempt."""
    brokers: list[frozenset[str]] = field(default_factory=list)
    """Whom it could choose from, for each attempt."""
    tried: list[MessageQueue] = field(default_factory=list)


def writable(route: TopicRouteData) -> tuple[MessageQueue, ...]:
    """The queues of a route that can be written to, by what brokers said and not by what a client makes of it."""
    there = {data.broker_name for data in route.broker_datas if MASTER in data.broker_addrs}
    return tuple(
        MessageQueue("", data.broker_name, number)
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
        if data.perm & PERM_WRITE and data.broker_name in there
        for number in range(data.write_queue_nums)
    )


def attempts_spread(choices: Sequence[Choice]) -> Iterator[Finding]:
    """AttemptsSpread: of twice as many messages in a row as there are queues each queue gets one, and what failed at
    one broker is tried at another one.

    Twice, because an attempt at a broker whose address is not known leaves no trace.
    """
    row: list[MessageQueue] = []
    known: tuple[MessageQueue, ...] = ()
    for number, choice in enumerate(choices):
        for tries in range(1, len(choice.tried)):
            broker = choice.tried[tries].broker
            always = frozenset.intersection(*choice.brokers[: tries + 1])  # others may have come too late
            if broker == choice.tried[tries - 1].broker and always - {broker}:
                yield Finding("AttemptsSpread", f"after {broker} failed it is tried again, of {sorted(always)}", number)
        if choice.queues != known or len(choice.tried) != 1:
            row, known = [], choice.queues
        if len(choice.tried) != 1 or not known:
            continue
        row.append(choice.tried[0])
        if len(row) == 2 * len(known):
            unused = len(known) - len({(queue.broker, queue.queue_id) for queue in row})
            if unused:
                yield Finding("AttemptsSpread", f"{len(row)} messages in a row left out {unused} queues", number)
            row = []
