"""Whatever a client sends, it gets the documented answer, its connection stays, and the next good request is served."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refmq.broker.control_plane import Broker
from refmq.broker.handlers import HANDLERS, SERVED
from refmq.model.broker_config import BrokerConfig
from refmq.net.broker_node import BrokerNode
from refmq.net.connection import Connection
from refmq.plane.engine import Peer
from refmq.protocol import compression, names
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.frame import encode
from refmq.protocol.headers.codec import header_plan
from refmq.protocol.headers.pull import PullSysFlag
from refmq.protocol.headers.send import LETTERS
from refmq.protocol.record import SYS_FLAG_COMPRESSED, BatchedMessage, decode_records, encode_batch, join_properties
from refmq.protocol.registry import ROWS
from tests.net.broker_requests import (
    TIMEOUT_S,
    pull_request,
    read_queue,
    send_request,
)
from tests.net.broker_support import serving_broker
from tests.net.support import asking, raw_peer, run

pytestmark = pytest.mark.usefixtures("each_engine")

CONFIG = BrokerConfig(listen_port=0, enable_property_filter=True)
MIB = 1 << 20


@asynccontextmanager
async def connected(config: BrokerConfig = CONFIG) -> AsyncIterator[tuple[BrokerNode, Connection]]:
    async with serving_broker(config) as (node, address), asking() as client:
        connection = await client.connect(address, TIMEOUT_S)
        yield node, connection


async def still_serves(connection: Connection) -> None:
    """The connection is open and a good request is served on it."""
    assert not connection.closed, connection.close_reason
    answer = await connection.request(send_request("Good", b"good"), TIMEOUT_S)
    assert answer.code == ResponseCode.SUCCESS, answer


def without(command: RemotingCommand, *names_: str) -> RemotingCommand:
    return replace(command, ext_fields={k: v for k, v in command.fields.items() if k not in names_})


def having(command: RemotingCommand, **changes: str) -> RemotingCommand:
    return replace(command, ext_fields={**command.fields, **changes})


def batch_request(body: bytes, **changes: Any) -> RemotingCommand:
    return replace(send_request("Batch", body, batch=True, **changes), code=RequestCode.SEND_BATCH_MESSAGE)


SEND = send_request("T", b"x")
PULL = pull_request("Good")
GOOD_BATCH = encode_batch(
    (BatchedMessage(body=b"one", properties=b"", flag=0), BatchedMessage(body=b"two", properties=b"", flag=0))
)
ILLEGAL = "the message is illegal, maybe msg body or properties length not matched"
LONG_TEXT = "v" * 40_000

CASES: list[tuple[str, RemotingCommand, ResponseCode, str]] = [
    ("unknown code", request(9999), ResponseCode.REQUEST_CODE_NOT_SUPPORTED, " request type 9999 not supported"),
    ("negative code", request(-1), ResponseCode.REQUEST_CODE_NOT_SUPPORTED, " request type -1 not supported"),
    ("missing field", without(SEND, "b"), ResponseCode.SYSTEM_ERROR, "extFields.b "),
    ("no fields at all", replace(SEND, ext_fields=None), ResponseCode.SYSTEM_ERROR, "extFields.b "),
    ("text for a number", having(SEND, e="first"), ResponseCode.SYSTEM_ERROR, "extFields.e "),
    ("33 bits for 32", having(SEND, e=str(2**32)), ResponseCode.SYSTEM_ERROR, "extFields.e "),
    ("a hundred digits", having(SEND, g="9" * 100), ResponseCode.SYSTEM_ERROR, "extFields.g "),
    (
        "queue out of range",
        having(SEND, e="4"),
        ResponseCode.SYSTEM_ERROR,
        "request queueId[4] is illegal, TopicConfig [",
    ),
    (
        "largest queue",
        having(SEND, e=str(2**31 - 1)),
        ResponseCode.SYSTEM_ERROR,
        "request queueId[2147483647] is illegal",
    ),
    ("blank topic", having(SEND, b=" "), ResponseCode.SYSTEM_ERROR, "The specified topic is blank."),
    (
        "path as topic",
        having(SEND, b="../../x"),
        ResponseCode.SYSTEM_ERROR,
        "The specified topic contains illegal char",
    ),
    ("zero in topic", having(SEND, b="a\0b"), ResponseCode.SYSTEM_ERROR, "The specified topic contains illegal char"),
    (
        "long topic",
        having(SEND, b="t" * 128),
        ResponseCode.SYSTEM_ERROR,
        "The specified topic is longer than topic max",
    ),
    ("system topic", having(SEND, b="SCHEDULE_TOPIC_XXXX"), ResponseCode.NO_PERMISSION, "Sending message to topic["),
    (
        "no default topic",
        having(SEND, b="U", c="None"),
        ResponseCode.TOPIC_NOT_EXIST,
        "topic[U] not exist, apply first",
    ),
    ("5 MiB body", send_request("T", bytes(5 * MIB)), ResponseCode.MESSAGE_ILLEGAL, ILLEGAL),
    ("40 KB property", send_request("T", b"x", properties={"k": LONG_TEXT}), ResponseCode.MESSAGE_ILLEGAL, ILLEGAL),
    (
        "40 KB properties, not ASCII",
        send_request("T", b"x", properties={"k": "ä" * 20_000}),
        ResponseCode.MESSAGE_ILLEGAL,
        ILLEGAL,
    ),
    (
        "5 MiB batch",
        batch_request(encode_batch((BatchedMessage(body=bytes(5 * MIB), properties=b"", flag=0),))),
        ResponseCode.MESSAGE_ILLEGAL,
        ILLEGAL,
    ),
    ("batch cut short", batch_request(GOOD_BATCH[:-3]), ResponseCode.MESSAGE_ILLEGAL, ILLEGAL),
    ("batch of noise", batch_request(b"\xff" * 100), ResponseCode.MESSAGE_ILLEGAL, ILLEGAL),
    ("batch of zeros", batch_request(bytes(100)), ResponseCode.MESSAGE_ILLEGAL, ILLEGAL),
    ("batch with a delay", batch_request(GOOD_BATCH, properties={"DELAY": "1"}), ResponseCode.MESSAGE_ILLEGAL, ILLEGAL),
    ("batch in a transaction", batch_request(GOOD_BATCH, sys_flag=4), ResponseCode.MESSAGE_ILLEGAL, ILLEGAL),
    ("pull of an unknown topic", having(PULL, topic="No"), ResponseCode.TOPIC_NOT_EXIST, "topic[No] not exist, apply"),
    ("pull of no queue", having(PULL, queueId="4"), ResponseCode.SYSTEM_ERROR, "queueId[4] is illegal, topic:[Good]"),
    ("pull of queue -1", having(PULL, queueId="-1"), ResponseCode.SYSTEM_ERROR, "queueId[-1] is illegal, topic:[Good]"),
    ("pull below the queue", having(PULL, queueOffset="-5"), ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL"),
    ("pull far beyond", having(PULL, queueOffset=str(2**62)), ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY"),
    (
        "pull of an empty queue",
        having(PULL, queueId="1", queueOffset="7"),
        ResponseCode.PULL_OFFSET_MOVED,
        "NO_MESSAGE_IN_QUEUE",
    ),
    (
        "pull by an unknown group",
        having(PULL, sysFlag="0"),
        ResponseCode.SUBSCRIPTION_NOT_EXIST,
        "the consumer's group info not",
    ),
    (
        "pull by bad SQL",
        having(PULL, expressionType="SQL92", subscription="a =="),
        ResponseCode.SUBSCRIPTION_PARSE_FAILED,
        "parse the consumer's",
    ),
    (
        "pull by bad tags",
        having(PULL, subscription="||||"),
        ResponseCode.SUBSCRIPTION_PARSE_FAILED,
        "parse the consumer's",
    ),
    (
        "pull by unknown language",
        having(PULL, expressionType="XPATH", subscription="a"),
        ResponseCode.SUBSCRIPTION_PARSE_FAILED,
        "parse the consumer's",
    ),
    ("heartbeat of garbage", request(RequestCode.HEART_BEAT, body=b"\xff\xfe{]"), ResponseCode.SYSTEM_ERROR, ""),
    ("heartbeat of nothing", request(RequestCode.HEART_BEAT), ResponseCode.SYSTEM_ERROR, ""),
    ("heartbeat of a number", request(RequestCode.HEART_BEAT, body=b"12"), ResponseCode.SYSTEM_ERROR, ""),
    ("heartbeat of brackets", request(RequestCode.HEART_BEAT, body=b"[" * 500_000), ResponseCode.SYSTEM_ERROR, ""),
    ("heartbeat of 2 MiB", request(RequestCode.HEART_BEAT, body=b" " * (2 * MIB)), ResponseCode.SYSTEM_ERROR, ""),
    ("lock of garbage", request(RequestCode.LOCK_BATCH_MQ, body=b"{"), ResponseCode.SYSTEM_ERROR, ""),
    (
        "group of garbage",
        request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=b"\0"),
        ResponseCode.SYSTEM_ERROR,
        "",
    ),
    (
        "unknown group's members",
        request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "No"}),
        ResponseCode.SYSTEM_ERROR,
        "no consumer for this group, No",
    ),
    (
        "unknown group's connections",
        request(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "No"}),
        ResponseCode.CONSUMER_NOT_ONLINE,
        "the consumer group[No] not online",
    ),
    (
        "message nowhere",
        request(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(2**62)}),
        ResponseCode.SYSTEM_ERROR,
        "can not find message by the offset, ",
    ),
    (
        "message before the log",
        request(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": "-1"}),
        ResponseCode.SYSTEM_ERROR,
        "can not find message by the offset, -1",
    ),
    (
        "message inside another",
        request(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": "3"}),
        ResponseCode.SYSTEM_ERROR,
        "can not find message by the offset, 3",
    ),
    (
        "no such key",
        request(
            RequestCode.QUERY_MESSAGE,
            {
                "topic": "Good",
                "key": "k",
                "maxNum": str(2**31 - 1),
                "beginTimestamp": "-1",
                "endTimestamp": str(2**63 - 1),
            },
        ),
        ResponseCode.QUERY_NOT_FOUND,
        "can not find message, maybe time range",
    ),
    (
        "send back from nowhere",
        request(RequestCode.CONSUMER_SEND_MSG_BACK, {"offset": "-7", "group": "g", "delayLevel": "0"}),
        ResponseCode.SYSTEM_ERROR,
        "look message by offset failed, -7",
    ),
    (
        "decision about nothing",
        request(
            RequestCode.END_TRANSACTION,
            {
                "producerGroup": "p",
                "tranStateTableOffset": "-1",
                "commitLogOffset": "-1",
                "commitOrRollback": "8",
                "msgId": "x",
            },
        ),
        ResponseCode.SYSTEM_ERROR,
        "Find prepared transaction message failed",
    ),
    (
        "decision of a third kind",
        request(
            RequestCode.END_TRANSACTION,
            {
                "producerGroup": "p",
                "tranStateTableOffset": "0",
                "commitLogOffset": "0",
                "commitOrRollback": "3",
                "msgId": "x",
            },
        ),
        ResponseCode.SYSTEM_ERROR,
        "commitOrRollback should be",
    ),
    (
        "topic without queues",
        request(
            RequestCode.UPDATE_AND_CREATE_TOPIC,
            {
                "topic": "X",
                "defaultTopic": "T",
                "readQueueNums": "-1",
                "writeQueueNums": "4",
                "perm": "6",
                "topicFilterType": "SINGLE_TAG",
            },
        ),
        ResponseCode.SYSTEM_ERROR,
        "a topic has 0 to",
    ),
    (
        "setting not to be touched",
        request(RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerConfigPath=/x\n"),
        ResponseCode.NO_PERMISSION,
        "Can not update config in black list.",
    ),
    (
        "settings not in UTF-8",
        request(RequestCode.UPDATE_BROKER_CONFIG, body=b"\xff\xfe=\xfd\n"),
        ResponseCode.SYSTEM_ERROR,
        "\ufffd\ufffd is not known",
    ),
    (
        "reply to nobody",
        replace(SEND, code=RequestCode.SEND_REPLY_MESSAGE_V2),
        ResponseCode.SYSTEM_ERROR,
        "reply message properties[REPLY_TO_CLIENT] is null",
    ),
]


@pytest.mark.parametrize(("command", "code", "remark"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_wrong_request_gets_its_answer_and_the_next_one_is_served(
    command: RemotingCommand, code: ResponseCode, remark: str
) -> None:
    async def story() -> None:
        async with connected() as (_, connection):
            await still_serves(connection)  # there is one message, in topic Good
            before = await connection.request(pull_request("Good"), TIMEOUT_S)
            answer = await connection.request(command, TIMEOUT_S)
            assert (answer.code, (answer.remark or "")[: len(remark)]) == (code, remark)
            assert answer.opaque != 0
            await still_serves(connection)
            after = await connection.request(pull_request("Good"), TIMEOUT_S)
            assert after.body.startswith(before.body) and len(after.body) == 2 * len(before.body)

    run(story())


def test_a_one_way_request_that_is_wrong_costs_nothing() -> None:
    async def story() -> None:
        async with connected() as (_, connection):
            for _, command, _, _ in CASES:
                connection.send_oneway(replace(command, flag=2))
            await still_serves(connection)

    run(story())


def test_what_is_no_frame_costs_the_connection_and_nobody_else() -> None:
    async def story() -> None:
        async with serving_broker(CONFIG) as (_, address), asking() as client:
            connection = await client.connect(address, TIMEOUT_S)
            for noise in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, encode(SEND)[:8] + b"\xff" * 400):
                async with raw_peer(address) as (reader, writer):
                    writer.write(noise)
                    assert await asyncio.wait_for(reader.read(), TIMEOUT_S) == b""
            await still_serves(connection)

    run(story())


def test_header_text_that_is_not_utf_8_is_refused_or_answered_but_never_hangs() -> None:
    async def story() -> None:
        frame = bytearray(encode(send_request("T", b"x", properties={"k": "QQQQ"})))
        at = frame.index(b"QQQQ")
        frame[at : at + 4] = b"\xff\xfe\xfd\xfc"
        async with serving_broker(CONFIG) as (_, address), asking() as client:
            connection = await client.connect(address, TIMEOUT_S)
            async with raw_peer(address) as (reader, writer):
                writer.write(bytes(frame))
                await asyncio.wait_for(reader.read(4), TIMEOUT_S)  # an answer, or the end
            await still_serves(connection)

    run(story())


def test_properties_that_are_not_utf_8_are_kept_as_they_came() -> None:
    """A batch carries the properties of its messages as bytes, so anything can come."""

    async def story() -> None:
        odd = (
            b"\xff\xfe\x01\xfd\x02",
            b"a\x01\xc3\x28\x02KEYS\x01\xff \xfe",
            b"\x01\x01\x02\x02\x01",
            b"TAGS\x01\xed\xa0\x80",
        )
        body = encode_batch(tuple(BatchedMessage(body=b"m", properties=each, flag=0) for each in odd))
        async with serving_broker(CONFIG) as (node, address), asking() as client:
            connection = await client.connect(address, TIMEOUT_S)
            assert (await connection.request(batch_request(body), TIMEOUT_S)).code == ResponseCode.SUCCESS
            stored = await read_queue(client, address, "Batch")
            assert [record.properties[: len(each)] for record, each in zip(stored, odd, strict=True)] == list(odd)
            command = pull_request("Batch", expression_type="SQL92", subscription="a IS NULL")
            assert (await connection.request(command, TIMEOUT_S)).code == ResponseCode.SUCCESS
            for record in stored:
                back = {"offset": str(record.physical_offset), "group": "g", "delayLevel": "1"}
                answer = await connection.request(request(RequestCode.CONSUMER_SEND_MSG_BACK, back), TIMEOUT_S)
                assert answer.code == ResponseCode.SUCCESS
            await still_serves(connection)
            assert not node.failure.done()

    run(story())


# --- bodies that do not decompress ---------------------------------------------------------------------------------


BROKEN = zlib.compress(b"a long body, a long body, a long body")[:-6]


def test_a_body_that_does_not_decompress_is_kept_as_it_came_and_only_its_consumer_notices() -> None:
    async def story() -> None:
        async with serving_broker(CONFIG) as (_, address), asking() as client:
            connection = await client.connect(address, TIMEOUT_S)
            command = send_request("Packed", BROKEN, properties={"a": "1"}, sys_flag=SYS_FLAG_COMPRESSED)
            assert (await connection.request(command, TIMEOUT_S)).code == ResponseCode.SUCCESS
            assert (
                await connection.request(send_request("Packed", b"plain", properties={"a": "1"}), TIMEOUT_S)
            ).code == 0
            # SQL filters look at properties only: the broken body passes like any other.
            answer = await connection.request(
                pull_request("Packed", expression_type="SQL92", subscription="a = 1"), TIMEOUT_S
            )
            first, second = decode_records(answer.body)
            assert (first.body, second.body) == (BROKEN, b"plain")
            with pytest.raises(Exception, match="body"):
                compression.decompress(first.body, first.sys_flag)
            assert compression.decompress(second.body, second.sys_flag) == b"plain"
            await still_serves(connection)

    run(story())


def test_a_body_that_does_not_decompress_goes_through_retry_trace_and_transaction() -> None:
    async def story() -> None:
        async with serving_broker(CONFIG) as (_, address), asking() as client:
            connection = await client.connect(address, TIMEOUT_S)
            flags: dict[str, Any] = {"sys_flag": SYS_FLAG_COMPRESSED}
            sent = await connection.request(send_request("Packed", BROKEN, **flags), TIMEOUT_S)
            back = {"offset": "0", "group": "g", "delayLevel": "-1", "originMsgId": sent.fields["msgId"]}
            answer = await connection.request(request(RequestCode.CONSUMER_SEND_MSG_BACK, back), TIMEOUT_S)
            assert answer.code == ResponseCode.SUCCESS
            (dead,) = await read_queue(client, address, "%DLQ%g")
            assert dead.body == BROKEN
            half = {names.TRANSACTION_PREPARED: "true", names.PRODUCER_GROUP: "p", names.UNIQ_KEY: "k"}
            traced = await connection.request(send_request("RMQ_SYS_TRACE_TOPIC", BROKEN, **flags), TIMEOUT_S)
            assert traced.code == ResponseCode.SUCCESS
            stored = await connection.request(send_request("Tx", BROKEN, properties=half, **flags), TIMEOUT_S)
            assert stored.code == ResponseCode.SUCCESS
            await still_serves(connection)

    run(story())


# --- anything at all --------------------------------------------------------------------------------------------------


GOOD_VALUES = ["Good", "g", "T", "TBW102", "0", "1", "4", "true"]
ODD_VALUES = [
    "", " ", "-1", "-9223372036854775808", "9223372036854775807", "2147483647", "-2147483648", "1e3", "0x10",
    "\x00", "\x01\x02", "ä" * 100, "../x", "%RETRY%g", "%DLQ%g", "%RETRY%", "%LMQ%x", "null", "[]", "{", "x" * 300,
    "7F00000100002A9F0000000000000000", "7F00000100002A9FFFFFFFFFFFFFFFFF",
]  # fmt: skip
ODD_BODIES = [
    b"", b"{}", b"[]", b"null", b"{", b"\xff\xfe", bytes(50), b'{"groupName":null}', b'{"mqSet":[{}]}',
    b'{"clientID":"c","consumerDataSet":[{"groupName":"g"}]}', b'{"consumerGroup":"g","clientId":"c","mqSet":[]}',
    b'{"clientID":"","producerDataSet":[{"groupName":""}]}',
    b'{"groupName":"g","retryQueueNums":2147483647}', b"a=b\nc=d\n", b'"' * 100, GOOD_BATCH, b"1" * 400,
]  # fmt: skip


def field_names(code: int) -> list[str]:
    row = next(row for row in ROWS if row.code == code)
    if row.header is None:
        return []
    wire = [plan.wire_name for plan in header_plan(row.header)]
    short = code in (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2)
    return [LETTERS.get(name, name) for name in wire] if short else wire


def is_answered(command: RemotingCommand) -> bool:
    """A pull that may wait and a decision that is none get no answer (now), as upstream."""
    given = command.fields
    if command.code in (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE):
        flag = given.get("sysFlag", "")
        return not (flag.lstrip("+-").isdigit() and int(flag) & PullSysFlag.SUSPEND)
    return command.code != RequestCode.END_TRANSACTION or given.get("commitOrRollback") not in ("0", "+0", "-0")


SENDS = {code for code in SERVED if "SEND" in RequestCode(code).name and code != RequestCode.CONSUMER_SEND_MSG_BACK}
PLAIN_SEND = {
    letter: st.just(value)
    for letter, value in [("b", "Good"), ("c", "TBW102"), ("d", "4"), ("e", "0"), ("f", "0"), ("g", "1"), ("h", "0")]
}
PROPERTIES = sorted(value for name, value in vars(names).items() if name.isupper() and isinstance(value, str))


def odd_properties() -> st.SearchStrategy[str]:
    """Properties of a message: names that mean something to a broker, with values that may not."""
    values = st.sampled_from([*GOOD_VALUES, *ODD_VALUES, "--5", "-", "+", "٣", "9" * 30, "true", "false"])
    return st.dictionaries(st.sampled_from(PROPERTIES), values, max_size=4).map(join_properties)


@st.composite
def odd_requests(draw: st.DrawFn) -> RemotingCommand:
    code = draw(st.sampled_from(sorted(SERVED)))
    values = st.sampled_from([*GOOD_VALUES * 3, *ODD_VALUES])
    given_fields = {name: draw(values) for name in field_names(code)}
    for name in draw(st.lists(st.sampled_from(sorted(given_fields)), max_size=2)) if given_fields else []:
        given_fields.pop(name, None)
    if code in SENDS:
        given_fields |= draw(st.fixed_dictionaries({}, optional=PLAIN_SEND))
        given_fields[draw(st.sampled_from(["i", "properties"]))] = draw(odd_properties())
    body = draw(st.sampled_from(ODD_BODIES) | st.binary(max_size=60))
    version = draw(st.sampled_from([409, 0, 27, 61, 479, -1, 2**31 - 1]))
    return request(code, given_fields, body, version=version)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(odd_requests().filter(is_answered), min_size=1, max_size=30))
def test_whatever_is_asked_is_answered_on_a_connection_that_stays(commands: list[RemotingCommand]) -> None:
    async def story() -> None:
        async with connected() as (node, connection):
            await still_serves(connection)
            for command in commands:
                answer = await connection.request(command, TIMEOUT_S)
                assert answer.is_response
            assert not connection.closed
            assert not node.failure.done()
            good = await connection.request(request(RequestCode.GET_ALL_TOPIC_CONFIG), TIMEOUT_S)
            assert good.code == ResponseCode.SUCCESS

    run(story())


def test_every_served_code_has_a_row_for_the_requests_above() -> None:
    assert {row.code for row in ROWS} >= SERVED


def test_a_mistake_of_ours_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
        raise KeyError("a handler that trusts its peer")

    monkeypatch.setitem(HANDLERS, RequestCode.GET_MAX_OFFSET, broken)

    async def story() -> None:
        async with connected() as (_, connection):
            await connection.request(request(RequestCode.GET_MAX_OFFSET), TIMEOUT_S)

    with pytest.raises(AssertionError):
        run(story())
