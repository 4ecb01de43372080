"""refmq's own processes, started like the real ones."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from interop.processes import Child, accepts, free_port
from refmq.errors import NetworkError
from refmq.net.client import Client
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request

SOURCES = Path(__file__).parent.parent / "src"


def ask(address: str, command: RemotingCommand, timeout_s: float = 10.0) -> RemotingCommand:
    """The answer of any server, ours or a real one, to one request of refmq's own client."""

    async def once() -> RemotingCommand:
        client = Client()
        try:
            return await client.invoke(address, command, timeout_s)
        finally:
            await client.close()

    return asyncio.run(once())


def has_route(nameserver: str, topic: str) -> bool:
    """Whether a nameserver, ours or a real one, knows a broker that has the topic."""
    try:
        answer = ask(nameserver, request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}))
    except NetworkError:
        return False
    return answer.code == ResponseCode.SUCCESS


class OurNameserver:
    """``refmq namesrv`` as a process of its own."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._child: Child | None = None

    def start(self) -> OurNameserver:
        command = [sys.executable, "-m", "refmq", "namesrv", "--port", str(self.port), "--dir", str(self.folder)]
        path = os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")])
        self._child = Child([*command, "--listen", "127.0.0.1"], self.folder / "namesrv.out", {"PYTHONPATH": path})
        self._child.wait_for(lambda: accepts(self.port), "port")
        return self

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop()

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()

    def __enter__(self) -> OurNameserver:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
