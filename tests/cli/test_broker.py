"""``refmq broker`` as a process: it starts, serves, stops when told to, and says in one line what it cannot do."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from refmq.cli import main
from refmq.net.client import Client
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request
from refmq.protocol.frame import encode
from refmq.protocol.headers.pull import PullSysFlag
from tests.net.broker_requests import (
    TIMEOUT_S,
    commit_request,
    max_offset,
    pull_request,
    read_queue,
    send_request,
    stored_offset,
)

WAIT_S = 120
"""Far more than a stop may take; it is bounded by `STOP_TIMEOUT_S`, on a machine that has nothing else to do."""

SMALL_FILES = "mappedFileSizeCommitLog=1048576\nmaxHashSlotNum=1000\nmaxIndexNum=4000\n"


def options(folder: Path, text: str = "") -> list[str]:
    conf = folder / "broker.conf"
    if not conf.exists():
        conf.write_text(f"brokerName=b\nbrokerIP1=127.0.0.1\ntls.server.mode=disabled\n{SMALL_FILES}{text}")
    return ["broker", "-c", str(conf), "--port", "0", "--listen", "127.0.0.1", "--dir", str(folder / "store")]


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A broker process and its address."""
    command = [sys.executable, "-m", "refmq", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"The broker\[b, (\S+)\] boot success\. serializeType=JSON", line)
            assert found is not None, line + (process.stderr.read() if process.stderr is not None else "")
            yield process, found.group(1)
        finally:
            process.kill()


# --- the end ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_broker_that_is_told_to_stop_writes_everything_down(tmp_path: Path, number: signal.Signals) -> None:
    async def first(address: str) -> None:
        client = Client()
        for body in (b"1", b"2", b"3"):
            assert (await client.invoke(address, send_request("T", body), TIMEOUT_S)).code == ResponseCode.SUCCESS
        later = send_request("T", b"later", properties={"DELAY": "5"})
        assert (await client.invoke(address, later, TIMEOUT_S)).code == ResponseCode.SUCCESS
        await client.invoke(address, commit_request("T", 0, 2), TIMEOUT_S)
        await client.close()

    async def second(address: str) -> None:
        client = Client()
        assert [record.body for record in await read_queue(client, address, "T")] == [b"1", b"2", b"3"]
        assert await stored_offset(client, address, "T", 0) == 2
        assert await max_offset(client, address, "SCHEDULE_TOPIC_XXXX", 4) == 1
        await client.close()

    for story in (first, second):
        with running(*options(tmp_path)) as (process, address):
            assert (tmp_path / "store" / "abort").exists()
            asyncio.run(story(address))
            process.send_signal(number)
            assert process.wait(WAIT_S) == 0
        assert not (tmp_path / "store" / "abort").exists()


def test_a_stop_answers_waiting_pulls_and_waits_for_no_slow_client(tmp_path: Path) -> None:
    """Clients that hold a pull, do not read their answers, or stop in the middle of a frame cannot delay the end."""

    async def story(process: subprocess.Popen[str], address: str) -> None:
        client = Client()
        big = bytes(200_000)
        for _ in range(20):
            assert (await client.invoke(address, send_request("Big", big), TIMEOUT_S)).code == ResponseCode.SUCCESS
        await client.invoke(address, send_request("T", b"x"), TIMEOUT_S)
        flags = PullSysFlag.SUBSCRIPTION | PullSysFlag.SUSPEND
        held = asyncio.create_task(
            client.invoke(address, pull_request("T", offset=1, sys_flag=flags, suspend_timeout_millis=200_000), WAIT_S)
        )
        host, _, port = address.rpartition(":")
        _, slow = await asyncio.open_connection(host, int(port))
        slow.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        assert isinstance(slow.transport, asyncio.Transport)
        slow.transport.pause_reading()
        slow.write(encode(pull_request("Big")) * 200)  # hundreds of MB that it does not take
        _, half = await asyncio.open_connection(host, int(port))
        half.write(encode(send_request("T", b"never"))[:-1])
        await half.drain()
        # The held pull is parked when a later request of the same connection is answered.
        await client.invoke(address, request(RequestCode.GET_ALL_TOPIC_CONFIG), TIMEOUT_S)
        process.send_signal(signal.SIGTERM)
        answer = await held
        assert answer.code == ResponseCode.PULL_NOT_FOUND
        assert await asyncio.to_thread(process.wait, WAIT_S) == 0
        for writer in (slow, half):
            writer.transport.abort()
        await client.close()

    with running(*options(tmp_path)) as (process, address):
        asyncio.run(story(process, address))
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert not (tmp_path / "store" / "abort").exists()


def test_sends_in_flight_at_the_end_are_answered_and_kept(tmp_path: Path) -> None:
    async def story(process: subprocess.Popen[str], address: str) -> int:
        client = Client()
        tasks = [
            asyncio.create_task(client.invoke(address, send_request("T", b"%d" % n), TIMEOUT_S)) for n in range(200)
        ]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        process.send_signal(signal.SIGTERM)
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        await client.close()
        return sum(not isinstance(each, BaseException) and each.code == ResponseCode.SUCCESS for each in answers)

    async def count(address: str) -> int:
        client = Client()
        try:
            return await max_offset(client, address, "T", 0)
        finally:
            await client.close()

    with running(*options(tmp_path, "flushDiskType=SYNC_FLUSH\n")) as (process, address):
        acknowledged = asyncio.run(story(process, address))
        assert process.wait(WAIT_S) == 0
    with running(*options(tmp_path)) as (process, address):
        assert asyncio.run(count(address)) >= acknowledged > 0


# --- what cannot be --------------------------------------------------------------------------------------------------


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("listenPort=many", "listenPort should be a whole number"),
        ("listenPort=70000", "listenPort should be a number from 0 to 65535, not '70000'"),
        ("brokerId=1", "brokerId must be 0"),
        ("flushDiskType=SOON", "flushDiskType should be SYNC_FLUSH or ASYNC_FLUSH"),
        ("messageDelayLevel=1x", "the delay level '1x' is not a number followed by s, m, h or d"),
        ("mappedFileSizeCommitLog=1", "log_file_bytes must be 1024"),
        ("deleteWhen=25", "deleteWhen should be hours of the day"),
        ("autoCreateTopicEnable=perhaps", "autoCreateTopicEnable should be true or false"),
        ("namesrvAddr=nowhere", "namesrvAddr"),
        ("brokerIP1=not an address", "brokerIP1"),
        ("maxErrorRateOfBloomFilter=0", "maxErrorRateOfBloomFilter"),
        ("expectConsumerNumUseFilter=-1", "expectConsumerNumUseFilter"),
        ("flushConsumerOffsetInterval=-5", "flushConsumerOffsetInterval"),
        ("transactionCheckInterval=0", "transactionCheckInterval"),
        ("brokerName=", "brokerName"),
        ("brokerName=a b", "brokerName"),
        ("brokerClusterName=../x", "brokerClusterName"),
        ("a=\\uzzzz", "hexadecimal"),
    ],
)
def test_a_wrong_value_is_one_line(tmp_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text(text)
    assert main(["broker", "-c", str(conf), "-p"]) in (1, 2)
    assert message in one_line(capsys)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tls.server.mode=perhaps", "tls.server.mode is disabled, permissive or enforcing"),
        ("brokerIP1=no.such.host.invalid", "cannot resolve brokerIP1=no.such.host.invalid"),
    ],
)
def test_what_only_a_start_finds_out_is_one_line(
    tmp_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text(text)
    assert main(["broker", "-c", str(conf), "--dir", str(tmp_path / "s"), "--listen", "127.0.0.1", "--port", "0"]) in (
        1,
        2,
    )
    assert message in one_line(capsys)


def test_a_file_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", "-c", "/nowhere/broker.conf"]) == 2
    assert "/nowhere/broker.conf cannot be read" in one_line(capsys)


def test_the_settings_are_printed_with_what_has_no_effect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerNme=x\nenableLmq=true\nbrokerName=y\n")
    assert main(["broker", "-c", str(conf), "-p"]) == 0
    output = capsys.readouterr()
    assert "brokerName=y\n" in output.out
    assert output.err == (
        "refmq: unknown key 'brokerNme' (did you mean 'brokerName'?)\n"
        "refmq: enableLmq belongs to light message queues: it has no effect yet\n"
    )
    assert main(["broker", "-c", str(conf), "-p", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["brokerName"] == "y"


def test_a_port_that_is_taken_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        arguments = ["broker", "--listen", "127.0.0.1", "--dir", str(tmp_path / "s"), "--port", port]
        assert main(arguments) == 1
    assert f"cannot listen on 127.0.0.1:{port}: " in one_line(capsys)
    assert not (tmp_path / "s" / "abort").exists()


def test_a_directory_in_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(*options(tmp_path)) as (_, address):
        assert main(options(tmp_path)) == 1
        assert "is using it" in one_line(capsys)
        host, _, port = address.rpartition(":")
        socket.create_connection((host, int(port))).close()  # the first one goes on


def test_a_directory_that_cannot_be_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    conf = tmp_path / "broker.conf"
    conf.write_text(f"storePathRootDir={tmp_path}/file/store\n")
    assert main(["broker", "-c", str(conf), "--port", "0", "--listen", "127.0.0.1"]) == 1
    assert "Not a directory" in one_line(capsys)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_a_directory_without_permission_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    assert main(["broker", "--dir", str(tmp_path / "closed" / "s"), "--port", "0", "--listen", "127.0.0.1"]) == 1
    assert "ermission denied" in one_line(capsys)


def test_a_table_that_makes_no_sense_is_one_line_and_its_backup_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "store" / "config"
    folder.mkdir(parents=True)
    (folder / "topics.json").write_text("{")
    assert main(options(tmp_path)) == 1
    assert "cannot parse topics.json" in one_line(capsys)
    (folder / "topics.json.bak").write_text('{"dataVersion":{"counter":3,"timestamp":4},"topicConfigTable":{}}')
    with running(*options(tmp_path)) as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
        assert process.stderr is not None
        assert "topics.json is not readable" in process.stderr.read()


def test_a_damaged_log_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def fill(address: str) -> None:
        client = Client()
        for _ in range(50):
            await client.invoke(address, send_request("T", bytes(500)), TIMEOUT_S)
        await client.close()

    with running(*options(tmp_path)) as (process, address):
        asyncio.run(fill(address))
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    (log,) = (tmp_path / "store" / "commitlog").iterdir()
    with log.open("r+b") as file:
        file.seek(3_000)
        file.write(b"\xff" * 2_000)
    (tmp_path / "store" / "abort").write_bytes(b"")
    assert main(options(tmp_path)) == 1
    assert "physical offset" in one_line(capsys)
