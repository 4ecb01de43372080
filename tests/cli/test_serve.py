"""``refmq serve`` as a process: what it prints is true, messages stay, and it ends when told to."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from refmq.net.client import Client
from refmq.net.tls import ClientTls, client_context
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.offsets import GetMaxOffsetRequest
from refmq.protocol.headers.send import SendMessageRequest, encode_send_header

WAIT_S = 60
FREE_PORTS = ("--port", "0", "--broker-port", "0")


@dataclass(frozen=True)
class Served:
    """A running process and the two addresses that it says it has."""

    process: subprocess.Popen[str]
    nameserver: str
    broker: str

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WAIT_S)


@contextmanager
def serving(*arguments: str) -> Iterator[Served]:
    command = [sys.executable, "-m", "refmq", "serve", *FREE_PORTS, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            line = process.stdout.readline()
            found = re.search(r"nameserver (\S+), broker (\S+)\. Ctrl-C", line)
            assert found is not None, line + process.stderr.read()
            yield Served(process, *found.groups())
        finally:
            process.kill()


def ask(address: str, *commands: RemotingCommand, tls: bool = False) -> list[RemotingCommand]:
    async def all_of_them() -> list[RemotingCommand]:
        client = Client(tls=ClientTls(client_context()) if tls else None)
        try:
            return [await client.invoke(address, command, WAIT_S) for command in commands]
        finally:
            await client.close()

    return asyncio.run(all_of_them())


def a_message(body: bytes) -> RemotingCommand:
    header = SendMessageRequest(
        producer_group="group", topic="greetings", default_topic="TBW102", default_topic_queue_nums=4, queue_id=0,
        sys_flag=0, born_timestamp=1, flag=0,
    )  # fmt: skip
    return request(RequestCode.SEND_MESSAGE_V2, encode_send_header(header), body=body)


def max_offset() -> RemotingCommand:
    return request(RequestCode.GET_MAX_OFFSET, encode_header(GetMaxOffsetRequest(topic="greetings", queue_id=0)))


@pytest.mark.parametrize("tls", [False, True])
def test_nameserver_and_broker_are_where_it_says_plain_and_encrypted(tls: bool) -> None:
    with serving("--in-memory") as served:
        (sent,) = ask(served.broker, a_message(b"hello"), tls=tls)
        assert sent.code == ResponseCode.SUCCESS
        (route,) = ask(served.nameserver, request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "greetings"}), tls=tls)
        (broker,) = json.loads(route.body)["brokerDatas"]
        assert broker["brokerAddrs"] == {"0": served.broker}
        assert served.end() == 0


def test_messages_are_there_again_after_the_next_start(tmp_path: Path) -> None:
    with serving("--dir", str(tmp_path)) as served:
        ask(served.broker, a_message(b"one"), a_message(b"two"))
        assert served.end() == 0
    assert not (tmp_path / "store" / "abort").exists()
    with serving("--dir", str(tmp_path)) as served:
        (answer,) = ask(served.broker, max_offset())
        assert answer.fields == {"offset": "2"}


def test_in_memory_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with serving("--in-memory") as served:
        ask(served.broker, a_message(b"one"))
        assert served.end() == 0
    assert list(tmp_path.iterdir()) == []


def test_a_folder_for_what_is_kept_in_memory_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "refmq", "serve", "--in-memory", "--dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 2
    assert done.stderr.startswith("refmq: --in-memory keeps nothing, so there is nothing for --dir")


def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for options in (("--port", port, "--broker-port", "0"), ("--port", "0", "--broker-port", port)):
            command = [sys.executable, "-m", "refmq", "serve", *options, "--dir", str(tmp_path)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
            assert done.returncode == 1
            assert port in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_two_on_one_folder_is_one_line(tmp_path: Path) -> None:
    with serving("--dir", str(tmp_path)) as served:
        command = [sys.executable, "-m", "refmq", "serve", *FREE_PORTS, "--dir", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
        assert done.returncode == 1
        assert done.stderr == f"refmq: cannot use {tmp_path}/store: process {served.process.pid} is using it\n"
        (sent,) = ask(served.broker, a_message(b"the first one is unharmed"))
        assert sent.code == ResponseCode.SUCCESS
