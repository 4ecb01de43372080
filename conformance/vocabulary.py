"""Where every name of the vocabulary is found: specification, step function, trace event, history, oracle.

The table of the book is made from this. A test fails when a name is missing on a side where it should be, when a home
in `homes` is not there, and when an excuse below is for something that exists. Sources are parsed and not imported, so
that nothing here needs Java or a compiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from conformance import homes
from conformance.cluster import history as cluster_history
from conformance.oracles import store as store_oracles
from conformance.store import history as store_history
from refmq.model.vocabulary import ANOMALIES, NAMESERVER, PROTOCOLS, Action, By, Invariant
from refmq.verify.oracles import ORACLES
from refmq.verify.spec.actions import actions_of_next
from refmq.verify.spec.catalogue import find_protocols

EXPECTED: Final[dict[By, tuple[str, ...]]] = {
    By.NODE: ("spec", "step", "event"),
    By.CLIENT: ("spec", "history"),
    By.ENVIRONMENT: ("spec", "history"),
}
"""Where an action should be found, by who takes it. A client of a history is scripted, so its step is the history's."""

NOT_IN_HISTORIES: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            *("StrayReport", "MasterCrash", "MasterPowerLoss", "MasterDiskLoss"),
            *("SlaveCrash", "SlavePowerLoss", "WipeSlave", "Promote"),
        ),
        "histories of clusters have no slaves; spec/ha_replication/traces has traces written by hand",
    ),
    "RemoveQueues": "an operator's repair of a stopped store; no history draws it",
    "ConsumerResume": "the end of ConsumerPause",
    "ProduceMessage": "cluster: Send",
    "ResetOffset": "an operator's tool; the scripted client has none",
    "RouteChange": "an operator's tool; the topics of a history keep their queues",
    **dict.fromkeys(
        ("RouteRefresh", "ReleaseQueue", "AcquireQueue", "PullMessages", "ConsumeStart", "ConsumeFinish", "CommitSend"),
        "a part of Pull, CommitOffset or QueryOffset of the scripted client",
    ),
    **dict.fromkeys(("LocalDecide", "CheckReply"), "a part of SendHalf, which says what the producer decides"),
}
"""Actions of clients and of the environment that no step of a history takes by their name, and why."""

NO_SPECIFICATION: Final = "nameserver"
"""The owner of the steps that no specification has."""

NO_ORACLE: Final = {
    "CommittedNotForgotten": "CommittedVisible judges the same from outside",
    "NoDiscardFinished": "CommittedVisible and CommittedOnce judge the same from outside",
    "AskedBeforeDiscard": "TLC judges it on traces of a broker (transaction_check_back/trace)",
    "FinalFromHalf": "TLC judges it on traces of a broker (transaction_check_back/trace)",
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
        return [side for side in EXPECTED[self.action.by] if side not in self.found and not self.excuse(side)]

    def excuse(self, side: str) -> str:
        """Why the action is not found on a side; empty when there is no reason."""
        if side == "spec" and self.protocol == NO_SPECIFICATION:
            return "the nameserver has no specification"
        if side in ("step", "event") and self.action.name in homes.NOT_BUILT.get(self.protocol, ()):
            return "not built"
        return NOT_IN_HISTORIES.get(self.action.name, "") if side == "history" else ""


@cache
def specified() -> dict[str, list[str]]:
    """The actions of every protocol that is specified, by its module. (A model of our own has no place here.)"""
    protocols = {protocol.module for protocol in PROTOCOLS}
    folders = {name: folder for name, folder in find_protocols(homes.ROOT / "spec").items() if name in protocols}
    return {name: actions_of_next((folder / f"{name}.tla").read_text()) for name, folder in folders.items()}


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
    for protocol, action in [*named, *[(NO_SPECIFICATION, action) for action in NAMESERVER]]:
        yield Row(protocol, action, dict(found_on(protocol, action)))


def found_on(protocol: str, action: Action) -> Iterator[tuple[str, str]]:
    """The sides on which an action is found, each with the place."""
    if action.name in specified().get(protocol, ()):
        yield "spec", protocol
    home = homes.HOMES[protocol].get(action.name)
    if home is not None and homes.exists(home.step):
        yield "step", home.step
    if home is not None and all(homes.records(place, action.name) for place in home.recorders()):
        yield "event", ", ".join(home.recorders())
    if protocol != NO_SPECIFICATION and action.name in history_steps():
        yield "history", history_steps()[action.name]


def oracles() -> dict[str, list[str]]:
    """Name of a promise -> the oracles that judge it."""
    found: dict[str, list[str]] = {}
    for name in ORACLES:
        found.setdefault(name, []).append("trace")
    for name in ("OneAnswerPerRequest", "TablesSaved", "ArrangedIsSo"):  # they look at other things than events
        found.setdefault(name, []).append("cluster")
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
    return NO_ORACLE.get(invariant.name) or ("not built" if owner in homes.NOT_BUILT else "")


def step_cell(row: Row) -> str:
    home = homes.HOMES[row.protocol].get(row.action.name)
    if home is None or "step" not in row.found:
        return row.excuse("step")
    return f"`{home.step}`" + (f" ({home.part})" if home.part else "")


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
            fields = ", ".join(f"`{name}`" for name in action.fields)
            cells = [
                f"`{action.name}`",
                action.by.value,
                "yes" if "spec" in found else "",
                step_cell(row),
                (fields or "nothing") if "event" in found else row.excuse("event") or "",
                found.get("history") or row.excuse("history"),
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
