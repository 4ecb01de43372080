from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import UsageError, WireError
from refmq.protocol import headers
from refmq.protocol.command import RemotingCommand, SerializeType, request
from refmq.protocol.frame import FrameDecoder, decode, encode
from refmq.protocol.headers import (
    DeleteSubscriptionGroupRequest,
    GetKvConfigRequest,
    PullMessageRequest,
    SendMessageRequest,
    codec,
    decode_header,
    decode_send_header,
    encode_header,
    encode_send_header,
)
from refmq.protocol.headers.codec import camel_case, header_plan
from refmq.protocol.headers.offsets import SearchOffsetRequest
from refmq.protocol.headers.send import LETTERS
from tests.protocol.strategies import headers_of
from tests.protocol.upstream import GOLDEN, OUR_NAMES, upstream_headers

CLASSES: list[Any] = [
    value
    for name, value in sorted(vars(headers).items())
    if dataclasses.is_dataclass(value) and name.endswith(("Request", "Response"))
]

# The names on the wire, typed in once more from upstream's field lists; `?` marks those that may be absent.
WIRE_NAMES = {
    "SendMessageRequest": "producerGroup? topic defaultTopic? defaultTopicQueueNums? queueId sysFlag bornTimestamp flag"
    " properties? reconsumeTimes? unitMode? maxReconsumeTimes? batch? bname?",
    "SendMessageResponse": "msgId? queueId? queueOffset? transactionId? MSG_REGION? TRACE_ON? batchUniqId?"
    " recallHandle?",
    "ReplyMessageRequest": "producerGroup topic defaultTopic defaultTopicQueueNums queueId sysFlag bornTimestamp flag"
    " properties? reconsumeTimes? unitMode? bornHost storeHost storeTimestamp",
    "PullMessageRequest": "consumerGroup topic queueId queueOffset maxMsgNums sysFlag commitOffset?"
    " suspendTimeoutMillis? subscription? subVersion? expressionType? maxMsgBytes? requestSource?"
    " proxyFrowardClientId? bname?",
    "PullMessageResponse": "suggestWhichBrokerId nextBeginOffset minOffset maxOffset offsetDelta? topicSysFlag?"
    " groupSysFlag? forbiddenType?",
    "QueryConsumerOffsetRequest": "consumerGroup topic queueId setZeroIfNotFound? bname?",
    "QueryConsumerOffsetResponse": "offset",
    "UpdateConsumerOffsetRequest": "consumerGroup topic queueId commitOffset bname?",
    "UpdateConsumerOffsetResponse": "",
    "SearchOffsetRequest": "topic queueId timestamp boundaryType? bname?",
    "SearchOffsetResponse": "offset",
    "GetMaxOffsetRequest": "topic queueId committed? bname?",
    "GetMaxOffsetResponse": "offset",
    "GetMinOffsetRequest": "topic queueId bname?",
    "GetMinOffsetResponse": "offset",
    "GetEarliestMsgStoretimeRequest": "topic queueId bname?",
    "GetEarliestMsgStoretimeResponse": "timestamp",
    "QueryMessageRequest": "topic key maxNum beginTimestamp endTimestamp _UNIQUE_KEY_QUERY?",
    "QueryMessageResponse": "indexLastUpdateTimestamp indexLastUpdatePhyoffset",
    "ViewMessageRequest": "offset topic?",
    "ViewMessageResponse": "",
    "ConsumerSendMsgBackRequest": "offset group delayLevel originMsgId? originTopic? unitMode? maxReconsumeTimes?"
    " bname?",
    "EndTransactionRequest": "producerGroup tranStateTableOffset commitLogOffset commitOrRollback fromTransactionCheck?"
    " msgId transactionId? topic? bname?",
    "EndTransactionResponse": "",
    "CheckTransactionStateRequest": "tranStateTableOffset commitLogOffset msgId? transactionId? offsetMsgId? topic?"
    " bname?",
    "ResumeCheckHalfMessageRequest": "msgId? topic?",
    "RecallMessageRequest": "producerGroup? topic recallHandle",
    "RecallMessageResponse": "msgId",
    "HeartbeatResponse": "IS_SUPPORT_HEART_BEAT_V2? IS_SUB_CHANGE?",
    "UnregisterClientRequest": "clientID producerGroup? consumerGroup?",
    "UnregisterClientResponse": "",
    "GetConsumerListByGroupRequest": "consumerGroup",
    "NotifyConsumerIdsChangedRequest": "consumerGroup",
    "GetConsumerRunningInfoRequest": "consumerGroup clientId jstackEnable?",
    "ConsumeMessageDirectlyRequest": "consumerGroup clientId? msgId? brokerName? topic? topicSysFlag? groupSysFlag?",
    "GetConsumerStatusRequest": "topic group clientAddr?",
    "ResetOffsetRequest": "topic group timestamp isForce? queueId? offset?",
    "CreateTopicRequest": "topic defaultTopic? readQueueNums writeQueueNums perm topicFilterType topicSysFlag? order?"
    " attributes? force?",
    "GetBrokerConfigResponse": "version",
    "GetTopicStatsInfoRequest": "topic",
    "GetConsumerConnectionListRequest": "consumerGroup",
    "GetProducerConnectionListRequest": "producerGroup",
    "DeleteSubscriptionGroupRequest": "groupName removeOffset? cleanOffset?",
    "GetConsumeStatsRequest": "consumerGroup topic? topicList?",
    "DeleteTopicRequest": "topic",
    "QueryTopicConsumeByWhoRequest": "topic",
    "QueryConsumeTimeSpanRequest": "topic group",
    "QueryCorrectionOffsetRequest": "filterGroups? compareGroup topic",
    "CloneGroupOffsetRequest": "srcGroup destGroup topic? offline?",
    "ViewBrokerStatsDataRequest": "statsName statsKey",
    "GetBrokerConsumeStatsRequest": "isOrder",
    "QueryConsumeQueueRequest": "topic queueId index count consumerGroup?",
    "GetAllProducerInfoRequest": "",
    "QueryTopicsByConsumerRequest": "group",
    "QuerySubscriptionByConsumerRequest": "group topic?",
    "GetTopicConfigRequest": "topic lo?",
    "GetSubscriptionGroupConfigRequest": "group",
    "UpdateGroupForbiddenRequest": "group topic readable?",
    "UpdateAclConfigRequest": "accessKey secretKey? whiteRemoteAddress? admin? defaultTopicPerm? defaultGroupPerm?"
    " topicPerms? groupPerms?",
    "DeleteAclConfigRequest": "accessKey",
    "GetBrokerClusterAclInfoResponse": "version allAclFileVersion? brokerName brokerAddr clusterName",
    "UpdateGlobalWhiteAddrsRequest": "globalWhiteAddrs aclFileFullPath?",
    "PutKvConfigRequest": "namespace key value",
    "GetKvConfigRequest": "namespace key",
    "GetKvConfigResponse": "value?",
    "DeleteKvConfigRequest": "namespace key",
    "GetKvListByNamespaceRequest": "namespace",
    "RegisterBrokerRequest": "brokerName brokerAddr clusterName haServerAddr brokerId compressed? bodyCrc32?"
    " heartbeatTimeoutMillis? enableActingMaster?",
    "RegisterBrokerResponse": "haServerAddr? masterAddr?",
    "UnregisterBrokerRequest": "brokerName brokerAddr clusterName brokerId",
    "GetRouteInfoRequest": "topic acceptStandardJsonOnly?",
    "WipeWritePermOfBrokerRequest": "brokerName",
    "WipeWritePermOfBrokerResponse": "wipeTopicCount",
    "AddWritePermOfBrokerRequest": "brokerName",
    "AddWritePermOfBrokerResponse": "addTopicCount",
    "DeleteTopicInNamesrvRequest": "topic clusterName?",
    "RegisterTopicRequest": "topic",
    "GetTopicsByClusterRequest": "cluster",
    "QueryDataVersionRequest": "brokerName brokerAddr clusterName brokerId",
    "QueryDataVersionResponse": "changed",
    "BrokerHeartbeatRequest": "clusterName brokerAddr brokerName brokerId? epoch? maxOffset? confirmOffset?"
    " heartbeatTimeoutMills? electionPriority?",
    "PopMessageRequest": "consumerGroup topic queueId maxMsgNums invisibleTime pollTime bornTime initMode expType? exp?"
    " order? attemptId?",
    "PopMessageResponse": "popTime invisibleTime reviveQid restNum startOffsetInfo? msgOffsetInfo? orderCountInfo?",
    "AckMessageRequest": "consumerGroup topic queueId extraInfo offset",
    "PeekMessageRequest": "topic queueId maxMsgNums consumerGroup",
    "ChangeInvisibleTimeRequest": "consumerGroup topic queueId extraInfo offset invisibleTime",
    "ChangeInvisibleTimeResponse": "popTime invisibleTime reviveQid",
    "NotificationRequest": "consumerGroup topic queueId pollTime bornTime order? attemptId?",
    "NotificationResponse": "hasMsg pollingFull?",
    "PollingInfoRequest": "consumerGroup topic queueId",
    "PollingInfoResponse": "pollingNum",
}


def names_of(header_type: Any) -> str:
    return " ".join(plan.wire_name + ("" if plan.required else "?") for plan in header_plan(header_type))


@pytest.mark.parametrize("header_type", CLASSES, ids=lambda header_type: header_type.__name__)
def test_every_header_has_its_names_on_the_wire(header_type: Any) -> None:
    assert names_of(header_type) == WIRE_NAMES[header_type.__name__]


def test_every_name_list_has_its_header() -> None:
    assert set(WIRE_NAMES) == {header_type.__name__ for header_type in CLASSES}


def test_the_name_lists_catch_a_codec_that_spells_differently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "camel_case", lambda name: name)
    header_plan.cache_clear()
    try:
        assert names_of(PullMessageRequest) != WIRE_NAMES["PullMessageRequest"]
    finally:
        header_plan.cache_clear()


# Round trips --------------------------------------------------------------------------------------


def round_trips(header: Any) -> None:
    command = request(11, encode_header(header))
    assert decode_header(type(header), decode(encode(command))) == header


@given(st.data())
def test_decoding_what_was_encoded_gives_it_back(data: st.DataObject) -> None:
    round_trips(data.draw(headers_of(data.draw(st.sampled_from(CLASSES)))))


@pytest.mark.parametrize("code", [10, 310, 320, 324, 325])
@given(header=headers_of(SendMessageRequest))
def test_a_send_header_comes_back_under_every_code(code: int, header: SendMessageRequest) -> None:
    command = request(code, encode_send_header(header, code))
    assert decode_send_header(decode(encode(command))) == header


def test_the_round_trip_catches_a_number_without_its_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_INTEGER", re.compile("[0-9]+"))
    with pytest.raises(WireError):
        round_trips(headers.QueryConsumerOffsetResponse(offset=-1))


def test_the_round_trip_catches_a_default_taken_for_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = codec.encode_header
    without = lambda header: {k: v for k, v in genuine(header).items() if v != "false"}  # noqa: E731
    monkeypatch.setitem(round_trips.__globals__, "encode_header", without)
    with pytest.raises((AssertionError, WireError)):
        round_trips(headers.QueryDataVersionResponse(changed=False))


@given(st.dictionaries(st.sampled_from([plan.wire_name for plan in header_plan(PullMessageRequest)]), st.text()))
def test_any_fields_are_a_header_or_an_error(fields: dict[str, str]) -> None:
    command = RemotingCommand(code=11, ext_fields=fields)
    try:
        header = decode_header(PullMessageRequest, command)
    except WireError as error:
        assert error.field.removeprefix("extFields.") in WIRE_NAMES["PullMessageRequest"]  # noqa: PT017
    else:
        encode_header(header)


# Errors and tolerance -----------------------------------------------------------------------------

PULL = {
    "consumerGroup": "g",
    "topic": "T",
    "queueId": "1",
    "queueOffset": "2",
    "maxMsgNums": "32",
    "sysFlag": "2",
    "commitOffset": "0",
    "suspendTimeoutMillis": "15000",
    "subVersion": "1700000000000",
}


def pull(**changes: str | None) -> PullMessageRequest:
    fields = {key: value for key, value in {**PULL, **changes}.items() if value is not None}
    return decode_header(PullMessageRequest, RemotingCommand(code=11, ext_fields=fields))


NOT_MISSED = ("commitOffset", "suspendTimeoutMillis", "subVersion")


def test_a_field_that_brokers_do_not_miss_is_0() -> None:
    header = pull(**dict.fromkeys(NOT_MISSED))
    assert (header.commit_offset, header.suspend_timeout_millis, header.sub_version) == (0, 0, 0)


@pytest.mark.parametrize("name", [name for name in PULL if name not in NOT_MISSED])
def test_a_missing_field_is_named(name: str) -> None:
    with pytest.raises(WireError, match=rf"^extFields.{name} at byte offset 8 should be given but is missing$"):
        pull(**{name: None})


@pytest.mark.parametrize("bad", ["x", "1.0", "0x1", " 1", "1_0", "2147483648", "-2147483649", "٣", "9" * 5000, "+-1"])
def test_what_is_not_a_32_bit_number_is_named(bad: str) -> None:
    with pytest.raises(WireError, match=r"^extFields.queueId .* a 32-bit integer"):
        pull(queueId=bad)


def test_a_64_bit_number_may_be_larger() -> None:
    assert pull(queueOffset="9223372036854775807").queue_offset == 2**63 - 1
    with pytest.raises(WireError, match=r"^extFields.queueOffset .* a 64-bit integer"):
        pull(queueOffset="9223372036854775808")


def test_an_empty_number_counts_as_absent() -> None:
    assert pull(maxMsgBytes="").max_msg_bytes is None
    with pytest.raises(WireError, match="missing"):
        pull(queueId="")


def test_unknown_fields_are_ignored() -> None:
    assert pull(nsd="true", ReqT="0") == pull()


@pytest.mark.parametrize(
    ("word", "meaning"), [("true", True), ("TRUE", True), ("false", False), ("1", False), ("", False)]
)
def test_only_the_word_true_is_true(word: str, meaning: bool) -> None:
    command = RemotingCommand(code=322, ext_fields={"changed": word})
    assert decode_header(headers.QueryDataVersionResponse, command).changed is meaning


def test_a_number_that_does_not_fit_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError, match="queueId must be a 32-bit integer"):
        encode_header(dataclasses.replace(pull(), queue_id=2**31))


def test_nothing_is_written_for_null() -> None:
    assert encode_header(pull()) == PULL
    assert encode_header(GetKvConfigRequest(namespace="n", key="")) == {"namespace": "n", "key": ""}


def test_the_letters_of_the_short_send_header() -> None:
    assert "".join(LETTERS.values()) == "abcdefghijklmn"
    assert list(LETTERS) == [plan.wire_name for plan in header_plan(SendMessageRequest)]
    with pytest.raises(UsageError):
        decode_send_header(RemotingCommand(code=11))
    with pytest.raises(UsageError):
        encode_send_header(
            SendMessageRequest(
                producer_group="g",
                topic="T",
                default_topic="TBW102",
                default_topic_queue_nums=4,
                queue_id=0,
                sys_flag=0,
                born_timestamp=0,
                flag=0,
            ),
            11,
        )


def test_a_retry_without_its_limit_is_readable() -> None:
    """4.9.2 and before answered a server error: an absent optional number was used without a look."""
    fields = {"a": "g", "b": "%RETRY%g", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0"}
    assert decode_send_header(RemotingCommand(code=310, ext_fields=fields)).max_reconsume_times is None


def test_both_names_of_the_offset_flag_are_read() -> None:
    for name in ("removeOffset", "cleanOffset"):
        command = RemotingCommand(code=207, ext_fields={"groupName": "g", name: "true"})
        assert decode_header(DeleteSubscriptionGroupRequest, command).deletes_offsets


def test_a_class_that_the_codec_cannot_carry_is_found_at_once() -> None:
    @dataclasses.dataclass(frozen=True)
    class Wrong:
        number: int  # neither 32 nor 64 bits

    with pytest.raises(AssertionError, match="number"):
        header_plan(Wrong)


def test_camel_case() -> None:
    assert camel_case("suspend_timeout_millis") == "suspendTimeoutMillis"


# Against the classes of the published jars ---------------------------------------------------------

# Ext fields that upstream adds outside its header classes.
ADDED = {
    "QueryMessageRequest": {"_UNIQUE_KEY_QUERY"},
    "SendMessageResponse": {"MSG_REGION", "TRACE_ON"},
    "GetTopicConfigRequest": {"lo"},
}
# Fields that are mandatory upstream and may be absent here, and the reverse, each with its reason.
LENIENT = {
    "SendMessageResponse": {"msgId", "queueId", "queueOffset"},  # errors carry only the region
    "CreateTopicRequest": {"order", "defaultTopic"},  # the broker of 4.9.8 does not look at them
    # What a 4.9.7 broker was seen to do without: its own decoders of these headers do not look for them.
    "PullMessageRequest": {"commitOffset", "suspendTimeoutMillis", "subVersion"},
    "SendMessageRequest": {"producerGroup", "defaultTopic", "defaultTopicQueueNums"},
    "ResetOffsetRequest": {"isForce"},
    "UpdateGlobalWhiteAddrsRequest": {"aclFileFullPath"},  # not sent before 4.9.3
}
STRICT = {"QueryConsumeQueueRequest": {"topic", "queueId", "index", "count"}}  # nothing can be looked up without them
KINDS = {
    "String": "str",
    "Integer": "32",
    "int": "32",
    "Long": "64",
    "long": "64",
    "Boolean": "bool",
    "boolean": "bool",
}
# Texts here, other types upstream.
TEXTS = {"boundaryType": "BoundaryType"}


UPSTREAM = upstream_headers("4.9.8", "5.3.3")


# Upstream adds the fields of HeartbeatResponse without a class.
@pytest.mark.parametrize(
    "header_type",
    [header_type for header_type in CLASSES if header_type is not headers.HeartbeatResponse],
    ids=lambda header_type: header_type.__name__,
)
def test_every_header_is_that_of_the_published_classes(header_type: Any) -> None:
    name = header_type.__name__
    plans = {plan.wire_name: plan for plan in header_plan(header_type)}
    upstream = UPSTREAM[name]
    assert set(plans) - {"bname"} == set(upstream) | ADDED.get(name, set())
    for wire_name, (kind, mandatory) in upstream.items():
        plan = plans[wire_name]
        ours = str(plan.range.bits) if plan.range is not None else plan.kind.__name__
        assert ours == ("str" if TEXTS.get(wire_name) == kind else KINDS[kind]), wire_name
        if wire_name not in LENIENT.get(name, set()) | STRICT.get(name, set()):
            assert plan.required == mandatory, wire_name


def test_the_letters_are_those_of_the_published_class() -> None:
    assert set(UPSTREAM["SendMessageRequestHeaderV2"]) == set(LETTERS.values())
    for wire_name, letter in LETTERS.items():
        if wire_name != "bname":
            assert UPSTREAM["SendMessageRequestHeaderV2"][letter] == UPSTREAM["SendMessageRequest"][wire_name]


def test_every_published_header_of_4_9_8_that_somebody_serves_is_here() -> None:
    nobody_serves = {
        "CheckTransactionStateResponse",
        "RegisterFilterServerRequest",
        "RegisterFilterServerResponse",
        "RegisterMessageFilterClassRequest",
        "RegisterOrderTopicRequest",
    }
    without_fields = {"GetAllTopicConfigResponse", "GetConsumerListByGroupResponse"}
    names = {line.split()[0] for line in (GOLDEN / "4.9.8.txt").read_text().splitlines()}
    published = {OUR_NAMES.get(name.removesuffix("Header"), name.removesuffix("Header")) for name in names}
    ours = {header_type.__name__ for header_type in CLASSES} | {"SendMessageRequestHeaderV2"}
    assert published - nobody_serves - without_fields <= ours


@pytest.mark.parametrize("serialize_type", SerializeType)
@given(
    before=st.dictionaries(st.text(max_size=8).filter(bool), st.text(max_size=8).filter(bool), max_size=4),
    after=st.dictionaries(st.text(max_size=8).filter(bool), st.text(max_size=8).filter(bool), max_size=4),
    remark=st.text(max_size=30) | st.none(),
)
def test_the_error_of_a_wrong_field_has_the_offset_of_its_value(
    serialize_type: SerializeType, before: dict[str, str], after: dict[str, str], remark: str | None
) -> None:
    fields = {**before, "queueId": "no number", **{key: text for key, text in after.items() if key != "queueId"}}
    fields = {"topic": "t", "timestamp": "1", **fields}
    frame = encode(request(29, fields, remark=remark, serialize_type=serialize_type))
    (command,) = FrameDecoder().feed(frame)
    with pytest.raises(WireError) as caught:
        decode_header(SearchOffsetRequest, command)
    assert caught.value.field == "extFields.queueId"
    quoted = b'"no number"' if serialize_type is SerializeType.JSON else b"no number"
    assert frame[caught.value.offset :].startswith(quoted)
