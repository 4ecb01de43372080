"""The synchronous clients, against a broker that runs on a loop in another thread."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

import refmq
from refmq import sync
from refmq.aio.admin import Admin as AsyncAdmin
from refmq.aio.consumer import Consumer as AsyncConsumer
from refmq.aio.producer import Producer as AsyncProducer
from refmq.aio.pull_consumer import PullConsumer as AsyncPullConsumer
from refmq.client.message import ReceivedMessage
from refmq.client.transaction import TransactionState
from refmq.errors import ClosedError, InvalidMessage, UsageError
from refmq.sync.loop import LoopThread
from tests.aio.harness import servers


@pytest.fixture(scope="module")
def namesrv() -> Iterator[str]:
    thread = LoopThread()
    stack = AsyncExitStack()
    running = thread.call(stack.enter_async_context(servers()), 30)
    yield running.namesrv
    thread.call(stack.aclose(), 30)
    thread.close()


@pytest.mark.parametrize(
    ("ours", "twin"),
    [
        (sync.Producer, AsyncProducer),
        (sync.Consumer, AsyncConsumer),
        (sync.PullConsumer, AsyncPullConsumer),
        (sync.Admin, AsyncAdmin),
        (sync.Producer.transaction, AsyncProducer.transaction),
    ],
)
def test_parameters_are_those_of_the_asynchronous_twin(ours: object, twin: object) -> None:
    assert callable(ours)
    assert callable(twin)
    assert inspect.signature(ours).parameters == inspect.signature(twin).parameters


def test_a_wrong_argument_shows_at_once_and_to_type_checkers() -> None:
    """mypy --strict reads this file: were the constructors untyped, the comments would be unused, which is an error."""
    with pytest.raises(TypeError, match="group"):
        sync.Producer("127.0.0.1:1")  # type: ignore[call-arg]  # the group is missing
    with pytest.raises(TypeError, match="positional"):
        sync.Admin("127.0.0.1:1", 5.0)  # type: ignore[call-arg]  # one argument too many
    consumer = sync.Consumer("127.0.0.1:1", group="g", topics="T", mode="wrong")  # type: ignore[arg-type]  # no mode
    with pytest.raises(UsageError, match="mode is"):
        consumer.open()
    producer = sync.Producer("127.0.0.1:1", group="g", heartbeet=3)  # type: ignore[call-arg]  # no option
    with pytest.raises(UsageError, match="Did you mean heartbeat"):
        producer.open()


def test_a_message_goes_there_and_back(namesrv: str) -> None:
    with sync.Producer(namesrv, group="p") as producer:
        result = producer.send("Sync", b"hello", tag="A")
        assert result.queue.topic == "Sync"
        with pytest.raises(InvalidMessage):
            producer.send("Sync", b"")
    with sync.Consumer(namesrv, group="g", topics="Sync", start="first") as consumer:
        for message in consumer:
            with consumer.processing(message):
                assert message.body == b"hello"
            break
        assert consumer.receive(timeout=0.05) is None
        assert consumer.assignment()
    with sync.Admin(namesrv) as admin:
        assert "Sync" in admin.topics()
        assert admin.lag("g").total == 0


def test_a_failure_is_tried_again(namesrv: str) -> None:
    with sync.Producer(namesrv, group="p") as producer:
        producer.send("SyncRetry", b"x")
    with sync.Consumer(namesrv, group="r", topics="SyncRetry", start="first", max_retries=0) as consumer:
        message = consumer.receive(10)
        assert message is not None
        with consumer.processing(message):
            raise ZeroDivisionError
    with sync.PullConsumer(namesrv, group="d", start="first") as dead:
        dead.assign(*dead.queues("%DLQ%r"))
        assert [message.body for message in dead.poll(10)] == [b"x"]


def test_a_transaction_is_a_block(namesrv: str) -> None:
    async def check(message: ReceivedMessage) -> TransactionState:
        return TransactionState.UNKNOWN

    with sync.Producer(namesrv, group="t", check=check) as producer:
        with producer.transaction("SyncTx", b"good") as transaction:
            assert transaction.result is not None
        with pytest.raises(ZeroDivisionError), producer.transaction("SyncTx", b"bad"):
            raise ZeroDivisionError
    with sync.Consumer(namesrv, group="tx", topics="SyncTx", start="first") as consumer:
        message = consumer.receive(10)
        assert message is not None
        assert message.body == b"good"
        consumer.ack(message)


def test_closing_ends_the_thread_and_what_comes_later_is_refused(namesrv: str) -> None:
    before = threading.active_count()
    producer = sync.Producer(namesrv, group="p")
    with pytest.raises(ClosedError, match="use `with`"):
        producer.send("Sync", b"x")
    with producer:
        producer.send("Sync", b"x")
        with pytest.raises(ClosedError, match="opened before"):
            producer.open()
    assert threading.active_count() == before
    with pytest.raises(ClosedError):
        producer.send("Sync", b"x")
    producer.close()


@pytest.mark.parametrize(
    ("plain", "twin"),
    [
        (sync.Producer, AsyncProducer),
        (sync.Consumer, AsyncConsumer),
        (sync.PullConsumer, AsyncPullConsumer),
        (sync.Admin, AsyncAdmin),
    ],
)
def test_every_method_of_the_asynchronous_client_has_a_synchronous_form(plain: type, twin: type) -> None:
    inner = {"begin_half", "end_half", "settle", "batches"}
    wanted = {name for name, value in vars(twin).items() if inspect.iscoroutinefunction(value) and name[0] != "_"}
    assert wanted - inner <= {name for name in dir(plain) if name[0] != "_"}


def test_the_package_has_it_under_its_name() -> None:
    assert refmq.sync is sync
