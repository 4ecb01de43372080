"""Traces of a broker and of our clients together are behaviours of Rebalance."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from refmq.aio.consumer import Consumer, Mode
from refmq.aio.producer import Producer
from refmq.client.message import ReceivedMessage
from refmq.model.step import Event
from refmq.trace.memory import MemoryRecorder
from refmq.verify.group_trace import group_trace
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.tlc import Tlc
from refmq.verify.spec.traces import TraceAnswer, read_event, validate_events
from tests.aio.harness import create_topic, run, servers, until

SPEC = Path(__file__).resolve().parents[2] / "spec"
OPTIONS = RunOptions(timeout_s=120)
QUEUES = 2
MESSAGES = 3


def recorded_group(mode: Mode, *, until_done: Callable[[list[bytes]], bool] | None = None) -> list[Event]:
    """Two consumers of one group, of which one comes later and leaves earlier."""
    recorder = MemoryRecorder("all", time.time_ns)
    produced: list[Event] = []

    async def story() -> None:
        seen: list[bytes] = []
        failed: set[bytes] = set()

        async def listen(message: ReceivedMessage) -> None:
            await asyncio.sleep(0.001)
            if mode == "orderly" and message.body == b"1" and message.body not in failed:
                failed.add(message.body)
                raise ZeroDivisionError
            seen.append(message.body)

        async with servers(recorder=recorder) as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "T", QUEUES)

            async def produce(count: int) -> None:
                for _ in range(count):
                    result = await producer.send("T", b"%d" % len(produced))
                    event = Event("ProduceMessage", subject="T", queue_id=result.queue.queue_id, a=result.queue_offset)
                    produced.append(event)

            def consumer(name: str) -> Consumer:
                return Consumer(
                    running.namesrv,
                    group="g",
                    topics="T",
                    start="first",
                    mode=mode,
                    listener=listen,
                    concurrency=2,
                    suspend=0.02,
                    client_ip="10.0.0.1",
                    instance_name=name,
                    recorder=recorder,
                    commit_interval=0.2,
                )

            await produce(2 * MESSAGES)
            async with consumer("a") as first:
                await until(lambda: len(seen) == 2 * MESSAGES)
                async with consumer("b") as second:
                    await until(lambda: len(first.assignment()) == 1 and len(second.assignment()) == 1)
                await until(lambda: len(first.assignment()) == 2)
                await asyncio.sleep(0.3)

    run(story())
    events = [recorded.event for recorded in recorder.events]
    return [*produced, *group_trace(events, "g", "T", QUEUES)]


def judged(tlc: Tlc, events: list[Event], mode: Mode) -> TraceAnswer:
    """The verdict of TraceRebalance with the repairs that our client has built in."""
    config = "trace_our_client_orderly" if mode == "orderly" else "trace_our_client"
    told = [read_event(event._asdict(), "Rebalance") for event in events]
    return validate_events(tlc, SPEC, "Rebalance", told, OPTIONS, config)


@pytest.mark.jdk
@pytest.mark.parametrize("mode", ["concurrent", "orderly"])
def test_what_broker_and_clients_recorded_is_a_behaviour_of_rebalance(tlc: Tlc, mode: Mode) -> None:
    events = recorded_group(mode)
    actions = {event.action for event in events}
    assert {"Heartbeat", "ViewRefresh", "AcquireQueue", "ReleaseQueue", "PullMessages", "Leave"} <= actions
    assert {"ConsumeStart", "ConsumeFinish", "CommitSend", "CommitOffset"} <= actions
    answer = judged(tlc, events, mode)
    assert answer.accepted, answer.reason

    # And it would notice: a commit that is ahead, a message that is skipped.
    at = next(number for number, event in enumerate(events) if event.action == "CommitSend")
    ahead = [*events[:at], events[at]._replace(a=events[at].a + 1), *events[at + 1 :]]
    assert not judged(tlc, ahead, mode).accepted
    at = next(number for number, event in enumerate(events) if event.action == "PullMessages" and event.b > event.a)
    skipped = [*events[:at], events[at]._replace(a=events[at].a + 1), *events[at + 1 :]]
    assert not judged(tlc, skipped, mode).accepted


def test_events_of_others_are_left_out() -> None:
    mine = Event("AcquireQueue", "g@c", "T", 0, a=0)
    others = [
        Event("AcquireQueue", "h@c", "T", 0),
        Event("AcquireQueue", "g@c", "%RETRY%g", 0),
        Event("Heartbeat", "c", "h"),
        Event("AppendMessage", "", "T", 0),
    ]
    assert group_trace([mine, *others], "g", "T", 1) == [mine._replace(actor="c")]
    assert group_trace([replace_actor(mine)], "g", "T", 1) == []


def replace_actor(event: Event) -> Event:
    return event._replace(actor="x@y")
