"""A nameserver and brokers on loopback, in the test's own process: the one module here that knows how to start them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from refmq.aio.consumer import Consumer
from refmq.client.message import ReceivedMessage
from refmq.model.broker_config import BrokerConfig
from refmq.model.disk import Disk
from refmq.net.broker_node import BrokerNode
from refmq.net.client import Client
from refmq.net.engine import LoopEngine
from refmq.net.engines import EngineSurroundings
from refmq.net.nameserver import Nameserver
from refmq.net.server import Server
from refmq.net.thread_engine import ThreadEngine
from refmq.net.tls import ServerTls
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import request
from refmq.protocol.headers.admin import CreateTopicRequest
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.pull import PullMessageRequest, PullSysFlag
from refmq.protocol.record import Record, decode_records
from refmq.store import StoreConfig
from refmq.trace.record import Recorder
from tests.engines import disk_for_engine, engine_for

T = TypeVar("T")
TEST_TIMEOUT_S = 60.0
SMALL_STORE = StoreConfig(log_file_bytes=16 << 20, queue_file_bytes=20_000, index_slots=1_000, index_entries=4_000)


def run(coroutine: Coroutine[Any, Any, T], timeout_s: float = TEST_TIMEOUT_S) -> T:
    """Runs on a fresh loop with an end in any case; a task that is left, or an unseen exception, fails the test."""
    problems: list[dict[str, Any]] = []

    async def limited() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
        async with asyncio.timeout(timeout_s):
            result = await coroutine
        await asyncio.sleep(0)
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert left == []
        return result

    result = asyncio.run(limited())
    assert problems == []
    return result


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


@dataclass
class Servers:
    """What is running."""

    namesrv: str
    nodes: dict[str, BrokerNode] = field(default_factory=dict)

    def node(self, name: str = "broker-a") -> BrokerNode:
        return self.nodes[name]


@asynccontextmanager
async def servers(
    *brokers: str,
    config: BrokerConfig | None = None,
    tls: ServerTls | None = None,
    recorder: Recorder | None = None,
) -> AsyncIterator[Servers]:
    """A nameserver and a broker for each name (``broker-a`` without any)."""
    nameserver = Nameserver(tls=tls)
    host, port = await nameserver.start("127.0.0.1", 0)
    running = Servers(f"{host}:{port}")
    try:
        for name in brokers or ("broker-a",):
            await start_broker(running, name, config=config, tls=tls, recorder=recorder)
        yield running
    finally:
        for name in list(running.nodes):
            await stop_broker(running, name)
        await nameserver.close(1.0)
        await asyncio.sleep(0)


async def start_broker(
    running: Servers,
    name: str,
    *,
    config: BrokerConfig | None = None,
    tls: ServerTls | None = None,
    disk: Disk | None = None,
    port: int = 0,
    recorder: Recorder | None = None,
) -> BrokerNode:
    used = replace(config or BrokerConfig(), broker_name=name, listen_port=port, namesrv_addr=running.namesrv)
    disk = disk or disk_for_engine()
    engine = engine_for(disk, SMALL_STORE, EngineSurroundings(tls=tls, recorder=recorder))
    node = BrokerNode(used, SMALL_STORE, disk, engine, recorder=engine.recorder)
    await node.start("127.0.0.1")
    running.nodes[name] = node
    return node


def main_server(node: BrokerNode) -> Server:
    """The main port of a broker, to change what it answers."""
    assert isinstance(node.engine, (LoopEngine, ThreadEngine))
    return node.engine.servers[0]


async def stop_broker(running: Servers, name: str) -> None:
    await running.nodes.pop(name).stop(2.0)


async def stored(running: Servers, topic: str, *, broker: str = "broker-a", queues: int = 8) -> list[Record]:
    """Everything in the queues of a topic, queue by queue, as a consumer would get it."""
    node = running.node(broker)
    client = Client()
    found: list[Record] = []
    try:
        for queue_id in range(queues):
            offset = 0
            while True:
                header = PullMessageRequest(
                    consumer_group="harness",
                    topic=topic,
                    queue_id=queue_id,
                    queue_offset=offset,
                    max_msg_nums=32,
                    sys_flag=PullSysFlag.SUBSCRIPTION,
                    subscription="*",
                )
                command = request(RequestCode.PULL_MESSAGE, encode_header(header))
                answer = await client.invoke(node.broker.config.address, command, 5.0)
                if answer.code != 0:
                    break
                found += decode_records(answer.body)
                offset = int(answer.fields["nextBeginOffset"])
    finally:
        await client.close()
    return found


async def until_stored(running: Servers, topic: str, count: int) -> list[Record]:
    """The messages of a topic, as soon as there are so many."""
    while len(records := await stored(running, topic)) < count:
        await asyncio.sleep(0.005)
    return records


async def create_topic(running: Servers, topic: str, queues: int = 4) -> None:
    """Makes a topic on every broker."""
    client = Client()
    try:
        for node in running.nodes.values():
            header = CreateTopicRequest(
                topic=topic, read_queue_nums=queues, write_queue_nums=queues, perm=6, topic_filter_type="SINGLE_TAG"
            )
            command = request(RequestCode.UPDATE_AND_CREATE_TOPIC, encode_header(header))
            answer = await client.invoke(node.broker.config.address, command, 5.0)
            assert answer.code == 0, answer.remark
    finally:
        await client.close()


async def take(consumer: Consumer, count: int) -> list[ReceivedMessage]:
    """So many messages, each with success."""
    found = []
    async for message in consumer:
        async with message.processing():
            found.append(message)
        if len(found) == count:
            break
    return found
