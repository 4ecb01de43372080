"""Where every name of the vocabulary is found: specification, step function, trace event, history, oracle.

The table of the book is made from this, and a test fails when a name is missing on a side where it should be. Names are
read from the sources as text, so that nothing has to be imported that needs Java or a compiler.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from conformance.cluster import history as cluster_history
from conformance.oracles import store as store_oracles
from conformance.store import history as store_history
from refmq.model.vocabulary import ANOMALIES, NAMESERVER, PROTOCOLS, Action, By, Invariant
from refmq.verify.oracles import ORACLES
from refmq.verify.spec.actions import actions_of_next
from refmq.verify.spec.catalogue import find_protocols

ROOT: Final = Path(__file__).parent.parent
STEP_PACKAGES: Final = ("store", "broker", "nameserver", "client", "net")
EVENT_PACKAGES: Final = (*STEP_PACKAGES, "sim")

SIDES: Final = ("spec", "step", "event", "history")

EXPECTED: Final[dict[By, tuple[str, ...]]] = {
    By.NODE: ("spec", "step", "event"),
    By.CLIENT: ("spec", "history"),
    By.ENVIRONMENT: ("spec", "history"),
}
"""Where an action should be found, by who takes it. A client of a history is scripted, so its step is the history's."""

ELSEWHERE: Final[dict[tuple[str, str], str]] = {
    **{
        (name, "history"): "a history of one master has no replication; spec/traces has its faults"
        for name in (
            "StrayReport",
            "MasterCrash",
            "MasterPowerLoss",
            "MasterDiskLoss",
            "SlaveCrash",
            "SlavePowerLoss",
            "WipeSlave",
            "Promote",
        )
    },
    ("FlushQueue", "step"): "`refmq.store.flush.flush_queues`, all queues at once",
    ("ServeMessage", "step"): "`refmq.store.get.get_message`",
    ("TruncateQueue", "step"): "a part of `refmq.store.recover.recover`",
    ("FinishRecovery", "step"): "the end of `refmq.store.recover.recover`",
    ("StopStore", "step"): "`refmq.store.store.ReferenceStore.stop`",
    ("LoanExpire", "step"): "a part of `refmq.broker.queue_locks.lock_queue`",
    ("PersistOffsets", "step"): "`refmq.broker.broker.Broker.save_offsets`",
    ("PersistOffsets", "event"): "not recorded: the file is read at the next start",
    ("RemoveQueues", "history"): "an operator's repair of a stopped store; no history draws it",
    ("ConsumerResume", "history"): "the end of ConsumerPause",
    ("ProduceMessage", "history"): "cluster: Send",
    ("ResetOffset", "history"): "an operator's tool; the scripted client has none",
    ("RouteChange", "history"): "an operator's tool; the topics of a history keep their queues",
    **{
        (name, "history"): "a part of Pull, CommitOffset or QueryOffset of the scripted client"
        for name in (
            "ViewRefresh",
            "RouteRefresh",
            "ReleaseQueue",
            "AcquireQueue",
            "PullMessages",
            "ConsumeStart",
            "ConsumeFinish",
            "CommitSend",
            "CheckReply",
            "Leave",
        )
    },
    ("LocalDecide", "history"): "a part of SendHalf",
}
"""What is missing on a side on purpose, and why."""

NOT_BUILT: Final = {"HaReplication": "the reference has no replication yet"}
"""Protocols that are specified and not yet implemented: they have neither steps nor events."""


NO_ORACLE: Final = {
    "CommittedNotForgotten": "CommittedVisible judges the same from outside",
    "NoDiscardFinished": "CommittedVisible and CommittedOnce judge the same from outside",
    "AskedBeforeDiscard": "TLC judges it on traces of a broker (TraceTransactionCheckBack)",
    "FinalFromHalf": "TLC judges it on traces of a broker (TraceTransactionCheckBack)",
    "NoSkippedOffset": "CommittedOffsetNeverAhead judges the same from outside",
    "OneListenerPerQueue": "needs a client with listeners; the scripted one has none",
    "OrderlyInOrder": "needs a client with listeners; the scripted one has none",
    "AllQueuesOwned": "needs a client that rebalances; the scripted one does not",
}
"""Promises that TLC checks and no oracle judges, and why."""


@dataclass(frozen=True, slots=True)
class Row:
    """One action and where it was found."""

    protocol: str
    action: Action
    found: dict[str, str]
    """Side -> where, in a few words."""

    def missing(self) -> list[str]:
        """The sides on which it should be and is not."""
        return [
            side
            for side in EXPECTED[self.action.by]
            if side not in self.found
            and (self.action.name, side) not in ELSEWHERE
            and not (side == "spec" and self.protocol not in specified())
            and not (side in ("step", "event") and self.protocol in NOT_BUILT)
        ]


@cache
def specified() -> dict[str, list[str]]:
    """The actions of every specification that exists, by its module."""
    found = {}
    for protocol in PROTOCOLS:
        folder = find_protocols(ROOT / "spec").get(protocol.module)
        if folder is not None:
            found[protocol.module] = actions_of_next((folder / f"{protocol.module}.tla").read_text())
    return found


@cache
def step_functions() -> dict[str, str]:
    """Name of a function or method -> the module that has it, in the packages of steps."""
    found: dict[str, str] = {}
    for package in STEP_PACKAGES:
        for path in sorted((ROOT / "src/refmq" / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    found.setdefault(node.name, module)
    return found


@cache
def event_names() -> dict[str, str]:
    """Every quoted name that looks like an action's -> a module that has it: events have literal names."""
    found: dict[str, str] = {}
    for package in EVENT_PACKAGES:
        for path in sorted((ROOT / "src/refmq" / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
            for name in re.findall(r'"([A-Z][A-Za-z]+)"', path.read_text()):
                found.setdefault(name, module)
    return found


@cache
def history_steps() -> dict[str, str]:
    """Name of an action -> the step of a history that makes it happen."""
    found = {name: f"store: {name}" for name in store_history.STEPS}
    found |= {name: f"cluster: {name}" for name in cluster_history.STEPS}
    for step, actions in cluster_history.STANDS_FOR.items():
        for action in actions:
            found.setdefault(action, f"cluster: {step}")
    return found


def rows() -> Iterator[Row]:
    """Every action of every protocol, and of the nameserver, which has no specification."""
    named = [(protocol.module, action) for protocol in PROTOCOLS for action in protocol.actions]
    for protocol, action in [*named, *[("nameserver", action) for action in NAMESERVER]]:
        found: dict[str, str] = {}
        if action.name in specified().get(protocol, ()):
            found["spec"] = f"spec/{protocol}.tla"
        for name in (action.step, f"serve_{action.step}"):
            if name in step_functions():
                found.setdefault("step", f"{step_functions()[name]}.{name}")
        if action.name in event_names():
            found["event"] = event_names()[action.name]
        if action.name in history_steps():
            found["history"] = history_steps()[action.name]
        yield Row(protocol, action, found)


def oracles() -> dict[str, list[str]]:
    """Name of a promise -> the oracles that judge it."""
    found: dict[str, list[str]] = {}
    for name in ORACLES:
        found.setdefault(name, []).append("trace")
    for name in store_oracles.STORE_ORACLES:
        found.setdefault(name, []).append("store")
    return found


def promises() -> Iterator[tuple[str, Invariant]]:
    for protocol in PROTOCOLS:
        for invariant in protocol.invariants:
            yield protocol.module, invariant
    for invariant in ANOMALIES:
        yield "what clients see", invariant


def reason(owner: str, invariant: Invariant) -> str:
    """Why no oracle judges a promise; empty when there should be one."""
    return NO_ORACLE.get(invariant.name) or NOT_BUILT.get(owner, "")


def as_markdown() -> str:
    """The tables of the book."""
    parts = []
    by_protocol: dict[str, list[Row]] = {}
    for row in rows():
        by_protocol.setdefault(row.protocol, []).append(row)
    judged = oracles()
    for protocol, members in by_protocol.items():
        parts.append(f"## {protocol}\n")
        parts.append("| Action | By | TLA+ | Step function | Trace event carries | History step | Meaning |")
        parts.append("| --- | --- | --- | --- | --- | --- | --- |")
        for row in members:
            action, found = row.action, row.found
            history = found.get("history") or ELSEWHERE.get((action.name, "history"), "")
            cells = [
                f"`{action.name}`",
                action.by.value,
                "yes" if "spec" in found else "",
                f"`{found['step']}`" if "step" in found else ELSEWHERE.get((action.name, "step"), ""),
                ", ".join(f"`{name}`" for name in action.fields) or ("yes" if "event" in found else ""),
                history,
                action.meaning,
            ]
            parts.append("| " + " | ".join(cells) + " |")
        parts.append("")
    parts.append("## Promises\n")
    parts.append("| Promise | Of | Oracle | Kind | Meaning |")
    parts.append("| --- | --- | --- | --- | --- |")
    for owner, invariant in promises():
        kind = "liveness" if invariant.liveness else "safety"
        seen = ", ".join(judged.get(invariant.name, [])) or f"none: {reason(owner, invariant)}"
        parts.append(f"| `{invariant.name}` | {owner} | {seen} | {kind} | {invariant.meaning} |")
    return "\n".join(parts) + "\n"
