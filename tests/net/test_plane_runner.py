"""Steps and their effects, whatever the ports are: what every engine does with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from refmq.errors import CorruptRecord
from refmq.net.broker_node import BrokerNode
from refmq.net.connection import Connection
from refmq.net.engine import LoopEngine
from refmq.plane.inputs import Frame
from refmq.protocol.codes import ResponseCode
from refmq.protocol.command import RemotingCommand
from refmq.store.store import ReferenceStore
from refmq.store.values import AppendPlan, PutStatus
from tests.net.broker_requests import TIMEOUT_S, pull_request, send_request
from tests.net.broker_support import FREE_PORT, SMALL_STORE, memory_disk, serving_broker
from tests.net.support import asking, run


class WatchedEngine(LoopEngine):
    """Writes down when a step begins and ends, and when its append happens."""

    def __init__(self) -> None:
        store = ReferenceStore(memory_disk(), SMALL_STORE)
        super().__init__("watched", store)
        self.seen: list[str] = []
        append = store.append

        def watched_append(plan: AppendPlan) -> PutStatus:
            self.seen.append("append")
            return append(plan)

        store.append = watched_append  # type: ignore[method-assign]  # this store's alone

    @contextmanager
    def _watched(self) -> Iterator[None]:
        self.seen.append("[")
        yield
        self.seen.append("]")

    def _alone(self) -> AbstractContextManager[object]:
        return self._watched()

    def _perform(self, *given: Any) -> Any:
        self.seen.append("effects")
        return super()._perform(*given)


def test_a_step_its_append_and_its_state_are_one_and_the_other_effects_come_behind() -> None:
    async def story() -> None:
        engine = WatchedEngine()
        node = BrokerNode(FREE_PORT, SMALL_STORE, memory_disk(), engine)
        host, port = await node.start("127.0.0.1")
        async with asking() as client:
            await client.invoke(f"{host}:{port}", send_request("T", b"first"), TIMEOUT_S)
            engine.seen.clear()
            await client.invoke(f"{host}:{port}", send_request("T", b"x"), TIMEOUT_S)
        assert engine.seen[:4] == ["[", "append", "]", "effects"]
        await node.stop(5.0)

    run(story())


def test_a_woken_pull_that_meets_a_damaged_record_gets_the_words_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with serving_broker() as (node, address), asking() as client:
            await client.invoke(address, send_request("T", b"x"), TIMEOUT_S)
            await client.invoke(address, pull_request("T"), TIMEOUT_S)
            engine = node.engine
            assert isinstance(engine, LoopEngine)
            (connection,) = engine.servers[0].connections
            answered: list[RemotingCommand] = []
            monkeypatch.setattr(Connection, "send", lambda self, command: answered.append(command))

            def damaged(*given: object) -> None:
                raise CorruptRecord("magic code", 7, 1, 2)

            monkeypatch.setattr(engine.store, "get_message", damaged)
            engine._run_again(Frame(99, connection.number, connection.peer, pull_request("T")))
            (answer,) = answered
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert "magic code" in (answer.remark or "")

    run(story())
