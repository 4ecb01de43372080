"""The attacks. Each asserts only what it alone can know; `target.attacked` looks at the rest."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from conformance.hostile.target import Stranger, Target, pull_request, send_request
from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
)
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.messages import (
    ConsumerSendMsgBackRequest,
    EndTransactionRequest,
    ResumeCheckHalfMessageRequest,
    ViewMessageRequest,
)
from refmq.protocol.headers.offsets import UpdateConsumerOffsetRequest
from refmq.protocol.headers.pull import PullSysFlag
from refmq.protocol.names import SCHEDULE_TOPIC, TRANS_CHECK_MAX_TIME_TOPIC, TRANS_HALF_TOPIC
from refmq.protocol.record import (
    TRANSACTION_COMMIT,
    Record,
    decode_records,
    encode_properties,
    encode_record,
    message_id,
    parse_message_id,
)

TRIES: Final = 200
SUSPENDS: Final = PullSysFlag.SUBSCRIPTION | PullSysFlag.SUSPEND


@dataclass(frozen=True)
class Attack:
    """One of them, by its name."""

    name: str
    run: Callable[[Target], None]
    settings: tuple[tuple[str, str], ...] = ()
    restarts: bool = False
    """Whether it restarts the server, so that a neighbour notices that above all."""


EVERY: Final[list[Attack]] = []


def attack(
    name: str, *, restarts: bool = False, **settings: str
) -> Callable[[Callable[[Target], None]], Callable[[Target], None]]:
    def enter(run: Callable[[Target], None]) -> Callable[[Target], None]:
        EVERY.append(Attack(name, run, tuple(settings.items()), restarts))
        return run

    return enter


# --- forged records ---------------------------------------------------------------------------------------------------


def forged(place: PhysicalOffset, topic: str, properties: dict[str, str]) -> bytes:
    """A record that claims to begin at a place of the log."""
    here, then = HostAddress(b"\x7f\0\0\x01", 1), TimestampMs(0)
    return encode_record(
        Record(
            topic=topic,
            queue_id=0,
            queue_offset=QueueOffset(0),
            physical_offset=place,
            flag=0,
            sys_flag=0,
            born_timestamp_ms=then,
            born_host=here,
            store_timestamp_ms=then,
            store_host=here,
            reconsume_times=0,
            prepared_transaction_offset=0,
            body=b"forged",
            properties=encode_properties(properties),
        )
    )


def plant(peer: Stranger, topic: str, properties: dict[str, str]) -> tuple[HostAddress, PhysicalOffset]:
    """Sends a message whose body is a record that knows its own place in the log; others send meanwhile, so it takes
    some tries to guess that. Where the broker says that it lives, and where the forged record begins."""
    guess = PhysicalOffset(0)
    for _ in range(TRIES):
        answer = peer.ask(send_request("Planted", forged(guess, topic, properties)))
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        host, place = parse_message_id(answer.fields["msgId"])
        data = peer.ask(request(RequestCode.VIEW_MESSAGE_BY_ID, encode_header(ViewMessageRequest(offset=place)))).body
        (record,) = decode_records(data)
        inside = data.index(record.body)
        if place + inside == guess:
            return host, guess
        guess = PhysicalOffset(place + len(data) + inside)
    raise AssertionError(f"no guess of {TRIES} was right")


HALF_PLACES: Final = {
    "a queue id of 5,000 digits": {"REAL_TOPIC": "T", "REAL_QID": "9" * 5000},
    "a queue id of 20 digits": {"REAL_TOPIC": "T", "REAL_QID": "9" * 20},
    "the queue of delayed messages": {"REAL_TOPIC": SCHEDULE_TOPIC, "REAL_QID": "0"},
    "a topic of 200 characters": {"REAL_TOPIC": "x" * 200, "REAL_QID": "0"},
    "a sound place": {"REAL_TOPIC": "T", "REAL_QID": "0"},
}


@attack("forged half messages", restarts=True, transactionCheckInterval="300", transactionTimeOut="1")
def forged_halves(target: Target) -> None:
    """Bodies that look like half messages, restarted and committed: no record begins there, so there is none."""
    with target.stranger() as peer:
        for places in HALF_PLACES.values():
            properties = {**places, "PGROUP": "producers", "UNIQ_KEY": "forged", "TRAN_MSG": "true"}
            for topic in (TRANS_HALF_TOPIC, TRANS_CHECK_MAX_TIME_TOPIC):
                try_forged(peer, *plant(peer, topic, properties))
    target.restart(kill=True)
    time.sleep(1.5)  # a round of checks, and a level of delays
    assert target.bodies("T") == []


def try_forged(peer: Stranger, host: HostAddress, place: PhysicalOffset) -> None:
    decided = EndTransactionRequest(
        producer_group="producers",
        tran_state_table_offset=0,
        commit_log_offset=place,
        commit_or_rollback=TRANSACTION_COMMIT,
        msg_id="forged",
        transaction_id="forged",
    )
    resumed = ResumeCheckHalfMessageRequest(msg_id=message_id(host, place))
    for code, header in (
        (RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequest(offset=place)),
        (RequestCode.RESUME_CHECK_HALF_MESSAGE, resumed),
        (RequestCode.END_TRANSACTION, decided),
        (RequestCode.CONSUMER_SEND_MSG_BACK, ConsumerSendMsgBackRequest(offset=place, group="g", delay_level=0)),
    ):
        answer = peer.ask(request(code, encode_header(header)))
        assert answer.code != ResponseCode.SUCCESS, f"{code.name} believes that a record begins in a body"


@attack("half messages and delayed ones with properties of their own", transactionCheckInterval="300")
def own_places(target: Target) -> None:
    """Whoever sends one names a real place in its properties; the broker's own word counts."""
    odd = {"REAL_TOPIC": SCHEDULE_TOPIC, "REAL_QID": "9" * 5000, "PGROUP": "producers", "UNIQ_KEY": "k"}
    with target.stranger() as peer:
        assert peer.ask(send_request("T", b"delayed", properties={**odd, "DELAY": "1"})).code == ResponseCode.SUCCESS
        half = peer.ask(send_request("T", b"half", properties={**odd, "TRAN_MSG": "true"}, sys_flag=4))
        assert half.code == ResponseCode.SUCCESS
        _, place = parse_message_id(half.fields["msgId"])
        decided = EndTransactionRequest(
            producer_group="producers",
            tran_state_table_offset=int(half.fields["queueOffset"]),
            commit_log_offset=place,
            commit_or_rollback=TRANSACTION_COMMIT,
            msg_id="k",
            transaction_id="k",
        )
        assert peer.ask(request(RequestCode.END_TRANSACTION, encode_header(decided))).code == ResponseCode.SUCCESS
    until = time.monotonic() + 30
    while sorted(target.bodies("T")) != [b"delayed", b"half"] and time.monotonic() < until:
        time.sleep(0.1)
    assert sorted(target.bodies("T")) == [b"delayed", b"half"]


# --- expressions ------------------------------------------------------------------------------------------------------

EXPRESSIONS: Final = {
    "deep parentheses": "(" * 3000 + "a = 1" + ")" * 3000,
    "a chain of tests": "a" + " CONTAINS 'x'" * 2000,
    "chains in parentheses": "(" * 60 + "a" + (" IS NULL" * 60 + ")") * 60,
    "a thousand terms": " OR ".join(f"a{number} = {number}" for number in range(1000)),
    "a long list": "a IN (" + ",".join("'x'" for _ in range(6000)) + ")",
}


@attack("expressions that are deep, long or slow")
def expressions(target: Target) -> None:
    with target.stranger() as peer:
        numbers = [peer.send(send_request("Slow", b"x", properties={"a": "0"})) for _ in range(3000)]
        assert {peer.answer(number).code for number in numbers} == {ResponseCode.SUCCESS}
        for text in EXPRESSIONS.values():
            for flags in (PullSysFlag.SUBSCRIPTION, SUSPENDS):
                for count in (32, 2**31 - 1):
                    pull = pull_request(
                        "Slow", subscription=text, expression_type="SQL92", sys_flag=flags, max_msg_nums=count
                    )
                    assert peer.ask(pull).code != ResponseCode.SUCCESS
            beat = heartbeat("slow", "Slow", text, "SQL92")
            peer.ask(request(RequestCode.HEART_BEAT, {}, beat))
            peer.ask(request(RequestCode.CHECK_CLIENT_CONFIG, {}, b'{"subscriptionData":{"topic":"Slow"}}'))
            peer.ask(send_request("Slow", b"woken", properties={"a": "0"}))


def heartbeat(group: str, topic: str, text: str, kind: str = "TAG", client: str = "stranger") -> bytes:
    subscription = SubscriptionData(topic=topic, sub_string=text, sub_version=1, expression_type=kind)
    consumer = ConsumerData(
        group_name=group,
        consume_type=ConsumeType.CONSUME_PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        subscription_data_set=(subscription,),
    )
    return encode_body(HeartbeatData(client_id=client, producer_data_set=(), consumer_data_set=(consumer,)))


# --- tables -----------------------------------------------------------------------------------------------------------


@attack("offsets that no file can hold", restarts=True)
def odd_offsets(target: Target) -> None:
    """Names and queues that nobody can consume from; the table is read back at the next start."""
    names = ("", "a@b", "a\x00b", "x" * 5000, 'quote"', "\U0001f600", "line\nbreak", "CID_RMQ_SYS_TRANS")
    with target.stranger() as peer:
        for name in names:
            for place in ((name, "T", 0), ("g", name, 0), ("g", "T", -1), ("g", "T", 2**31 - 1)):
                header = UpdateConsumerOffsetRequest(
                    consumer_group=place[0], topic=place[1], queue_id=place[2], commit_offset=7
                )
                answer = peer.ask(request(RequestCode.UPDATE_CONSUMER_OFFSET, encode_header(header)))
                sound = name == "CID_RMQ_SYS_TRANS" and place[1] == name
                assert (answer.code == ResponseCode.SUCCESS) == sound, place
        numbers = [
            peer.send(
                request(
                    RequestCode.UPDATE_CONSUMER_OFFSET,
                    encode_header(
                        UpdateConsumerOffsetRequest(
                            consumer_group=f"g{number}", topic="T", queue_id=number, commit_offset=number
                        )
                    ),
                )
            )
            for number in range(20_000)
        ]
        assert {peer.answer(number).code for number in numbers} == {ResponseCode.SUCCESS}
    target.restart()
    with target.stranger() as peer:
        fields = {"consumerGroup": "g19999", "topic": "T", "queueId": "19999"}
        answer = peer.ask(request(RequestCode.QUERY_CONSUMER_OFFSET, fields))
        assert answer.fields.get("offset") == "19999"


@attack("groups and clients with impossible names")
def odd_names(target: Target) -> None:
    with target.stranger() as peer:
        assert peer.ask(send_request("T", b"x")).code == ResponseCode.SUCCESS
        for name in ("", "a/b", "x" * 256, "x" * 100_000, "\n", "é"):
            beat = heartbeat(name, "T", "*")
            assert peer.ask(request(RequestCode.HEART_BEAT, {}, beat)).code != ResponseCode.SUCCESS
            refused = peer.ask(pull_request("T", consumer_group=name)).code
            assert refused == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST or len(name) > 60_000, refused
        beat = heartbeat("g", "T", "*", client="c" * 100_000)
        assert peer.ask(request(RequestCode.HEART_BEAT, {}, beat)).code != ResponseCode.SUCCESS
        locks = b'{"clientId":"c","consumerGroup":"g","mqSet":[{"brokerName":"b","queueId":-5,"topic":"T"}]}'
        assert peer.ask(request(RequestCode.LOCK_BATCH_MQ, {}, locks)).code != ResponseCode.SUCCESS


@attack("retry topics that nobody asked for", autoCreateTopicEnable="false", autoCreateSubscriptionGroup="false")
def retry_topics(target: Target) -> None:
    with target.stranger() as peer:
        for number in range(50):
            answer = peer.ask(send_request(f"%RETRY%nobody{number}", b"x"))
            assert answer.code != ResponseCode.SUCCESS
        topics = peer.ask(request(RequestCode.GET_ALL_TOPIC_CONFIG, {})).body
        assert b"%RETRY%nobody" not in topics


# --- settings ---------------------------------------------------------------------------------------------------------


@attack("settings that would be read as others", restarts=True, flushDiskType="SYNC_FLUSH")
def settings_that_hide(target: Target) -> None:
    """A backslash at the end of a value must not swallow the next line of the file."""
    with target.stranger() as peer:
        body = rb"regionId=abc\\"
        answer = peer.ask(request(RequestCode.UPDATE_BROKER_CONFIG, {}, body))
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        for line in (b"listenPort=1", b"storePathRootDir=/tmp/x", b"flushDiskType=ASYNC_FLUSH"):
            assert peer.ask(request(RequestCode.UPDATE_BROKER_CONFIG, {}, line)).code != ResponseCode.SUCCESS
        long = b"regionId=" + b"a\\\n" * 200_000
        assert peer.ask(request(RequestCode.UPDATE_BROKER_CONFIG, {}, long)).code != ResponseCode.SUCCESS
    with target.stranger_at_nameserver() as peer:
        for line in (b"listenPort=1", b"bindAddress=0.0.0.0", b"tls.server.mode=disabled", b"kvConfigPath=/tmp/x"):
            assert peer.ask(request(RequestCode.UPDATE_NAMESRV_CONFIG, {}, line)).code != ResponseCode.SUCCESS
        long = b"productEnvName=" + b"a\\\n" * 200_000
        assert peer.ask(request(RequestCode.UPDATE_NAMESRV_CONFIG, {}, long)).code != ResponseCode.SUCCESS
    target.restart()
    with target.stranger() as peer:
        shown = peer.ask(request(RequestCode.GET_BROKER_CONFIG, {})).body.decode().splitlines()
        assert "flushDiskType=SYNC_FLUSH" in shown
        assert "regionId=abc\\\\" in shown


# --- one request, much work -------------------------------------------------------------------------------------------


@attack("a heartbeat of many groups and filters")
def large_heartbeats(target: Target) -> None:
    consumers = tuple(
        ConsumerData(
            group_name=f"group{number}",
            consume_type=ConsumeType.CONSUME_PASSIVELY,
            message_model=MessageModel.CLUSTERING,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            subscription_data_set=tuple(
                SubscriptionData(topic=f"t{topic}", sub_string=f"a = {topic}", sub_version=1, expression_type="SQL92")
                for topic in range(10)
            ),
        )
        for number in range(300)
    )
    beat = encode_body(HeartbeatData(client_id="c", producer_data_set=(), consumer_data_set=consumers))
    with target.stranger() as peer:
        assert peer.ask(request(RequestCode.HEART_BEAT, {}, beat)).code == ResponseCode.SUCCESS
        assert peer.ask(request(RequestCode.HEART_BEAT, {}, beat)).code == ResponseCode.SUCCESS
        clone = replace(consumers[0], subscription_data_set=tuple(
            SubscriptionData(topic=f"t{topic}", sub_string="a = 1 OR " * 100 + "b", expression_type="SQL92")
            for topic in range(200)
        ))  # fmt: skip
        large = encode_body(HeartbeatData(client_id="c", producer_data_set=(), consumer_data_set=(clone,)))
        assert peer.ask(request(RequestCode.HEART_BEAT, {}, large)).code != ResponseCode.SUCCESS


@attack("one message for thousands that wait")
def thousands_wait(target: Target) -> None:
    with target.stranger() as peer:
        peer.ask(send_request("Wanted", b"first"))
        until = time.monotonic() + 30
        while not target.bodies("Wanted") and time.monotonic() < until:
            time.sleep(0.05)
        peers = [target.stranger() for _ in range(4)]
        waiting = [
            (other, other.send(pull_request("Wanted", offset=1, sys_flag=SUSPENDS, suspend_timeout_millis=300_000)))
            for other in peers
            for _ in range(2_000)
        ]
        time.sleep(1.0)
        assert peer.ask(send_request("Wanted", b"second")).code == ResponseCode.SUCCESS
        codes = [other.answer(number).code for other, number in waiting]
        assert set(codes) <= {ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND}
        assert codes.count(ResponseCode.SUCCESS) >= 4_096
        for other in peers:
            other.__exit__()


@attack("statistics of a topic that is named a hundred thousand times")
def repeated_lists(target: Target) -> None:
    with target.stranger() as peer:
        peer.ask(send_request("T", b"x"))
        fields = {"consumerGroup": "g", "topic": "", "topicList": "T;" * 4_000}
        peer.ask(request(RequestCode.GET_CONSUME_STATS, fields))
        peer.ask(request(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": "false"}))


@attack("a field of almost a frame that is no number")
def long_fields(target: Target) -> None:
    with target.stranger() as peer:
        for length in (1_000, 30_000):
            fields = {"a": "9" * length, "b": "T", "c": "TBW102", "d": "x" * length, "e": "0"}
            answer = peer.ask(request(RequestCode.SEND_MESSAGE_V2, fields))
            assert answer.code != ResponseCode.SUCCESS
            assert len(answer.remark or "") < 1_000


@attack("thousands of messages with one key")
def one_key(target: Target) -> None:
    with target.stranger() as peer:
        numbers = [peer.send(send_request("Keys", b"x", properties={"KEYS": "same"})) for _ in range(5_000)]
        assert {peer.answer(number).code for number in numbers} == {ResponseCode.SUCCESS}
        fields = {
            "topic": "Keys", "key": "same", "maxNum": "2147483647", "beginTimestamp": "0",
            "endTimestamp": "9223372036854775807",
        }  # fmt: skip
        assert peer.ask(request(RequestCode.QUERY_MESSAGE, fields)).code == ResponseCode.SUCCESS
        other = {**fields, "key": "other"}
        assert peer.ask(request(RequestCode.QUERY_MESSAGE, other)).code != ResponseCode.SUCCESS


@attack("thousands of new groups", restarts=True)
def new_groups(target: Target) -> None:
    with target.stranger() as peer:
        peer.ask(send_request("T", b"x"))
        numbers = [peer.send(pull_request("T", consumer_group=f"new{number}")) for number in range(2_500)]
        codes = {peer.answer(number).code for number in numbers}
        assert codes == {ResponseCode.SUCCESS}, codes
    target.restart()
    with target.stranger() as peer:
        known = peer.ask(request(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, {})).body
        assert b'"new2499"' in known


@attack("thousands of brokers on one connection")
def fake_brokers(target: Target) -> None:
    with target.stranger_at_nameserver() as peer:
        codes = []
        for number in range(1_000):
            fields = {
                "brokerName": f"fake{number}", "brokerAddr": f"10.0.0.1:{number}", "clusterName": "Fake",
                "haServerAddr": "", "brokerId": "0",
            }  # fmt: skip
            codes.append(peer.ask(request(RequestCode.REGISTER_BROKER, fields)).code)
        assert codes.count(ResponseCode.SUCCESS) < 1_000
    with target.stranger_at_nameserver() as peer:
        until = time.monotonic() + 30
        while b"fake0" in peer.ask(request(RequestCode.GET_BROKER_CLUSTER_INFO, {})).body and time.monotonic() < until:
            time.sleep(0.05)
        info = peer.ask(request(RequestCode.GET_BROKER_CLUSTER_INFO, {})).body
        assert b"fake0" not in info
        assert target.broker.name.encode() in info


@attack("key-value tables that grow")
def key_values(target: Target) -> None:
    with target.stranger_at_nameserver() as peer:
        codes = []
        for number in range(200):
            fields = {"namespace": "n", "key": f"k{number}", "value": "v" * 20_000}
            codes.append(peer.ask(request(RequestCode.PUT_KV_CONFIG, fields)).code)
        assert ResponseCode.SUCCESS in codes
        assert set(codes) != {ResponseCode.SUCCESS}, "there is an end to it"


@attack("frames that lie about their length")
def lying_frames(target: Target) -> None:
    for data in (
        struct.pack(">iI", 2**31 - 1, 0),
        struct.pack(">iI", -1, 0),
        struct.pack(">iI", 100, 2**24 - 1) + bytes(96),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x00\x05hello",
        bytes(100_000),
    ):
        for port in (target.broker.port, target.nameserver.port):
            with Stranger(port) as peer:
                peer.throw(data)
