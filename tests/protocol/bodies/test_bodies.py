from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    QueueWithOffset,
    RegisterBrokerBody,
    ResetOffsetBody,
    ResetOffsetBodyForC,
    SubscriptionData,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicList,
    TopicOffset,
    TopicStatsTable,
    decode_body,
    encode_body,
)
from refmq.protocol.command import LanguageCode
from tests.protocol.bodies.samples import (
    ROUTE,
    T1_A2,
    TOPICS,
    VERSION,
    round_trips,
)
from tests.protocol.strategies import bodies_of

CLASSES: list[Any] = [value for _, value in sorted(vars(bodies).items()) if dataclasses.is_dataclass(value)]

# What the protocol classes of RocketMQ 4.9.8 write. ------------------------------------------------

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
T1_JSON = (
    '{"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG","topicName":"T1","topicSysFlag":0,'
    '"writeQueueNums":4}'
)
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


# Round trips --------------------------------------------------------------------------------------


@pytest.mark.parametrize("body_type", CLASSES, ids=lambda body_type: body_type.__name__)
def test_decoding_what_was_encoded_gives_it_back(body_type: Any) -> None:
    @settings(max_examples=max(settings().max_examples // 5, 5))
    @given(bodies_of(body_type), st.sampled_from(JsonStyle))
    def check(body: Any, style: JsonStyle) -> None:
        round_trips(body, style)

    check()


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


# Errors -------------------------------------------------------------------------------------------


# Registration -------------------------------------------------------------------------------------
