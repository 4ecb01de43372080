"""Committed offsets over the wire, and what a new group gets."""

from __future__ import annotations

import pytest

from refmq.model.ids import QueueOffset
from refmq.protocol.codes import RequestCode, ResponseCode
from tests.broker.harness import Harness


def test_offsets_are_stored_and_a_new_group_begins_at_the_begin_of_a_young_queue() -> None:
    world = Harness()
    world.send()
    place = {"consumerGroup": "g", "topic": "T", "queueId": "0"}
    assert world.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields=place).fields["offset"] == "0"
    world.ask(RequestCode.UPDATE_CONSUMER_OFFSET, fields={**place, "commitOffset": "7"})
    assert world.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields=place).fields["offset"] == "7"
    strict = {**place, "consumerGroup": "h", "setZeroIfNotFound": "false"}
    assert world.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields=strict).code == ResponseCode.QUERY_NOT_FOUND


OK = ResponseCode.SUCCESS


def test_a_new_group_is_not_sent_to_messages_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Harness()
    world.send()
    fields = {"consumerGroup": "new", "topic": "T", "queueId": "0"}
    assert world.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields=fields).fields == {"offset": "0"}
    monkeypatch.setattr(world.store, "min_offset", lambda topic, queue: QueueOffset(5))
    assert world.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields=fields).code == ResponseCode.QUERY_NOT_FOUND


def test_a_negative_offset_is_no_offset() -> None:
    world = Harness()
    world.send("T")
    place = {"consumerGroup": "consumers", "topic": "T", "queueId": "0"}
    assert world.ask(RequestCode.UPDATE_CONSUMER_OFFSET, fields={**place, "commitOffset": "-1"}).code == OK
    assert world.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields=place).fields == {"offset": "0"}
