"""What we write is read by RocketMQ's own classes, and comes back as it was."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from interop.artifacts import CLIENTS
from interop.codec import JAVA_BODIES, JavaCodec, java_body, java_header
from refmq.protocol import bodies, headers
from refmq.protocol.acl import Credentials, sign, signature_is_valid
from refmq.protocol.bodies import ConsumeType, JsonStyle, decode_body, encode_body
from refmq.protocol.command import LanguageCode, RemotingCommand, SerializeType, request
from refmq.protocol.compression import CompressionType, compress
from refmq.protocol.frame import decode, encode
from refmq.protocol.headers import decode_header, encode_header
from refmq.protocol.record import Record, decode_records, encode_record
from tests.protocol.samples import HEADERS
from tests.protocol.strategies import bodies_of, commands, headers_of
from tests.protocol.test_record import records

pytestmark = pytest.mark.jdk
few = settings(max_examples=30, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))

# What 4.9.8 reads as null.
UNKNOWN_TO_4_9_8: set[IntEnum] = {LanguageCode.NODE_JS, ConsumeType.CONSUME_POP}


@pytest.fixture(scope="module", params=list(CLIENTS))
def java(request: pytest.FixtureRequest) -> Iterator[tuple[JavaCodec, str]]:
    with JavaCodec(request.param) as codec:
        yield codec, request.param


def differences(sent: Any, received: Any, version: str, where: str) -> list[str]:
    """What of ``sent`` is not in ``received``. Java may add defaults, and 4.9.8 drops what it has not heard of."""
    if sent is None or (received is None and version == "4.9.8"):
        return []
    if isinstance(sent, IntEnum) and sent in UNKNOWN_TO_4_9_8 and version == "4.9.8":
        return []
    if received is None:
        return [f"{where} is lost"]
    if dataclasses.is_dataclass(sent):
        return [
            line
            for field in dataclasses.fields(sent)
            for line in differences(
                getattr(sent, field.name), getattr(received, field.name), version, f"{where}.{field.name}"
            )
        ]
    if isinstance(sent, tuple):  # many of them are sets in Java
        return [
            f"{item!r} is not in {where}"
            for item in sent
            if not any(not differences(item, other, version, where) for other in received)
        ]
    if isinstance(sent, Mapping):
        lost = [f"{key!r} is not in {where}" for key in sent if key not in received]
        return lost or [
            line
            for key, item in sent.items()
            for line in differences(item, received[key], version, f"{where}[{key!r}]")
        ]
    return [] if sent == received else [f"{where}: {sent!r} became {received!r}"]


def adjusted(body: Any) -> Any:
    """``body`` within what its Java class can hold."""
    match body:
        case bodies.BatchAckRequestBody():
            return dataclasses.replace(body, acks=tuple(dataclasses.replace(ack, bit_set="BQ==") for ack in body.acks))
        case bodies.QueryConsumeTimeSpan():  # Java derives the texts from the numbers
            none: Any = {"min_time_stamp_str": None, "max_time_stamp_str": None, "consume_time_stamp_str": None}
            spans = tuple(dataclasses.replace(span, **none) for span in body.consume_time_span_set)
            return dataclasses.replace(body, consume_time_span_set=spans)
        case bodies.ConsumerRunningInfo():  # a sorted set of subscriptions: one for each topic and expression
            assume(len({(sub.topic, sub.sub_string) for sub in body.subscription_set}) == len(body.subscription_set))
        case bodies.QueryAssignmentResponseBody():  # a set, in which the queue alone tells one from another
            queues = [assignment.message_queue for assignment in body.message_queue_assignments]
            assume(len(set(queues)) == len(queues))
        case bodies.HeartbeatData():  # without it we would not know what to read
            types = {consumer.consume_type for consumer in body.consumer_data_set}
            assume(ConsumeType.CONSUME_POP not in types)
    return body


@pytest.mark.parametrize("name", sorted(JAVA_BODIES))
def test_java_reads_our_bodies(java: tuple[JavaCodec, str], name: str) -> None:
    codec, version = java
    java_name = java_body(name, version)
    if java_name is None:
        pytest.skip(f"{version} has no such body")
    body_type = getattr(bodies, name)

    @few
    @given(bodies_of(body_type).map(adjusted), st.sampled_from(JsonStyle))
    def check(body: Any, style: JsonStyle) -> None:
        written = codec.ask("body", java_name, encode_body(body, style))
        assert differences(body, decode_body(body_type, written), version, name) == []

    check()


def valid(header: Any) -> Any:
    """``header`` with a value that Java accepts where it accepts only some."""
    match header:
        case headers.CreateTopicRequest():
            return dataclasses.replace(header, topic_filter_type="MULTI_TAG")
        case headers.EndTransactionRequest():
            return dataclasses.replace(header, commit_or_rollback=headers.TRANSACTION_ROLLBACK)
        case headers.SearchOffsetRequest():
            return dataclasses.replace(header, boundary_type="UPPER")
        case headers.DeleteSubscriptionGroupRequest():  # the flag has another name in 5.3.3
            return dataclasses.replace(header, remove_offset=None)
        case headers.QueryMessageRequest():  # added outside the class
            return dataclasses.replace(header, unique_key_query=None)
        case headers.SendMessageResponse():  # likewise
            return dataclasses.replace(header, region=None, trace_on=None)
    return header


@pytest.mark.parametrize("name", HEADERS)
def test_java_reads_our_headers(java: tuple[JavaCodec, str], name: str) -> None:
    codec, version = java
    java_name = java_header(name, version)
    if java_name is None:
        pytest.skip(f"{version} has no such header")
    header_type = getattr(headers, name)

    @few
    @given(headers_of(header_type).map(valid))
    def check(header: Any) -> None:
        frame = encode(request(7, encode_header(header)))
        received = decode_header(header_type, decode(codec.ask("header", java_name, frame)))
        assert differences(header, received, version, name) == []

    check()


@pytest.mark.parametrize("kind", list(SerializeType))
def test_java_reads_our_frames(java: tuple[JavaCodec, str], kind: SerializeType) -> None:
    codec, version = java

    @few
    @given(commands(kind))
    def check(command: RemotingCommand) -> None:
        assume(command.language is not LanguageCode.NODE_JS or version != "4.9.8")
        received = decode(codec.ask("frame", "-", encode(command)))
        assert received == command

    check()


def test_java_reads_our_messages(java: tuple[JavaCodec, str]) -> None:
    codec, _ = java

    @few
    @given(st.lists(records(), min_size=1, max_size=3))
    def check(sent: list[Record]) -> None:
        # Java writes no empty body, and properties in an order of its own.
        sent = [record._replace(body=record.body or b"x", properties=b"KEYS\x01k1") for record in sent]
        written = codec.ask("messages", "-", b"".join(map(encode_record, sent)))
        received = list(decode_records(written))
        assert len(received) == len(sent)
        for ours, theirs in zip(sent, received, strict=True):
            assert theirs._replace(properties=ours.properties) == ours

    check()


@pytest.mark.parametrize("kind", list(CompressionType))
def test_java_inflates_our_bodies(java: tuple[JavaCodec, str], kind: CompressionType) -> None:
    codec, _ = java

    @few
    @given(records(), st.binary(min_size=1, max_size=300))
    def check(record: Record, body: bytes) -> None:
        compressed, flag = compress(body, 0, kind)
        message = record._replace(topic="T", body=compressed, properties=b"", sys_flag=record.sys_flag & 0x30 | flag)
        assert codec.ask("inflate", "-", encode_record(message)) == body

    check()


def test_java_signs_as_we_do(java: tuple[JavaCodec, str]) -> None:
    codec, _ = java

    @few
    @given(commands(SerializeType.JSON))
    def check(command: RemotingCommand) -> None:
        command = dataclasses.replace(command, language=LanguageCode.JAVA, ext_fields=dict(command.fields))
        theirs = decode(codec.ask("sign", "account/secret", encode(command)))
        ours = sign(command, Credentials("account", "secret"))
        assert theirs.fields["Signature"] == ours.fields["Signature"]
        assert signature_is_valid(theirs, "secret")

    check()
