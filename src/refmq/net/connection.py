"""One connection: frames in and out, requests matched with their answers, and bounds on everything a peer can cost.

Both ends are the same class. Either may ask (``request``, ``send_oneway``) and either may be asked (the handler); the
two directions have request ids of their own.

| the peer ...                                  | costs                                                              |
|-----------------------------------------------|--------------------------------------------------------------------|
| sends bytes that are not a frame              | its connection, immediately                                        |
| starts a frame and never finishes it          | its bytes so far, until ``frame_timeout_s``                        |
| says nothing                                  | one timer, until ``idle_timeout_s``                                |
| sends requests faster than they are served    | ``requests_in_flight_max`` of them; then we stop reading           |
| sends thousands of requests in one burst      | ``requests_per_turn_max`` at a time; other peers run in between    |
| does not read its answers                     | ``write_buffer_high_bytes``; then we stop reading; then idle close |
| does not read our unsolicited requests        | ``write_buffer_bytes_max``; then the connection is aborted         |
| is one of thousands that do all this a little | the server's budget; the greediest connection goes first           |

A handler is called for each request with the connection and the command. It returns the response, or None when there
is none to send (now), or an awaitable of either. It is not cancelled when the peer goes away, because what it started
may have to be finished; ``connection.closed`` tells it. A peer's error (``RefmqError``) is answered with code 1. So is
any other exception, which is also reported to the loop as a bug in refmq. After an ``AssertionError`` no state can be
trusted, so the server stops.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeAlias

from refmq.errors import ConnectionLost, NetworkError, RefmqError, RequestTimedOut, WireError
from refmq.net.address import format_peer
from refmq.net.codec import encode, new_decoder
from refmq.net.deadlines import Deadlines
from refmq.net.limits import Budget, Limits
from refmq.net.tls import HANDSHAKE_BYTE, ClientTls, ServerTls, TlsLayer, TlsMode
from refmq.protocol.command import RESPONSE_FLAG, RemotingCommand, response

Answer: TypeAlias = RemotingCommand | None
Handler: TypeAlias = Callable[["Connection", RemotingCommand], Answer | Awaitable[Answer]]

SYSTEM_ERROR: Final = 1
ACCOUNT_AGAIN_S: Final = 0.25  # how late unsent bytes that are gone may still be counted
OPAQUE_MAX: Final = 0x7FFF_FFFF  # request ids are positive 32-bit numbers here; upstream's wrap into the negative ones
GATHERED_BYTES_MAX: Final = 64 << 10  # anything larger is sent immediately
COMMAND_OVERHEAD_BYTES: Final = 512  # what a decoded request takes besides its body, roughly

log = logging.getLogger("refmq.net")


class Connection(asyncio.Protocol):
    """One end of a connection, made by ``Server`` or ``Client``; its transport calls the methods of ``Protocol``."""

    def __init__(
        self,
        handler: Handler,
        limits: Limits,
        *,
        number: int = 0,
        tls: ServerTls | ClientTls | None = None,
        budget: Budget | None = None,
        tasks: set[asyncio.Task[None]] | None = None,
        on_failure: Callable[[AssertionError], None] | None = None,
    ) -> None:
        self.number = number
        """This connection's number at its server: increasing, never reused."""
        self.peer = "unknown"
        """The other end as ``host:port``."""
        self.local = "unknown"
        self.close_reason: str | None = None
        self._loop = asyncio.get_running_loop()
        self._handler = handler
        self._limits = limits
        self._tls_settings = tls
        self._tls: TlsLayer | None = None
        self._plain = False  # the first byte was not the start of a TLS handshake
        self._budget = budget
        self._tasks = tasks if tasks is not None else set()
        self._on_failure = on_failure
        self._transport: asyncio.Transport | None = None
        self._decoder = new_decoder(limits.frame_length_max)
        self._commands: Iterator[RemotingCommand] | None = None  # complete frames waiting for their turn
        self._pump_scheduled = False
        self._account_again: asyncio.TimerHandle | None = None
        self._outgoing: list[bytes] = []  # written; sent at the end of this turn
        self._outgoing_bytes = 0
        self._will_flush = False
        self._in_flight = 0
        self._in_flight_bytes = 0
        self._waiting: dict[int, asyncio.Future[RemotingCommand]] = {}
        self._deadlines = Deadlines(self._loop, self._waiting, self._expire)
        self._last_opaque = 0
        self._reading = True
        self._stopped_reading = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._timer: asyncio.TimerHandle | None = None
        self._linger: asyncio.TimerHandle | None = None
        self._active_at = 0.0
        self._received_at = 0.0
        self._incomplete_since: float | None = None
        self._close_callbacks: list[Callable[[Connection], None]] = []
        self._gone = asyncio.Event()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        """Done when commands can flow: immediately, or after the TLS handshake. Fails with ``ConnectionLost``."""
        self.ready.add_done_callback(lambda done: done.cancelled() or done.exception())

    # What the rest of refmq uses -------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether the connection is closed or being closed."""
        return self.close_reason is not None

    @property
    def encrypted(self) -> bool:
        return self._tls is not None

    def now(self) -> float:
        """The loop's time."""
        return self._loop.time()

    @property
    def last_received_at(self) -> float:
        """The loop's time when the peer was last heard from."""
        return self._received_at

    @property
    def in_flight(self) -> int:
        """Requests from the peer that are being served."""
        return self._in_flight

    async def request(self, command: RemotingCommand, timeout_s: float) -> RemotingCommand:
        """Send a request and wait for its answer. The request id of ``command`` is replaced.

        After ``RequestTimedOut`` or ``ConnectionLost`` the peer may or may not have carried it out.
        """
        deadline = self._loop.time() + timeout_s
        if self.close_reason is not None or not self._writable.is_set():
            try:
                async with asyncio.timeout_at(deadline):
                    await self.drained()
            except TimeoutError:
                raise self._timed_out(command, timeout_s) from None
        if len(self._waiting) >= self._limits.requests_waiting_max:
            raise NetworkError(self.peer, f"not sent, {len(self._waiting)} requests already await answers")
        answer: asyncio.Future[RemotingCommand] = self._loop.create_future()
        opaque = self._next_opaque()
        self._waiting[opaque] = answer
        self._deadlines.add(deadline, opaque)
        try:
            self._send(command, opaque)
            return await answer
        except TimeoutError:
            raise self._timed_out(command, timeout_s) from None
        finally:
            self._waiting.pop(opaque, None)

    def _expire(self, opaque: int) -> None:
        answer = self._waiting.pop(opaque)
        if not answer.done():
            answer.set_exception(TimeoutError())

    def _timed_out(self, command: RemotingCommand, timeout_s: float) -> RequestTimedOut:
        return RequestTimedOut(self.peer, f"no answer to request {command.code} within {timeout_s:g} s")

    def send_oneway(self, command: RemotingCommand) -> bool:
        """Send a one-way request. False if the connection is closed."""
        assert command.is_oneway, "a one-way request carries the one-way flag"
        return self._send(command, self._next_opaque())

    def send(self, command: RemotingCommand) -> bool:
        """Send a command as is: a response that a handler did not return. False if the connection is closed."""
        return self._send(command, None)

    def _send(self, command: RemotingCommand, opaque: int | None) -> bool:
        if self.close_reason is not None:
            return False
        self._write(encode(command, opaque, frame_length_max=self._limits.frame_length_max))
        return self.close_reason is None

    def send_frame(self, frame: bytes) -> bool:
        """Send a finished frame. False if the connection is closed."""
        if self.closed:
            return False
        self._write(frame)
        return not self.closed

    async def drained(self) -> None:
        """Wait until the peer accepts what we send. ``ConnectionLost`` if it is gone."""
        await self._writable.wait()
        if self.close_reason is not None:
            raise ConnectionLost(self.peer, self.close_reason)

    def on_close(self, callback: Callable[[Connection], None]) -> None:
        """Call ``callback`` once when the connection is gone; on the loop's next turn if it already is."""
        if self._gone.is_set():
            self._loop.call_soon(callback, self)
        else:
            self._close_callbacks.append(callback)

    def close(self, reason: str = "closed by us") -> None:
        """Send what is left and close; abort after ``linger_s`` if the peer does not accept it."""
        if self.closed:
            return
        self._flush()
        self.close_reason = reason
        if self._transport is not None:
            if self._tls is not None:
                self._tls.close()
                self._flush_tls()
            self._transport.close()
            self._linger = self._loop.call_later(self._limits.linger_s, self._cut)
        self._let_go()

    def give_up(self, reason: str) -> None:
        """Close immediately; anything unsent is lost."""
        if not self.closed:
            self.close_reason = reason
            self._let_go()
        self._cut()

    async def wait_closed(self) -> None:
        await self._gone.wait()

    def stop_reading(self) -> None:
        """Accept no further requests: the first step of an orderly close. Requests in flight are still answered."""
        self._stopped_reading = True
        self._commands = None
        self._update_reading()

    # What the transport calls ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.peer = format_peer(transport.get_extra_info("peername"))
        self.local = format_peer(transport.get_extra_info("sockname"))
        transport.set_write_buffer_limits(high=self._limits.write_buffer_high_bytes)
        self._active_at = self._received_at = self._loop.time()
        if self.closed:  # refused before the transport existed
            transport.abort()
            return
        self._arm(self._active_at + self._limits.idle_timeout_s)
        if isinstance(self._tls_settings, ClientTls):
            self._expect_the_rest()
            self._tls = TlsLayer(self._tls_settings.context, server_side=False, hostname=self._tls_settings.hostname)
            self._tls.start()
            self._flush_tls()
        elif self._tls_settings is None:
            self._plain = True
            self._become_ready()

    def data_received(self, data: bytes) -> None:
        if self.closed:
            return
        self._active_at = self._received_at = self._loop.time()
        try:
            plain = self._decrypt(data)
            if plain and not self._stopped_reading:
                self._commands = self._decoder.feed(plain)
                self._pump()
            if self._tls is not None and self._tls.ended:
                self.close("the peer ended the TLS session")
        except WireError as error:
            self._refuse(error)

    def eof_received(self) -> None:
        if not self.closed:
            self.close("the peer closed in the middle of a frame" if self._decoder.buffered else "the peer closed")

    def pause_writing(self) -> None:
        self._writable.clear()
        self._update_reading()

    def resume_writing(self) -> None:
        self._active_at = self._loop.time()
        self._writable.set()
        self._update_reading()
        self._schedule_pump()

    def connection_lost(self, error: Exception | None) -> None:
        if self.close_reason is None:
            self.close_reason = f"the connection broke: {error}" if error is not None else "the peer closed"
            self._let_go()
        log.debug("%s: %s", self.peer, self.close_reason)
        self._transport = None
        if self._linger is not None:
            self._linger.cancel()  # or it would keep this object for as long as it may linger
        self._gone.set()
        callbacks, self._close_callbacks = self._close_callbacks, []
        for callback in callbacks:
            callback(self)

    # Bytes in --------------------------------------------------------------------------------------------------

    def _decrypt(self, data: bytes) -> bytes:
        if self._plain:
            return data
        if self._tls is None:
            settings = self._tls_settings
            assert isinstance(settings, ServerTls), "a client knows from the start whether it speaks TLS"
            looks_like_tls = data[0] == HANDSHAKE_BYTE
            if not looks_like_tls and settings.mode is not TlsMode.ENFORCING:
                self._plain = True
                self._become_ready()
                return data
            if not looks_like_tls or settings.context is None or settings.mode is TlsMode.DISABLED:
                raise WireError("first byte", 0, f"what TLS mode {settings.mode.value} allows", f"0x{data[0]:02x}")
            self._expect_the_rest()
            self._tls = TlsLayer(settings.context, server_side=True)
        try:
            plain = self._tls.receive(data)
        finally:
            self._flush_tls()  # after an error too: the alert tells the peer why
        if self._tls.ready:
            self._become_ready()
        return plain

    def _become_ready(self) -> None:
        if not self.ready.done():
            self._incomplete_since = None
            self.ready.set_result(None)

    def _pump(self) -> None:
        """Serve complete frames as long as the bounds allow, and send what they bring about."""
        self._pump_scheduled = False
        flushes_here, self._will_flush = not self._will_flush, True
        somebody_wakes = False
        try:
            somebody_wakes = self._take_frames()
        finally:
            if flushes_here and somebody_wakes:
                # Whoever got an answer runs next and may ask again: we come right behind them, not a turn later.
                self._loop.call_soon(self._flush)
            elif flushes_here:
                self._flush()
        if not self.closed:
            if self._decoder.buffered == 0 or self._commands is not None:
                self._incomplete_since = None  # frames waiting for us are not the peer's fault
            elif self._incomplete_since is None:
                self._expect_the_rest()
            self._account()
            self._update_reading()

    def _take_frames(self) -> bool:
        """Serves requests and settles answers. True when an answer was among them."""
        answered = False
        may_serve = self._may_serve()
        for _ in range(self._limits.requests_per_turn_max):
            if self._commands is None or not may_serve or self.close_reason is not None:
                break
            try:
                command = next(self._commands, None)
            except WireError as error:
                self._refuse(error)
                break
            if command is None:
                self._commands = None
                break
            self._incomplete_since = None  # the frame after this one has a time of its own
            if command.flag & RESPONSE_FLAG:
                self._settle(command)
                answered = True
            else:
                self._serve(command)
                may_serve = self._may_serve()
        else:
            self._schedule_pump()
        return answered

    def _schedule_pump(self) -> None:
        if self._commands is not None and not self._pump_scheduled and not self.closed:
            self._pump_scheduled = True
            self._loop.call_soon(self._pump)

    def _may_serve(self) -> bool:
        return (
            self._in_flight < self._limits.requests_in_flight_max
            and self._in_flight_bytes <= self._limits.request_bytes_in_flight_max
            and self._writable.is_set()
        )

    def _update_reading(self) -> None:
        """Read only while what is read can be served."""
        wanted = self._may_serve() and self._commands is None and not self._stopped_reading
        if self._transport is None or self.closed or wanted == self._reading:
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _refuse(self, error: WireError) -> None:
        self.close(f"the peer sent an invalid frame: {error}")

    # Requests of the peer --------------------------------------------------------------------------------------

    def _serve(self, command: RemotingCommand) -> None:
        try:
            result = self._handler(self, command)
        except Exception as error:
            self._reply(command, self._answer_to_error(command, error))
            return
        # Asked in this order because almost every answer is a command, and seeing that is quick.
        if result is None or isinstance(result, RemotingCommand) or not inspect.isawaitable(result):
            self._reply(command, result)
            return
        size = len(command.body) + COMMAND_OVERHEAD_BYTES
        self._in_flight += 1
        self._in_flight_bytes += size
        task = self._loop.create_task(self._finish(command, result, size))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, command: RemotingCommand, result: Awaitable[Answer], size: int) -> None:
        try:
            answer = await result
        except Exception as error:
            answer = self._answer_to_error(command, error)
        finally:
            self._in_flight -= 1
            self._in_flight_bytes -= size
        self._reply(command, answer)
        self._account()
        self._update_reading()
        self._schedule_pump()

    def _reply(self, command: RemotingCommand, answer: Answer) -> None:
        if answer is None or command.is_oneway:
            return
        try:
            self.send(answer)
        except RefmqError as error:  # the answer does not fit a frame
            self.send(response(command, SYSTEM_ERROR, remark=str(error)))

    def _answer_to_error(self, command: RemotingCommand, error: Exception) -> Answer:
        if isinstance(error, AssertionError):
            if self._on_failure is None:
                raise error
            self._on_failure(error)
        elif not isinstance(error, RefmqError):
            text = f"request {command.code} from {self.peer} hit a bug in refmq"
            self._loop.call_exception_handler({"message": text, "exception": error})
        if command.is_oneway:
            return None
        return response(command, SYSTEM_ERROR, remark=str(error) or type(error).__name__)

    # Requests of ours ------------------------------------------------------------------------------------------

    def _next_opaque(self) -> int:
        opaque = self._last_opaque % OPAQUE_MAX + 1
        while opaque in self._waiting:
            opaque = opaque % OPAQUE_MAX + 1
        self._last_opaque = opaque
        return opaque

    def _settle(self, command: RemotingCommand) -> None:
        answer = self._waiting.pop(command.opaque, None)
        if answer is None or answer.done():
            log.debug("%s: answer to unknown or late request %d", self.peer, command.opaque)
        else:
            answer.set_result(command)

    # Bytes out -------------------------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        """What is written in one turn of the loop is sent together: a system call for each answer would cost more
        than most answers."""
        if self._transport is None:
            return
        if not self._will_flush:
            self._will_flush = True
            self._loop.call_soon(self._flush)
        self._outgoing.append(data)
        self._outgoing_bytes += len(data)
        if self._outgoing_bytes >= GATHERED_BYTES_MAX:
            self._flush()

    def _flush(self) -> None:
        self._will_flush = False
        if self._transport is None or not self._outgoing:
            return
        data = self._outgoing[0] if len(self._outgoing) == 1 else b"".join(self._outgoing)
        self._outgoing.clear()
        self._outgoing_bytes = 0
        if self._tls is not None:
            self._tls.send(data)
            self._flush_tls()
        else:
            self._transport.write(data)
        unsent = self._unsent_bytes()
        if unsent == 0:
            self._active_at = self._loop.time()
        elif unsent > self._limits.write_buffer_bytes_max:
            self.give_up(f"the peer left {unsent} bytes unread")
            return
        self._account()

    def _flush_tls(self) -> None:
        if self._tls is not None and self._transport is not None:
            data = self._tls.take_outgoing()
            if data:
                self._transport.write(data)

    def _unsent_bytes(self) -> int:
        waiting = self._outgoing_bytes + (self._tls.unsent_bytes if self._tls is not None else 0)
        return waiting + (self._transport.get_write_buffer_size() if self._transport is not None else 0)

    # Bounds and the end ----------------------------------------------------------------------------------------

    def _account(self) -> None:
        if self._budget is not None and not self.closed:
            unsent = self._unsent_bytes()
            self._budget.hold(self, self._decoder.buffered + self._in_flight_bytes + unsent)
            if unsent and self._account_again is None:  # nobody tells when the last of it is gone
                self._account_again = self._loop.call_later(ACCOUNT_AGAIN_S, self._recount)

    def _recount(self) -> None:
        self._account_again = None
        self._account()

    def _check_timeouts(self) -> None:
        now = self._loop.time()
        limits = self._limits
        if now >= self._active_at + limits.idle_timeout_s:
            self.give_up(f"silent for {limits.idle_timeout_s:g} s")
        elif self._incomplete_since is not None and now >= self._incomplete_since + limits.frame_timeout_s:
            self.give_up(f"a frame or handshake was not complete within {limits.frame_timeout_s:g} s")
        else:
            self._timer = None
            self._arm(self._active_at + limits.idle_timeout_s)
            if self._incomplete_since is not None:
                self._arm(self._incomplete_since + limits.frame_timeout_s)

    def _expect_the_rest(self) -> None:
        """A frame or handshake has started: its timeout runs from now."""
        self._incomplete_since = self._loop.time()
        self._arm(self._incomplete_since + self._limits.frame_timeout_s)

    def _arm(self, due: float) -> None:
        """Check the timeouts no later than this. One timer serves both: it only ever moves earlier, and works out what
        is due when it fires."""
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._check_timeouts)

    def _let_go(self) -> None:
        """Forget what only an open connection needs. Called once, when the connection starts to close."""
        assert self.close_reason is not None
        if self._timer is not None:
            self._timer.cancel()
        if self._account_again is not None:
            self._account_again.cancel()
        if self._budget is not None:
            self._budget.hold(self, 0)
        self._commands = None
        self._outgoing.clear()
        self._outgoing_bytes = 0
        self._decoder = new_decoder()  # the old one may hold a frame of maximum length
        lost = ConnectionLost(self.peer, self.close_reason)
        self._deadlines.close()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ConnectionLost(*lost.args))
        self._waiting.clear()
        if not self.ready.done():
            self.ready.set_exception(lost)
        self._writable.set()

    def _cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()
