"""A counterexample as a conformance history: `python -m conformance replay FILE` shows what our code does there.

| specification        | history | what becomes of its steps                                                  |
|----------------------|---------|----------------------------------------------------------------------------|
| StoreRecovery        | store   | one step each; a start and what recovery does in it are one `StartStore`   |
| TransactionCheckBack | cluster | what producers and the world do; the rounds of the broker are time passing |
| HaReplication        | none    | histories of clusters have no slaves                                       |
| Rebalance            | none    | its steps are decisions of consumers, which a history leaves to clients    |

A history says less than a counterexample: a flush covers what is due, a power loss takes everything that was not
flushed or nothing, an acknowledgement comes when the store gives it. Actions without a counterpart are listed under
`left_out`. So a replay may hold because our code is right, or because the history has lost the point. `SEEN_TO_BREAK`
lists the counterexamples whose replay is known to break when our code has a certain mistake; of the others nobody knows
whether they can.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from refmq.verify.spec.catalogue import Configuration
from refmq.verify.spec.cfg import Cfg
from refmq.verify.spec.tlc import State
from refmq.verify.spec.values import TlaValue, parse_value

HistoryStep = dict[str, object]

ROLL_LEAVES_BYTES = 16  # of a log file: too little for a record, so the next one goes to the next file
EXPIRED_AFTER_MS = 100 * 3600 * 1000  # files are kept for 72 hours
ROUND_MS = 70_000  # rounds of check-backs begin every 60 s
IMMUNITY_MS = 10_000  # a half message is young for 6 s

NO_HISTORY = {
    "HaReplication": "histories of clusters have no slaves; check a trace of one against the specification instead",
    "Rebalance": "its steps are decisions of consumers, which a history leaves to its clients",
}

SEEN_TO_BREAK = {
    "store_recovery/weak/abort_file_after_recovery": "dispatch-from-the-end",
    "store_recovery/weak/failed_flush_acknowledged": "flush-failure-ignored",
    "store_recovery/weak/fill_units_block_queue": "dispatch-from-the-end",
    "store_recovery/weak/phantom_queue_unit": "dispatch-from-the-end",
    "store_recovery/weak/queue_units_shifted": "dispatch-from-the-end",
    "store_recovery/weak/recovered_log_counts_as_flushed": "tail-not-flushed",
    "store_recovery/weak/stale_tail_read_again": "dispatch-from-the-end",
    "store_recovery/weak/unflushed_message_served": "dispatch-unflushed",
    "transaction_check_back/weak/committed_twice_by_duplicate_decision": "commit-remembered-late",
}
"""Configuration -> a mistake in conformance/mutants with which the replay of its counterexample breaks the same
promise. A test sees each of them break."""


@dataclass(slots=True)
class Translation:
    """A history in the making."""

    kind: str
    setting: dict[str, object] = field(default_factory=dict)
    steps: list[HistoryStep] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, step: str, **fields: object) -> None:
        self.steps.append({"step": step, **fields})


def as_saved_history(configuration: Configuration, states: Sequence[State]) -> dict[str, object]:
    """The keys of a saved history, or `kind: none` and a `reason`."""
    if configuration.protocol in NO_HISTORY:
        return {"kind": "none", "reason": NO_HISTORY[configuration.protocol]}
    read = [(state.action, {name: parse_value(text) for name, text in state.variables.items()}) for state in states]
    match configuration.protocol:
        case "StoreRecovery":
            translation = store_history(configuration.cfg, read)
        case "TransactionCheckBack":
            translation = cluster_history(read)
        case other:
            return {"kind": "none", "reason": f"nothing replays {other}"}
    return {
        "kind": translation.kind,
        "history": {"setting": translation.setting, "steps": translation.steps},
        "left_out": translation.left_out,
        "breaks_with": SEEN_TO_BREAK.get(configuration.name, ""),
    }


# --- StoreRecovery ------------------------------------------------------------------------------------------------

IN_RECOVERY = ("started", "scanned", "cut")
UPKEEP = ("FlushQueue", "FlushIndex", "WriteCheckpoint")
NO_STEP_OF_THEIR_OWN = ("AckPut", "RollFile", "ScanLog", "TruncateQueue", "TruncateLog", "FinishRecovery")
"""What the store does on its own, or as part of the step before."""


def store_history(cfg: Cfg, states: Sequence[tuple[str, dict[str, TlaValue]]]) -> Translation:
    made = Translation("store", {"sync_flush": cfg.constants["SyncFlush"] == "TRUE"})
    if "QueueFileSize" in cfg.constants:
        made.setting["queue_file_units"] = int(cfg.constants["QueueFileSize"])
    queues: dict[TlaValue, int] = {}
    recovering = 0
    for (_, before), (action, after) in itertools.pairwise(states):
        if before["mode"] in IN_RECOVERY:
            recovering += 1
            if action in ("ProcessCrash", "PowerLoss"):
                how = "process" if action == "ProcessCrash" else "power"
                # It dies in the middle, at an effect that stands for how far it had come; then it is started again.
                made.add("StartStore", deaths=[[how, recovering, []]])
                recovering = 0
        elif action == "StartStore":
            recovering = 0
        else:
            store_step(made, action, before, after, queues)
        if action == "FinishRecovery":
            made.add("StartStore")
    made.add("ReadEverything")
    return made


def store_step(
    made: Translation,
    action: str,
    before: Mapping[str, TlaValue],
    after: Mapping[str, TlaValue],
    queues: dict[TlaValue, int],
) -> None:
    """One action of a store that is up, or down."""
    match action:
        case "AppendMessage":
            record = entry(after["cell"], before["wrote"])
            queue = queues.setdefault(entry(record, "q"), len(queues))
            made.add("AppendMessage", topic=queue, keys=[after["sent"]])
        case "RollFile":
            for step in reversed(made.steps):
                if step["step"] == "AppendMessage":
                    step["leave"] = ROLL_LEAVES_BYTES
                    break
        case "FlushLog" | "StopStore" | "ProcessCrash":
            made.add(action)
        case "DispatchMessage":
            made.add(action, count=1)
        case "PowerLoss":
            lost = before["cell"] != after["cell"] or before["unit"] != after["unit"]
            made.add(action, harsh=lost)
        case "FailFlush":
            made.add("FailFlush")
            made.add("FlushLog")
        case "ServeMessage":
            new = [got for got in members(after["seen"]) if got not in members(before["seen"])]
            made.add(action, topic=queues.get(entry(new[0], "q"), 0) if new else 0)
        case "ExpireFile":
            made.add(action, after_ms=EXPIRED_AFTER_MS)
        case "RemoveQueues":
            made.add("LoseDerived", what="queues")
        case _ if action in UPKEEP:
            made.add("Maintain")
        case _ if action not in NO_STEP_OF_THEIR_OWN:
            made.left_out.append(action)


# --- TransactionCheckBack -----------------------------------------------------------------------------------------

BY_THE_BROKER = frozenset(
    [
        *("EndTransaction", "WriteOp", "PullOps", "HalfRemoved", "HalfDiscard", "HalfImmune", "HalfRenewAndCheck"),
        *("RoundFinish", "PersistProgress", "FlushLog", "LocalDecide", "CheckReply"),
    ]
)
"""Taken by the broker, or by the client inside its SendHalf."""


def cluster_history(states: Sequence[tuple[str, dict[str, TlaValue]]]) -> Translation:
    made = Translation("cluster", {"brokers": 1, "clients": 2, "queues": 1})
    decided = states[-1][1]["decision"]
    clients: dict[TlaValue, int] = {}
    for (_, before), (action, after) in itertools.pairwise(states):
        match action:
            case "SendHalf":
                log = after["log"]
                assert isinstance(log, tuple)
                half = entry(log[-1], "tx")
                client = clients.setdefault(half, len(clients))
                decision = entry(decided, half)
                answer = "unknown" if decision == "none" else decision
                learned = entry(after["known"], half) != entry(before["known"], half)
                if not learned:
                    made.add("LoseAnswer", client=client)
                made.add("Heartbeat", client=client)
                made.add("SendHalf", client=client, decision=decision if learned else "none", reply=answer)
            case "DuplicateEnd":
                for step in made.steps:
                    if step["step"] == "SendHalf":
                        step["ends"] = 2
            case "RoundStart":
                made.add("AdvanceClock", by_ms=ROUND_MS)
            case "ImmunityOver" | "OverWhenDecided" | "OverWhenTaken":  # what models put in its place
                made.add("AdvanceClock", by_ms=IMMUNITY_MS)
            case "ProcessCrash" | "PowerLoss":
                made.add(action)
                made.add("RestartBroker")
            case "ProducerDeath":
                dead = [one for one in members(after["dead"]) if one not in members(before["dead"])]
                made.add(action, client=clients.get(dead[0], 0) if dead else 0)
            case _ if action not in BY_THE_BROKER:
                made.left_out.append(action)  # a history cannot say which message is lost or which round ends early
    made.add("AdvanceClock", by_ms=ROUND_MS)
    made.add("Pull", client=0)
    return made


def entry(value: TlaValue, key: TlaValue) -> TlaValue:
    """An entry of a function or record."""
    assert isinstance(value, Mapping), f"{value!r} is not a function"
    return value[key]


def members(value: TlaValue) -> frozenset[TlaValue]:
    assert isinstance(value, frozenset), f"{value!r} is not a set"
    return value
