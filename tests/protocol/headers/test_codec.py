from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import UsageError, WireError
from refmq.protocol import headers
from refmq.protocol.command import RemotingCommand, SerializeType, request
from refmq.protocol.frame import FrameDecoder, encode
from refmq.protocol.headers import (
    GetKvConfigRequest,
    PullMessageRequest,
    codec,
    decode_header,
    encode_header,
)
from refmq.protocol.headers.codec import camel_case, header_plan
from refmq.protocol.headers.offsets import SearchOffsetRequest
from tests.protocol.headers.names import WIRE_NAMES, names_of, round_trips


def test_the_name_lists_catch_a_codec_that_spells_differently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "camel_case", lambda name: name)
    header_plan.cache_clear()
    try:
        assert names_of(PullMessageRequest) != WIRE_NAMES["PullMessageRequest"]
    finally:
        header_plan.cache_clear()


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


def test_a_class_that_the_codec_cannot_carry_is_found_at_once() -> None:
    @dataclasses.dataclass(frozen=True)
    class Wrong:
        number: int  # neither 32 nor 64 bits

    with pytest.raises(AssertionError, match="number"):
        header_plan(Wrong)


def test_camel_case() -> None:
    assert camel_case("suspend_timeout_millis") == "suspendTimeoutMillis"


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
