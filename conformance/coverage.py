"""What happened in histories, in words: which requests were asked, which steps nodes took, which faults struck, and
next to which step each of them did.

Histories count *cells*; a campaign adds them up for each engine; `empty_cells` names those that nothing has filled. A
cell that nothing can fill stands in `CANNOT` with its reason, so an empty one is news.

    request SEND_MESSAGE              a client asked it
    step AppendMessage                a node took it
    operation Send unknown            a client's operation ended so
    fault PowerLoss                   the world did it
    fault PowerLoss by AppendMessage  right before or right after this step of the same node
    take FlushLog                     a history of a store took this step
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from conformance import homes
from conformance.cluster import history as cluster_history
from conformance.group import history as group_history
from conformance.store import history as store_history
from refmq.broker.handlers import SERVED
from refmq.model.vocabulary import PROTOCOLS, By
from refmq.protocol.codes import RequestCode
from refmq.trace.record import Outcome
from refmq.verify.oracles import Line

Cells = Counter[str]

NODE_STEPS: Final = tuple(
    dict.fromkeys(
        action.name
        for protocol in PROTOCOLS
        for action in protocol.actions
        if action.by is By.NODE and action.name not in homes.NOT_BUILT.get(protocol.module, ())
    )
)
"""The steps of brokers and their stores."""

STORE_STEPS: Final = tuple(action.name for action in PROTOCOLS[0].actions if action.by is By.NODE)

BROKER_FAULTS: Final = ("ProcessCrash", "PowerLoss", "FailFlush", "FullDisk", "Disconnect")
"""Faults that are told apart by the step of the broker that they struck next to."""

STORE_FAULTS: Final = ("ProcessCrash", "PowerLoss", "FLUSH_FAILS", "DISK_FULL")
"""The same of a store alone."""


def cells_of(lines: Iterable[Line], requests: Mapping[int, int]) -> Cells:
    """What happened in a history of a cluster or of a group. `requests` counts what clients asked, by code."""
    cells: Cells = Counter()
    for code, count in requests.items():
        cells[f"request {name_of(code)}"] += count
    before: dict[str, str] = {}
    struck: dict[str, list[str]] = {}
    for line in lines:
        if line.outcome != Outcome.STEP:
            cells[f"operation {line.action} {Outcome(line.outcome).name.lower()}"] += 1
        elif line.actor == line.node:
            cells[f"fault {line.action}"] += 1
            if line.node in before:
                cells[f"fault {line.action} by {before[line.node]}"] += 1
            struck.setdefault(line.node, []).append(line.action)
        else:
            cells[f"step {line.action}"] += 1
            before[line.node] = line.action
            for fault in struck.pop(line.node, ()):
                cells[f"fault {fault} by {line.action}"] += 1
    return cells


def name_of(code: int) -> str:
    try:
        return RequestCode(code).name
    except ValueError:
        return str(code)


def wanted(kind: str) -> Iterator[str]:
    """The cells that a campaign of this kind should fill."""
    match kind:
        case "store":
            yield from (f"take {name}" for name in store_history.STEPS)
            yield from (f"step {name}" for name in STORE_STEPS if name != "AckPut")
            yield from (f"fault {fault}" for fault in STORE_FAULTS)
            yield from (f"fault {fault} by {step}" for fault in STORE_FAULTS for step in STORE_STEPS)
        case "cluster":
            yield from (f"request {name_of(code)}" for code in sorted(SERVED))
            yield from (f"step {name}" for name in NODE_STEPS)
            yield from (f"fault {name}" for name in cluster_history.STEPS if name not in _operations())
            yield from (f"operation {name} ok" for name in _operations())
            yield from (f"fault {fault} by {step}" for fault in BROKER_FAULTS for step in NODE_STEPS)
        case _:
            yield from (f"request {name}" for name in ("PULL_MESSAGE", "HEART_BEAT", "UPDATE_CONSUMER_OFFSET"))
            yield from (f"fault {name}" for name in group_history.STEPS if name not in ("Produce", "Join", "Leave"))
            yield from (f"operation {name} ok" for name in ("Produce", "Subscribe", "Listen"))


def reason(kind: str, cell: str) -> str:
    """Why nothing can fill a cell; empty if something should."""
    return CANNOT.get(kind, {}).get(cell, "")


CANNOT: Final[dict[str, dict[str, str]]] = {"store": {}, "cluster": {}, "group": {}}
"""Kind -> cell -> why nothing fills it."""


def _operations() -> tuple[str, ...]:
    return tuple(kind.__name__ for kind in cluster_history.OPERATIONS)


def empty_cells(kind: str, cells: Cells) -> list[str]:
    """What should be filled, can be, and is not."""
    return [cell for cell in wanted(kind) if not cells.get(cell) and not reason(kind, cell)]
