"""Brokers come and go: histories against a naive model, and the mutants that the comparison must catch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from refmq.model.ids import BrokerId, TimestampMs
from refmq.model.step import Step
from refmq.nameserver import registration, topics
from refmq.nameserver.registration import (
    CloseChannel,
    Master,
    Registration,
    register_broker,
    register_more,
    sliced,
    takes_topics,
)
from refmq.nameserver.tables import MASTER_ID, ChannelId, RouteTable, violations
from refmq.protocol.bodies.config import DataVersion, TopicConfig
from refmq.protocol.bodies.route import BrokerData

START_MS = 1_000_000


def version(counter: int) -> DataVersion:
    return DataVersion(timestamp=1_700_000_000_000, counter=counter)


def topic(name: str, queues: int = 4, perm: int = 6) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm)


def broker(
    address: str = "a:1",
    name: str = "A",
    id_: int = 0,
    counter: int = 1,
    topic_names: tuple[str, ...] = ("T1", "T2"),
    queues: int = 4,
    cluster: str = "C",
) -> Registration:
    configs = {name_: topic(name_, queues) for name_ in topic_names}
    return Registration(cluster, name, BrokerId(id_), address, f"ha-{address}", version(counter), configs)


def registered(table: RouteTable, *brokers: Registration, channel: int = 1, now_ms: int = START_MS) -> RouteTable:
    for each in brokers:
        table = registration.register_broker(table, each, ChannelId(channel), TimestampMs(now_ms)).state
    return table


# The naive model: dictionaries, changed in place, written from the facts alone -------------------------------------


@dataclass
class Model:
    """What a nameserver should know. ``queues`` maps (topic, broker name) to (queue count, permission)."""

    now_ms: int = START_MS
    names: dict[str, dict[int, str]] = field(default_factory=dict)
    queues: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    live: dict[str, tuple[int, int, int]] = field(default_factory=dict)  # address -> heard, version, channel

    def register(self, each: Registration, channel: int) -> None:
        if each.broker_id == 0 and each.address not in self.live and len(each.topics) == 1:
            return
        ids = self.names.setdefault(each.broker_name, {})
        first = each.broker_id not in ids
        for id_ in [id_ for id_, address in ids.items() if address == each.address]:
            del ids[id_]
        ids[each.broker_id] = each.address
        counter = each.data_version.counter
        if each.broker_id == 0 and (first or each.address not in self.live or self.live[each.address][1] != counter):
            for name, config in each.topics.items():
                self.queues[name, each.broker_name] = (config.read_queue_nums, config.perm)
        self.live[each.address] = (self.now_ms, counter, channel)

    def query(self, address: str, counter: int) -> None:
        if address in self.live and self.live[address][1] == counter:
            self.live[address] = (self.now_ms, counter, self.live[address][2])

    def unregister(self, each: Registration) -> None:
        self.live.pop(each.address, None)
        self.names.get(each.broker_name, {}).pop(each.broker_id, None)
        self._forget_empty_names()

    def close(self, channel: int) -> None:
        self._remove([address for address, (_, _, own) in self.live.items() if own == channel])

    def scan(self) -> None:
        self._remove([address for address, (heard, _, _) in self.live.items() if self.now_ms - heard > 120_000])

    def wipe(self, name: str) -> None:
        for (topic_name, broker_name), (count, perm) in self.queues.items():
            if broker_name == name:
                self.queues[topic_name, broker_name] = (count, perm & 5)

    def _remove(self, addresses: list[str]) -> None:
        for address in addresses:
            del self.live[address]
            for ids in self.names.values():
                for id_ in [id_ for id_, known in ids.items() if known == address]:
                    del ids[id_]
        self._forget_empty_names()

    def _forget_empty_names(self) -> None:
        self.names = {name: ids for name, ids in self.names.items() if ids}
        self.queues = {key: data for key, data in self.queues.items() if key[1] in self.names}


def seen(table: RouteTable) -> tuple[Any, ...]:
    """The table in the words of the model."""
    names = {name: dict(data.broker_addrs) for name, data in table.brokers.items()}
    queues = {
        (name, broker_name): (data.read_queue_nums, data.perm)
        for name, by_broker in table.topic_queues.items()
        for broker_name, data in by_broker.items()
    }
    live = {
        address: (entry.last_update_ms, entry.data_version.counter, entry.channel)
        for address, entry in table.live.items()
    }
    return names, queues, live


# Histories: values, so they print, shrink and replay. Addresses change roles and names, channels come and go.

ADDRESSES = ("a:1", "a:2", "b:1")
NAMES = {"a:1": "A", "a:2": "A", "b:1": "B"}
REGISTER = st.tuples(
    st.just("register"),
    st.sampled_from(ADDRESSES),
    st.sampled_from([0, 0, 0, 1]),  # broker id
    st.integers(1, 3),  # version
    st.sets(st.sampled_from(["T1", "T2", "T3"]), min_size=1).map(sorted).map(tuple),
    st.integers(1, 3),  # channel
)
# With the version that it last told: a slave becomes the master, or a master comes again as it was.
BECOME = st.tuples(
    st.just("become"), st.sampled_from(ADDRESSES), st.sampled_from([0, 0, 1]), st.just(("T1", "T2")), st.integers(1, 3)
)
OTHERS = st.one_of(
    st.tuples(st.just("query"), st.sampled_from(ADDRESSES), st.integers(1, 3)),
    st.tuples(st.just("unregister"), st.sampled_from(ADDRESSES), st.sampled_from([0, 1])),
    st.tuples(st.just("close"), st.integers(1, 3)),
    st.tuples(st.just("wait"), st.sampled_from([1, 30_000, 60_000, 119_999, 120_000])),
    st.tuples(st.just("scan")),
    st.tuples(st.just("wipe"), st.sampled_from(["A", "B"])),
)
HISTORIES = st.lists(st.one_of(REGISTER, BECOME, OTHERS), max_size=25)


def replay(history: list[Any]) -> None:
    """Run a history on the steps and on the model; they must agree after every step, and no promise may break."""
    model, table = Model(), RouteTable()
    for action, *arguments in history:
        now = TimestampMs(model.now_ms)
        step: Step[RouteTable, CloseChannel]
        if action == "become":
            address, id_, names, channel = arguments
            _, counter, _ = model.live.get(address, (0, 1, 0))
            action, arguments = "register", [address, id_, counter, names, channel]
        match action, arguments:
            case "register", [address, id_, counter, names, channel]:
                # The queue count tells versions apart.
                each = broker(address, NAMES[address], id_, counter, names, queues=counter)
                model.register(each, channel)
                step = registration.register_broker(table, each, ChannelId(channel), now)
            case "query", [address, counter]:
                model.query(address, counter)
                step = registration.query_data_version(table, address, version(counter), now)
            case "unregister", [address, id_]:
                each = broker(address, NAMES[address], id_)
                model.unregister(each)
                step = registration.unregister_broker(table, "C", each.broker_name, each.broker_id, address)
            case "close", [channel]:
                model.close(channel)
                step = registration.close_broker_channel(table, ChannelId(channel))
            case "wait", [ms]:
                model.now_ms += ms
                continue
            case "scan", []:
                model.scan()
                step = registration.expire_brokers(table, now)
            case "wipe", [name]:
                model.wipe(name)
                step = topics.wipe_write_perm(table, name)
            case _:
                raise AssertionError(action)
        table = step.state
        assert seen(table) == (model.names, model.queues, model.live)
        assert list(violations(table)) == []


@given(HISTORIES)
@example([("register", "a:1", 1, 1, ("T1", "T2"), 1), ("become", "a:1", 0, ("T1", "T2"), 1)])
def test_the_tables_are_what_the_naive_model_says_after_every_history(history: list[Any]) -> None:
    replay(history)


def mutant_keeps_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    original = registration.without_broker_id

    def keeps(table: RouteTable, *arguments: Any) -> RouteTable:
        return replace(original(table, *arguments), topic_queues=table.topic_queues)

    monkeypatch.setattr(registration, "without_broker_id", keeps)


def mutant_old_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    first_channel: dict[str, int] = {}
    original = registration.register_broker

    def remembers(table: RouteTable, each: Registration, channel: ChannelId, now_ms: TimestampMs) -> Any:
        if each.address not in table.live:
            first_channel[each.address] = channel
        return original(table, each, channel, now_ms)

    def closes(table: RouteTable, channel: ChannelId) -> Step[RouteTable, CloseChannel]:
        gone = sorted(address for address in table.live if first_channel.get(address) == channel)
        return Step(registration.without_addresses(table, gone))

    monkeypatch.setattr(registration, "register_broker", remembers)
    monkeypatch.setattr(registration, "close_broker_channel", closes)


def mutant_two_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    def keeps_old_id(before: Any, each: Registration) -> Any:
        addresses = dict(before.broker_addrs) if before is not None else {}
        addresses[each.broker_id] = each.address
        return BrokerData(cluster=each.cluster, broker_name=each.broker_name, broker_addrs=addresses)

    monkeypatch.setattr(registration, "with_address", keeps_old_id)


def mutant_version(equal: bool) -> Callable[[pytest.MonkeyPatch], None]:
    def apply(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(DataVersion, "__eq__", lambda self, other: equal)

    return apply


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "expiry keeps the queues of a broker that is gone": mutant_keeps_queues,
    "the late close of an old channel removes a broker that came back": mutant_old_channel,
    "an address stays under its old id": mutant_two_ids,
    "every version counts as the same": mutant_version(True),
    "no version counts as the same": mutant_version(False),
    "a broker never expires": lambda patch: patch.setattr(registration, "EXPIRY_MS", 10**12),
    "a broker expires one millisecond early": lambda patch: patch.setattr(registration, "EXPIRY_MS", 119_999),
    "one topic of an unknown broker is taken for the whole": lambda patch: patch.setattr(
        registration, "register_broker_enabled", lambda table, each: True
    ),
    "a query is no sign of life": lambda patch: patch.setattr(
        registration, "query_data_version_enabled", lambda *_: False
    ),
    "a slave's topics count": lambda patch: patch.setattr(registration, "MASTER_ID", 1),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_comparison_catches_its_mutants(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[mutant](monkeypatch)

    @settings(database=None, max_examples=5_000, derandomize=True, phases=[Phase.generate])
    @given(HISTORIES)
    def property_(history: list[Any]) -> None:
        replay(history)

    with pytest.raises(AssertionError):
        property_()


# What a slave is told, and single cases worth reading ----------------------------------------------------------------


def test_a_slave_is_told_its_master_while_that_is_live() -> None:
    slave = broker("a:2", id_=1)
    table = registered(RouteTable(), slave)
    assert registration.master_of(table, "A", BrokerId(1)) is None
    table = registered(table, broker("a:1"), channel=2)
    assert registration.master_of(table, "A", BrokerId(1)) == Master("a:1", "ha-a:1")
    assert registration.master_of(table, "A", BrokerId(0)) is None
    table = registration.close_broker_channel(table, ChannelId(2)).state
    assert registration.master_of(table, "A", BrokerId(1)) is None


def test_topics_stay_while_a_slave_is_left() -> None:
    table = registered(RouteTable(), broker("a:1"), broker("a:2", id_=1), channel=1)
    table = registration.unregister_broker(table, "C", "A", BrokerId(0), "a:1").state
    route = topics.topic_route(table, "T1")
    assert route is not None
    assert route.broker_datas[0].broker_addrs == {1: "a:2"}
    table = registration.unregister_broker(table, "C", "A", BrokerId(1), "a:2").state
    assert topics.topic_route(table, "T1") is None
    assert table == RouteTable()


def test_expiry_closes_the_channel_of_the_silent_broker_only() -> None:
    table = registered(RouteTable(), broker("a:1", "A"), channel=1, now_ms=0)
    table = registered(table, broker("b:1", "B"), channel=2, now_ms=1)
    assert registration.expire_brokers(table, TimestampMs(120_000)).effects == ()
    step = registration.expire_brokers(table, TimestampMs(120_001))
    assert step.effects == (CloseChannel(ChannelId(1)),)
    assert set(step.state.live) == {"b:1"}


def test_a_topic_that_is_not_sent_any_more_stays() -> None:
    table = registered(RouteTable(), broker(topic_names=("T1", "T2")))
    table = registered(table, broker(counter=2, topic_names=("T3",)))
    assert topics.all_topics(table).topic_list == ("T1", "T2", "T3")


def test_the_cluster_of_a_broker_is_that_of_its_first_registration() -> None:
    table = registered(RouteTable(), broker(cluster="C1"), broker(cluster="C2"))
    assert table.brokers["A"].cluster == "C1"
    assert {cluster: set(names) for cluster, names in table.clusters.items()} == {"C1": {"A"}, "C2": {"A"}}
    table = registration.close_broker_channel(table, ChannelId(1)).state
    assert table == RouteTable()


def test_there_is_room_for_a_bounded_number_of_brokers_and_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "BROKERS_MAX", 1)
    monkeypatch.setattr(registration, "TOPICS_MAX", 5)
    table = registered(RouteTable(), broker("a:1", "A"), broker("b:1", "B"))
    assert set(table.live) == {"a:1"}
    assert registered(table, broker("a:1", "A", counter=2, topic_names=tuple("abcd"))) == table
    assert set(registered(table, broker("a:1", "A", counter=2, topic_names=("c", "d"))).topic_queues) > {"c", "d"}


def test_filter_servers_come_and_go_with_registrations() -> None:
    table = registered(RouteTable(), replace(broker(), filter_servers=("f:1",)))
    route = topics.topic_route(table, "T1")
    assert route is not None
    assert route.filter_server_table == {"a:1": ("f:1",)}
    assert registered(table, broker()).filter_servers.get("a:1") is None
    assert registration.close_broker_channel(table, ChannelId(1)).state.filter_servers.get("a:1") is None


@given(st.integers(1, 12), st.integers(1, 5))
def test_a_registration_in_slices_comes_to_the_same_as_at_once(count: int, at_once: int) -> None:
    topics = {f"t{number}": TopicConfig(topic_name=f"t{number}") for number in range(count)}
    broker = Registration(
        cluster="c",
        broker_name="b",
        broker_id=BrokerId(1),
        address="10.0.0.1:10911",
        ha_server_addr="",
        data_version=DataVersion(timestamp=1, counter=1),
        topics=topics,
    )
    for whole in (
        broker,
        replace(broker, broker_id=MASTER_ID, topics={**topics, "more": TopicConfig(topic_name="more")}),
    ):
        expected = register_broker(RouteTable(), whole, ChannelId(1), TimestampMs(5)).state
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(registration, "TOPICS_AT_ONCE", at_once + 1)
            first, *others = sliced(whole)
        table = register_broker(RouteTable(), first, ChannelId(1), TimestampMs(5)).state
        if takes_topics(RouteTable(), whole):
            for piece in others:
                table = register_more(table, piece, ChannelId(1))
        assert table == expected
        assert register_more(RouteTable(), whole, ChannelId(1)) == RouteTable(), "it has left meanwhile"
        assert (
            register_more(expected, replace(whole, topics={"x": TopicConfig(topic_name="x")}), ChannelId(2)) == expected
        )


def test_topics_that_are_known_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "TOPICS_MAX", 2)
    table = registered(RouteTable(), broker("a:1", topic_names=("T1", "T2")))
    assert registration.register_broker_enabled(table, broker("a:1", topic_names=("T1", "T2")))
    assert not registration.register_broker_enabled(table, broker("a:1", topic_names=("T1", "T3")))


def test_one_connection_registers_only_so_many_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "BROKERS_PER_CHANNEL_MAX", 1)
    table = registered(RouteTable(), broker("a:1", topic_names=("T1", "T2")))
    again, other = broker("a:1", topic_names=("T1", "T2")), broker("b:1", "B", topic_names=("T1", "T2"))
    assert registration.has_room_on(table, again, ChannelId(1))
    assert not registration.has_room_on(table, other, ChannelId(1))
    assert registration.has_room_on(table, other, ChannelId(2))
    assert registration.register_broker(table, other, ChannelId(1), TimestampMs(0)).state is table
