"""The nameserver's shell: connections and timers in, steps of ``refmq.nameserver``, effects out.

Time for liveness is the loop's monotonic clock, not the wall clock: a nameserver whose wall clock jumps by two minutes
must not forget every broker, as upstream's does. No answer exposes these times.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from rpds import HashTrieMap

from refmq.acl.check import nameserver_guard
from refmq.errors import DiskError
from refmq.model.disk import Disk
from refmq.model.ids import TimestampMs
from refmq.model.step import Event
from refmq.nameserver.kv import KvConfig, decode_kv_file
from refmq.nameserver.registration import (
    SCAN_DELAY_MS,
    SCAN_PERIOD_MS,
    CloseChannel,
    has_room_on,
    register_broker_enabled,
    register_more,
    sliced,
    takes_topics,
)
from refmq.nameserver.serve import (
    REFUSED,
    Asked,
    Effect,
    NameserverState,
    NameserverStep,
    PersistKv,
    PersistSettings,
    Reply,
    decode_registration,
    lose_channel,
    scan_brokers,
    serve_registration,
    serve_request,
)
from refmq.nameserver.settings import default_settings
from refmq.nameserver.tables import ChannelId
from refmq.net.acl_files import AclFiles
from refmq.net.connection import Answer, Connection
from refmq.net.limits import Limits
from refmq.net.server import Server
from refmq.net.tls import ServerTls
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, response
from refmq.store.text_file import read_text_file_or_backup, replace_text_file

log = logging.getLogger(__name__)

TELL_EVERY_S: Final = 60.0

DECODED_HERE_BYTES_MAX: Final = 256 * 1024
"""A longer registration (some 1,500 topics) is parsed in a thread: 16 MB takes a second or more."""


COMPRESSED_HERE_BYTES_MAX: Final = 4 * 1024
"""The same for a compressed one: topics that differ only in a number shrink to a sixtieth."""


def _is_long(command: RemotingCommand) -> bool:
    is_compressed = command.fields.get("compressed", "").lower() == "true"
    return len(command.body) > (COMPRESSED_HERE_BYTES_MAX if is_compressed else DECODED_HERE_BYTES_MAX)


@dataclass(frozen=True, slots=True)
class FileOn:
    """A file on a disk."""

    disk: Disk
    path: str


class Nameserver:
    """A listening nameserver.

        nameserver = Nameserver(kv_file=FileOn(disk, "kvConfig.json"))
        host, port = await nameserver.start("0.0.0.0", 9876)
        ...
        await nameserver.close(timeout_s=10)

    Without ``kv_file`` the key-value configuration lives in memory only, and without ``settings_file`` so do settings
    changed over the wire. With ``accounts`` whatever changes something needs the signature of an admin. ``record``
    receives every trace event.
    """

    def __init__(
        self,
        *,
        kv_file: FileOn | None = None,
        settings_file: FileOn | None = None,
        settings: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        tls: ServerTls | None = None,
        accounts: AclFiles | None = None,
        record: Callable[[Event], None] | None = None,
    ) -> None:
        self._kv_file = kv_file
        self._settings_file = settings_file
        self._record = record
        self._accounts = accounts
        self._watching: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self.state = NameserverState(
            kv=read_kv_config(kv_file), settings=HashTrieMap({**default_settings(), **(settings or {})})
        )
        self.server = Server(self._serve, limits, tls=tls)
        self._watched: set[int] = set()
        self._writing = asyncio.Lock()  # one file at a time, in the order of the steps
        self._timer: asyncio.TimerHandle | None = None
        self._refused = 0
        self._tell_again_s = 0.0

    @property
    def failure(self) -> asyncio.Future[None]:
        """Done when a bug in refmq has been found."""
        return self.server.failure

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; returns the address in use."""
        address = await self.server.start(host, port)
        self._timer = self._loop.call_later(SCAN_DELAY_MS / 1000, self._scan)
        if self._accounts is not None:
            self._watching = self._loop.create_task(self._accounts.watch(), name="access control")
        return address

    async def close(self, timeout_s: float) -> None:
        """Stop in at most about ``timeout_s``; requests in flight are answered first."""
        if self._timer is not None:
            self._timer.cancel()
        if self._watching is not None:
            self._watching.cancel()
        await self.server.close(timeout_s)

    def _now_ms(self) -> TimestampMs:
        return TimestampMs(int(self._loop.time() * 1000))

    # From events to steps --------------------------------------------------------------------------------------

    def _serve(self, connection: Connection, command: RemotingCommand) -> Answer | Awaitable[Answer]:
        denied = self._refusal(connection, command)
        if denied is not None:
            return response(command, ResponseCode.SYSTEM_ERROR, remark=denied)
        if connection.number not in self._watched:
            self._watched.add(connection.number)
            connection.on_close(self._lose)
        if command.code == RequestCode.REGISTER_BROKER and _is_long(command):
            return self._serve_long_registration(connection, command)
        step = serve_request(self.state, ChannelId(connection.number), command, self._now_ms())
        self._take(step)
        self._tell_refusal(connection, step)
        if len(step.effects) == 1 and isinstance(step.effects[0], Reply):
            return step.effects[0].command
        return self._perform(step.effects, command)

    def _refusal(self, connection: Connection, command: RemotingCommand) -> str | None:
        """Why access control refuses a request; None if it does not, or is off."""
        if self._accounts is None:
            return None
        return nameserver_guard(self._accounts.policy).refusal(command, connection.peer)

    async def _serve_long_registration(self, connection: Connection, command: RemotingCommand) -> Answer:
        """Tens of thousands of topics take a second to parse, and other peers must not wait for that."""
        broker = await self._loop.run_in_executor(None, decode_registration, command)
        if connection.closed:
            return None  # it has already closed, and we would not notice again: the broker would stay as a ghost
        channel, routes = ChannelId(connection.number), self.state.routes
        enabled = register_broker_enabled(routes, broker) and has_room_on(routes, broker, channel)
        in_slices = takes_topics(routes, broker) and enabled
        first, *others = sliced(broker) if in_slices else [broker]
        step = serve_registration(self.state, Asked(command, channel, self._now_ms()), first)
        self._take(step)
        self._tell_refusal(connection, step)
        for piece in others:
            await asyncio.sleep(0)
            self.state = replace(self.state, routes=register_more(self.state.routes, piece, channel))
        return await self._perform(step.effects, command)

    def _tell_refusal(self, connection: Connection, step: NameserverStep) -> None:
        """A broker that may not register says so in its own log; here it is said once a minute."""
        last = step.effects[-1]
        remark = last.command.remark if isinstance(last, Reply) else None
        if remark is None or not remark.startswith(REFUSED):
            return
        self._refused += 1
        now_s = self._loop.time()
        if now_s >= self._tell_again_s:
            log.warning("%d registrations refused, the last one of %s: %s", self._refused, connection.peer, remark)
            self._refused, self._tell_again_s = 0, now_s + TELL_EVERY_S

    def _lose(self, connection: Connection) -> None:
        self._watched.discard(connection.number)
        step = lose_channel(self.state, ChannelId(connection.number))
        self._take(step)
        assert not step.effects, "a closed connection has no effects"

    def _scan(self) -> None:
        step = scan_brokers(self.state, self._now_ms())
        self._take(step)
        for effect in step.effects:
            assert isinstance(effect, CloseChannel)
            self._close_channel(effect)
        self._timer = self._loop.call_later(SCAN_PERIOD_MS / 1000, self._scan)

    def _take(self, step: NameserverStep) -> None:
        self.state = step.state
        if step.event is not None and self._record is not None:
            self._record(step.event)

    # From effects to the world ---------------------------------------------------------------------------------

    async def _perform(self, effects: tuple[Effect, ...], command: RemotingCommand) -> Answer:
        """Carry out the effects in order; the reply goes to the connection."""
        for effect in effects:
            match effect:
                case Reply(answer):
                    return answer
                case CloseChannel():
                    self._close_channel(effect)
                case PersistKv(content):
                    try:
                        await self._replace(self._kv_file, content)
                    except DiskError as error:
                        return self._not_kept(command, error)
                case PersistSettings(content):
                    try:
                        await self._replace(self._settings_file, content)
                    except DiskError as error:
                        return self._not_kept(command, error)
        return None

    def _not_kept(self, command: RemotingCommand, error: DiskError) -> RemotingCommand:
        """The answer when a change is in memory but could not be saved: the next change saves both, or neither."""
        return response(command, ResponseCode.SYSTEM_ERROR, remark=f"changed only until the next start: {error}")

    async def _replace(self, file: FileOn | None, content: bytes) -> None:
        if file is not None:
            async with self._writing:
                await replace_text_file(file.disk, file.path, content)

    def _close_channel(self, effect: CloseChannel) -> None:
        connection = self.server.connection(effect.channel)
        if connection is not None:
            connection.close("the broker registered here was silent for too long")


def read_kv_config(file: FileOn | None) -> KvConfig:
    """The key-value configuration at startup; empty if there is no file yet."""
    content = read_text_file_or_backup(file.disk, file.path) if file is not None else None
    return decode_kv_file(content) if content else HashTrieMap()


async def run_nameserver(nameserver: Nameserver, stop: asyncio.Event, timeout_s: float) -> None:
    """Wait until ``stop`` is set or a bug in refmq is found; close the nameserver; raise the error, if any."""
    failure = nameserver.failure
    failure.add_done_callback(lambda _: stop.set())
    await stop.wait()
    error = failure.exception() if failure.done() and not failure.cancelled() else None
    await nameserver.close(timeout_s)
    if error is not None:
        raise error
