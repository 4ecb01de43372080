"""``refmq namesrv`` as a process: it starts, says so, serves, and stops when told to."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from refmq.cli import main
from refmq.net.client import Client
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import RemotingCommand, request
from refmq.trace.reader import read_file, trace_files

WAIT_S = 30


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A refmq process and the address that it says it listens on."""
    command = [sys.executable, "-m", "refmq", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"The Name Server boot success\. serializeType=JSON, address (\S+)", line)
            assert found is not None, line + (process.stderr.read() if process.stderr is not None else "")
            yield process, found.group(1)
        finally:
            process.kill()


def ask(address: str, command: RemotingCommand) -> RemotingCommand:
    async def once() -> RemotingCommand:
        client = Client()
        try:
            return await client.invoke(address, command, 10)
        finally:
            await client.close()

    return asyncio.run(once())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_nameserver_serves_until_it_is_told_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    options = ["namesrv", "--port", "0", "--listen", "127.0.0.1", "--dir", str(tmp_path)]
    put = request(RequestCode.PUT_KV_CONFIG, {"namespace": "n", "key": "k", "value": "v"})
    with running(*options) as (process, address):
        assert ask(address, put).code == 0
        process.send_signal(number)
        assert process.wait(WAIT_S) == 0
    assert json.loads((tmp_path / "kvConfig.json").read_text()) == {"configTable": {"n": {"k": "v"}}}
    with running(*options) as (_, address):
        get = request(RequestCode.GET_KV_CONFIG, {"namespace": "n", "key": "k"})
        assert ask(address, get).fields == {"value": "v"}


def test_what_a_nameserver_does_is_in_its_trace(tmp_path: Path) -> None:
    options = [
        "namesrv",
        "--port",
        "0",
        "--listen",
        "127.0.0.1",
        "--dir",
        str(tmp_path),
        "--trace",
        str(tmp_path / "t"),
    ]
    put = request(RequestCode.PUT_KV_CONFIG, {"namespace": "n", "key": "k", "value": "v"})
    with running(*options) as (process, address):
        assert ask(address, put).code == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    (path,) = trace_files(tmp_path / "t")
    assert [recorded.event.action for recorded in read_file(path).events] == ["PutKv"]


def test_a_change_over_the_wire_is_written_to_the_file(tmp_path: Path) -> None:
    conf = tmp_path / "namesrv.conf"
    conf.write_text(
        f"listenPort=0\nbindAddress=127.0.0.1\nkvConfigPath={tmp_path}/kv/kv.json\ntls.server.mode=disabled\n"
    )
    with running("namesrv", "-c", str(conf)) as (_, address):
        update = request(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable=true\n")
        assert ask(address, update).code == 0
    assert "orderMessageEnable=true\n" in conf.read_text()
    assert "kvConfigPath=" in (tmp_path / "namesrv.conf.bak").read_text()


def test_the_settings_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "namesrv.conf"
    conf.write_text("listenPort=1234\nlistenPrt=5\n")
    assert main(["namesrv", "-c", str(conf), "--port", "77", "-p"]) == 0
    output = capsys.readouterr()
    assert "listenPort=77\n" in output.out
    assert output.err == "refmq: unknown key 'listenPrt' (did you mean 'listenPort'?)\n"
    assert main(["namesrv", "-c", str(conf), "-p", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["settings"]["listenPort"] == "1234"
    assert printed["complaints"] == ["unknown key 'listenPrt' (did you mean 'listenPort'?)"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("listenPort=many", "listenPort is a number"),
        ("listenPort=70000", "listenPort is a number from 0 to 65535, not 70000."),
        ("tls.server.mode=perhaps", "tls.server.mode is disabled, permissive or enforcing"),
        ("tls.server.certPath=/nowhere", "given together"),
        ("tls.server.certPath=/nowhere\ntls.server.keyPath=/nowhere", "There is no file /nowhere"),
        ("serverChannelMaxIdleTimeSeconds=0", "at least 1"),
        ("a=\\uzzzz", "hexadecimal"),
    ],
)
def test_a_wrong_value_is_one_line(tmp_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "namesrv.conf"
    conf.write_text(text)
    assert main(["namesrv", "-c", str(conf), "--dir", str(tmp_path), "--listen", "127.0.0.1"]) in (1, 2)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_port_that_is_taken_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["namesrv", "--port", "0", "--listen", "127.0.0.1", "--dir", str(tmp_path)]
    with running(*options) as (_, address):
        port = address.rpartition(":")[2]
        assert main(["namesrv", "--port", port, "--listen", "127.0.0.1", "--dir", str(tmp_path / "other")]) == 1
    error = capsys.readouterr().err
    assert "cannot listen on 127.0.0.1" in error
    assert error.count("\n") == 1


def test_a_file_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["namesrv", "-c", "/nowhere/namesrv.conf"]) == 2
    assert "/nowhere/namesrv.conf cannot be read" in capsys.readouterr().err
