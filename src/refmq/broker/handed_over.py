"""Requests the plane hands over: those it does not serve, and those that need something first.

A request that needs a topic or a group returns to the plane once that exists (`again`), and is checked again. If it
cannot be created, the need itself says how to refuse.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import assert_never

from refmq.broker.control_plane import Broker
from refmq.broker.handlers import handle
from refmq.plane import answers
from refmq.plane.engine import Answer, Peer
from refmq.plane.inputs import Frame
from refmq.plane.needs import Need, NeedsGroup, NeedsOwnTopic, NeedsTopic


class HandedOver:
    """The broker as its engine's `ControlPlane`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def serve(self, peer: Peer, frame: Frame, need: Need | None) -> Answer | Awaitable[Answer]:
        if need is None:
            return handle(self._broker, peer, frame.command)
        if not isinstance(need, NeedsGroup):
            return self._with_topic(frame, need)
        if self._broker.group(need.group) is None:
            return answers.refused(self._broker.snapshot(), frame.command, need.refusal)
        return self._broker.engine.again(frame)

    def connection_closed(self, number: int) -> None:
        self._broker.connection_closed(number)

    async def _with_topic(self, frame: Frame, need: NeedsTopic | NeedsOwnTopic) -> Answer:
        broker = self._broker
        if not await meet_topic(broker, need):
            return answers.refused(broker.snapshot(), frame.command, need.refusal)
        answer = broker.engine.again(frame)
        return await answer if inspect.isawaitable(answer) else answer


async def meet_topic(broker: Broker, need: NeedsTopic | NeedsOwnTopic) -> bool:
    """Creates the topic if needed; returns whether the plane can see it now: it exists and is durable.

    A topic that was deleted while its table was saved is refused. Otherwise the same need could come up for ever.
    """
    match need:
        case NeedsTopic():
            topic, created = need.creation.topic, await broker.create_topic_on_send(need.creation)
        case NeedsOwnTopic():
            topic, created = need.topic, await broker.ensure_topic(need.topic, need.queue_count)
        case _:
            assert_never(need)
    return created and topic in broker.snapshot().topics
