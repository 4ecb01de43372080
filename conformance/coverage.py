"""What happened in histories, in words: which requests were asked, which steps nodes took, which faults struck, and
next to which step each of them did.

Histories count *cells*; a campaign adds them up for each engine; `empty_cells` names those that nothing has filled. A
cell that nothing can fill stands in `CANNOT` with its reason, so an empty one is news.

    request SEND_MESSAGE              a client asked it
    step AppendMessage                a node took it
    operation Send unknown            a client's operation ended so
    fault PowerLoss                   the world did it
    fault PowerLoss by AppendMessage  right before or right after this step of the same node
    take FlushLog                     a history took this step
    form an empty body                it did so in this form, or the cluster was set up so
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from conformance import homes
from conformance.cluster import history as cluster_history
from conformance.cluster.ways import forms_wanted
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

CRASHES: Final = ("ProcessCrash", "PowerLoss")
"""Faults of a broker that are told apart by the step that they struck next to: of these the world knows the moment."""

CLUSTER_FAULTS: Final = (
    *(*CRASHES, "CrashPlanned", "JumpClock", "RestartBroker", "StopBroker", "FailFlush", "FullDisk", "SlowDisk"),
    *("FlipBit", "ConsumerPause", "SlowReader", "Disconnect", "LoseAnswer", "LoseRequest", "Cut", "HalfOpen"),
    *("SlowNetwork", "Settled"),
)
"""What the world notes down."""

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
            yield from (f"take {name}" for name in cluster_history.STEPS)
            yield from (f"form {form}" for form in forms_wanted())
            yield from (f"request {name_of(code)}" for code in sorted(SERVED))
            yield from (f"step {name}" for name in NODE_STEPS)
            yield from (f"fault {name}" for name in CLUSTER_FAULTS)
            yield from (f"operation {kind.__name__} ok" for kind in cluster_history.OPERATIONS)
            yield from (f"fault {fault} by {step}" for fault in CRASHES for step in NODE_STEPS)
        case _:
            yield from (f"take {name}" for name in group_history.STEPS)
            yield from (f"request {name}" for name in OF_CONSUMERS)
            yield from (f"operation {name} ok" for name in ("Produce", "Subscribe", "Listen"))
            yield from (f"fault {fault} by {step}" for fault in CRASHES for step in CLIENT_STEPS)


OF_CONSUMERS: Final = (
    *("PULL_MESSAGE", "HEART_BEAT", "UPDATE_CONSUMER_OFFSET", "QUERY_CONSUMER_OFFSET", "LOCK_BATCH_MQ"),
    *("UNLOCK_BATCH_MQ", "CONSUMER_SEND_MSG_BACK", "GET_CONSUMER_LIST_BY_GROUP", "GET_ROUTEINFO_BY_TOPIC"),
    *("UNREGISTER_CLIENT", "GET_MAX_OFFSET"),
)
CLIENT_STEPS: Final = (
    *("AcquireQueue", "ReleaseQueue", "PullMessages", "ConsumeStart", "ConsumeFinish", "CommitSend", "RouteRefresh"),
)


def reason(kind: str, cell: str) -> str:
    """Why nothing can fill a cell; empty if something should."""
    return CANNOT.get(kind, {}).get(cell, "")


def _pairs(faults: tuple[str, ...], steps: tuple[str, ...], why: str) -> dict[str, str]:
    return {f"fault {fault} by {step}": why for fault in faults for step in steps}


_OLD: Final = "the files of these histories are never old enough to go"
_NO_FLUSH: Final = "this step flushes nothing, and an event is told only of a flush that went well"
CANNOT: Final[dict[str, dict[str, str]]] = {
    "store": {
        **_pairs(STORE_FAULTS, ("AckPut",), "nobody tells a store alone that it acknowledged"),
        **_pairs(("FLUSH_FAILS",), STORE_STEPS, _NO_FLUSH),
        **_pairs(
            ("DISK_FULL",),
            ("ScanLog", "TruncateQueue", "TruncateLog", "StopStore"),
            "planned faults are cancelled before a start, and after a stop nothing is told",
        ),
    },
    "cluster": {
        "step ExpireFile": _OLD,
        **_pairs(CRASHES, ("ExpireFile",), _OLD),
    },
    "group": {},
}
"""Kind -> cell -> why nothing fills it."""


def stale_reasons(kind: str, cells: Cells) -> list[str]:
    """The cells that nothing can fill, as `CANNOT` has it, and that are filled."""
    return [cell for cell in CANNOT.get(kind, {}) if cells.get(cell)]


def empty_cells(kind: str, cells: Cells) -> list[str]:
    """What should be filled, can be, and is not."""
    return [cell for cell in wanted(kind) if not cells.get(cell) and not reason(kind, cell)]
