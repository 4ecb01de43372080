"""Bitmaps spare the reading of records and change nothing else: pulls by SQL92 give the same with and without them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rpds import HashTrieMap

from refmq.filter import message_filter
from refmq.filter.message_filter import BitmapTest
from refmq.filter.registry import Filters, TopicFilters
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import PhysicalOffset
from refmq.plane import pull
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
)
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.record import decode_properties, decode_records
from refmq.store import ReferenceStore
from tests.broker.harness import SMALL, Harness

PLAIN = BrokerConfig(enable_property_filter=True)
MAPPED = replace(PLAIN, enable_calc_filter_bit_map=True)
STORE = replace(SMALL, ext_enabled=True)
GROUPS = ("g1", "g2", "g3")
EXPRESSIONS = ("a > 1", "a = 1 OR b = 'x'", "a IS NULL", "NOT (a > 1)", "b IN ('x', 'y')")


def subscribe(world: Harness, group: str, expression: str, version: int) -> None:
    """A heartbeat of the one member of a group."""
    subscription = SubscriptionData(
        topic="T", sub_string=expression, sub_version=version, expression_type="SQL92"
    )  # fmt: skip
    consumer = ConsumerData(
        group_name=group, consume_type=ConsumeType.CONSUME_PASSIVELY, message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, subscription_data_set=(subscription,),
    )  # fmt: skip
    body = encode_body(HeartbeatData(client_id=group, consumer_data_set=(consumer,)))
    assert world.ask(RequestCode.HEART_BEAT, body=body, peer=GROUPS.index(group) + 1).code == ResponseCode.SUCCESS


def received(world: Harness, group: str) -> list[bytes]:
    """Everything that a group gets from the beginning of the queue on."""
    bodies: list[bytes] = []
    offset = 0
    while True:
        answer = world.pull("T", 0, offset, consumer_group=group, sys_flag=0)
        assert answer is not None
        if answer.code not in (ResponseCode.SUCCESS, ResponseCode.PULL_RETRY_IMMEDIATELY):
            return bodies
        bodies += [record.body for record in decode_records(answer.body)]
        offset = int(answer.fields["nextBeginOffset"])


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 2), st.sampled_from(["", "x", "z"])),
        st.tuples(st.just("send"), st.integers(0, 2), st.sampled_from(["", "x", "z"])),
        st.tuples(st.just("subscribe"), st.sampled_from(GROUPS), st.sampled_from(EXPRESSIONS)),
        st.tuples(st.just("leave"), st.sampled_from(GROUPS), st.just("")),
        st.tuples(st.just("clock"), st.just(0), st.just("")),
    ),
    max_size=30,
)
Steps = list[tuple[str, Any, str]]


def difference(steps: Steps) -> str | None:
    """Plays a history with and without bitmaps and says which group notices."""
    worlds = [Harness(PLAIN, STORE), Harness(MAPPED, STORE)]
    end = [("subscribe", group, "a > 1") for group in GROUPS]
    for version, (what, first, second) in enumerate([*steps, *end], 1):
        for world in worlds:
            match what:
                case "send":
                    properties = {"a": str(first)} | ({"b": second} if second else {})
                    world.send("T", str(version).encode(), properties=properties)
                case "subscribe":
                    subscribe(world, first, second, version)
                    world.send("T", str(version).encode(), properties={"a": "2"})  # in the same millisecond
                case "leave":
                    world.broker.connection_closed(GROUPS.index(first) + 1)
                case _:
                    world.now -= 3_600_000  # the clock is set back
        if what != "send":
            for group in GROUPS:
                with_, without = (received(world, group) for world in reversed(worlds))
                if with_ != without:
                    return group
    return None


@given(STEPS)
def test_a_pull_gives_the_same_with_and_without_bitmaps(steps: Steps) -> None:
    assert difference(steps) is None


def drop_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = TopicFilters.bitmap

    def with_one_bit_less(self: TopicFilters, properties: bytes) -> bytes:
        lossy = {name: replace(entry, bit_positions=entry.bit_positions[1:]) for name, entry in self.groups.items()}
        return honest(replace(self, groups=HashTrieMap(lossy)), properties)

    monkeypatch.setattr(TopicFilters, "bitmap", with_one_bit_less)


def trust_old_bitmaps(monkeypatch: pytest.MonkeyPatch) -> None:
    trusting = lambda positions, count, since: BitmapTest(positions, count, PhysicalOffset(0))  # noqa: E731
    monkeypatch.setattr(pull, "BitmapTest", trusting)


def forget_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = TopicFilters.bitmap

    def without_one(self: TopicFilters, properties: bytes) -> bytes:
        return honest(replace(self, groups=self.groups.remove(min(self.groups))), properties)

    monkeypatch.setattr(TopicFilters, "bitmap", without_one)


def keep_old_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is told of expressions once, and never again."""
    honest = ReferenceStore.set_filters

    def once(self: ReferenceStore, filters: Filters | None) -> None:
        if not self._filters:
            honest(self, filters)

    monkeypatch.setattr(ReferenceStore, "set_filters", once)


@pytest.mark.parametrize("mutant", [drop_a_bit, trust_old_bitmaps, forget_a_group, keep_old_expressions])
def test_the_property_catches_its_mutants(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)

    @settings(database=None, max_examples=300, phases=[Phase.generate])
    @given(STEPS)
    def property_(steps: Steps) -> None:
        assert difference(steps) is None

    with pytest.raises(AssertionError):
        property_()


def test_a_bitmap_spares_the_reading_of_what_does_not_match() -> None:
    read: dict[bool, int] = {}
    for config in (PLAIN, MAPPED):
        world = Harness(config, STORE)
        subscribe(world, "g1", "a > 1", 1)
        for number in range(20):
            world.send("T", b"x", properties={"a": str(number % 4)})
        with pytest.MonkeyPatch.context() as patch:
            asked: list[bytes] = []

            def counting(wire: bytes, asked: list[bytes] = asked) -> dict[str, str]:
                asked.append(wire)
                return decode_properties(wire)

            patch.setattr(message_filter, "decode_properties", counting)
            assert len(received(world, "g1")) == 10
        read[config.enable_calc_filter_bit_map] = len(asked)
    assert read == {False: 20, True: 10}


def test_the_extension_file_holds_the_bits_of_the_groups_that_match() -> None:
    world = Harness(MAPPED, STORE)
    subscribe(world, "g1", "a > 1", 1)
    subscribe(world, "g2", "a < 1", 1)
    world.send("T", b"x", properties={"a": "2"})
    world.send("U", b"x", properties={"a": "2"})
    bloom = world.broker.state.filters.bloom
    mapped, unmapped = (world.store.parts.queues[(topic, 0)] for topic in ("T", "U"))
    assert mapped.ext is not None and unmapped.ext is not None
    unit = mapped.ext.get(-(2**63))
    assert unit is not None and unit.bitmap == bloom.bitmap(bloom.positions("g1#T"))
    unit = unmapped.ext.get(-(2**63))
    assert unit is not None and unit.bitmap == b""
