from __future__ import annotations

import re

import pytest

from refmq.errors import UsageError
from refmq.protocol.bodies import (
    BrokerStatsData,
    ConsumeMessageDirectlyResult,
    ConsumerOffsets,
    DataVersion,
    DelayOffsets,
    GroupList,
    JsonStyle,
    KVTable,
    ResetOffsetBody,
    decode_body,
    quick,
)
from refmq.protocol.bodies.shapes import bean_shape
from tests.protocol.bodies.samples import (
    both_readers_agree,
    round_trips,
)


def test_the_round_trip_catches_a_quick_reader_that_mixes_up_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = quick._read
    backwards = lambda shape, value: genuine(shape, value[::-1] if type(value) is list else value)  # noqa: E731
    monkeypatch.setattr(quick, "_read", backwards)
    with pytest.raises(AssertionError):
        round_trips(GroupList(group_list=("a", "b")), JsonStyle.STANDARD)


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
