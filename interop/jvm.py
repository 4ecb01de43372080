"""Java clients as objects: one JVM with interop/java/Driver, told what to do line by line.

Many tests share one JVM, because its start costs more than most tests. Every client in it has a name; what happens to
a client (a message comes, a callback is called, a broker asks about a transaction) is kept in order as an event.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer
from dataclasses import dataclass, field
from typing import Any, Self

from interop.processes import Child
from interop.rocketmq import Clients, make_home
from refmq.errors import RefmqError

CALL_TIMEOUT_S = 60.0
SHUTDOWN_TIMEOUT_S = 240.0  # a Java client waits up to 90 s for each of its service threads
EVENT_TIMEOUT_S = 90.0
START_TIMEOUT_S = 60.0

# The heap of one client is a few MB; the client looks for other members of a group every 20 s unless told otherwise.
DRIVER_JVM = ("-Xmx160m", "-Drocketmq.client.rebalance.waitInterval=2000")

# Routes, heartbeats and offsets are renewed every 30, 30 and 5 s by default, which tests need not wait for.
# Questions to nameservers end after 3 s, which a busy machine needs now and then.
EAGER_CLIENT = {
    "pollNameServerInterval": 1000,
    "heartbeatBrokerInterval": 2000,
    "persistConsumerOffsetInterval": 1000,
    "mqClientApiTimeout": 30_000,
}

Json = Any


class JavaError(RefmqError):
    """An exception of the client library: its class, its message, and the response code if it has one."""

    def __init__(self, kind: str, message: str, code: int) -> None:
        super().__init__(f"{kind} (code {code}): {message}")
        self.kind = kind
        self.code = code


@dataclass(frozen=True)
class Event:
    """Something that happened to the client ``name``; for messages ``value`` is the message."""

    event: str
    name: str
    at: int
    value: Json


@dataclass
class Jvm:
    """A running driver."""

    clients: Clients
    jvm: tuple[str, ...] = ()
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[Json]] = {}
        self._changed = threading.Condition()
        self._child: Child | None = None

    @property
    def version(self) -> str:
        return self.clients.version

    def start(self) -> Jvm:
        command = self.clients.command((*DRIVER_JVM, *self.jvm), "Driver")
        log = self.clients.folder / f"driver-{time.monotonic_ns()}.log"
        self._child = Child(command, log, make_home(self.clients.folder / "home"), talks=True)
        self._reader = threading.Thread(target=self._read, args=(self._child,), daemon=True)
        self._reader.start()
        self.wait_for(lambda events: any(each.event == "ready" for each in events), "ready", START_TIMEOUT_S)
        return self

    def _read(self, child: Child) -> None:
        with contextlib.suppress(ValueError):  # the pipe is closed when the JVM is killed
            for text in child.lines():
                self._take(json.loads(text))
        for future in list(self._waiting.values()):
            future.set_exception(RefmqError("the JVM ended"))

    def _take(self, line: dict[str, Json]) -> None:
        if "event" in line:
            with self._changed:
                self.events.append(Event(line["event"], line["name"], line.get("at", 0), line.get("value")))
                self._changed.notify_all()
            return
        future = self._waiting.pop(line["id"])
        if "error" in line:
            future.set_exception(JavaError(line["kind"], line["error"], line["code"]))
        else:
            future.set_result(line.get("ok"))

    def submit(self, op: str, **fields: Json) -> Future[Json]:
        """Give a command and go on."""
        assert self._child is not None
        number = next(self._numbers)
        future = self._waiting[number] = Future()
        if not self._child.alive:
            raise RefmqError(f"the JVM ended before {op} {fields}")
        self._child.say(json.dumps({"id": number, "op": op, **fields}))
        return future

    def run(self, op: str, timeout_s: float = CALL_TIMEOUT_S, **fields: Json) -> Json:
        """Give a command and wait for its answer."""
        try:
            return self.submit(op, **fields).result(timeout_s)
        except NoAnswer:
            raise RefmqError(f"no answer to {op} {fields} within {timeout_s:g} s") from None

    def mqadmin(self, *arguments: str) -> str:
        """What an mqadmin command prints; it says its errors there too."""
        return str(self.run("mqadmin", arguments=list(arguments)))

    def wait_for(self, condition: Callable[[list[Event]], bool], what: str, timeout_s: float = EVENT_TIMEOUT_S) -> None:
        """Wait until what has happened so far satisfies ``condition``."""
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self.events), timeout_s):
                raise RefmqError(f"{what} did not come within {timeout_s:g} s")

    def new(self, kind: str, arguments: Sequence[Json], options: Mapping[str, Json]) -> Remote:
        name = f"{kind}-{next(self._numbers)}"
        options = {**EAGER_CLIENT, **options}
        self.run("new", type=kind, name=name, arguments=list(arguments), options=options)
        return Remote(self, name)

    def stop(self) -> None:
        if self._child is not None:
            self._child.kill()  # whatever is still open in it was forgotten by a test
            self._reader.join(START_TIMEOUT_S)

    kill = stop

    def __enter__(self) -> Jvm:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@dataclass
class Remote:
    """One client inside a JVM. Used with ``with`` it is shut down at the end."""

    jvm: Jvm
    name: str

    def call(self, method: str, *arguments: Json, timeout_s: float = CALL_TIMEOUT_S) -> Json:
        return self.jvm.run("call", timeout_s, name=self.name, method=method, arguments=list(arguments))

    def start(self) -> Self:
        self.call("start")
        return self

    def events(self, kind: str = "message") -> list[Json]:
        """The values of what has happened so far."""
        return [each.value for each in self.jvm.events[:] if (each.event, each.name) == (kind, self.name)]

    def wait(
        self, condition: int | Callable[[list[Json]], bool], kind: str = "message", timeout_s: float = EVENT_TIMEOUT_S
    ) -> list[Json]:
        """Wait for a number of events or for a condition on all of them, and return them."""
        holds = condition if callable(condition) else lambda values: len(values) >= condition

        def enough(events: list[Event]) -> bool:
            return holds([each.value for each in events if (each.event, each.name) == (kind, self.name)])

        try:
            self.jvm.wait_for(enough, f"{condition} {kind} of {self.name}", timeout_s)
        except RefmqError as error:
            raise RefmqError(f"{error}; there were {self.events(kind)!r:.2000}") from None
        return self.events(kind)

    def bodies(self) -> list[str]:
        return [message["body"] for message in self.events()]

    def owned(self) -> set[tuple[str, str, int]]:
        """The queues that a push consumer holds."""
        return {
            (each["topic"], each["broker"], each["queue"])
            for each in self.jvm.run("owned", name=self.name)
            if not each["topic"].startswith("%RETRY%")
        }

    def close(self) -> None:
        self.jvm.run("forget", SHUTDOWN_TIMEOUT_S, name=self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
