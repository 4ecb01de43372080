"""Real RocketMQ processes on loopback: nameserver, broker, mqadmin and our Java programs."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from interop.artifacts import CLIENTS, SERVERS, class_path, programs
from interop.processes import Child, accepts, free_port
from refmq.errors import RefmqError

PROGRAM_TIMEOUT_S = 240.0

OLD, NEW = SERVERS
"""The versions of servers: 4.9.7, which is meant unless another one is named, and 5.3.3."""

# What 4.9 reaches into reflectively; a JDK from 17 on refuses without these.
OPENED_PACKAGES = (
    "java.base/java.nio",
    "java.base/sun.nio.ch",
    "java.base/java.lang",
    "java.base/java.util",
    "java.base/jdk.internal.ref",
)
SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
LOGBACK = '<configuration><root level="OFF"/></configuration>\n'

# The first words of the lines that our programs print.
OUR_WORDS = ("sent", "batch", "got", "started", "done", "missing", "result")

# One store file of each kind is a few dozen kilobytes, so that a whole store fits a golden file.
TINY_STORE = {
    "mappedFileSizeCommitLog": "65536",
    "mappedFileSizeConsumeQueue": "800",
    "maxHashSlotNum": "100",
    "maxIndexNum": "400",
}


def java(jvm: tuple[str, ...], libraries: str, main: str, *arguments: str) -> list[str]:
    opened = [f"--add-opens={package}=ALL-UNNAMED" for package in OPENED_PACKAGES]
    return ["java", *SMALL_JVM, *jvm, *opened, "-cp", libraries, main, *arguments]  # of two flags the last one counts


def write_properties(path: Path, settings: Mapping[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def make_home(home: Path) -> dict[str, str]:
    """A ROCKETMQ_HOME that keeps every log quiet, and the environment that names it."""
    for role in ("namesrv", "broker", "tools"):
        path = home / "conf" / f"logback_{role}.xml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LOGBACK)
    return {"ROCKETMQ_HOME": str(home)}


class Nameserver:
    """A real nameserver."""

    def __init__(self, folder: Path, port: int | None = None, version: str = OLD) -> None:
        self.folder = folder
        self.version = version
        self.port = port or free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._child: Child | None = None

    def start(self) -> Nameserver:
        conf = self.folder / "namesrv.conf"
        write_properties(
            conf, {"listenPort": str(self.port), "kvConfigPath": str(self.folder / "kv" / "kvConfig.json")}
        )
        jvm = ("-Xms32m", "-Xmx128m", f"-Duser.home={self.folder}")
        main = "org.apache.rocketmq.namesrv.NamesrvStartup"
        command = java(jvm, class_path(SERVERS[self.version]), main, "-c", str(conf))
        self._child = Child(command, self.folder / "namesrv.out", make_home(self.folder / "home"))
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

    def __enter__(self) -> Nameserver:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class Broker:
    """A real broker. ``settings`` go into its file on top of what loopback needs."""

    def __init__(
        self,
        folder: Path,
        nameservers: str,
        name: str = "broker-a",
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
        jvm: tuple[str, ...] = (),
        version: str = OLD,
    ) -> None:
        self.folder = folder
        self.name = name
        self.jvm = jvm
        self.version = version
        self.port = port or free_port((-2, 0, 1))  # the VIP port is two below, the HA port one above
        self.address = f"127.0.0.1:{self.port}"
        self.store = folder / "store"
        self._child: Child | None = None
        self.settings = {
            "brokerClusterName": "DefaultCluster",
            "brokerName": name,
            "brokerId": "0",
            "namesrvAddr": nameservers,
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",
            "listenPort": str(self.port),
            "storePathRootDir": str(self.store),
            "storePathCommitLog": str(self.store / "commitlog"),
            "mappedFileSizeCommitLog": "10485760",
            # Loopback machines are small and full: never refuse to store because of either.
            "diskMaxUsedSpaceRatio": "95",
            "osPageCacheBusyTimeOutMills": "10000",
            "waitTimeMillsInSendQueue": "10000",
            **(settings or {}),
        }

    def start(self, timeout_s: float = 60.0) -> Broker:
        conf = self.folder / "broker.conf"
        write_properties(conf, self.settings)
        jvm = ("-Xms64m", "-Xmx400m", "-XX:MaxDirectMemorySize=512m", f"-Duser.home={self.folder}")
        main = "org.apache.rocketmq.broker.BrokerStartup"
        command = java(jvm + self.jvm, class_path(SERVERS[self.version]), main, "-c", str(conf))
        log = self.folder / "broker.out"
        log.unlink(missing_ok=True)
        self._child = Child(command, log, make_home(self.folder / "home"))
        child = self._child
        child.wait_for(lambda: "boot success" in child.output(), "boot", timeout_s)
        return self

    def stop(self) -> None:
        """A clean stop: SIGTERM runs the broker's shutdown hook."""
        if self._child is not None:
            self._child.stop(timeout_s=60)

    def kill(self) -> None:
        """What ``kill -9`` does."""
        if self._child is not None:
            self._child.kill()

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def pause(self) -> None:
        """SIGSTOP: the process is there, its connections too, but nothing moves."""
        assert self._child is not None
        self._child._signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._child is not None
        self._child._signal(signal.SIGCONT)

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@dataclass(frozen=True)
class Clients:
    """Java clients and mqadmin of one version."""

    version: str
    folder: Path

    def command(self, jvm: tuple[str, ...], main: str, arguments: tuple[str, ...] = ()) -> list[str]:
        libraries = f"{programs(self.version)}:{class_path(CLIENTS[self.version])}"
        logs = (f"-Duser.home={self.folder}", f"-Drocketmq.client.logRoot={self.folder}/logs")
        return java(("-Xmx200m", *logs, *jvm), libraries, main, *arguments)

    def start(self, main: str, *arguments: str, jvm: tuple[str, ...] = ()) -> Child:
        """One of our programs of interop/java, running."""
        log = self.folder / f"{main}-{time.monotonic_ns()}.out"
        return Child(self.command(jvm, main, arguments), log, make_home(self.folder / "home"))

    def run(self, main: str, *arguments: str, jvm: tuple[str, ...] = ()) -> list[str]:
        """The lines that one of our programs prints, run to its end. What the client library logs is left out."""
        child = self.start(main, *arguments, jvm=jvm)
        code = child.wait(PROGRAM_TIMEOUT_S)
        if code != 0:
            raise RefmqError(f"{main} {' '.join(arguments)} ended with {code}: {child.output()[-2000:]}")
        return [line for line in child.output().splitlines() if line.split(" ", 1)[0] in OUR_WORDS]

    def mqadmin(self, *arguments: str, jvm: tuple[str, ...] = ()) -> str:
        """What an mqadmin command prints; it says its errors there too and always exits with 0."""
        log = self.folder / f"mqadmin-{arguments[0]}-{time.monotonic_ns()}.out"
        main = "org.apache.rocketmq.tools.command.MQAdminStartup"
        child = Child(self.command(jvm, main, arguments), log, make_home(self.folder / "home"))
        child.wait(PROGRAM_TIMEOUT_S)
        return child.output()
