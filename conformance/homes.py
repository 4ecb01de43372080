"""Where each action of the vocabulary is code: the step function that takes it, and the one that records its event.

A line for each action. A home is written `module:function` or `module:Class.method`, and the test parses exactly that
module and looks for exactly that function, with the action's name written in it as the event that it records. Nothing
is found by searching. When a step moves, its line moves with it.

An action of a node that no code takes yet is in `NOT_BUILT`. Actions of clients and of the environment have a home
where a client, a node or the simulated world records them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
SOURCES: Final = ROOT / "src"
RECORDING_PACKAGES: Final = ("store", "plane", "broker", "nameserver", "client", "aio", "net", "sim")
"""The packages of refmq whose code records events. `verify` and `cli` only read them."""

OTHER_EVENTS: Final = frozenset({"refmq.client.message_trace"})
"""RocketMQ's own message trace, which calls one of its entries EndTransaction as well."""


@dataclass(frozen=True, slots=True)
class Home:
    """The code of one action."""

    step: str = ""
    """The step function; empty when the action has none, because the world takes it."""
    records: tuple[str, ...] = ()
    """The functions that record its event, when the step is not the one, or not the only one."""
    part: str = ""
    """Why the step function has another name: it does more than this action."""

    def recorders(self) -> tuple[str, ...]:
        return self.records or (self.step,)


STORE_RECOVERY: Final = {
    "AppendMessage": Home("refmq.store.append:append_message"),
    "RollFile": Home("refmq.store.append:roll_file"),
    "FlushLog": Home("refmq.store.flush:flush_log"),
    "AckPut": Home(
        "refmq.plane.puts:ack_puts", ("refmq.plane.ack:ack_put_events",), part="every put that one flush covers"
    ),
    "DispatchMessage": Home("refmq.store.dispatch:dispatch_message"),
    "FlushQueue": Home("refmq.store.flush:flush_queue"),
    "FlushIndex": Home("refmq.store.flush:flush_index"),
    "WriteCheckpoint": Home("refmq.store.flush:write_checkpoint"),
    "ServeMessage": Home("refmq.store.get:serve_message"),
    "ExpireFile": Home("refmq.store.clean:expire_file"),
    "StartStore": Home("refmq.store.recover:start_store"),
    "ScanLog": Home("refmq.store.scan:scan_log", ("refmq.store.recover:recover",)),
    "TruncateQueue": Home("refmq.store.recover:truncate_queue"),
    "TruncateLog": Home("refmq.store.recover:truncate_log"),
    "FinishRecovery": Home("refmq.store.recover:finish_recovery"),
    "StopStore": Home("refmq.store.recover:stop_store"),
    "ProcessCrash": Home(records=("refmq.sim.world:Node._died",)),
    "PowerLoss": Home(records=("refmq.sim.world:Node._died",)),
}

TRANSACTION_CHECK_BACK: Final = {
    "SendHalf": Home(
        "refmq.plane.send:half_message", ("refmq.plane.send:send_half_event",), part="the message that it stores"
    ),
    "EndTransaction": Home("refmq.broker.transactions:Transactions.end_transaction"),
    "WriteOp": Home("refmq.broker.transactions:Transactions.write_op"),
    "RoundStart": Home("refmq.broker.check_rounds:CheckRounds.round_start"),
    "PullOps": Home("refmq.broker.check_rounds:CheckRounds.pull_ops"),
    "HalfRemoved": Home("refmq.broker.check_rounds:CheckRounds.half_removed"),
    "HalfDiscard": Home("refmq.broker.check_rounds:CheckRounds.half_discard"),
    "HalfImmune": Home("refmq.broker.check_rounds:CheckRounds.half_immune"),
    "HalfRenewAndCheck": Home("refmq.broker.check_rounds:CheckRounds.half_renew_and_check"),
    "RoundFinish": Home("refmq.broker.check_rounds:CheckRounds.round_finish"),
    "RoundAbort": Home("refmq.broker.check_rounds:CheckRounds.round_abort"),
    "PersistProgress": Home("refmq.broker.check_rounds:CheckRounds.persist_progress"),
    "ImmunityOver": Home(records=("refmq.broker.check_rounds:CheckRounds._immunity_over",)),
    "FlushLog": STORE_RECOVERY["FlushLog"],
    "ProcessCrash": STORE_RECOVERY["ProcessCrash"],
    "PowerLoss": STORE_RECOVERY["PowerLoss"],
}

REBALANCE: Final = {
    "Heartbeat": Home("refmq.broker.clients:heartbeat"),
    "Leave": Home("refmq.client.rebalance:leave", ("refmq.client.rebalance:leave", "refmq.broker.clients:leave")),
    "ViewRefresh": Home("refmq.client.rebalance:view_refresh"),
    "RouteRefresh": Home("refmq.client.rebalance:route_refresh"),
    "ReleaseQueue": Home("refmq.client.rebalance:release_queue"),
    "AcquireQueue": Home("refmq.client.rebalance:acquire_queue"),
    "PullMessages": Home("refmq.client.rebalance:pull_messages"),
    "ConsumeStart": Home("refmq.client.rebalance:consume_start"),
    "ConsumeFinish": Home("refmq.client.rebalance:consume_finish"),
    "CommitSend": Home("refmq.client.rebalance:commit_send"),
    "TrustExpire": Home("refmq.client.rebalance:trust_expire"),
    "CommitOffset": Home("refmq.plane.offsets:commit_offset"),
    "PersistOffsets": Home(
        "refmq.broker.control_plane:Broker.save_offsets", part="it also decides whether there is a need"
    ),
    "LockQueue": Home("refmq.broker.queue_locks:lock_queue"),
    "UnlockQueue": Home("refmq.broker.queue_locks:unlock_queue"),
    "LoanExpire": Home(
        "refmq.broker.queue_locks:expire_loans",
        ("refmq.broker.queue_locks:expire_loans", "refmq.broker.queue_locks:lock_queue"),
        part="many loans at once; and one expires when another client asks for it",
    ),
    "RemoveMember": Home("refmq.broker.clients:remove_member"),
}

NAMESERVER: Final = {
    "RegisterBroker": Home("refmq.nameserver.registration:register_broker"),
    "QueryDataVersion": Home("refmq.nameserver.registration:query_data_version"),
    "UnregisterBroker": Home("refmq.nameserver.registration:unregister_broker"),
    "ExpireBrokers": Home("refmq.nameserver.registration:expire_brokers"),
    "CloseBrokerChannel": Home("refmq.nameserver.registration:close_broker_channel"),
    "WipeWritePerm": Home("refmq.nameserver.topics:wipe_write_perm"),
    "AddWritePerm": Home("refmq.nameserver.topics:add_write_perm"),
    "DeleteTopic": Home("refmq.nameserver.topics:delete_topic"),
    "PutKv": Home("refmq.nameserver.serve:serve_put_kv"),
    "DeleteKv": Home("refmq.nameserver.serve:serve_delete_kv"),
    "UpdateSettings": Home("refmq.nameserver.serve:serve_update_settings"),
}

HOMES: Final = {
    "StoreRecovery": STORE_RECOVERY,
    "HaReplication": dict[str, Home](),
    "TransactionCheckBack": TRANSACTION_CHECK_BACK,
    "Rebalance": REBALANCE,
    "nameserver": NAMESERVER,
}
"""Protocol -> action -> its home."""

NOT_BUILT: Final = {
    "HaReplication": (
        *("MasterAppend", "MasterFlush", "AckPut", "TimeoutPut", "Connect", "SlaveReport", "MasterReadReport"),
        *("MasterSend", "MasterHeartbeat", "SlaveAppend", "SlaveFlush", "MasterCloseLink", "MasterRestart"),
        *("SlaveRestart", "ExpireFile"),
    ),
}
"""Protocol -> actions of its nodes that are specified and not yet code: the reference has no replication."""


@cache
def functions_of(module: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method of one module, by its qualified name. No module, no functions."""
    path = SOURCES / f"{module.replace('.', '/')}.py"
    return dict(functions_in(ast.parse(path.read_text()), "")) if path.is_file() else {}


def functions_in(parent: ast.AST, inside: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.ClassDef):
            yield from functions_in(node, f"{inside}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield inside + node.name, node


def exists(place: str) -> bool:
    """Whether there is a function at `module:function`."""
    module, _, function = place.partition(":")
    return function in functions_of(module)


def records(place: str, action: str) -> bool:
    """Whether the function at a place records the action: `emit(Event("AppendMessage", ...))`."""
    module, _, function = place.partition(":")
    found = functions_of(module).get(function)
    return found is not None and action in handed_over(found)


def handed_over(function: ast.AST) -> set[str]:
    """Every text that a function hands to a call. Not only to Event: hot code hands over plain tuples."""
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    parts = (part for call in calls for argument in call.args for part in ast.walk(argument))
    return {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}


@cache
def recorders() -> dict[str, list[str]]:
    """Every text that is handed to a call -> the functions that do it."""
    found: dict[str, list[str]] = {}
    for package in RECORDING_PACKAGES:
        for path in sorted((SOURCES / "refmq" / package).rglob("*.py")):
            module = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
            for name, function in functions_of(module).items() if module not in OTHER_EVENTS else ():
                for text in handed_over(function):
                    found.setdefault(text, []).append(f"{module}:{name}")
    return found
