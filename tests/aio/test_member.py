"""A member of a group: its share of the queues, and what it holds of each."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from refmq.aio.consumer import Consumer
from refmq.aio.offsets import LocalOffsets
from refmq.aio.producer import Producer
from refmq.client.message import ReceivedMessage
from refmq.model.ids import MessageQueue
from refmq.net.broker_node import BrokerNode
from refmq.net.connection import Answer, Connection
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.record import decode_records, encode_record
from tests.aio.harness import create_topic, main_server, run, servers, take, until

pytestmark = pytest.mark.usefixtures("each_engine")


def test_a_consumer_goes_on_where_its_group_stopped() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            for number in range(20):
                await producer.send("Orders", b"%d" % number)
            seen: list[bytes] = []
            for _ in range(2):
                async with Consumer(running.namesrv, group="g", topics="Orders", start="first") as consumer:
                    seen += [message.body for message in await take(consumer, 10)]
            assert sorted(seen, key=int) == [b"%d" % number for number in range(20)]

    run(story())


def test_a_topic_that_does_not_exist_yet_is_found_soon_after_it_does() -> None:
    async def story() -> None:
        async with (
            servers() as running,
            Consumer(running.namesrv, group="g", topics="Later", start="first") as consumer,
            Producer(running.namesrv, group="p") as producer,
        ):
            await producer.send("Later", b"x")
            async with asyncio.timeout(10):  # upstream's takes up to half a minute
                (message,) = await take(consumer, 1)
            assert message.body == b"x"

    run(story())


def test_members_share_the_queues_and_take_over_from_one_that_leaves() -> None:
    async def story() -> None:
        async with servers("broker-a", "broker-b") as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "Orders", 4)
            options = {"group": "g", "topics": "Orders", "start": "first"}
            async with Consumer(running.namesrv, **options) as first:  # type: ignore[arg-type]  # one dict for both
                await until(lambda: len(first.assignment()) == 8)
                async with Consumer(running.namesrv, **options) as second:  # type: ignore[arg-type]  # as above
                    await until(lambda: len(first.assignment()) == 4 and len(second.assignment()) == 4)
                    assert not set(first.assignment()) & set(second.assignment())
                    for number in range(40):
                        await producer.send("Orders", b"%d" % number)
                    found = await asyncio.gather(take(first, 20), take(second, 20))
                    bodies = Counter(message.body for part in found for message in part)
                    assert bodies == Counter(b"%d" % number for number in range(40))
                await until(lambda: len(first.assignment()) == 8)

    run(story())


def test_an_orderly_queue_moves_to_another_member_without_two_listeners() -> None:
    async def story() -> None:
        working: Counter[int] = Counter()
        seen: list[tuple[int, int]] = []

        async def listener(message: ReceivedMessage) -> None:
            queue_id = message.queue.queue_id
            working[queue_id] += 1
            assert working[queue_id] == 1, "two listeners have one queue"
            await asyncio.sleep(0.002)
            working[queue_id] -= 1
            seen.append((queue_id, message.queue_offset))

        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "Orders", 4)
            for number in range(200):
                await producer.send("Orders", b"%d" % number)

            def consumer() -> Consumer:
                return Consumer(
                    running.namesrv, group="g", topics="Orders", start="first", mode="orderly", listener=listener
                )

            async with consumer() as first:
                await until(lambda: len(seen) > 20)
                async with consumer() as second:
                    await until(lambda: len(second.assignment()) == 2 and len(first.assignment()) == 2)
                    await until(lambda: len(seen) > 100)
                await until(lambda: len(set(seen)) == 200)
            for queue_id in range(4):
                offsets = [offset for queue, offset in seen if queue == queue_id]
                assert list(dict.fromkeys(offsets)) == sorted(set(offsets)), "an offset came after a later one"

    run(story())


def test_taking_a_queue_undoes_nothing_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the first offset of one queue is being stored, messages of another are consumed."""
    honest = LocalOffsets.write
    consumed = asyncio.Event()

    async def slow(self: LocalOffsets, queue: MessageQueue, offset: int, *, sure: bool) -> None:
        if queue.queue_id == 1 and offset == 0 and not consumed.is_set():
            await consumed.wait()
        await honest(self, queue, offset, sure=sure)

    monkeypatch.setattr(LocalOffsets, "write", slow)

    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "News", 2)
            await producer.send("News", b"1", queue=MessageQueue("News", "broker-a", 0))
            reader = Consumer(
                running.namesrv, group="g", topics="News", mode="broadcast", start="first", offsets_folder=tmp_path
            )
            async with reader:
                assert [message.body for message in await take(reader, 1)] == [b"1"]
                consumed.set()
                await until(lambda: len(reader.assignment()) == 2)
            (file,) = tmp_path.rglob("offsets.json")
            assert re.search(r'"queueId":0[^}]*}:1', file.read_text())

    run(story())


def test_a_full_cache_stops_the_pulls_until_there_is_room() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "Orders", 1)
            for number in range(30):
                await producer.send("Orders", b"%d" % number)
            options = {"group": "g", "topics": "Orders", "start": "first", "prefetch": 4, "pull_batch": 2}
            async with Consumer(running.namesrv, **options) as consumer:  # type: ignore[arg-type]  # a plain dict
                (queue,) = await consumer.assigned()
                await until(lambda: len(consumer._member.state.held[queue].cached) >= 4)
                await asyncio.sleep(0.05)
                assert len(consumer._member.state.held[queue].cached) <= 5
                assert [m.body for m in await take(consumer, 30)] == [b"%d" % number for number in range(30)]

    run(story())


@contextmanager
def answers_changed(
    node: BrokerNode, change: Callable[[RemotingCommand, RemotingCommand], RemotingCommand]
) -> Iterator[None]:
    """While this lasts, a broker says what ``change`` makes of its answers."""
    server = main_server(node)
    honest = server._handler

    def lying(connection: Connection, command: RemotingCommand) -> Answer | Awaitable[Answer]:
        answer = honest(connection, command)
        return change(command, answer) if isinstance(answer, RemotingCommand) else answer

    for handler in (lying, honest):
        server._handler = handler
        for connection in server.connections:
            connection._handler = handler
        if handler is lying:
            yield


@pytest.mark.reference_only
def test_an_offset_that_cannot_be_is_not_begun_at(caplog: pytest.LogCaptureFixture) -> None:
    def negative(command: RemotingCommand, answer: RemotingCommand) -> RemotingCommand:
        if command.code != RequestCode.QUERY_CONSUMER_OFFSET:
            return answer
        return replace(answer, code=0, ext_fields={"offset": "-5"})

    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "Orders", 1)
            await producer.send("Orders", b"x")
            consumer = Consumer(running.namesrv, group="g", topics="Orders", start="first")
            with answers_changed(running.node(), negative):
                async with consumer:
                    await until(lambda: "offset at byte offset 0 should be 0 or more but is -5" in caplog.text)
                    assert consumer.assignment() == ()

    run(story())


@pytest.mark.reference_only
def test_messages_out_of_order_are_not_taken(caplog: pytest.LogCaptureFixture) -> None:
    def backwards(command: RemotingCommand, answer: RemotingCommand) -> RemotingCommand:
        if command.code != RequestCode.PULL_MESSAGE or not answer.body:
            return answer
        return replace(answer, body=b"".join(map(encode_record, reversed(list(decode_records(answer.body))))))

    async def story() -> None:
        caplog.set_level("INFO", "refmq.client")
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "Orders", 1)
            for number in range(2):
                await producer.send("Orders", b"%d" % number)
            with answers_changed(running.node(), backwards):
                consumer = Consumer(running.namesrv, group="g", topics="Orders", start="first")
                async with consumer:
                    await until(lambda: "queue offset at byte offset 0 should be 2 .. 1 but is 0" in caplog.text)
                    (queue,) = await consumer.assigned()
                    assert not consumer._member.state.held[queue].cached

    run(story())
