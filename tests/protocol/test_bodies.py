from __future__ import annotations

import dataclasses
import re
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refmq.errors import UsageError, WireError
from refmq.model.ids import MessageQueue
from refmq.protocol import bodies
from refmq.protocol.bodies import (
    BrokerData,
    BrokerStatsData,
    ClusterInfo,
    Connection,
    ConsumeFromWhere,
    ConsumeMessageDirectlyResult,
    ConsumeQueueDump,
    ConsumeQueueEntry,
    ConsumerConnection,
    ConsumerData,
    ConsumeResult,
    ConsumerIdList,
    ConsumerOffsets,
    ConsumerRunningInfo,
    ConsumeStats,
    ConsumeStatsList,
    ConsumeStatus,
    ConsumeType,
    CorrectionOffsets,
    DataVersion,
    DelayOffsets,
    GetConsumerStatusBody,
    GroupList,
    HeartbeatData,
    JsonStyle,
    KVTable,
    LockBatchRequestBody,
    LockBatchResponseBody,
    MessageModel,
    OffsetWrapper,
    ProcessQueueInfo,
    ProducerData,
    ProducerInfo,
    ProducerTableInfo,
    QueueData,
    QueueWithOffset,
    RegisterBrokerBody,
    ResetOffsetBody,
    ResetOffsetBodyForC,
    SubscriptionData,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicConfig,
    TopicConfigSerializeWrapper,
    TopicList,
    TopicOffset,
    TopicRouteData,
    TopicStatsTable,
    codec,
    decode_body,
    decode_register_broker_body,
    encode_body,
    encode_register_broker_body,
    quick,
    route_style,
)
from refmq.protocol.bodies import registration as registration_module
from refmq.protocol.bodies.shapes import bean_shape
from refmq.protocol.command import LanguageCode
from refmq.protocol.record import body_crc
from tests.protocol.strategies import bodies_of

CLASSES: list[Any] = [value for _, value in sorted(vars(bodies).items()) if dataclasses.is_dataclass(value)]

# What the protocol classes of RocketMQ 4.9.8 write. ------------------------------------------------

T1_A2 = MessageQueue("T1", "broker-a", 2)
T1_A3 = MessageQueue("T1", "broker-a", 3)
MQ = '{"brokerName":"broker-a","queueId":2,"topic":"T1"}'
SUBSCRIPTION = SubscriptionData(
    topic="T1",
    sub_string="TagA || TagB",
    tags_set=("TagA", "TagB"),
    code_set=(2598919, 2598920),
    sub_version=1700000000000,
)
SUBSCRIPTION_JSON = (
    '{"classFilterMode":false,"codeSet":[2598919,2598920],"expressionType":"TAG","subString":"TagA || TagB",'
    '"subVersion":1700000000000,"tagsSet":["TagA","TagB"],"topic":"T1"}'
)
BROKER = BrokerData(
    cluster="DefaultCluster", broker_name="broker-a", broker_addrs={0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}
)
ROUTE = TopicRouteData(
    broker_datas=(BROKER,),
    queue_datas=(QueueData(broker_name="broker-a", read_queue_nums=4, write_queue_nums=4, perm=6),),
)
VERSION = DataVersion(timestamp=1700000000000, counter=7)
T1 = TopicConfig(topic_name="T1", read_queue_nums=4, write_queue_nums=4)
T1_JSON = (
    '{"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG","topicName":"T1","topicSysFlag":0,'
    '"writeQueueNums":4}'
)
TOPICS = TopicConfigSerializeWrapper(data_version=VERSION, topic_config_table={"T1": T1})
TOPICS_JSON = '{"dataVersion":{"counter":7,"timestamp":1700000000000},"topicConfigTable":{"T1":' + T1_JSON + "}}"
CONNECTION = Connection(
    client_id="10.1.2.3@4567", client_addr="10.1.2.3:50000", language=LanguageCode.JAVA, version=409
)
CONNECTION_JSON = '{"clientAddr":"10.1.2.3:50000","clientId":"10.1.2.3@4567","language":"JAVA","version":409}'

GOLDEN: list[tuple[Any, str]] = [
    (
        ROUTE,
        (
            '{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"broker-a",'
            '"cluster":"DefaultCluster"}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,'
            '"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
        ),
    ),
    (
        HeartbeatData(
            client_id="10.1.2.3@4567#89",
            consumer_data_set=(
                ConsumerData(
                    group_name="cg1",
                    consume_type=ConsumeType.CONSUME_PASSIVELY,
                    message_model=MessageModel.CLUSTERING,
                    consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
                    subscription_data_set=(SUBSCRIPTION,),
                ),
            ),
            producer_data_set=(ProducerData(group_name="pg1"),),
        ),
        '{"clientID":"10.1.2.3@4567#89","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",'
        '"consumeType":"CONSUME_PASSIVELY","groupName":"cg1","messageModel":"CLUSTERING",'
        '"subscriptionDataSet":[' + SUBSCRIPTION_JSON + '],"unitMode":false}],"producerDataSet":[{"groupName":"pg1"}]}',
    ),
    (
        ClusterInfo(
            broker_addr_table={
                "broker-a": BrokerData(
                    cluster="DefaultCluster", broker_name="broker-a", broker_addrs={0: "10.0.0.1:10911"}
                )
            },
            cluster_addr_table={"DefaultCluster": ("broker-a",)},
        ),
        (
            '{"brokerAddrTable":{"broker-a":{"brokerAddrs":{0:"10.0.0.1:10911"},"brokerName":"broker-a",'
            '"cluster":"DefaultCluster"}},"clusterAddrTable":{"DefaultCluster":["broker-a"]}}'
        ),
    ),
    (
        RegisterBrokerBody(topic_config_serialize_wrapper=TOPICS),
        '{"filterServerList":[],"topicConfigSerializeWrapper":' + TOPICS_JSON + "}",
    ),
    (VERSION, '{"counter":7,"timestamp":1700000000000}'),
    (
        DataVersion(timestamp=1700000000000, counter=7, state_version=0),
        '{"counter":7,"stateVersion":0,"timestamp":1700000000000}',
    ),
    (
        SubscriptionGroupWrapper(
            data_version=VERSION, subscription_group_table={"cg1": SubscriptionGroupConfig(group_name="cg1")}
        ),
        (
            '{"dataVersion":{"counter":7,"timestamp":1700000000000},"subscriptionGroupTable":{"cg1":{"brokerId":0,'
            '"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"groupName":"cg1",'
            '"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,'
            '"whichBrokerWhenConsumeSlowly":1}}}'
        ),
    ),
    (ConsumerIdList(consumer_id_list=("c1", "c2")), '{"consumerIdList":["c1","c2"]}'),
    (KVTable(table={"k": "v"}), '{"table":{"k":"v"}}'),
    (TopicList(topic_list=("T1",)), '{"topicList":["T1"]}'),
    (
        TopicList(topic_list=("T1",), broker_addr="10.0.0.1:10911"),
        '{"brokerAddr":"10.0.0.1:10911","topicList":["T1"]}',
    ),
    (GroupList(group_list=("cg1",)), '{"groupList":["cg1"]}'),
    (ConsumerOffsets(offset_table={"T1@cg1": {0: 12, 3: 0}}), '{"offsetTable":{"T1@cg1":{0:12,3:0}}}'),
    (DelayOffsets(offset_table={1: 0, 2: 15}), '{"offsetTable":{1:0,2:15}}'),
    (
        CorrectionOffsets(correction_offsets={0: 9223372036854775807, 1: 5}),
        '{"correctionOffsets":{0:9223372036854775807,1:5}}',
    ),
    (
        BrokerStatsData(),
        (
            '{"statsDay":{"avgpt":0.0,"sum":0,"tps":0.0},"statsHour":{"avgpt":0.0,"sum":0,"tps":0.0},'
            '"statsMinute":{"avgpt":0.0,"sum":0,"tps":0.0}}'
        ),
    ),
    (
        ConsumeMessageDirectlyResult(consume_result=ConsumeResult.CR_SUCCESS, spent_time_mills=3),
        '{"autoCommit":true,"consumeResult":"CR_SUCCESS","order":false,"spentTimeMills":3}',
    ),
    (
        ConsumeQueueDump(
            filter_data="..",
            max_queue_index=5,
            queue_data=(ConsumeQueueEntry(physic_offset=100, physic_size=200, tags_code=123),),
            subscription_data=SUBSCRIPTION,
        ),
        '{"filterData":"..","maxQueueIndex":5,"minQueueIndex":0,"queueData":[{"eval":false,"physicOffset":100,'
        '"physicSize":200,"tagsCode":123}],"subscriptionData":' + SUBSCRIPTION_JSON + "}",
    ),
    (
        ProducerTableInfo(
            data={
                "pg1": (
                    ProducerInfo(
                        client_id="c1",
                        remote_ip="10.1.2.3",
                        language=LanguageCode.JAVA,
                        version=409,
                        last_update_timestamp=1700000000000,
                    ),
                )
            }
        ),
        (
            '{"data":{"pg1":[{"clientId":"c1","language":"JAVA","lastUpdateTimestamp":1700000000000,'
            '"remoteIP":"10.1.2.3","version":409}]}}'
        ),
    ),
    (
        LockBatchRequestBody(client_id="10.1.2.3@4567", consumer_group="cg1", mq_set=(T1_A2,)),
        '{"clientId":"10.1.2.3@4567","consumerGroup":"cg1","mqSet":[' + MQ + "]}",
    ),
    (LockBatchResponseBody(lock_ok_mq_set=(T1_A2,)), '{"lockOKMQSet":[' + MQ + "]}"),
    (
        ResetOffsetBody(offset_table={T1_A3: 12, T1_A2: 11}),
        '{"offsetTable":{{"brokerName":"broker-a","queueId":3,"topic":"T1"}:12,' + MQ + ":11}}",
    ),
    (
        ResetOffsetBodyForC(offset_table=(QueueWithOffset(broker_name="broker-a", topic="T1", queue_id=2, offset=11),)),
        '{"offsetTable":[{"brokerName":"broker-a","offset":11,"queueId":2,"topic":"T1"}]}',
    ),
    (
        TopicStatsTable(
            offset_table={T1_A2: TopicOffset(min_offset=0, max_offset=9, last_update_timestamp=1700000000000)}
        ),
        '{"offsetTable":{' + MQ + ':{"lastUpdateTimestamp":1700000000000,"maxOffset":9,"minOffset":0}}}',
    ),
    (
        ConsumeStats(
            consume_tps=1.5,
            offset_table={T1_A2: OffsetWrapper(broker_offset=9, consumer_offset=7, last_timestamp=1700000000000)},
        ),
        '{"consumeTps":1.5,"offsetTable":{'
        + MQ
        + ':{"brokerOffset":9,"consumerOffset":7,"lastTimestamp":1700000000000}}}',
    ),
    (
        ConsumeStatsList(broker_addr="10.0.0.1:10911", consume_stats_list=({"cg1": (ConsumeStats(),)},), total_diff=2),
        (
            '{"brokerAddr":"10.0.0.1:10911","consumeStatsList":[{"cg1":[{"consumeTps":0.0,"offsetTable":{}}]}],'
            '"totalDiff":2}'
        ),
    ),
    (
        ConsumerConnection(
            connection_set=(CONNECTION,),
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            consume_type=ConsumeType.CONSUME_PASSIVELY,
            message_model=MessageModel.CLUSTERING,
            subscription_table={"T1": SUBSCRIPTION},
        ),
        '{"connectionSet":[' + CONNECTION_JSON + '],"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",'
        '"consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","subscriptionTable":{"T1":'
        + SUBSCRIPTION_JSON
        + "}}",
    ),
    (
        ConsumerRunningInfo(
            jstack="..",
            mq_table={T1_A2: ProcessQueueInfo()},
            properties={"PROP_CONSUME_TYPE": "CONSUME_PASSIVELY"},
            status_table={"T1": ConsumeStatus()},
            subscription_set=(SUBSCRIPTION,),
        ),
        '{"jstack":"..","mqTable":{' + MQ + ':{"cachedMsgCount":0,"cachedMsgMaxOffset":0,"cachedMsgMinOffset":0,'
        '"cachedMsgSizeInMiB":0,"commitOffset":0,"droped":false,"lastConsumeTimestamp":0,"lastLockTimestamp":0,'
        '"lastPullTimestamp":0,"locked":false,"transactionMsgCount":0,"transactionMsgMaxOffset":0,'
        '"transactionMsgMinOffset":0,"tryUnlockTimes":0}},"properties":{"PROP_CONSUME_TYPE":"CONSUME_PASSIVELY"},'
        '"statusTable":{"T1":{"consumeFailedMsgs":0,"consumeFailedTPS":0.0,"consumeOKTPS":0.0,"consumeRT":0.0,'
        '"pullRT":0.0,"pullTPS":0.0}},"subscriptionSet":[' + SUBSCRIPTION_JSON + "]}",
    ),
    (
        GetConsumerStatusBody(message_queue_table={T1_A2: 11}),
        '{"consumerTable":{},"messageQueueTable":{' + MQ + ":11}}",
    ),
    (
        GetConsumerStatusBody(consumer_table={"c1": {T1_A2: 11}}),
        '{"consumerTable":{"c1":{' + MQ + ':11}},"messageQueueTable":{}}',
    ),
]


@pytest.mark.parametrize(("body", "json"), GOLDEN, ids=lambda value: type(value).__name__)
def test_bodies_of_java_decode_and_encode_to_the_same_bytes(body: Any, json: str) -> None:
    assert decode_body(type(body), json.encode()) == body
    assert encode_body(body, JsonStyle.FASTJSON) == json.encode()


def test_the_three_forms_of_a_route() -> None:
    standard = encode_body(ROUTE).decode()
    assert '"brokerAddrs":{"0":"10.0.0.1:10911","1":"10.0.0.2:10911"}' in standard
    assert '"brokerAddrs":{0:"10.0.0.1:10911",1:' in encode_body(ROUTE, JsonStyle.FASTJSON).decode()
    odd = TopicRouteData(
        broker_datas=(BrokerData(cluster="Köln/1 \U0001f600", broker_name="b", broker_addrs={1: "b", 0: "a"}),)
    )
    ascii_form = encode_body(odd, JsonStyle.ASCII).decode()
    assert '"brokerAddrs":{"0":"a","1":"b"}' in ascii_form
    assert '"cluster":"K\\u00F6ln\\/1 \\uD83D\\uDE00"' in ascii_form
    for style in JsonStyle:
        assert decode_body(TopicRouteData, encode_body(odd, style)) == odd
    assert route_style(317) is JsonStyle.FASTJSON
    assert route_style(317, accept_standard_json_only=True) is route_style(401) is JsonStyle.ASCII


# Round trips --------------------------------------------------------------------------------------


def carefully(body_type: Any, data: bytes) -> Any:
    return codec.read_carefully(bean_shape(body_type), data)


def round_trips(body: Any, style: JsonStyle) -> None:
    """Through the reader that is used, and through the careful one alone."""
    data = encode_body(body, style)
    assert decode_body(type(body), data) == body
    assert carefully(type(body), data) == body


@pytest.mark.parametrize("body_type", CLASSES, ids=lambda body_type: body_type.__name__)
def test_decoding_what_was_encoded_gives_it_back(body_type: Any) -> None:
    @settings(max_examples=max(settings().max_examples // 5, 5))
    @given(bodies_of(body_type), st.sampled_from(JsonStyle))
    def check(body: Any, style: JsonStyle) -> None:
        round_trips(body, style)

    check()


def test_the_round_trip_catches_a_key_that_lost_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_whole", lambda value: len(str(value)))
    with pytest.raises(AssertionError):
        round_trips(DelayOffsets(offset_table={5: 7}), JsonStyle.STANDARD)


def test_the_round_trip_catches_a_quick_reader_that_mixes_up_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = quick._read
    backwards = lambda shape, value: genuine(shape, value[::-1] if type(value) is list else value)  # noqa: E731
    monkeypatch.setattr(quick, "_read", backwards)
    with pytest.raises(AssertionError):
        round_trips(GroupList(group_list=("a", "b")), JsonStyle.STANDARD)


def test_the_round_trip_catches_an_enum_written_by_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_constant", lambda enum, value, path, offset: next(iter(enum)))
    with pytest.raises(AssertionError):
        round_trips(
            ConsumeMessageDirectlyResult(consume_result=ConsumeResult.CR_RETURN_NULL, spent_time_mills=1),
            JsonStyle.STANDARD,
        )


@pytest.mark.parametrize(
    "body_type", [HeartbeatData, TopicRouteData, ConsumerOffsets, ResetOffsetBody, ConsumerRunningInfo]
)
def test_damaged_json_is_a_body_or_an_error(body_type: Any) -> None:
    @given(bodies_of(body_type), st.data())
    def check(body: Any, data: st.DataObject) -> None:
        damaged = bytearray(encode_body(body, JsonStyle.FASTJSON))
        for _ in range(data.draw(st.integers(1, 3))):
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.sampled_from(b'{}[]:,"\\0a-\xff'))
        both_readers_agree(body_type, bytes(damaged))

    check()


def both_readers_agree(body_type: Any, data: bytes) -> None:
    """The quick reader gives the careful one's values and never an error of its own."""
    outcomes: list[Any] = []
    for reader in (decode_body, carefully):
        try:
            outcomes.append(reader(body_type, data))
        except WireError as error:
            outcomes.append(error.args)
    assert outcomes[0] == outcomes[1]
    if not isinstance(outcomes[0], tuple):
        encode_body(outcomes[0])  # whatever was accepted can be written again


def test_the_agreement_catches_a_quick_reader_that_takes_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    both_readers_agree(KVTable, b'{"table":{"a":"\\ud800"}}')
    monkeypatch.setattr(quick, "_HALF_PAIR", re.compile(b"never"))
    with pytest.raises((AssertionError, UsageError)):
        both_readers_agree(KVTable, b'{"table":{"a":"\\ud800"}}')


def test_what_the_quick_reader_leaves_to_the_careful_one() -> None:
    for body_type, data in (
        (KVTable, b'{"table":{"a":NaN}}'),
        (DataVersion, b'{"counter":"1","timestamp":2}'),
        (DataVersion, b'{"counter":9223372036854775808,"timestamp":2}'),
        (DelayOffsets, b'{"offsetTable":{"99999999999":1}}'),
        (KVTable, b"[" * 10_000),
        (KVTable, b'{"table":[]}'),
        (GroupList, b'{"groupList":{}}'),
        (ConsumeMessageDirectlyResult, b'{"consumeResult":"cr_success"}'),
        (DataVersion, b'{"counter":1}'),
        (BrokerStatsData, b'{"statsDay":{"avgpt":1.5,"sum":2,"tps":0.5},"statsHour":{"$ref":"$.statsDay"}}'),
        (ResetOffsetBody, b'{"offsetTable":{"{}":1}}'),
    ):
        with pytest.raises(quick.NotPlain):
            quick.read_plain(bean_shape(body_type), data)
        both_readers_agree(body_type, data)


def test_the_quick_reader_knows_bare_integer_keys_and_leaves_strings_alone() -> None:
    data = b'{"offsetTable":{"a,1:\\"{2:@g":{0:12,-3:0,\n\t10 :7},"b":{}}}'
    read = quick.read_plain(bean_shape(ConsumerOffsets), data)
    assert read == ConsumerOffsets(offset_table={'a,1:"{2:@g': {0: 12, -3: 0, 10: 7}, "b": {}})
    both_readers_agree(ConsumerOffsets, data)
    for odd in (b"007", b"-0", b"1e1", b"1.0", b"+1"):  # several texts for one number: not for the quick reader
        data = b'{"table":{' + odd + b':"x"}}'
        with pytest.raises(quick.NotPlain):
            quick.read_plain(bean_shape(KVTable), data)
        both_readers_agree(KVTable, data)


def test_a_body_can_be_limited_in_size() -> None:
    assert decode_body(GroupList, b'{"groupList":[]}', bytes_max=16).group_list == ()
    with pytest.raises(WireError, match="body at byte offset 0 should be at most 15 bytes but is 16"):
        decode_body(GroupList, b'{"groupList":[]}', bytes_max=15)


def test_a_dialect_document_with_too_many_strings_never_reaches_the_quick_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = b'{"offsetTable":{"a":{0:1},"b":{}}}'
    assert quick.read_plain(bean_shape(ConsumerOffsets), data) == decode_body(ConsumerOffsets, data)
    monkeypatch.setattr(quick, "STRINGS_MAX", 2)
    with pytest.raises(quick.NotPlain):
        quick.read_plain(bean_shape(ConsumerOffsets), data)


def test_a_document_with_too_many_values_never_reaches_the_quick_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "VALUES_MAX", 3)
    with pytest.raises(quick.NotPlain):
        quick.read_plain(bean_shape(GroupList), b'{"groupList":["a","b"]}')


# What other clients send --------------------------------------------------------------------------


def test_the_heartbeat_of_a_cpp_client() -> None:
    """Enums as numbers, the version as a string, and nothing where something is empty or false."""
    heartbeat = decode_body(
        HeartbeatData,
        b'{"clientID":"c","consumerDataSet":[{"consumeFromWhere":4,"consumeType":1,"groupName":"g","messageModel":1,'
        b'"subscriptionDataSet":[{"subString":"*","subVersion":"1700000000000","topic":"T1"}]}]}\n',
    )
    (consumer,) = heartbeat.consumer_data_set
    assert consumer.consume_from_where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    assert consumer.subscription_data_set == (SubscriptionData(topic="T1", sub_string="*", sub_version=1700000000000),)
    assert heartbeat.producer_data_set == ()


def test_the_heartbeat_of_a_5_3_3_client() -> None:
    heartbeat = decode_body(
        HeartbeatData,
        b'{"clientID":"c","consumerDataSet":[],"heartbeatFingerprint":0,"producerDataSet":[],"withoutSub":false}',
    )
    assert heartbeat == HeartbeatData(client_id="c", heartbeat_fingerprint=0, without_sub=False)


def test_the_answer_of_a_go_client_names_the_result_by_its_number() -> None:
    result = decode_body(ConsumeMessageDirectlyResult, b'{"consumeResult":4,"order":true}')
    assert result.consume_result is ConsumeResult.CR_THROW_EXCEPTION


def test_quoted_keys_mean_the_same() -> None:
    assert decode_body(DelayOffsets, b'{"offsetTable":{"1":0,"2":15}}').offset_table == {1: 0, 2: 15}
    quoted = b'{"offsetTable":{"{\\"brokerName\\":\\"broker-a\\",\\"queueId\\":2,\\"topic\\":\\"T1\\"}":11}}'
    assert decode_body(ResetOffsetBody, quoted).offset_table == {T1_A2: 11}


def test_white_space_inside_keys_is_read() -> None:
    """The C++ client prints its queue keys over several lines."""
    pretty = (
        b'{"mqTable":{{\n   "brokerName" : "broker-a",\n   "queueId" : 2,\n   "topic" : "T1"\n}:{"commitOffset":3}}}'
    )
    assert decode_body(ConsumerRunningInfo, pretty).mq_table == {T1_A2: ProcessQueueInfo(commit_offset=3)}


def test_one_java_object_at_two_places() -> None:
    shared = (
        b'{"statsDay":{"avgpt":1.5,"sum":2,"tps":0.5},"statsHour":{"$ref":"$.statsDay"},'
        b'"statsMinute":{"$ref":"$.statsHour"}}'
    )
    # The third names the second, which is itself a reference: Java always names the first.
    with pytest.raises(WireError, match=r"\$ref"):
        decode_body(BrokerStatsData, shared.replace(b'{"$ref":"$.statsHour"}', b'{"$ref":"$.statsMinute"}'))
    stats = decode_body(BrokerStatsData, shared)
    assert stats.stats_hour == stats.stats_day == stats.stats_minute


def test_sharing_does_not_let_a_document_unfold_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    data = (
        '{"consumeStatsList":[{"c":[{"offsetTable":{}}]}' + ',{"$ref":"$.consumeStatsList[0]"}' * 50 + "]}"
    ).encode()
    assert len(decode_body(ConsumeStatsList, data).consume_stats_list) == 51
    monkeypatch.setattr(codec, "VISITED_MAX", 60)
    with pytest.raises(WireError, match="all references followed"):
        decode_body(ConsumeStatsList, data)


# Errors -------------------------------------------------------------------------------------------

BROKEN: dict[str, tuple[Any, bytes, str, int]] = {
    "not an object": (KVTable, b"[]", "body", 0),
    "missing member": (DataVersion, b'{"counter":1}', "DataVersion.timestamp", 0),
    "not a number": (DataVersion, b'{"counter":"x","timestamp":1}', "DataVersion.counter", 0),
    "too large": (DataVersion, b'{"counter":9223372036854775808,"timestamp":1}', "DataVersion.counter", 0),
    "boolean for a number": (DataVersion, b'{"counter":true,"timestamp":1}', "DataVersion.counter", 0),
    "object for a string": (GroupList, b'{"groupList":[{}]}', "GroupList.groupList[]", 13),
    "string for a list": (GroupList, b'{"groupList":"g"}', "GroupList.groupList", 0),
    "string for an object": (RegisterBrokerBody, b'{"topicConfigSerializeWrapper":"x"}', "", 0),
    "list for a map": (KVTable, b'{"table":[]}', "KVTable.table", 0),
    "unknown constant": (
        ConsumeMessageDirectlyResult,
        b'{"consumeResult":"CR_PERHAPS"}',
        "ConsumeMessageDirectlyResult.consumeResult",
        0,
    ),
    "unknown ordinal": (
        ConsumeMessageDirectlyResult,
        b'{"consumeResult":6}',
        "ConsumeMessageDirectlyResult.consumeResult",
        0,
    ),
    "bad key": (DelayOffsets, b'{"offsetTable":{"x":1}}', "key of DelayOffsets.offsetTable", 15),
    "bad quoted object key": (ResetOffsetBody, b'{"offsetTable":{"{":1}}', "JSON text", 16),
    "infinite": (ConsumeStats, b'{"consumeTps":"1e999"}', "ConsumeStats.consumeTps", 0),
    "not a boolean": (ConsumeMessageDirectlyResult, b'{"order":"perhaps"}', "ConsumeMessageDirectlyResult.order", 0),
}


@pytest.mark.parametrize(("body_type", "data", "field", "offset"), BROKEN.values(), ids=list(BROKEN))
def test_an_error_names_the_member_and_the_offset_of_its_object(
    body_type: Any, data: bytes, field: str, offset: int
) -> None:
    with pytest.raises(WireError) as caught:
        decode_body(body_type, data)
    assert caught.value.field == field or not field
    assert caught.value.offset == offset


def test_what_java_turns_into_the_wanted_type_is_read() -> None:
    assert decode_body(KVTable, b'{"table":{"a":1,"b":true,"c":null}}').table == {"a": "1", "b": "true"}
    assert decode_body(DataVersion, b'{"counter":3.0,"timestamp":"4"}') == DataVersion(counter=3, timestamp=4)
    assert decode_body(ConsumeStats, b'{"consumeTps":2}').consume_tps == 2.0
    assert decode_body(ConsumeMessageDirectlyResult, b'{"order":"TRUE","autoCommit":0}') == (
        ConsumeMessageDirectlyResult(order=True, auto_commit=False)
    )


def test_a_value_without_a_form_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError):
        encode_body(ConsumeStats(consume_tps=float("inf")))
    with pytest.raises(UsageError):
        encode_body(DataVersion(counter=2**63, timestamp=0))
    with pytest.raises(UsageError):
        encode_body(GroupList(group_list=("\ud800",)))


# Registration -------------------------------------------------------------------------------------

COMPRESSED = bytes.fromhex(
    "78da63606050af564ace2fcd2b492d52b232d7512ac9cc4d2d2e49cc2d50b232343740805a0606064620160e31543001423385604f3f771fd7"
    "f8104777a03053742c00d5091139"
)


def test_the_compressed_registration_of_java_decodes_and_encodes_to_the_same_bytes() -> None:
    body = RegisterBrokerBody(topic_config_serialize_wrapper=TOPICS)
    assert decode_register_broker_body(COMPRESSED, compressed=True) == body
    assert encode_register_broker_body(body, compressed=True) == COMPRESSED
    assert body_crc(COMPRESSED) == 1395831088
    assert decode_register_broker_body(encode_register_broker_body(body)) == body


def inflated(*parts: bytes | int) -> bytes:
    raw = b"".join(
        part.to_bytes(4, "big", signed=True) if isinstance(part, int) else len(part).to_bytes(4, "big") + part
        for part in parts
    )
    return zlib.compress(raw)


DATA_VERSION = b'{"counter":7,"stateVersion":0,"timestamp":1700000000000}'


def test_the_compressed_registration_of_5_3_3_is_read() -> None:
    raw = inflated(DATA_VERSION, 1, b'T1 4 4 6 SINGLE_TAG {"+a":"b c"}', b'["10.0.0.1:1"]', 1, b"{}")
    body = decode_register_broker_body(raw, compressed=True)
    (topic,) = body.topic_config_serialize_wrapper.topic_config_table.values()
    assert topic == dataclasses.replace(T1, attributes={"+a": "b c"})
    assert body.filter_server_list == ("10.0.0.1:1",)


BAD_REGISTRATIONS: dict[str, tuple[bytes, str]] = {
    "not zlib": (b"hello", "body"),
    "cut off": (COMPRESSED[:-8], "body"),
    "four words": (inflated(DATA_VERSION, 1, b"T1 4 4 6", b"[]"), "topic"),
    "no number": (inflated(DATA_VERSION, 1, b"T1 x 4 6 SINGLE_TAG", b"[]"), "topic"),
    "too large": (inflated(DATA_VERSION, 1, b"T1 9999999999 4 6 SINGLE_TAG", b"[]"), "topic"),
    "unknown filter": (inflated(DATA_VERSION, 1, b"T1 4 4 6 NO_TAG", b"[]"), "topic"),
    "forged count": (inflated(DATA_VERSION, 2**31 - 1, b"T1 4 4 6 SINGLE_TAG", b"[]"), "topicCount"),
    "negative count": (inflated(DATA_VERSION, -1), "topicCount"),
    "servers no array": (inflated(DATA_VERSION, 0, b"{}"), "filterServerList"),
    "servers no strings": (inflated(DATA_VERSION, 0, b"[1]"), "filterServerList"),
    "more": (inflated(DATA_VERSION, 0, b"[]", 0, 0), "body"),
}


@pytest.mark.parametrize(("data", "field"), BAD_REGISTRATIONS.values(), ids=list(BAD_REGISTRATIONS))
def test_a_bad_registration_is_an_error(data: bytes, field: str) -> None:
    with pytest.raises(WireError) as caught:
        decode_register_broker_body(data, compressed=True)
    assert caught.value.field == field


def test_a_stream_that_inflates_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration_module, "INFLATED_MAX", 1000)
    with pytest.raises(WireError, match="more than 1000 bytes inflated"):
        decode_register_broker_body(zlib.compress(bytes(2000)), compressed=True)


@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_are_a_registration_or_an_error(data: bytes, wrapped: bool) -> None:
    raw = zlib.compress(data) if wrapped else data
    with pytest.raises(WireError):
        decode_register_broker_body(raw, compressed=True)
