"""What every client has: identity, nameservers, TLS, forks, traces."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from refmq.aio.consumer import Consumer
from refmq.aio.identity import MessageIds, client_id, local_address, new_instance_name
from refmq.aio.instance import namespace_of
from refmq.aio.producer import Producer
from refmq.client import SERVED
from refmq.errors import ConnectFailed, ForkedError, UsageError, WrongLoopError
from refmq.net import tls
from refmq.net.tls import ClientTls, ServerTls, TlsMode
from refmq.protocol.unique_id import parse_unique_id
from refmq.trace.reader import read_file
from tests.aio.harness import run, servers, take
from tests.net.support import TLS_FOLDER


def test_ids_differ_and_say_who_made_them() -> None:
    assert new_instance_name() != new_instance_name()
    assert client_id("10.0.0.1", "x") == "10.0.0.1@x"
    assert client_id("10.0.0.1", "x", "u", stream=True) == "10.0.0.1@x@u@STREAM"
    assert local_address().count(".") == 3
    ids = MessageIds("10.0.0.1", 7, 99)
    made = [ids.next(1_767_225_600_000 + number) for number in range(70_000)]
    assert len(set(made)) == 70_000, "the counter wraps, and the time goes on"
    assert parse_unique_id(made[0]).address == bytes([10, 0, 0, 1])
    assert ids.next(1_770_000_000_000) != ids.next(1_767_225_600_000), "another month, and a clock that is set back"


def test_clients_dispatch_what_the_package_says_they_serve() -> None:
    producer = Producer("127.0.0.1:1", group="g")
    consumer = Consumer("127.0.0.1:1", group="g", topics="T")
    assert set(producer._instance.handlers) | set(consumer._member.instance.handlers) == SERVED


def test_a_hosted_address_names_its_namespace() -> None:
    assert namespace_of(("MQ_INST_1_abc.mq.example:80",)) == "MQ_INST_1_abc"
    assert namespace_of(("127.0.0.1:9876",)) is None


def test_the_environment_names_the_nameservers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "10.0.0.1:9876;10.0.0.2:9876")
    assert Producer(group="g")._instance.name_servers == ("10.0.0.1:9876", "10.0.0.2:9876")
    monkeypatch.delenv("NAMESRV_ADDR")
    with pytest.raises(UsageError, match="address of a nameserver"):
        Producer(group="g")


def test_another_nameserver_is_asked_when_one_is_gone() -> None:
    async def story() -> None:
        async with servers() as running:
            for seed in range(4):
                async with Producer(["127.0.0.1:1", running.namesrv], group="g", seed=seed) as producer:
                    await producer.send("Orders", b"x")
        async with Producer(["127.0.0.1:1", "127.0.0.1:2"], group="g") as producer:
            with pytest.raises(ConnectFailed, match="no nameserver answered"):
                await producer.send("Orders", b"x")

    run(story())


def test_everything_works_over_tls() -> None:
    async def story() -> None:
        context = tls.server_context(TLS_FOLDER / "certificate.pem", TLS_FOLDER / "key.pem")
        async with servers(tls=ServerTls(TlsMode.PERMISSIVE, context)) as running:
            ours = ClientTls(tls.client_context())
            async with Producer(running.namesrv, group="p", tls=ours) as producer:
                await producer.send("Orders", b"secret")
            async with Consumer(running.namesrv, group="g", topics="Orders", start="first", tls=ours) as consumer:
                assert [message.body for message in await take(consumer, 1)] == [b"secret"]

    run(story())


def test_a_child_process_is_told_to_open_its_own() -> None:
    async def story() -> None:
        async with Producer("127.0.0.1:1", group="g") as producer:
            producer._instance._pid = os.getpid() + 1  # as if this were a child
            with pytest.raises(ForkedError, match="one in each process"):
                await producer.send("Orders", b"x")
            producer._instance._pid = os.getpid()

    run(story())


def test_outside_of_a_loop_the_way_to_refmq_sync_is_shown() -> None:
    async def opened() -> Producer:
        producer = Producer("127.0.0.1:1", group="g")
        async with producer:
            producer._instance.closed = False
        producer._instance.closed = False
        return producer

    producer = asyncio.run(opened())
    with pytest.raises(WrongLoopError, match=r"refmq\.sync"):
        producer._instance.check_usable()


def test_a_client_writes_its_trace_where_it_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await producer.send("Orders", b"x")
            async with Consumer(running.namesrv, group="g", topics="Orders", start="first", trace=tmp_path) as consumer:
                await take(consumer, 1)

    run(story())
    (file,) = tmp_path.rglob("*.trace")
    actions = [recorded.event.action for recorded in read_file(file).events]
    for action in (
        "RouteRefresh",
        "ViewRefresh",
        "AcquireQueue",
        "PullMessages",
        "ConsumeStart",
        "ConsumeFinish",
        "Leave",
    ):
        assert action in actions
