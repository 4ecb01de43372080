"""What every client has: an identity, connections, nameservers, routes, heartbeats, and the questions of brokers.

A `Producer`, `Consumer` or `Admin` owns one `Instance` of its own. Nothing is shared between two of them and there is
no global table, so two groups, two clusters or two accounts in one program cannot get into each other's way.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
import os
import random
import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

from refmq.aio.identity import MessageIds, client_id, local_address, new_instance_name, process_id
from refmq.aio.recording import Requests, is_public
from refmq.client.answers import broker_error
from refmq.client.route import all_addresses, default_route, masters, parse_name_servers
from refmq.errors import (
    ClosedError,
    ConnectFailed,
    ForkedError,
    NetworkError,
    RefmqError,
    RouteNotFound,
    UsageError,
    WrongLoopError,
)
from refmq.net.client import Client
from refmq.net.clock import wall_clock
from refmq.net.connection import Answer, Connection
from refmq.net.credentials import credentials_of_environment
from refmq.net.limits import Limits
from refmq.net.tls import ClientTls
from refmq.protocol import names
from refmq.protocol.acl import Credentials, sign
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.heartbeat import HeartbeatData
from refmq.protocol.bodies.route import TopicRouteData
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, oneway, request, response
from refmq.protocol.headers.clients import UnregisterClientRequest
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.nameserver import GetRouteInfoRequest
from refmq.trace.record import NoRecorder, Recorder
from refmq.trace.writer import TraceWriter

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ROUTE_POLL_S: Final = 30.0  # pollNameServerInterval, 4.9.8
HEARTBEAT_S: Final = 30.0  # heartbeatBrokerInterval, 4.9.8
ASK_TIMEOUT_S: Final = 3.0  # mqClientApiTimeout, 4.9.8
CLOSE_TIMEOUT_S: Final = 5.0
ROUTES_MAX: Final = 65_536
"""Topics whose routes a client remembers; more means that names are being made up."""
REQUEST_TYPE_FIELD: Final = "ReqT"  # lite pull consumers say so with every request

log = logging.getLogger("refmq.client")

T = TypeVar("T")
BrokerQuestion = Callable[[Connection, RemotingCommand], Answer | Awaitable[Answer]]
RpcHook = Callable[[str, RemotingCommand], RemotingCommand]
"""Sees every request before it is signed and sent, with the address it goes to; returns the request to send."""


class ConnectionOptions(TypedDict, total=False):
    """Options that producers, consumers and admins have in common."""

    credentials: Credentials | None
    tls: ClientTls | None
    namespace: str | None
    client_ip: str | None
    instance_name: str | None
    unit_name: str
    limits: Limits | None
    rpc_hook: RpcHook | None
    recorder: Recorder | None
    trace: Path | None
    seed: int | None
    route_poll: float
    heartbeat: float


def namespace_of(servers: tuple[str, ...]) -> str | None:
    """The namespace that is written into the address of a hosted instance, ``MQ_INST_x_y.host:port``."""
    first = servers[0].partition(".")[0]
    return first if first.startswith("MQ_INST_") and "_" in first.removeprefix("MQ_INST_") else None


class Instance:
    """The shared core of a client. ``open`` before use, ``close`` after."""

    def __init__(
        self,
        namesrv: str | list[str] | tuple[str, ...] | None,
        what: str,
        *,
        stream: bool = False,
        stable_name: bool = False,
        heartbeat_data: Callable[[], HeartbeatData] | None = None,
        on_route: Callable[[str, TopicRouteData], None] | None = None,
        options: ConnectionOptions,
    ) -> None:
        _check_options(what, options)
        given = namesrv if namesrv is not None else os.environ.get("NAMESRV_ADDR", "")
        self.name_servers = parse_name_servers(given)
        self.namespace = options.get("namespace") or namespace_of(self.name_servers)
        self.what = what
        self.opened = False
        self.closed = False
        self._options = options
        self._stream = stream
        self._stable_name = stable_name
        self._heartbeat_data = heartbeat_data
        self._on_route = on_route
        self._credentials = options.get("credentials") or credentials_of_environment()
        self._rpc_hook = options.get("rpc_hook")
        self._dresses = stream or self._credentials is not None or self._rpc_hook is not None
        self.random = random.Random(options.get("seed"))
        self._trace: TraceWriter | None = None
        self.recorder: Recorder = options.get("recorder") or NoRecorder()
        self._requests: dict[str, Requests] = {}
        self.routes: dict[str, TopicRouteData] = {}
        self.topics: set[str] = set()
        """Topics whose routes are kept fresh."""
        self.handlers: dict[int, BrokerQuestion] = {}
        self.client_id = ""
        self._chosen_server = self.random.randrange(len(self.name_servers))
        self._heartbeating = asyncio.Lock()
        self._asking: dict[str, asyncio.Task[TopicRouteData | None]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self.heard: dict[str, int] = {}
        """Brokers that took our heartbeat, and the version they said they are."""

    # Life -----------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        if self.opened:
            raise ClosedError(f"This {self.what} was opened before; make a new one.")
        self.opened = True
        self.loop = asyncio.get_running_loop()
        self._wall_ms = wall_clock(self.loop)
        self._pid = process_id()
        options = self._options
        self.address = options.get("client_ip") or local_address()
        name = options.get("instance_name") or ("DEFAULT" if self._stable_name else new_instance_name())
        self.client_id = client_id(self.address, name, options.get("unit_name", ""), stream=self._stream)
        self.ids = MessageIds(self.address, self.random.getrandbits(32), self._pid)
        folder = options.get("trace")
        if folder is not None:
            self._trace = TraceWriter(Path(folder), _file_name(self.client_id))
            self.recorder = self._trace
        self._client = Client(self._asked, options.get("limits"), tls=options.get("tls"))

    def start_timers(self) -> None:
        self.every(self._options.get("route_poll", ROUTE_POLL_S), self.refresh_routes, "route poll")
        if self._heartbeat_data is not None:
            self.every(self._options.get("heartbeat", HEARTBEAT_S), self.heartbeat, "heartbeat")

    async def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Ends every task and connection in about ``timeout_s``. May be called twice."""
        if self.closed or not self.opened:
            self.closed = True
            return
        self.closed = True
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_s)
        await self._client.close(timeout_s)
        if self._trace is not None:
            await self.loop.run_in_executor(None, self._trace.close, timeout_s)

    def requests_of(self, group: str, topic: str) -> Requests | None:
        """What records the requests of a group about a topic, in the trace that was asked for; None without one."""
        if self._trace is None or not is_public(topic):
            return None
        if group not in self._requests:
            self._requests[group] = Requests(self._trace, f"{group}@{self.client_id}")
        return self._requests[group]

    def check_usable(self) -> None:
        """Raises when this client cannot be used here and now."""
        if not self.opened:
            raise ClosedError(f"This {self.what} is not open yet: use `async with`, which opens and closes it.")
        if self.closed:
            raise ClosedError(f"This {self.what} is closed.")
        if process_id(self.loop) != self._pid:
            raise ForkedError(f"This {self.what} was opened in process {self._pid}: open one in each process.")
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            raise WrongLoopError(
                f"This {self.what} is used outside of an event loop: use refmq.sync where there is none."
            ) from None
        if here is not self.loop:
            raise WrongLoopError(f"This {self.what} belongs to another event loop: open one on each loop.")

    def spawn(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """A task that ends with this client. What it raises is logged."""
        task = asyncio.get_running_loop().create_task(work, name=f"refmq {name}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s of %s ended: %r", task.get_name(), self.client_id, error, exc_info=error)

    def every(self, period_s: float, work: Callable[[], Awaitable[object]], name: str) -> None:
        """Does something again and again; an error of a peer is logged, and the next turn comes all the same."""

        async def turns() -> None:
            while True:
                await asyncio.sleep(period_s)
                try:
                    await work()
                except RefmqError as error:
                    log.warning("%s of %s: %s", name, self.client_id, error)

        self.spawn(turns(), name)

    # Requests -------------------------------------------------------------------------------------------------------

    def make(
        self,
        code: RequestCode,
        header: DataclassInstance | None = None,
        body: DataclassInstance | bytes = b"",
        *,
        remark: str | None = None,
        is_oneway: bool = False,
    ) -> RemotingCommand:
        """A request of this client."""
        fields = encode_header(header) if header is not None else None
        data = body if isinstance(body, bytes) else encode_body(body)
        return (oneway if is_oneway else request)(code, fields, data, remark=remark)

    def ask(self, address: str, command: RemotingCommand, timeout_s: float) -> Coroutine[Any, Any, RemotingCommand]:
        """The answer of a server, whatever it says."""
        self.check_usable()
        return self.ask_further(address, command, timeout_s)

    def ask_further(
        self, address: str, command: RemotingCommand, timeout_s: float
    ) -> Coroutine[Any, Any, RemotingCommand]:
        """The same for whoever has called `check_usable` before, as all that applications call does."""
        if self._dresses:
            command = self._dressed(address, command)
        return self._client.invoke(address, command, timeout_s)

    async def call(self, address: str, command: RemotingCommand, timeout_s: float) -> RemotingCommand:
        """The answer of a server when it is success; ``BrokerError`` when it is anything else."""
        answer = await self.ask(address, command, timeout_s)
        if answer.code != ResponseCode.SUCCESS:
            raise broker_error(address, command.code, answer)
        return answer

    async def tell(self, address: str, command: RemotingCommand, timeout_s: float) -> None:
        """Sends a one-way request."""
        self.check_usable()
        await self._client.oneway(address, self._dressed(address, command), timeout_s)

    def _dressed(self, address: str, command: RemotingCommand) -> RemotingCommand:
        if self._stream:
            command = replace(command, ext_fields={**command.fields, REQUEST_TYPE_FIELD: "0"})
        if self._rpc_hook is not None:
            command = self._rpc_hook(address, command)
        return sign(command, self._credentials) if self._credentials is not None else command

    async def ask_name_server(self, command: RemotingCommand, timeout_s: float = ASK_TIMEOUT_S) -> RemotingCommand:
        """The answer of a nameserver: of the one that answered last, then of the others in turn."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        problem: NetworkError | None = None
        for _ in self.name_servers:
            address = self.name_servers[self._chosen_server % len(self.name_servers)]
            try:
                # A server that is silent must leave time to ask another one.
                left = deadline - loop.time()
                share = left if len(self.name_servers) == 1 else max(left / 2, min(left, 0.5))
                return await self.ask(address, command, max(share, 0.001))
            except NetworkError as error:
                problem = error
                self._chosen_server += 1
        assert problem is not None
        if len(self.name_servers) == 1:
            raise problem
        raise ConnectFailed(";".join(self.name_servers), f"no nameserver answered, the last because {problem.reason}")

    def _asked(self, connection: Connection, command: RemotingCommand) -> Answer | Awaitable[Answer]:
        handler = self.handlers.get(command.code)
        if handler is None:
            remark = f" request type {command.code} not supported"
            return response(command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
        return handler(connection, command)

    # Routes ---------------------------------------------------------------------------------------------------------

    async def fetch_route(self, topic: str) -> TopicRouteData | None:
        """The route that a nameserver knows now, or None when it knows no such topic. Not remembered."""
        command = self.make(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequest(topic=topic))
        answer = await self.ask_name_server(command)
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            return None
        if answer.code != ResponseCode.SUCCESS:
            raise broker_error("the nameserver", command.code, answer)
        return decode_body(TopicRouteData, answer.body)

    async def refresh_route(self, topic: str) -> TopicRouteData | None:
        """Asks for a route and remembers it. What was known stays when the nameserver knows nothing any more.

        Callers at the same time share one question.
        """
        task = self._asking.get(topic)
        if task is None:
            task = self.spawn(self._refresh_route(topic), f"route of {topic}")
            self._asking[topic] = task
            task.add_done_callback(lambda _: self._asking.pop(topic, None))
        return await asyncio.shield(task)

    async def _refresh_route(self, topic: str) -> TopicRouteData | None:
        try:
            route = await self.fetch_route(topic)
        except RefmqError as error:
            log.warning("no route of %s: %s", topic, error)
            return self.routes.get(topic)
        if route is None:
            return self.routes.get(topic)
        if topic not in self.routes and len(self.routes) >= ROUTES_MAX:
            raise UsageError(f"A client knows at most {ROUTES_MAX} topics.")
        changed = self.routes.get(topic) != route
        self.routes[topic] = route
        if changed and self._on_route is not None:
            self._on_route(topic, route)
        return route

    async def refresh_routes(self) -> None:
        """All routes in use. One topic that fails does not keep the others from being asked for."""
        for topic in sorted(self.topics):
            await self.refresh_route(topic)

    async def route_to_send(self, topic: str, queues: int) -> TopicRouteData:
        """The route to send by: the topic's own, or that of the template when the topic is still to be created."""
        self.topics.add(topic)
        route = self.routes.get(topic) or await self.refresh_route(topic)
        if route is not None:
            return route
        template = await self.fetch_route(names.AUTO_CREATE_TOPIC)
        if template is None:
            raise await self.no_route(topic)
        return default_route(template, queues)

    async def no_route(self, topic: str) -> RouteNotFound:
        """The error for a topic that nobody serves, with what can be found out about the reason."""
        try:
            command = self.make(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
            answer = await self.ask_name_server(command, ASK_TIMEOUT_S)
        except RefmqError as error:
            return RouteNotFound(
                topic, self.name_servers, f"no answer ({error})", "Is a nameserver running there? Check the address."
            )
        from refmq.protocol.bodies.route import TopicList

        known = decode_body(TopicList, answer.body).topic_list if answer.code == 0 and answer.body else ()
        own = sorted(name for name in known if not names.is_system_topic(name) and not name.startswith("%"))
        if not known:
            said, hint = "they know no broker at all", "Is a broker running, and does it register there?"
        else:
            shown = ", ".join(own[:8]) + (" ..." if len(own) > 8 else "")
            said = f"they know {len(own)} topics ({shown})" if own else "they know brokers, but no topics yet"
            if names.AUTO_CREATE_TOPIC in known:
                hint = "Brokers here create topics when one is sent to. Check the name of the topic and its permission."
            else:
                hint = "Brokers here do not create topics on their own: create it first, with Admin.create_topic."
        return RouteNotFound(topic, self.name_servers, said, hint)

    # Heartbeats -----------------------------------------------------------------------------------------------------

    def broker_addresses(self, *, slaves: bool) -> tuple[str, ...]:
        """Every broker that a route in use names."""
        chosen = all_addresses if slaves else masters
        return tuple(dict.fromkeys(address for route in self.routes.values() for address in chosen(route)))

    async def heartbeat(self) -> None:
        """Tells every broker that we are here. One that does not listen is logged and tried again next time."""
        if self._heartbeat_data is None:
            return
        async with self._heartbeating:
            data = self._heartbeat_data()
            command = self.make(RequestCode.HEART_BEAT, None, data)
            addresses = self.broker_addresses(slaves=bool(data.consumer_data_set))
            answers = await asyncio.gather(
                *(self.call(address, command, ASK_TIMEOUT_S) for address in addresses), return_exceptions=True
            )
        for address, answer in zip(addresses, answers, strict=True):
            if isinstance(answer, RefmqError):
                self.heard.pop(address, None)
                log.info("heartbeat of %s: %s", self.client_id, answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                self.heard[address] = answer.version

    async def unregister(
        self, *, producer_group: str | None = None, consumer_group: str | None = None, timeout_s: float = 1.0
    ) -> None:
        """Takes leave of every broker that knows us; those that do not answer find out by themselves."""
        header = UnregisterClientRequest(
            client_id=self.client_id, producer_group=producer_group, consumer_group=consumer_group
        )
        command = self.make(RequestCode.UNREGISTER_CLIENT, header)
        asked = [self.call(address, command, timeout_s) for address in list(self.heard)]
        for problem in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(problem, RefmqError):
                log.info("unregistering %s: %s", self.client_id, problem)
            elif isinstance(problem, BaseException):
                raise problem

    # Time -----------------------------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        return self._wall_ms()

    def next_id(self) -> str:
        return self.ids.next(self._wall_ms())


def _check_options(what: str, options: ConnectionOptions) -> None:
    """Python does not look at the names of options; a misspelt one would change nothing, silently."""
    known = ConnectionOptions.__annotations__
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise UsageError(f"A {what} has no option {name}.{hint}")


def _file_name(client_id: str) -> str:
    """A client id as part of a file's name."""
    return re.sub(r"[^0-9A-Za-z._-]", "-", client_id)
