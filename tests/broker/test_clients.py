"""Heartbeats, leaving, closed connections and the scan: who is a member, and who is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from refmq.broker import clients
from refmq.broker.clients import Changed, ClientTable, ConnectionId, Member
from refmq.model.ids import ClientId, TimestampMs
from refmq.protocol.bodies.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    MessageModel,
    SubscriptionData,
)
from refmq.protocol.command import LanguageCode
from tests.broker.heartbeats import consumer_of


def member(number: int, at_ms: int = 0, client: str | None = None) -> Member:
    name = ClientId(client or f"c{number}")
    return Member(ConnectionId(number), f"127.0.0.1:{number}", name, LanguageCode.JAVA, 409, TimestampMs(at_ms))


def consumer(group: str = "g", *topics: str, version: int = 1) -> ConsumerData:
    return ConsumerData(
        group_name=group,
        consume_type=ConsumeType.CONSUME_PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        subscription_data_set=tuple(
            SubscriptionData(topic=topic, sub_string="*", sub_version=version) for topic in topics or ("t",)
        ),
    )


def beat(table: ClientTable, number: int, at_ms: int = 0, data: ConsumerData | None = None) -> clients.ClientStep:
    return clients.heartbeat(table, data or consumer(), member(number, at_ms), TimestampMs(at_ms))


def test_a_new_member_and_a_new_topic_are_changes_and_a_newer_version_is_not() -> None:
    first = beat(ClientTable(), 1)
    assert first.changed == (Changed("g"),)
    again = beat(first.table, 1, 5)
    assert again.changed == ()
    newer = beat(again.table, 1, 5, consumer("g", "t", version=2))
    assert newer.changed == ()
    assert newer.table.consumers["g"].subscriptions["t"].sub_version == 2
    older = beat(newer.table, 1, 5, consumer("g", "t", version=1))
    assert older.table.consumers["g"].subscriptions["t"].sub_version == 2
    more = beat(older.table, 1, 5, consumer("g", "t", "u"))
    assert more.changed == (Changed("g"),)
    fewer = beat(more.table, 1, 5, consumer("g", "u"))
    assert fewer.changed == (Changed("g"),)
    assert list(fewer.table.consumers["g"].subscriptions) == ["u"]


def test_a_client_that_is_connected_twice_is_two_members() -> None:
    table = clients.heartbeat(ClientTable(), consumer(), member(1, client="c"), TimestampMs(0)).table
    table = clients.heartbeat(table, consumer(), member(2, client="c"), TimestampMs(0)).table
    assert [m.client_id for m in table.consumers["g"].ordered_members()] == ["c", "c"]


def test_the_last_one_to_leave_takes_the_group_with_it() -> None:
    table = beat(beat(ClientTable(), 1).table, 2).table
    step = clients.leave(table, "g", ConnectionId(1))
    assert step.changed == (Changed("g", emptied=False),)
    last = clients.leave(step.table, "g", ConnectionId(2))
    assert last.changed == (Changed("g", emptied=True),)
    assert last.table == ClientTable()
    assert clients.leave(last.table, "g", ConnectionId(2)).changed == ()


def test_who_leaves_without_being_a_member_makes_the_members_look_again() -> None:
    table = beat(beat(ClientTable(), 1).table, 2).table
    step = clients.leave(table, "g", ConnectionId(3))
    assert step == clients.ClientStep(table, (Changed("g"),))
    assert clients.leave(table, "h", ConnectionId(1)) == clients.ClientStep(table)


def test_a_closed_connection_leaves_every_group_it_was_in() -> None:
    table = beat(beat(ClientTable(), 1).table, 1, 0, consumer("h")).table
    table = clients.heartbeat_producer(table, "p", member(1))
    step = clients.remove_member(table, ConnectionId(1))
    assert step.changed == (Changed("g", emptied=True), Changed("h", emptied=True))
    assert step.table == ClientTable()


def test_the_scan_removes_who_was_silent_too_long_and_tells_the_others() -> None:
    table = beat(beat(ClientTable(), 1, 0).table, 2, 1_000).table
    assert clients.scan_members(table, TimestampMs(120_000)).expired == ()
    step = clients.scan_members(table, TimestampMs(120_001))
    assert step.expired == (ConnectionId(1),)
    assert step.changed == (Changed("g", emptied=False),)
    assert [m.connection for m in step.table.consumers["g"].ordered_members()] == [2]


def test_a_producer_is_found_by_its_client_id_until_its_last_group_is_gone() -> None:
    table = clients.heartbeat_producer(ClientTable(), "p", member(1))
    table = clients.heartbeat_producer(table, "q", member(1))
    table = clients.leave_producer(table, "p", ConnectionId(1))
    assert table.producer_connections[ClientId("c1")] == 1
    assert clients.leave_producer(table, "q", ConnectionId(1)) == ClientTable()


def test_a_newer_connection_of_a_producer_keeps_being_found_when_the_older_closes() -> None:
    table = clients.heartbeat_producer(ClientTable(), "p", member(1, client="c"))
    table = clients.heartbeat_producer(table, "p", member(2, client="c"))
    table = clients.remove_member(table, ConnectionId(1)).table
    assert table.producer_connections[ClientId("c")] == 2


def test_one_connection_cannot_register_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "GROUPS_PER_CONNECTION_MAX", 2)
    table = ClientTable()
    for n in range(5):
        table = beat(table, 1, 0, consumer(f"g{n}")).table
        table = clients.heartbeat_producer(table, f"p{n}", member(1))
    assert len(table.consumers) == 2
    assert len(table.producers) == 2


HISTORIES = st.lists(
    st.tuples(
        st.sampled_from(["beat", "produce", "leave", "leave_producer", "close", "scan"]),
        st.integers(1, 3),
        st.sampled_from(["g", "h"]),
        st.sampled_from([0, 60_000, 120_001]),
    ),
    max_size=30,
)


def run(history: list[tuple[str, int, str, int]]) -> ClientTable:
    table, now = ClientTable(), 0
    for what, number, group, wait in history:
        now += wait
        connection = ConnectionId(number)
        match what:
            case "beat":
                table = beat(table, number, now, consumer(group)).table
            case "produce":
                table = clients.heartbeat_producer(table, group, member(number, now))
            case "leave":
                table = clients.leave(table, group, connection).table
            case "leave_producer":
                table = clients.leave_producer(table, group, connection)
            case "close":
                table = clients.remove_member(table, connection).table
            case _:
                table = clients.scan_members(table, TimestampMs(now)).table
    return table


def consistent(table: ClientTable) -> bool:
    """The indexes by connection say exactly what the groups say, and no group is empty."""
    consumers = {(c, g) for g, group in table.consumers.items() for c in group.members}
    producers = {(c, g) for g, members in table.producers.items() for c in members}
    reachable = {c for c, _ in producers}
    return (
        consumers == {(c, g) for c, groups in table.consumer_groups_of.items() for g in groups}
        and producers == {(c, g) for c, groups in table.producer_groups_of.items() for g in groups}
        and all(len(group.members) for group in table.consumers.values())
        and all(len(members) for members in table.producers.values())
        and set(table.producer_connections.values()) <= reachable
    )


@given(HISTORIES)
def test_the_indexes_and_the_groups_agree_after_any_history(history: list[tuple[str, int, str, int]]) -> None:
    assert consistent(run(history))


def test_the_property_catches_a_connection_that_is_forgotten_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = clients.leave_producer

    def forgetful(table: ClientTable, group: str, connection: ConnectionId) -> ClientTable:
        return replace(honest(table, group, connection), producer_connections=table.producer_connections)

    monkeypatch.setattr(clients, "leave_producer", forgetful)

    @settings(database=None, max_examples=2_000, phases=[Phase.generate])
    @given(HISTORIES)
    def property_(history: list[tuple[str, int, str, int]]) -> None:
        assert consistent(run(history))

    with pytest.raises(AssertionError):
        property_()


def test_a_subscription_of_the_same_version_is_the_same() -> None:
    member = Member(ConnectionId(1), "a:1", ClientId("c"), LanguageCode.JAVA, 409, TimestampMs(0))
    first = SubscriptionData(topic="T", sub_string="a", sub_version=7)
    table = clients.heartbeat(ClientTable(), consumer_of(first), member, TimestampMs(0)).table
    again = consumer_of(replace(first, sub_string="b"))
    table = clients.heartbeat(table, again, member, TimestampMs(1)).table
    assert table.consumers["consumers"].subscriptions["T"].sub_string == "a"


def test_a_client_is_silent_only_when_all_its_groups_are() -> None:
    old = Member(ConnectionId(1), "a:1", ClientId("c"), LanguageCode.JAVA, 409, TimestampMs(0))
    new = replace(old, last_update_ms=TimestampMs(200_000))
    table = clients.heartbeat(ClientTable(), consumer_of(group="g1"), new, TimestampMs(0)).table
    table = clients.heartbeat(table, consumer_of(group="g2"), old, TimestampMs(0)).table
    table = clients.heartbeat_producer(table, "p", old)
    assert clients.scan_members(table, TimestampMs(200_001)).expired == ()
