"""Mistakes put into broker, store and client on purpose: the histories must find each of them within a few seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from conformance.cluster import generate, runner
from conformance.cluster import history as h
from refmq.broker import queue_locks
from refmq.broker.broker import Broker
from refmq.model.ids import PhysicalOffset, QueueOffset
from refmq.net.broker import BrokerNode
from refmq.net.engine import ReferenceEngine
from refmq.sim.disk import _SimulatedFile
from refmq.store.store import ReferenceStore

SEEDS = 150
"""Histories that a mistake may survive. Each takes about a fifth of a second."""


@dataclass(frozen=True)
class Mutant:
    name: str
    promises: frozenset[str]
    """One of these must be what is found broken."""
    put_in: Callable[[pytest.MonkeyPatch], None]


def acknowledged_before_the_flush(patch: pytest.MonkeyPatch) -> None:
    async def at_once(self: ReferenceEngine, position: PhysicalOffset) -> None:
        self._wanted.set()

    patch.setattr(ReferenceEngine, "_durable", at_once)
    patch.setattr(ReferenceStore, "ack_put", lambda self, result: result.status)


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
    patch.setattr(BrokerNode, "_arrived", lambda self, message: None)


def an_offset_committed_early(patch: pytest.MonkeyPatch) -> None:
    original = Broker.commit_offset

    def early(self: Broker, group: str, topic: str, queue_id: int, offset: QueueOffset) -> None:
        original(self, group, topic, queue_id, QueueOffset(offset + 1))

    patch.setattr(Broker, "commit_offset", early)


def queues_lent_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BrokerNode, "_start_locks", lambda self, had_a_life: queue_locks.restart_broker(None))


def topics_saved_late(patch: pytest.MonkeyPatch) -> None:
    async def never(self: Broker) -> None:
        return None

    patch.setattr(Broker, "save_topics", never)


def a_pull_that_skips(patch: pytest.MonkeyPatch) -> None:
    original = ReferenceStore.get_message

    def skip(self: ReferenceStore, *args: Any, **kwargs: Any) -> Any:
        found = original(self, *args, **kwargs)
        if len(found.records) > 2:
            return replace(found, records=(found.records[0], *found.records[2:]))
        return found

    patch.setattr(ReferenceStore, "get_message", skip)


MUTANTS = [
    Mutant("acknowledged before the flush", frozenset({"AckedSurvives"}), acknowledged_before_the_flush),
    Mutant("a flush that does nothing", frozenset({"AckedSurvives", "InconsistentOffset"}), a_flush_that_does_nothing),
    Mutant("served before the flush", frozenset({"NeverServeUnflushed"}), served_before_the_flush),
    Mutant("a lost wake-up", frozenset({"HeldPullWakes"}), a_lost_wake_up),
    Mutant("an offset committed early", frozenset({"CommittedOffsetNeverAhead"}), an_offset_committed_early),
    Mutant("queues lent after a restart", frozenset({"OneOwnerPerQueue"}), queues_lent_after_a_restart),
    Mutant("topics that are not saved", frozenset({"AckedSurvives"}), topics_saved_late),
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
