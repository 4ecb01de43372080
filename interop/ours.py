"""refmq's own processes, started like the real ones."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interop.processes import Child, accepts, free_port
from interop.rocketmq import write_properties
from refmq.errors import NetworkError
from refmq.net.client import Client
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request

SOURCES = Path(__file__).parent.parent / "src"
STOP_TIMEOUT_S = 60.0


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


def refmq(*arguments: str) -> tuple[list[str], dict[str, str]]:
    """A command of refmq from these sources, and the environment that it needs."""
    path = os.pathsep.join(filter(None, [str(SOURCES), os.environ.get("PYTHONPATH", "")]))
    return [sys.executable, "-m", "refmq", *arguments], {"PYTHONPATH": path}


MISTAKEN: Final = """
import sys
from conformance.mutants.apply import change_on_import, replacing
module, old, new, *arguments = sys.argv[1:]
change_on_import(module, replacing(old, new))
sys.argv = ["refmq", *arguments]
from refmq.cli import main
sys.exit(main())
"""


def mistaken(change: tuple[str, str, str], *arguments: str) -> tuple[list[str], dict[str, str]]:
    """A command of refmq with one text of its sources replaced."""
    _, environment = refmq()
    path = f"{environment['PYTHONPATH']}{os.pathsep}{SOURCES.parent}"
    return [sys.executable, "-c", MISTAKEN, *change, *arguments], {"PYTHONPATH": path}


chosen_engine = "auto"
"""Of every broker that is not given another: what `pytest --engine` says."""


guards_all = False
"""Whether every broker has access control on, and lets this machine in by its address: what `pytest --guarded` says.
Then the check stands in front of each request, and nothing is served by C."""

ACCOUNTS: Final = "plain_acl.yml"
ALL_FROM_HERE: Final = "globalWhiteRemoteAddresses:\n- 127.0.0.1\n"


class OurNameserver:
    """``refmq namesrv`` as a process of its own."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._child: Child | None = None

    def start(self) -> OurNameserver:
        where = ("--port", str(self.port), "--dir", str(self.folder), "--listen", "127.0.0.1")
        command, environment = refmq("namesrv", *where)
        self._child = Child(command, self.folder / "namesrv.out", environment)
        self._child.wait_for(lambda: accepts(self.port), "port")
        return self

    @property
    def child(self) -> Child:
        assert self._child is not None
        return self._child

    @property
    def pid(self) -> int:
        return self.child.pid

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


class OurBroker:
    """``refmq broker`` as a process of its own. ``settings`` go into its file on top of what loopback needs."""

    def __init__(
        self,
        folder: Path,
        nameservers: str,
        name: str = "broker-a",
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
        change: tuple[str, str, str] | None = None,
        engine: str | None = None,
        trace: Path | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        """With a ``change`` the broker has a mistake: in a module, a text is replaced by another."""
        self.engine = engine or chosen_engine
        self.trace = trace
        self.folder = folder
        self.name = name
        self.change = change
        self.port = port or free_port((-2, 0, 1))  # the VIP port is two below
        self.host = host
        """Where it listens; it calls itself 127.0.0.1."""
        self.address = f"{host}:{self.port}"
        self.store = folder / "store"
        self._child: Child | None = None
        self.settings = {
            "brokerClusterName": "DefaultCluster",
            "brokerName": name,
            "brokerId": "0",
            "namesrvAddr": nameservers,
            "brokerIP1": "127.0.0.1",
            "listenPort": str(self.port),
            "storePathRootDir": str(self.store),
            "mappedFileSizeCommitLog": "10485760",
            # Loopback machines are full and busy: never refuse to store because of either.
            "diskMaxUsedSpaceRatio": "95",
            "waitTimeMillsInSendQueue": "10000",
            **(settings or {}),
        }

    def start(self, timeout_s: float = 60.0) -> OurBroker:
        conf = self.folder / "broker.conf"
        if guards_all and self.settings.setdefault("aclEnable", "true") and not (self.folder / ACCOUNTS).exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / ACCOUNTS).write_text(ALL_FROM_HERE)
        if not conf.exists():  # what was changed over the wire stands in it
            write_properties(conf, self.settings)
        arguments = ["broker", "-c", str(conf), "--listen", self.host, "--engine", self.engine]
        if self.trace is not None:
            arguments += ["--trace", str(self.trace)]
        command, environment = refmq(*arguments) if self.change is None else mistaken(self.change, *arguments)
        log = self.folder / "broker.out"
        log.unlink(missing_ok=True)
        self._child = child = Child(command, log, environment)
        child.wait_for(lambda: "boot success" in child.output(), "boot", timeout_s)
        return self

    @property
    def child(self) -> Child:
        assert self._child is not None
        return self._child

    @property
    def pid(self) -> int:
        return self.child.pid

    def stop(self) -> None:
        """A clean stop: SIGTERM, and an exit code of 0."""
        if self._child is not None and self._child.alive:
            code = self._child.stop(STOP_TIMEOUT_S)
            assert code == 0, f"{self.name} ended with {code}: {self._child.output()[-2000:]}"

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()

    def __enter__(self) -> OurBroker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


UP = re.compile(r"nameserver (\S+), broker (\S+)\. ")


@dataclass
class OurServe:
    """``refmq serve``: nameserver and broker in one process. The C++ client takes no port above 32767."""

    folder: Path
    in_memory: bool = False
    address: str = ""
    """Of the nameserver, once it runs."""
    broker: str = ""
    """Of the broker."""
    _child: Child | None = None

    def start(self) -> OurServe:
        keep = ["--in-memory"] if self.in_memory else ["--dir", str(self.folder / "kept")]
        ports = ("--port", str(free_port()), "--broker-port", str(free_port((-2, 0))))
        command, environment = refmq("serve", *ports, *keep, "--engine", chosen_engine)
        log = self.folder / "serve.out"
        log.unlink(missing_ok=True)
        self._child = child = Child(command, log, environment)
        child.wait_for(lambda: "RocketMQ is up" in child.output(), "line that says so")
        found = UP.search(child.output())
        assert found is not None
        self.address, self.broker = found[1], found[2]
        return self

    def stop(self) -> int:
        """A clean stop; returns the exit code."""
        assert self._child is not None
        return self._child.stop(STOP_TIMEOUT_S)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
