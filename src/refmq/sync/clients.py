"""The synchronous forms of the clients: each wraps its asynchronous twin."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from functools import partial
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from refmq.aio.admin import Admin as AsyncAdmin
from refmq.aio.consumer import Consumer as AsyncConsumer
from refmq.aio.producer import Producer as AsyncProducer
from refmq.aio.producer import Transaction as AsyncTransaction
from refmq.aio.pull_consumer import PullConsumer as AsyncPullConsumer
from refmq.client.message import SUCCESS, ReceivedMessage, SendResult, Verdict
from refmq.errors import ClosedError
from refmq.model.ids import MessageQueue
from refmq.sync.loop import LoopThread

C = TypeVar("C", AsyncProducer, AsyncConsumer, AsyncPullConsumer, AsyncAdmin)
P = ParamSpec("P")
R = TypeVar("R")


class _Client(Generic[C]):
    """A client on a loop of its own. Made on the loop, because some of its parts belong to one."""

    _kind: type[C]

    def __init__(self, *positional: Any, **named: Any) -> None:
        inspect.signature(self._kind).bind(*positional, **named)  # a mistake shows here, not when the client opens
        self._arguments = (positional, named)
        self._thread: LoopThread | None = None
        self._client: C | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Starts the thread and opens the client."""
        if self._thread is not None:
            raise ClosedError("This client was opened before; make a new one.")
        self._thread = LoopThread()
        try:
            self._client = self._thread.call(self._open())
        except BaseException:
            self._thread.close()
            raise

    async def _open(self) -> C:
        positional, named = self._arguments
        client = self._kind(*positional, **named)
        await client.open()
        return client

    def close(self, timeout: float = 10.0) -> None:
        """Closes the client and ends the thread, in about ``timeout`` seconds."""
        if self._thread is None or self._client is None:
            return
        client, self._client = self._client, None
        try:
            self._thread.call(client.close(timeout), timeout + 5.0)
        finally:
            self._thread.close()

    @property
    def asynchronous(self) -> C:
        """The client that does the work. Its methods are called on its own loop only."""
        if self._client is None:
            raise ClosedError("This client is not open: use `with`, which opens and closes it.")
        return self._client

    def _call(self, work: Coroutine[Any, Any, R]) -> R:
        assert self._thread is not None, "an open client has a thread"
        return self._thread.call(work)


def _made_like(
    kind: Callable[P, object],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Gives a constructor the parameters of the asynchronous client, for readers, editors and type checkers."""

    def dressed(init: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        signature = inspect.signature(kind)
        init.__signature__ = signature.replace(  # type: ignore[attr-defined]  # inspect looks for it
            parameters=[me, *signature.parameters.values()], return_annotation=None
        )
        return init

    return dressed


def _taking(
    method: Callable[Concatenate[Any, P], object],
) -> Callable[[Callable[..., R]], Callable[Concatenate[Any, P], R]]:
    """Gives a method the parameters of another one."""

    def dressed(own: Callable[..., R]) -> Callable[Concatenate[Any, P], R]:
        own.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]  # as above
        return own

    return dressed


def _waits(
    method: Callable[Concatenate[Any, P], Awaitable[R]],
) -> Callable[Concatenate[Any, P], R]:
    """The synchronous form of a method of the asynchronous client, with the same arguments and result."""
    name = method.__name__

    def wrapped(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self._call(getattr(self.asynchronous, name)(*args, **kwargs))
        return result

    wrapped.__name__, wrapped.__doc__ = name, method.__doc__
    return wrapped


class Producer(_Client[AsyncProducer]):
    """``refmq.Producer`` without an event loop. Takes the same arguments; ``check`` stays a coroutine function."""

    _kind = AsyncProducer

    @_made_like(AsyncProducer)
    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)

    send = _waits(AsyncProducer.send)
    send_oneway = _waits(AsyncProducer.send_oneway)
    send_batch = _waits(AsyncProducer.send_batch)
    request = _waits(AsyncProducer.request)
    reply = _waits(AsyncProducer.reply)
    queues = _waits(AsyncProducer.queues)
    send_in_transaction = _waits(AsyncProducer.send_in_transaction)

    @_taking(AsyncProducer.transaction)
    def transaction(self, *positional: Any, **named: Any) -> Transaction:
        """``with producer.transaction(...):`` leaving the block commits, an exception rolls back."""
        return Transaction(self, partial(self.asynchronous.transaction, *positional, **named))


class Transaction:
    """The synchronous form of a transaction."""

    def __init__(self, producer: Producer, make: Callable[[], AsyncTransaction]) -> None:
        self._producer = producer
        self._make = make
        self._transaction: AsyncTransaction | None = None

    async def _begin(self) -> AsyncTransaction:
        transaction = self._make()
        await transaction.__aenter__()
        return transaction

    def __enter__(self) -> Self:
        self._transaction = self._producer._call(self._begin())
        return self

    @property
    def result(self) -> SendResult | None:
        """Where the half message is."""
        return self._begun().result

    def commit(self) -> None:
        self._producer._call(self._begun().commit())

    def rollback(self) -> None:
        self._producer._call(self._begun().rollback())

    def _begun(self) -> AsyncTransaction:
        if self._transaction is None:
            raise ClosedError("The transaction has not begun: use `with`.")
        return self._transaction

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._producer._call(self._begun().__aexit__(kind, error, traceback))


class Consumer(_Client[AsyncConsumer]):
    """``refmq.Consumer`` without an event loop: iterate over it, or give it a listener (a coroutine function)."""

    _kind = AsyncConsumer

    @_made_like(AsyncConsumer)
    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)

    commit = _waits(AsyncConsumer.commit)
    seek = _waits(AsyncConsumer.seek)
    seek_to_time = _waits(AsyncConsumer.seek_to_time)
    subscribe = _waits(AsyncConsumer.subscribe)
    unsubscribe = _waits(AsyncConsumer.unsubscribe)
    assigned = _waits(AsyncConsumer.assigned)
    reply = _waits(AsyncConsumer.reply)

    def assignment(self) -> tuple[MessageQueue, ...]:
        """The queues that this consumer has at present."""
        return self.asynchronous.assignment()

    def __iter__(self) -> Iterator[ReceivedMessage]:
        """``for message in consumer: with consumer.processing(message): ...``"""
        while True:
            message = self._call(self.asynchronous._next())
            if message is None:
                return
            yield message

    def receive(self, timeout: float) -> ReceivedMessage | None:
        """The next message, or None when none comes within ``timeout`` seconds."""
        return self._call(self.asynchronous.receive(timeout))

    def processing(self, message: ReceivedMessage) -> Processing:
        """``with consumer.processing(message):`` leaving the block is success, an exception means "later"."""
        return Processing(self, message)

    def ack(self, message: ReceivedMessage) -> None:
        self._call(self.asynchronous.settle(message, SUCCESS))

    def retry_later(self, message: ReceivedMessage, *, delay_level: int = 0, reason: str = "") -> None:
        self._call(self.asynchronous.settle(message, Verdict(False, delay_level, reason)))


class Processing:
    """The block in which an application deals with a message."""

    def __init__(self, consumer: Consumer, message: ReceivedMessage) -> None:
        self._consumer = consumer
        self._message = message

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if error is not None and not isinstance(error, Exception):
            return False
        if error is None:
            self._consumer.ack(self._message)
        else:
            self._consumer.retry_later(self._message, reason=f"{type(error).__name__}: {error}")
        return True


class PullConsumer(_Client[AsyncPullConsumer]):
    """``refmq.PullConsumer`` without an event loop."""

    _kind = AsyncPullConsumer

    @_made_like(AsyncPullConsumer)
    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)

    assign = _waits(AsyncPullConsumer.assign)
    queues = _waits(AsyncPullConsumer.queues)
    assigned = _waits(AsyncPullConsumer.assigned)
    poll = _waits(AsyncPullConsumer.poll)
    pull = _waits(AsyncPullConsumer.pull)
    commit = _waits(AsyncPullConsumer.commit)
    committed = _waits(AsyncPullConsumer.committed)
    seek = _waits(AsyncPullConsumer.seek)
    seek_to_begin = _waits(AsyncPullConsumer.seek_to_begin)
    seek_to_end = _waits(AsyncPullConsumer.seek_to_end)
    offset_at = _waits(AsyncPullConsumer.offset_at)

    def assignment(self) -> tuple[MessageQueue, ...]:
        """The queues that are read at present."""
        return self.asynchronous.assignment()


class Admin(_Client[AsyncAdmin]):
    """``refmq.Admin`` without an event loop."""

    _kind = AsyncAdmin

    @_made_like(AsyncAdmin)
    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)

    cluster = _waits(AsyncAdmin.cluster)
    topics = _waits(AsyncAdmin.topics)
    create_topic = _waits(AsyncAdmin.create_topic)
    delete_topic = _waits(AsyncAdmin.delete_topic)
    route = _waits(AsyncAdmin.route)
    topic_offsets = _waits(AsyncAdmin.topic_offsets)
    create_group = _waits(AsyncAdmin.create_group)
    delete_group = _waits(AsyncAdmin.delete_group)
    groups = _waits(AsyncAdmin.groups)
    members = _waits(AsyncAdmin.members)
    lag = _waits(AsyncAdmin.lag)
    offsets = _waits(AsyncAdmin.offsets)
    set_offset = _waits(AsyncAdmin.set_offset)
    reset_offset = _waits(AsyncAdmin.reset_offset)
    clone_offsets = _waits(AsyncAdmin.clone_offsets)
    offset_at = _waits(AsyncAdmin.offset_at)
    message = _waits(AsyncAdmin.message)
    message_at = _waits(AsyncAdmin.message_at)
    messages_by_key = _waits(AsyncAdmin.messages_by_key)
    messages_by_time = _waits(AsyncAdmin.messages_by_time)
    messages_in = _waits(AsyncAdmin.messages_in)
    read_queue = _waits(AsyncAdmin.read_queue)
