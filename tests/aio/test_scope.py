"""Work on a message ends when the lock of its queue does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from conformance.group import history as h
from conformance.group.runner import run_history
from refmq.aio.scope import Scope, Scopes
from refmq.client.message import Processing, ReceivedMessage, Verdict
from refmq.model.ids import MessageQueue
from refmq.trace.record import Outcome
from tests.aio.harness import run

QUEUE = MessageQueue("T", "b", 0)


@dataclass
class Holder:
    """A consumer that trusts its locks until it is told otherwise."""

    trusted: bool = True
    stopped: list[int] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scopes = Scopes(lambda queue: self.trusted, lambda message: self.stopped.append(message.queue_offset))

    async def settle(self, message: ReceivedMessage, verdict: Verdict) -> None:
        self.verdicts.append(verdict)

    def scope(self, message: ReceivedMessage) -> Scope:
        return Scope(self.scopes, message)

    def message(self, offset: int = 7) -> ReceivedMessage:
        return ReceivedMessage("T", b"x", "ID", QUEUE, offset, 0, settler=self)


def test_a_block_is_cancelled_when_the_lock_runs_out_and_says_nothing_of_its_message() -> None:
    async def story() -> None:
        holder = Holder()
        asyncio.get_running_loop().call_later(0.01, holder.scopes.stop, QUEUE)
        async with holder.message().processing():
            await asyncio.Event().wait()
        assert (holder.stopped, holder.verdicts) == ([7], [])
        await asyncio.sleep(0)  # nothing is left of the cancellation

    run(story())


def test_other_queues_and_what_is_done_are_left_alone() -> None:
    async def story() -> None:
        holder = Holder()
        async with holder.message().processing():
            assert holder.scopes.stop(MessageQueue("T", "b", 1)) == 0
            await asyncio.sleep(0.001)
        assert holder.scopes.stop(QUEUE) == 0
        assert holder.stopped == []
        assert [verdict.success for verdict in holder.verdicts] == [True]

    run(story())


def test_a_block_does_not_begin_without_the_lock() -> None:
    async def story() -> None:
        holder = Holder(trusted=False)
        reached = False
        async with holder.message().processing():
            await asyncio.sleep(0.001)
            reached = True
        assert not reached
        assert (holder.stopped, holder.verdicts) == ([7], [])

    run(story())


def test_a_program_that_is_cancelled_is_not_taken_for_a_lost_lock() -> None:
    async def story() -> None:
        holder = Holder()

        async def work() -> None:
            async with Processing(holder.message()):
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (holder.stopped, holder.verdicts) == ([], [])

    run(story())


def test_what_takes_too_long_is_told_from_a_lost_lock() -> None:
    async def story() -> None:
        holder = Holder()
        scope = Scope(holder.scopes, holder.message(), 0.001)
        with pytest.raises(TimeoutError):
            async with scope:
                await asyncio.Event().wait()
        assert (scope.too_late, scope.stopped, holder.stopped) == (True, False, [])

    run(story())


def test_a_listener_whose_broker_does_not_renew_the_lock_is_stopped_after_half_a_minute() -> None:
    for refusals in (5, 0):
        steps = (
            *(h.Produce(), h.Join(0), h.AdvanceClock(20_500), h.Produce(takes_ms=100_000)),
            *(h.AdvanceClock(1_000), h.Refuse(0, "lock", refusals), h.AdvanceClock(60_000)),
        )
        result = run_history(h.History(h.Setting(seed=1, members=1, queues=1, orderly=True), steps))
        assert result.violations == []
        listened = [line for line in result.lines if line.action == "Listen"]
        begin = next(line for line in listened if line.outcome == Outcome.INVOKE and line.b == 1)
        end = next(line for line in listened if line.operation == begin.operation and line != begin)
        took_s = (end.at_ns - begin.at_ns) / 1e9
        if refusals:
            assert end.outcome == Outcome.UNKNOWN
            assert 20 < took_s < 31
            assert any(line.action == "TrustExpire" for line in result.lines)
        else:
            assert (end.outcome, round(took_s)) == (Outcome.OK, 100)
