"""The threads of the C shell under a broker: order, hand-over, long polling, TLS, bounds, and the end."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import refmq_fast
from refmq.errors import NetworkError
from refmq.model.broker_config import BrokerConfig
from refmq.net import tls
from refmq.net.broker_node import BrokerNode
from refmq.net.client import Client
from refmq.net.engines import EngineChoice, EngineSurroundings, open_engine
from refmq.net.files import RealDisk
from refmq.net.limits import Limits
from refmq.net.thread_engine import ThreadEngine
from refmq.net.tls import ClientTls, ServerTls, TlsMode
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
)
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RESPONSE_FLAG, RemotingCommand, request
from refmq.protocol.frame import FrameDecoder, encode
from refmq.protocol.headers.admin import CreateTopicRequest
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.pull import PullSysFlag
from refmq.protocol.record import decode_records, string_hash
from refmq.store import StoreConfig
from refmq.store.config import FlushMode
from refmq.store.values import Dispatched
from refmq.trace.memory import MemoryRecorder
from refmq.trace.record import Recorder
from tests.net.broker_requests import TIMEOUT_S, create_topic_request, max_offset, pull_request, send_request
from tests.net.broker_support import FREE_PORT, SMALL_STORE
from tests.net.support import TLS_FOLDER, asking, raw_peer, read_to_end, run, until

pytestmark = [
    pytest.mark.extension,
    pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
]

SYNC_STORE = replace(SMALL_STORE, flush_mode=FlushMode.SYNC)
WAIT = PullSysFlag.SUBSCRIPTION | PullSysFlag.SUSPEND


@asynccontextmanager
async def broker(
    folder: Path,
    config: BrokerConfig = FREE_PORT,
    store: StoreConfig = SMALL_STORE,
    *,
    limits: Limits | None = None,
    server_tls: ServerTls | None = None,
    recorder: Recorder | None = None,
) -> AsyncIterator[tuple[BrokerNode, ThreadEngine, str]]:
    disk = RealDisk(folder)
    engine = open_engine(
        EngineChoice.FAST, disk, store, EngineSurroundings(limits=limits, tls=server_tls, recorder=recorder)
    )
    assert isinstance(engine, ThreadEngine)
    node = BrokerNode(config, store, disk, engine, recorder=engine.recorder)
    host, port = await node.start("127.0.0.1")
    try:
        yield node, engine, f"{host}:{port}"
    finally:
        if engine.runs:
            await node.stop(5.0)
        disk.close()


def in_a_row(*commands: RemotingCommand) -> bytes:
    """Frames that are numbered from 1 on."""
    return b"".join(encode(replace(command, opaque=number)) for number, command in enumerate(commands, 1))


async def answers(reader: asyncio.StreamReader, count: int) -> dict[int, RemotingCommand]:
    """The next answers, by the numbers of their requests."""
    decoder, found = FrameDecoder(), dict[int, RemotingCommand]()
    while len(found) < count:
        data = await asyncio.wait_for(reader.read(1 << 16), TIMEOUT_S)
        assert data, f"the connection ended after {len(found)} of {count} answers"
        found |= {command.opaque: command for command in decoder.feed(data) if command.flag & RESPONSE_FLAG}
    return found


def topic_with(perm: int, topic: str = "T") -> RemotingCommand:
    header = CreateTopicRequest(
        topic=topic, default_topic="TBW102", read_queue_nums=1, write_queue_nums=1, perm=perm,
        topic_filter_type="SINGLE_TAG",
    )  # fmt: skip
    return request(RequestCode.UPDATE_AND_CREATE_TOPIC, encode_header(header))


def consumer_heartbeat(group: str, topic: str, expression: str, language: str) -> RemotingCommand:
    subscription = SubscriptionData(topic=topic, sub_string=expression, expression_type=language, sub_version=1)
    consumer = ConsumerData(
        group_name=group, consume_type=ConsumeType.CONSUME_PASSIVELY, message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, subscription_data_set=(subscription,),
    )  # fmt: skip
    data = HeartbeatData(client_id=f"{group}-1", consumer_data_set=(consumer,))
    return request(RequestCode.HEART_BEAT, body=encode_body(data))


# --- requests --------------------------------------------------------------------------------------------------------


def test_everything_that_is_acknowledged_is_there_once_and_in_order(tmp_path: Path) -> None:
    """Eight connections send as fast as they can, batches of frames in one write; queues have no gap and no double."""

    async def story() -> None:
        async with broker(tmp_path) as (_, _, address), asking() as client:
            await client.invoke(address, create_topic_request("T", 4), TIMEOUT_S)

            async def producer(name: int) -> list[tuple[int, int, bytes]]:
                bodies = [b"%d-%d" % (name, number) for number in range(300)]
                commands = [send_request("T", body, queue=i % 4) for i, body in enumerate(bodies)]
                async with raw_peer(address) as (reader, writer):
                    writer.write(in_a_row(*commands))
                    found = await answers(reader, len(commands))
                assert {each.code for each in found.values()} == {ResponseCode.SUCCESS}
                return [
                    (int(found[i].fields["queueId"]), int(found[i].fields["queueOffset"]), body)
                    for i, body in enumerate(bodies, 1)
                ]

            told = {place for places in await asyncio.gather(*map(producer, range(8))) for place in places}
            stored: set[tuple[int, int, bytes]] = set()
            for queue in range(4):
                end, offset = await max_offset(client, address, "T", queue), 0
                while offset < end:
                    answer = await client.invoke(address, pull_request("T", queue=queue, offset=offset), TIMEOUT_S)
                    records = list(decode_records(answer.body))
                    assert [each.queue_offset for each in records] == list(range(offset, offset + len(records)))
                    stored |= {(queue, each.queue_offset, each.body) for each in records}
                    offset = int(answer.fields["nextBeginOffset"])
            assert told == stored

    run(story())


def test_a_pull_behind_a_heartbeat_on_its_connection_sees_it(tmp_path: Path) -> None:
    """What is handed over holds back the frames behind it, however they come in."""

    async def story() -> None:
        async with broker(tmp_path) as (_, _, address), raw_peer(address) as (reader, writer):
            writer.write(in_a_row(topic_with(6), consumer_heartbeat("g", "T", "*", "TAG"), send_request("T", b"x")))
            await answers(reader, 3)
            pull = pull_request("T", consumer_group="g", sys_flag=0, sub_version=1)
            leave = request(RequestCode.UNREGISTER_CLIENT, {"clientID": "g-1", "consumerGroup": "g"})
            for _ in range(100):
                writer.write(in_a_row(pull, leave, pull, pull, consumer_heartbeat("g", "T", "*", "TAG"), pull, pull))
                found = await answers(reader, 7)
                ok, no = ResponseCode.SUCCESS, ResponseCode.SUBSCRIPTION_NOT_EXIST
                assert [found[number].code for number in range(1, 8)] == [ok, ok, no, no, ok, ok, ok]

    run(story())


def test_a_topic_that_was_deleted_and_answered_lets_no_later_send_pass(tmp_path: Path) -> None:
    """The change comes on one connection, sends on another; REFMQ_REVOCATIONS says how often."""
    rounds = int(os.environ.get("REFMQ_REVOCATIONS", "300"))
    delete = request(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"})

    async def story() -> None:
        async with (
            broker(tmp_path, replace(FREE_PORT, auto_create_topic_enable=False)) as (_, _, address),
            raw_peer(address) as (admin_in, admin),
            raw_peer(address) as (sender_in, sender),
        ):
            for number in range(rounds):
                may = number % 2 == 0
                admin.write(in_a_row(topic_with(6) if may else delete))
                assert (await answers(admin_in, 1))[1].code == ResponseCode.SUCCESS
                sender.write(in_a_row(send_request("T", b"x")))
                code = (await answers(sender_in, 1))[1].code
                assert code == (ResponseCode.SUCCESS if may else ResponseCode.TOPIC_NOT_EXIST), number

    asyncio.run(story())  # however long it takes


def test_frames_that_come_byte_by_byte_are_served_like_any_others(tmp_path: Path) -> None:
    async def story() -> None:
        async with broker(tmp_path) as (_, _, address), raw_peer(address) as (reader, writer):
            for command in (topic_with(6), send_request("T", b"x"), pull_request("T")):
                for byte in in_a_row(command):
                    writer.write(bytes((byte,)))
                    await writer.drain()
                answer = (await answers(reader, 1))[1]
                assert answer.code == ResponseCode.SUCCESS
            assert [each.body for each in decode_records(answer.body)] == [b"x"]

    run(story())


def test_bytes_that_are_no_frame_end_their_connection_and_no_other(tmp_path: Path) -> None:
    """As soon as what stands in front of them is answered: nobody lingers who has nothing left to send."""

    async def story() -> None:
        async with broker(tmp_path, limits=Limits(linger_s=600)) as (_, engine, address), asking() as client:
            await client.invoke(address, create_topic_request("T", 1), TIMEOUT_S)
            for data in (b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x00", b"\xff" * 64, b"\x16\x03\x01\x02\x00"):
                async with raw_peer(address) as (reader, writer):
                    writer.write(in_a_row(send_request("T", b"before")) + data)
                    received = await read_to_end(reader)
                assert b'"code":0' in received
            assert await max_offset(client, address, "T", 0) == 4
            await until(lambda: engine.open_connections == 1)

    run(story())


# --- long polling ----------------------------------------------------------------------------------------------------


def waiting(topic: str, **changes: Any) -> RemotingCommand:
    return pull_request(topic, sys_flag=WAIT, suspend_timeout_millis=20_000, **changes)


def test_a_pull_that_waits_is_answered_by_the_next_message(tmp_path: Path) -> None:
    async def story() -> None:
        async with broker(tmp_path) as (_, _, address), asking() as client, asking() as other:
            await client.invoke(address, topic_with(6), TIMEOUT_S)
            for number in range(20):
                pull = asyncio.create_task(other.invoke(address, waiting("T", offset=number), TIMEOUT_S))
                await asyncio.sleep(0.002 * (number % 3))  # before it is parked, while, and after
                await client.invoke(address, send_request("T", b"%d" % number), TIMEOUT_S)
                answer = await pull
                if answer.code != ResponseCode.SUCCESS:  # the message was faster than its queue unit
                    answer = await other.invoke(address, waiting("T", offset=number), TIMEOUT_S)
                assert [each.body for each in decode_records(answer.body)][-1] == b"%d" % number

    run(story())


def test_a_pull_with_an_sql_filter_waits_in_python_and_is_woken_from_c(tmp_path: Path) -> None:
    async def story() -> None:
        config = replace(FREE_PORT, enable_property_filter=True)
        async with broker(tmp_path, config) as (_, engine, address), asking() as client, asking() as other:
            await client.invoke(address, topic_with(6), TIMEOUT_S)
            await other.invoke(address, consumer_heartbeat("sql", "T", "a > 5", "SQL92"), TIMEOUT_S)
            pull = waiting("T", consumer_group="sql", sub_version=1)
            pull = replace(pull, ext_fields={**pull.fields, "sysFlag": str(int(PullSysFlag.SUSPEND))})
            for number in range(5):
                asked = replace(pull, ext_fields={**pull.fields, "queueOffset": str(2 * number)})
                waits = asyncio.create_task(other.invoke(address, asked, TIMEOUT_S))
                await until(lambda: len(engine.state.hold) == 1)
                await client.invoke(address, send_request("T", b"no", properties={"a": "1"}), TIMEOUT_S)
                assert len(engine.state.hold) == 1 or waits.done()
                await client.invoke(address, send_request("T", b"yes", properties={"a": "7"}), TIMEOUT_S)
                answer = await waits
                assert [each.body for each in decode_records(answer.body)] == [b"yes"], answer

    run(story())


def test_what_c_tells_of_a_message_is_what_python_would_have_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Dispatched] = []
    hear = ThreadEngine._tell_arrived

    def note(self: ThreadEngine, messages: list[Dispatched]) -> None:
        told.extend(messages)
        hear(self, messages)

    monkeypatch.setattr(ThreadEngine, "_tell_arrived", note)

    async def story() -> None:
        async with broker(tmp_path) as (_, engine, address), asking() as client:
            await client.invoke(address, topic_with(6), TIMEOUT_S)
            engine.watch("T", lambda: None)
            for body in (b"first", b"second"):
                await client.invoke(address, send_request("T", body, properties={"TAGS": "a", "own": "1"}), TIMEOUT_S)
            await until(lambda: len(told) == 2)
            answer = await client.invoke(address, pull_request("T"), TIMEOUT_S)
            records = list(decode_records(answer.body))
            assert [
                Dispatched(
                    "T", 0, one.queue_offset, one.physical_offset, one.size_bytes, string_hash("a"),
                    one.store_timestamp_ms, one.properties,
                )
                for one in records
            ] == told  # fmt: skip

    run(story())


def test_a_parked_pull_that_c_cannot_serve_any_more_is_answered_by_the_reference(tmp_path: Path) -> None:
    async def story() -> None:
        async with broker(tmp_path) as (_, _, address), asking() as client, asking() as other:
            await client.invoke(address, topic_with(6), TIMEOUT_S)
            pull = asyncio.create_task(other.invoke(address, waiting("T"), TIMEOUT_S))
            await asyncio.sleep(0.05)
            await client.invoke(address, topic_with(2), TIMEOUT_S)  # nobody may read any more
            await client.invoke(address, send_request("T", b"x"), TIMEOUT_S)
            answer = await pull
            assert (answer.code, answer.remark) == (
                ResponseCode.NO_PERMISSION,
                "the topic[T] pulling message is forbidden",
            )

    run(story())


def test_delayed_messages_are_delivered(tmp_path: Path) -> None:
    """The delay service sleeps until the shell tells of a message in a delay queue."""

    async def story() -> None:
        async with broker(tmp_path) as (_, _, address), asking() as client:
            await client.invoke(address, topic_with(6), TIMEOUT_S)
            begun = time.monotonic()
            await client.invoke(address, send_request("T", b"later", properties={"DELAY": "1"}), TIMEOUT_S)
            answer = await client.invoke(address, waiting("T"), TIMEOUT_S)
            assert [each.body for each in decode_records(answer.body)] == [b"later"]
            assert time.monotonic() - begun > 0.9

    run(story())


# --- TLS and the VIP port --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(TlsMode))
def test_tls_and_plain_text_are_served_as_the_mode_says(tmp_path: Path, mode: TlsMode) -> None:
    context = tls.server_context(TLS_FOLDER / "certificate.pem", TLS_FOLDER / "key.pem")
    given = ServerTls(mode, None if mode is TlsMode.DISABLED else context)

    async def serves(address: str, client: Client) -> bool:
        try:
            return (await client.invoke(address, send_request("Tls", b"x"), TIMEOUT_S)).code == ResponseCode.SUCCESS
        except NetworkError:
            return False

    async def story() -> None:
        encrypting = Client(tls=ClientTls(tls.client_context()), limits=Limits(connect_timeout_s=20))
        async with broker(tmp_path, server_tls=given) as (_, _, address), asking() as plain, asking(encrypting) as safe:
            assert await serves(address, plain) == (mode is not TlsMode.ENFORCING)
            assert await serves(address, safe) == (mode is not TlsMode.DISABLED)

    run(story())


def test_the_vip_port_serves_sends_and_refuses_pulls(tmp_path: Path) -> None:
    async def story() -> None:
        for _ in range(5):  # the port two below a free one may be taken
            async with broker(tmp_path) as (_, _, address), asking() as client:
                host, _, port = address.rpartition(":")
                vip = f"{host}:{int(port) - 2}"
                await client.invoke(address, topic_with(6), TIMEOUT_S)
                await client.invoke(address, pull_request("T"), TIMEOUT_S)  # now C could serve one
                try:
                    answer = await client.invoke(vip, send_request("T", b"x"), TIMEOUT_S)
                except NetworkError:
                    continue
                assert answer.code == ResponseCode.SUCCESS
                assert (await client.invoke(vip, pull_request("T"), TIMEOUT_S)).code == (
                    ResponseCode.REQUEST_CODE_NOT_SUPPORTED
                )
                return
        pytest.skip("every port two below a free one was taken")

    run(story())


# --- bounds ----------------------------------------------------------------------------------------------------------


def test_one_connection_too_many_is_refused_and_the_others_go_on(tmp_path: Path) -> None:
    async def story() -> None:
        limits = Limits(connections_max=3)
        async with broker(tmp_path, limits=limits) as (_, engine, address), raw_peer(address) as (reader, writer):
            writer.write(in_a_row(topic_with(6)))
            await answers(reader, 1)
            async with raw_peer(address), raw_peer(address):
                await until(lambda: engine.open_connections == 3)
                async with raw_peer(address) as (last, _):
                    assert await read_to_end(last) == b""
                writer.write(in_a_row(send_request("T", b"x")))
                assert (await answers(reader, 1))[1].code == ResponseCode.SUCCESS
            await until(lambda: engine.open_connections == 1)

    run(story())


def test_a_connection_that_is_reset_is_gone_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with broker(tmp_path) as (_, engine, address):
            host, _, port = address.rpartition(":")
            peer = socket.create_connection((host, int(port)))
            await until(lambda: engine.open_connections == 1)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # its close is a reset
            peer.close()
            await until(lambda: engine.open_connections == 0)

    run(story())


def test_a_peer_that_reads_no_answers_is_not_read_and_then_ended(tmp_path: Path) -> None:
    async def story() -> None:
        limits = Limits(write_buffer_high_bytes=64 << 10, write_buffer_bytes_max=1 << 20, idle_timeout_s=1.0)
        async with broker(tmp_path, limits=limits) as (_, engine, address), asking() as client:
            await client.invoke(address, topic_with(6), TIMEOUT_S)
            for _ in range(8):
                await client.invoke(address, send_request("T", bytes(30_000)), TIMEOUT_S)
            async with raw_peer(address) as (reader, writer):
                reader._transport.pause_reading()  # type: ignore[attr-defined]  # what is not read here stays unread
                pulls = in_a_row(*[pull_request("T")] * 2000)
                await until(lambda: engine.open_connections == 2)
                writer.write(pulls)
                await until(lambda: engine.open_connections < 2)
            assert (await client.invoke(address, send_request("T", b"x"), TIMEOUT_S)).code == ResponseCode.SUCCESS

    run(story())


def test_a_peer_that_reads_slowly_gets_every_answer(tmp_path: Path) -> None:
    """Far more than sockets hold: what one turn could not send goes on when there is room, and so does the serving."""
    pulls = 100

    async def story() -> None:
        limits = Limits(write_buffer_high_bytes=64 << 10)
        async with broker(tmp_path, limits=limits) as (_, _, address), asking() as client:
            await client.invoke(address, topic_with(6), TIMEOUT_S)
            for _ in range(8):
                await client.invoke(address, send_request("T", bytes(30_000)), TIMEOUT_S)
            async with raw_peer(address) as (reader, writer):
                reader._transport.pause_reading()  # type: ignore[attr-defined]
                writer.write(in_a_row(*[pull_request("T")] * pulls))
                await asyncio.sleep(0.3)  # sockets and buffers are full by now
                reader._transport.resume_reading()  # type: ignore[attr-defined]
                found = await answers(reader, pulls)
            assert {len(list(decode_records(answer.body))) for answer in found.values()} == {8}

    run(story())


def test_what_is_silent_for_too_long_is_closed(tmp_path: Path) -> None:
    async def story() -> None:
        limits = Limits(idle_timeout_s=0.5, frame_timeout_s=0.5)
        async with (
            broker(tmp_path, limits=limits) as (_, _, address),
            raw_peer(address) as (silent, _),
            raw_peer(address) as (slow, writer),
        ):
            writer.write(b"\x00\x00\x00\x10")
            assert await asyncio.wait_for(read_to_end(silent), TIMEOUT_S) == b""
            assert await asyncio.wait_for(read_to_end(slow), TIMEOUT_S) == b""

    run(story())


# --- durability and the end ------------------------------------------------------------------------------------------


def test_what_is_acknowledged_is_in_the_file(tmp_path: Path) -> None:
    """So that the death of the process cannot take it back."""

    async def story() -> None:
        async with broker(tmp_path) as (_, _, address), asking() as client:
            await client.invoke(address, topic_with(6), TIMEOUT_S)
            for number in range(20):
                body = b"<message %d>" % number
                await client.invoke(address, send_request("T", body), TIMEOUT_S)
                assert body in (tmp_path / "commitlog" / f"{0:020d}").read_bytes()[: 1 << 16]

    run(story())


def test_requests_that_wait_are_bounded_and_those_behind_them_get_their_turn(tmp_path: Path) -> None:
    async def story() -> None:
        limits = Limits(requests_in_flight_max=4)
        async with (
            broker(tmp_path, store=SYNC_STORE, limits=limits) as (_, _, address),
            raw_peer(address) as (reader, writer),
        ):
            writer.write(in_a_row(topic_with(6)))
            await answers(reader, 1)
            for _ in range(5):
                writer.write(in_a_row(*[send_request("T", b"x")] * 50))
                assert len(await answers(reader, 50)) == 50

    run(story())


def test_with_sync_flush_an_answer_means_flushed(tmp_path: Path) -> None:
    async def story() -> None:
        async with broker(tmp_path, store=SYNC_STORE) as (_, engine, address), asking() as client:
            await client.invoke(address, topic_with(6), TIMEOUT_S)
            async with raw_peer(address) as (reader, writer):
                for _ in range(20):
                    writer.write(in_a_row(*[send_request("T", b"x")] * 64))
                    assert {each.code for each in (await answers(reader, 64)).values()} == {ResponseCode.SUCCESS}
                    assert engine.store.flushed_to == engine.store.log_max

    run(story())


def test_puts_of_the_control_plane_wait_for_the_flush_as_well(tmp_path: Path) -> None:
    """A send to a topic that does not exist yet is the reference's: it makes the topic, and then the put."""

    async def story() -> None:
        config = replace(FREE_PORT, sync_flush_timeout=600_000)  # or the clock would find out that they are safe
        async with broker(tmp_path, config, SYNC_STORE) as (_, engine, address), asking() as client:
            for number in range(10):
                answer = await client.invoke(address, send_request(f"New{number}", b"x"), TIMEOUT_S)
                assert answer.code == ResponseCode.SUCCESS
                assert engine.store.flushed_to == engine.store.log_max

    run(story())


def test_a_stop_answers_what_waits_and_a_start_finds_everything(tmp_path: Path) -> None:
    async def story() -> None:
        async with broker(tmp_path, store=SYNC_STORE) as (node, _, address), asking() as client:
            await client.invoke(address, topic_with(6), TIMEOUT_S)
            async with raw_peer(address) as (reader, writer):
                writer.write(in_a_row(*[send_request("T", b"x")] * 100))
                assert len(await answers(reader, 100)) == 100
                writer.write(in_a_row(pull_request("T")))  # now there is a group, and C knows it
                await answers(reader, 1)
                writer.write(encode(replace(waiting("T", offset=100), opaque=7)))
                await asyncio.sleep(0.05)
                stopping = asyncio.create_task(node.stop(5.0))
                try:
                    found = await answers(reader, 1)
                    assert found[7].code == ResponseCode.PULL_NOT_FOUND
                    assert await read_to_end(reader) == b""
                finally:
                    await stopping
            assert not (tmp_path / "abort").exists()
        async with broker(tmp_path, store=SYNC_STORE) as (_, _, address), asking() as client:
            assert await max_offset(client, address, "T", 0) == 100

    run(story())


def test_events_of_c_and_of_python_are_one_trace_in_the_order_of_the_log(tmp_path: Path) -> None:
    recorder = MemoryRecorder("broker", time.time_ns)

    async def story() -> None:
        async with broker(tmp_path, recorder=recorder) as (_, _, address), asking() as client:
            await client.invoke(address, topic_with(6), TIMEOUT_S)
            for number in range(20):  # in turns: C's, and the reference's
                await client.invoke(address, send_request("T", b"x"), TIMEOUT_S)
                await client.invoke(address, send_request(f"New{number}", b"x"), TIMEOUT_S)

    run(story())
    appended = [each.event.a for each in recorder.events if each.event.action == "AppendMessage"]
    acked = [each.event.a for each in recorder.events if each.event.action == "AckPut"]
    dispatched = [each.event.a for each in recorder.events if each.event.action == "DispatchMessage"]
    assert len(appended) >= 40
    assert appended == sorted(appended)
    assert set(acked) <= set(appended)
    assert dispatched == appended
    for offset in acked:
        order = [each.event.action for each in recorder.events if each.event.a == offset]
        assert order.index("AppendMessage") < order.index("AckPut")
