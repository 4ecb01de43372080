"""Every request code of a nameserver: its answer, its remark, and what is persisted before it is answered."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.model.ids import TimestampMs
from refmq.nameserver.kv import decode_kv_file
from refmq.nameserver.serve import (
    SERVERS,
    Effect,
    NameserverState,
    PersistKv,
    PersistSettings,
    Reply,
    lose_channel,
    scan_brokers,
    serve_request,
)
from refmq.nameserver.tables import ChannelId, violations
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.config import DataVersion, TopicConfig, TopicConfigSerializeWrapper
from refmq.protocol.bodies.registration import RegisterBrokerBody, encode_register_broker_body
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, SerializeType, request
from refmq.protocol.properties import parse_properties
from refmq.protocol.versions import V4_9_8

NOW = TimestampMs(1_000_000)
VERSION = DataVersion(timestamp=1_700_000_000_000, counter=7)
T1 = TopicConfig(topic_name="T1", read_queue_nums=4, write_queue_nums=4, perm=6)
TBW102 = TopicConfig(topic_name="TBW102", read_queue_nums=8, write_queue_nums=8, perm=7)
UNIT = TopicConfig(topic_name="Unit", topic_sys_flag=1)
SUBSCRIBED = TopicConfig(topic_name="Sub", topic_sys_flag=2)
BOTH = TopicConfig(topic_name="Both", topic_sys_flag=3)


class Conversation:
    """A nameserver and what was said to it."""

    def __init__(self) -> None:
        self.state = NameserverState()
        self.now = NOW
        self.effects: tuple[Effect, ...] = ()

    def ask(
        self,
        code: int,
        fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        version: int = V4_9_8,
        channel: int = 1,
        serialize_type: SerializeType = SerializeType.JSON,
    ) -> RemotingCommand:
        command = request(code, fields, body, opaque=77, version=version, serialize_type=serialize_type)
        step = serve_request(self.state, ChannelId(channel), command, self.now)
        self.state, self.effects = step.state, step.effects
        last = step.effects[-1]
        assert isinstance(last, Reply), "the reply is the last effect"
        assert (last.command.opaque, last.command.is_response) == (77, True)
        assert last.command.serialize_type is serialize_type
        return last.command

    def register(
        self,
        address: str = "10.0.0.1:10911",
        name: str = "broker-a",
        id_: int = 0,
        topics: tuple[TopicConfig, ...] = (T1, TBW102, UNIT, SUBSCRIBED, BOTH),
        version: DataVersion = VERSION,
        *,
        compressed: bool = False,
        channel: int = 1,
        crc: int | None = None,
    ) -> RemotingCommand:
        wrapper = TopicConfigSerializeWrapper(
            data_version=version, topic_config_table={topic.topic_name: topic for topic in topics}
        )
        body = encode_register_broker_body(
            RegisterBrokerBody(topic_config_serialize_wrapper=wrapper), compressed=compressed
        )
        fields = {
            **who(address, name, id_),
            "haServerAddr": f"ha:{address}",
            "compressed": str(compressed).lower(),
            "bodyCrc32": str(zlib.crc32(body) & 0x7FFFFFFF if crc is None else crc),
        }
        return self.ask(RequestCode.REGISTER_BROKER, fields, body, channel=channel)


def who(address: str = "10.0.0.1:10911", name: str = "broker-a", id_: int = 0) -> dict[str, str]:
    return {"brokerAddr": address, "brokerName": name, "clusterName": "DefaultCluster", "brokerId": str(id_)}


@pytest.fixture
def talk() -> Conversation:
    conversation = Conversation()
    conversation.register()
    return conversation


def document(answer: RemotingCommand) -> object:
    assert answer.code == 0
    return json.loads(answer.body)


# Brokers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compressed", [False, True])
def test_a_registration_makes_a_route(compressed: bool) -> None:
    talk = Conversation()
    answer = talk.register(compressed=compressed)
    assert (answer.code, dict(answer.fields), answer.body) == (0, {}, b"")
    route = talk.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T1"})
    assert route.body == (
        b'{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.1:10911"},"brokerName":"broker-a","cluster":"DefaultCluster"}],'
        b'"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":0,'
        b'"writeQueueNums":4}]}'
    )


def test_a_registration_with_a_wrong_checksum_is_refused() -> None:
    talk = Conversation()
    answer = talk.register(crc=12345)
    assert (answer.code, answer.remark) == (1, "crc32 not match")
    assert talk.state == NameserverState()
    assert talk.register(crc=0).code == 0  # 0 is unchecked


def test_old_brokers_register_with_a_bare_table_and_any_broker_without_a_body() -> None:
    talk = Conversation()
    fields = {**who(), "haServerAddr": "ha:1"}
    table = TopicConfigSerializeWrapper(data_version=VERSION, topic_config_table={"T1": T1, "TBW102": TBW102})
    assert talk.ask(RequestCode.REGISTER_BROKER, fields, encode_body(table), version=36).code == 0
    assert document(talk.ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)) == {"topicList": ["T1", "TBW102"]}
    assert Conversation().ask(RequestCode.REGISTER_BROKER, fields).code == 0


def test_a_slave_is_told_its_master(talk: Conversation) -> None:
    answer = talk.register("10.0.0.2:10911", id_=1, channel=2)
    assert dict(answer.fields) == {"masterAddr": "10.0.0.1:10911", "haServerAddr": "ha:10.0.0.1:10911"}


def test_a_registration_is_answered_with_the_order_configuration_when_there_is_one(talk: Conversation) -> None:
    talk.ask(RequestCode.PUT_KV_CONFIG, {"namespace": "ORDER_TOPIC_CONFIG", "key": "T1", "value": "broker-a:4"})
    assert document(talk.register()) == {"table": {"T1": "broker-a:4"}}


def test_one_topic_of_an_unknown_broker_is_refused() -> None:
    answer = Conversation().register(topics=(T1,))
    assert answer.code == 1
    assert "register broker failed" in (answer.remark or "")


def test_a_version_query_tells_whether_to_register_and_keeps_alive(talk: Conversation) -> None:
    talk.now = TimestampMs(NOW + 100_000)
    same = talk.ask(RequestCode.QUERY_DATA_VERSION, who(), encode_body(VERSION))
    assert (same.fields["changed"], json.loads(same.body)) == ("false", {"counter": 7, "timestamp": 1_700_000_000_000})
    other = talk.ask(RequestCode.QUERY_DATA_VERSION, who(), encode_body(replace(VERSION, counter=8)))
    assert (other.fields["changed"], json.loads(other.body)["counter"]) == ("true", 7)
    unknown = talk.ask(RequestCode.QUERY_DATA_VERSION, who("10.0.0.9:10911"), encode_body(VERSION))
    assert (unknown.fields["changed"], unknown.body) == ("true", b"")
    assert scan_brokers(talk.state, TimestampMs(NOW + 200_000)).effects == ()
    assert len(scan_brokers(talk.state, TimestampMs(NOW + 220_001)).effects) == 1


def test_a_broker_leaves(talk: Conversation) -> None:
    assert talk.ask(RequestCode.UNREGISTER_BROKER, who()).code == 0
    assert talk.state == NameserverState()
    assert talk.ask(RequestCode.UNREGISTER_BROKER, who()).code == 0


def test_a_broker_is_gone_with_its_connection(talk: Conversation) -> None:
    assert lose_channel(talk.state, ChannelId(2)).state == talk.state
    assert lose_channel(talk.state, ChannelId(1)).state == NameserverState()


def test_the_cluster_is_written_with_bare_ids_for_everybody(talk: Conversation) -> None:
    talk.register("10.0.0.2:10911", id_=1)
    assert talk.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body == (
        b'{"brokerAddrTable":{"broker-a":{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},'
        b'"brokerName":"broker-a","cluster":"DefaultCluster"}},"clusterAddrTable":{"DefaultCluster":["broker-a"]}}'
    )


# Topics ------------------------------------------------------------------------------------------------------------


def test_a_route_is_written_with_bare_ids_for_old_clients_unless_they_ask(talk: Conversation) -> None:
    old = talk.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T1"}, version=400)
    assert b'"brokerAddrs":{0:"10.0.0.1:10911"}' in old.body
    asked = {"topic": "T1", "acceptStandardJsonOnly": "true"}
    assert b'{"0":"10.0.0.1:10911"}' in talk.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, asked, version=400).body


def test_an_unknown_topic_has_no_route(talk: Conversation) -> None:
    answer = talk.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "none"})
    assert answer.code == ResponseCode.TOPIC_NOT_EXIST
    assert answer.remark == (
        "No topic route info in name server for the topic: none\n"
        "See http://rocketmq.apache.org/docs/faq/ for further details."
    )


def test_a_route_has_the_order_configuration_only_when_that_is_enabled(talk: Conversation) -> None:
    talk.ask(RequestCode.PUT_KV_CONFIG, {"namespace": "ORDER_TOPIC_CONFIG", "key": "T1", "value": "broker-a:4"})
    ask = RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T1"}
    assert b"orderTopicConf" not in talk.ask(*ask).body
    talk.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable=true\n")
    assert b'"orderTopicConf":"broker-a:4"' in talk.ask(*ask).body


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, ["Both", "Sub", "T1", "TBW102", "Unit"]),
        (RequestCode.GET_UNIT_TOPIC_LIST, ["Both", "Unit"]),
        (RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST, ["Both", "Sub"]),
        (RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, ["Sub"]),
    ],
)
def test_lists_of_topics(talk: Conversation, code: RequestCode, expected: list[str]) -> None:
    assert document(talk.ask(code)) == {"topicList": expected}


def test_the_system_topics_are_clusters_and_brokers_and_whom_to_ask_for_more(talk: Conversation) -> None:
    expected = {"topicList": ["DefaultCluster", "broker-a"], "brokerAddr": "10.0.0.1:10911"}
    assert document(talk.ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)) == expected


def test_topics_by_cluster(talk: Conversation) -> None:
    ask = RequestCode.GET_TOPICS_BY_CLUSTER
    assert document(talk.ask(ask, {"cluster": "none"})) == {"topicList": []}
    listed = document(talk.ask(ask, {"cluster": "DefaultCluster"}))
    assert listed == {"topicList": ["Both", "Sub", "T1", "TBW102", "Unit"]}


def perms(talk: Conversation) -> dict[str, int]:
    return {topic: queues["broker-a"].perm for topic, queues in talk.state.routes.topic_queues.items()}


def test_write_permission_is_wiped_and_added_until_the_next_version(talk: Conversation) -> None:
    before = perms(talk)
    wiped = talk.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "broker-a"})
    assert dict(wiped.fields) == {"wipeTopicCount": "5"}
    assert perms(talk) == {topic: perm & ~2 for topic, perm in before.items()}
    talk.register()
    assert perms(talk)["T1"] == 4, "the same version changes nothing"
    added = talk.ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, {"brokerName": "broker-a"})
    assert dict(added.fields) == {"addTopicCount": "5"}
    assert set(perms(talk).values()) == {6}
    talk.register(version=replace(VERSION, counter=8))
    assert perms(talk) == before
    assert dict(talk.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "none"}).fields) == {
        "wipeTopicCount": "0"
    }


def test_a_topic_is_deleted_in_one_cluster_or_in_all(talk: Conversation) -> None:
    ask = RequestCode.DELETE_TOPIC_IN_NAMESRV
    assert talk.ask(ask, {"topic": "T1", "clusterName": "other"}).code == 0
    assert "T1" in talk.state.routes.topic_queues
    assert talk.ask(ask, {"topic": "T1", "clusterName": "DefaultCluster"}).code == 0
    assert "T1" not in talk.state.routes.topic_queues
    assert talk.ask(ask, {"topic": "Unit"}).code == 0
    assert talk.ask(ask, {"topic": "Unit"}).code == 0
    assert "Unit" not in talk.state.routes.topic_queues


# Key-value configuration ---------------------------------------------------------------------------------------------


def test_a_value_is_persisted_before_the_answer(talk: Conversation) -> None:
    talk.ask(RequestCode.PUT_KV_CONFIG, {"namespace": "n", "key": "k", "value": "v"})
    persist, reply = talk.effects
    assert isinstance(persist, PersistKv)
    assert isinstance(reply, Reply)
    assert persist.content == b'{"configTable":{"n":{"k":"v"}}}'
    assert decode_kv_file(persist.content) == talk.state.kv
    assert talk.ask(RequestCode.GET_KV_CONFIG, {"namespace": "n", "key": "k"}).fields == {"value": "v"}
    assert document(talk.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": "n"})) == {"table": {"k": "v"}}
    assert talk.ask(RequestCode.DELETE_KV_CONFIG, {"namespace": "n", "key": "k"}).code == 0
    assert isinstance(talk.effects[0], PersistKv)
    missing = talk.ask(RequestCode.GET_KV_CONFIG, {"namespace": "n", "key": "k"})
    assert (missing.code, missing.remark) == (22, "No config item, Namespace: n Key: k")


def test_what_is_not_there_is_not_found(talk: Conversation) -> None:
    unknown = talk.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": "none"})
    assert (unknown.code, unknown.remark) == (22, "No config item, Namespace: none")
    null = talk.ask(RequestCode.PUT_KV_CONFIG, {"namespace": "n", "value": "v"})
    assert (null.code, null.remark) == (1, "namespace or key is null")
    assert talk.ask(RequestCode.PUT_KV_CONFIG, {"namespace": "n", "key": "k"}).code == 1
    assert talk.ask(RequestCode.DELETE_KV_CONFIG, {"namespace": "none", "key": "k"}).code == 0


def test_the_configuration_is_no_database(talk: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refmq.nameserver.serve.FILE_BYTES_MAX", 100)
    before = talk.state
    answer = talk.ask(RequestCode.PUT_KV_CONFIG, {"namespace": "n", "key": "k", "value": "v" * 100})
    assert answer.code == 1
    assert talk.state == before


# Settings ------------------------------------------------------------------------------------------------------------


def test_settings_are_shown_without_secrets(talk: Conversation) -> None:
    shown = parse_properties(talk.ask(RequestCode.GET_NAMESRV_CONFIG).body.decode())
    assert shown["listenPort"] == "9876"
    assert "tls.server.keyPassword" not in shown


def test_a_setting_is_changed_and_persisted(talk: Conversation) -> None:
    assert talk.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable = TRUE").code == 0
    persist = talk.effects[0]
    assert isinstance(persist, PersistSettings)
    assert parse_properties(persist.content.decode())["orderMessageEnable"] == "true"


@pytest.mark.parametrize(
    ("body", "code", "remark"),
    [
        (b"kvConfigPath=/etc/passwd", 16, "Can not update config in black list."),
        (b"configStorePath=/etc/cron.d/x", 16, "Can not update config in black list."),
        (b"rocketmqHome=/x", 16, "Can not update config in black list."),
        (b"configBlackList=", 16, "Can not update config in black list."),
        (b"orderMessageEnable=true\nkvConfigPath=x", 16, "Can not update config in black list."),
        (b"orderMessageEnable=\\uZZZZ", 1, "string2Properties error"),
        (b"\xff\xfe", 1, "string2Properties error"),
        (b"orderMesageEnable=true", 1, "unknown key 'orderMesageEnable' (did you mean 'orderMessageEnable'?)"),
        (b"orderMessageEnable=maybe", 1, "orderMessageEnable is true or false, not 'maybe'."),
        (b"serverSocketBacklog=many", 1, "serverSocketBacklog is a number from 0 to 999999999, not 'many'."),
        (b"listenPort=1", 16, "Can not update config in black list."),
        (b"bindAddress=0.0.0.0", 16, "Can not update config in black list."),
        (b"tls.server.mode=disabled", 16, "Can not update config in black list."),
        (
            b"productEnvName=a\\nkvConfigPath=/etc/x",
            1,
            "productEnvName must not have control characters or line breaks.",
        ),
    ],
)
def test_a_change_that_is_not_safe_changes_nothing(talk: Conversation, body: bytes, code: int, remark: str) -> None:
    before = talk.state
    answer = talk.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=body)
    assert (answer.code, answer.remark) == (code, remark)
    assert (talk.state, len(talk.effects)) == (before, 1)


# Anything at all ---------------------------------------------------------------------------------------------------


def test_an_unknown_code_is_answered(talk: Conversation) -> None:
    answer = talk.ask(9999, serialize_type=SerializeType.ROCKETMQ)
    assert (answer.code, answer.remark) == (3, " request type 9999 not supported")


@given(
    code=st.sampled_from(sorted(SERVERS)),
    fields=st.dictionaries(
        st.sampled_from(
            [
                "brokerName",
                "brokerAddr",
                "clusterName",
                "brokerId",
                "haServerAddr",
                "topic",
                "namespace",
                "key",
                "value",
            ]
        ),
        st.sampled_from(["", "0", "1", "-1", "broker-a", "10.0.0.1:10911", "T1", "99999999999999999999", "\u0000é"]),
    ),
    body=st.one_of(st.binary(max_size=50), st.sampled_from([b"{}", b"[]", b'{"topicConfigSerializeWrapper":{}}'])),
    version=st.sampled_from([0, 36, 37, 401, 409, 479, 2**31 - 1]),
)
def test_any_request_gets_exactly_one_answer_and_breaks_no_promise(
    code: int, fields: dict[str, str], body: bytes, version: int
) -> None:
    talk = Conversation()
    talk.register()
    answer = talk.ask(code, fields, body, version=version)
    assert answer.code in (0, 1, 16, 17, 22)
    assert sum(isinstance(effect, Reply) for effect in talk.effects) == 1
    assert list(violations(talk.state.routes)) == []
