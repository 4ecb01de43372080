from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import UsageError, WireError
from refmq.protocol.bodies import (
    BrokerStatsData,
    ConsumeMessageDirectlyResult,
    ConsumeResult,
    ConsumerOffsets,
    ConsumerRunningInfo,
    ConsumeStats,
    ConsumeStatsList,
    DataVersion,
    DelayOffsets,
    GroupList,
    HeartbeatData,
    JsonStyle,
    KVTable,
    ProcessQueueInfo,
    RegisterBrokerBody,
    ResetOffsetBody,
    TopicRouteData,
    codec,
    decode_body,
    encode_body,
)
from tests.protocol.bodies.samples import (
    T1_A2,
    both_readers_agree,
    round_trips,
)
from tests.protocol.strategies import bodies_of


def test_the_round_trip_catches_a_key_that_lost_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_whole", lambda value: len(str(value)))
    with pytest.raises(AssertionError):
        round_trips(DelayOffsets(offset_table={5: 7}), JsonStyle.STANDARD)


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


def test_a_body_can_be_limited_in_size() -> None:
    assert decode_body(GroupList, b'{"groupList":[]}', bytes_max=16).group_list == ()
    with pytest.raises(WireError, match="body at byte offset 0 should be at most 15 bytes but is 16"):
        decode_body(GroupList, b'{"groupList":[]}', bytes_max=15)


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
