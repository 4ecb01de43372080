"""Mistakes put into broker, store and client on purpose: the histories must find each of them within a few seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from conformance.cluster import generate, runner
from conformance.cluster import history as h
from refmq.broker import queue_locks
from refmq.broker.check_rounds import CheckRounds
from refmq.broker.config_files import TOPICS_FILE
from refmq.broker.transactions import Decision, HalfMessage, Transactions
from refmq.model.ids import QueueOffset
from refmq.model.step import Step
from refmq.net.broker_node import BrokerNode
from refmq.plane import PlaneState, PlaneStep, offset_requests, offsets, pull, puts, send, serve
from refmq.plane.ack import Put, ack_put_events
from refmq.plane.inputs import Moment
from refmq.plane.offsets import OffsetTable
from refmq.protocol.headers.messages import EndTransactionRequest
from refmq.protocol.names import TRANS_HALF_TOPIC
from refmq.sim.disk import _SimulatedFile
from refmq.store.store import ReferenceStore
from refmq.store.values import PutStatus

SEEDS = 150
"""Histories that a mistake may survive. Each takes about a fifth of a second."""


@dataclass(frozen=True)
class Mutant:
    name: str
    promises: frozenset[str]
    """One of these must be what is found broken."""
    put_in: Callable[[pytest.MonkeyPatch], None]


def acknowledged_before_the_flush(patch: pytest.MonkeyPatch) -> None:
    original = puts.append_message

    def at_once(state: PlaneState, put: Put, now: Moment, *, waits: bool) -> PlaneStep:
        step = original(state, put, now, waits=False)
        return step._replace(events=ack_put_events(put.plan, PutStatus.PUT_OK))

    for module in (puts, send):
        patch.setattr(module, "append_message", at_once)


def a_flush_that_does_nothing(patch: pytest.MonkeyPatch) -> None:
    original = _SimulatedFile.flush

    async def flush(self: _SimulatedFile, start: int = 0, end: int | None = None) -> None:
        if not self.path.startswith("commitlog"):
            await original(self, start, end)

    patch.setattr(_SimulatedFile, "flush", flush)


def served_before_the_flush(patch: pytest.MonkeyPatch) -> None:
    original = runner.store_config
    patch.setattr(runner, "store_config", lambda setting: replace(original(setting), dispatch_unflushed=True))


def a_lost_wake_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(serve, "wake_arrived", lambda state, store, arrived, now: PlaneStep(state))


def an_offset_committed_early(patch: pytest.MonkeyPatch) -> None:
    original = offsets.commit_offset

    def early(
        table: OffsetTable, topic: str, group: str, queue_id: int, offset: QueueOffset
    ) -> Step[OffsetTable, None]:
        return original(table, topic, group, queue_id, QueueOffset(offset + 1))

    for module in (offset_requests, pull):
        patch.setattr(module, "commit_offset", early)


def queues_lent_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BrokerNode, "_start_locks", lambda self, had_a_life: queue_locks.restart_broker(None))


def topics_saved_late(patch: pytest.MonkeyPatch) -> None:
    original = BrokerNode.save

    async def save(self: BrokerNode, file: str, body: bytes) -> None:
        if file != TOPICS_FILE:
            await original(self, file, body)

    patch.setattr(BrokerNode, "save", save)


def a_pull_that_skips(patch: pytest.MonkeyPatch) -> None:
    original = ReferenceStore.get_message

    def skip(self: ReferenceStore, *args: Any, **kwargs: Any) -> Any:
        found = original(self, *args, **kwargs)
        if len(found.records) > 2:
            return replace(found, records=(found.records[0], *found.records[2:]))
        return found

    patch.setattr(ReferenceStore, "get_message", skip)


def a_half_message_in_its_real_topic(patch: pytest.MonkeyPatch) -> None:
    original = send.send_half_event
    patch.setattr(send, "half_message", lambda message, properties: message._replace(sys_flag=0))
    # The assertion in the event would end the process, before any oracle sees the message.
    patch.setattr(send, "send_half_event", lambda plan, *rest: original(plan._replace(topic=TRANS_HALF_TOPIC), *rest))


def a_rollback_that_commits(patch: pytest.MonkeyPatch) -> None:
    original = Transactions.end_transaction

    async def commit(self: Transactions, header: EndTransactionRequest, half: HalfMessage) -> PutStatus:
        return await original(self, replace(header, commit_or_rollback=Decision.COMMIT), half)

    patch.setattr(Transactions, "end_transaction", commit)


def a_commit_that_is_taken_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transactions, "is_finished", lambda self, half: False)


def a_commit_that_delivers_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transactions, "is_finished", lambda self, half: True)


def no_check_rounds(patch: pytest.MonkeyPatch) -> None:
    async def never(self: CheckRounds, limits: object) -> None:
        return None

    patch.setattr(CheckRounds, "run", never)


MUTANTS = [
    Mutant("acknowledged before the flush", frozenset({"AckedSurvives"}), acknowledged_before_the_flush),
    Mutant("a flush that does nothing", frozenset({"AckedSurvives", "InconsistentOffset"}), a_flush_that_does_nothing),
    Mutant("served before the flush", frozenset({"NeverServeUnflushed"}), served_before_the_flush),
    Mutant("a lost wake-up", frozenset({"HeldPullWakes"}), a_lost_wake_up),
    Mutant("an offset committed early", frozenset({"CommittedOffsetNeverAhead"}), an_offset_committed_early),
    Mutant("queues lent after a restart", frozenset({"OneOwnerPerQueue"}), queues_lent_after_a_restart),
    Mutant("topics that are not saved", frozenset({"AckedSurvives"}), topics_saved_late),
    Mutant("a half message in its real topic", frozenset({"NoHalfVisible"}), a_half_message_in_its_real_topic),
    Mutant("a rollback that commits", frozenset({"RolledBackNeverVisible"}), a_rollback_that_commits),
    Mutant("a commit that is taken twice", frozenset({"CommittedOnce"}), a_commit_that_is_taken_twice),
    Mutant("a commit that delivers nothing", frozenset({"CommittedVisible"}), a_commit_that_delivers_nothing),
    Mutant("no check rounds", frozenset({"EveryHalfDecided"}), no_check_rounds),
    Mutant("a pull that skips", frozenset({"AckedSurvives", "SkippedPoll"}), a_pull_that_skips),
]


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mistake_is_found_within_a_few_seeds(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.put_in(monkeypatch)
    found: set[str] = set()
    for seed in range(SEEDS):
        found |= {violation.invariant for violation in runner.run_history(generate.history(seed, 40)).violations}
        if found & mutant.promises:
            return
    pytest.fail(f"{mutant.name}: {SEEDS} histories found {found or 'nothing'}, expected one of {set(mutant.promises)}")


def test_without_a_mistake_nothing_is_found() -> None:
    history = h.History(h.Setting(seed=1), (h.Send(count=3), h.AdvanceClock(100), h.Pull(), h.PowerLoss()))
    assert runner.run_history(history).violations == []
