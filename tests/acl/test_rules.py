from __future__ import annotations

import pytest

import refmq.broker
import refmq.nameserver
from refmq.acl.accounts import Permission
from refmq.acl.rules import BROKER_RULES, NAMESERVER_RULES, Admin, Needs, NotServed, Open, Signed
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.heartbeat import (
    CheckClientRequestBody,
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
)
from refmq.protocol.bodies.offsets import LockBatchRequestBody
from refmq.protocol.codes import RequestCode as Code
from refmq.protocol.command import request
from refmq.protocol.registry import ROWS, Role

PUB, SUB = Permission.PUB, Permission.SUB

FOR_EVERY_ACCOUNT = {Code.VIEW_MESSAGE_BY_ID, Code.END_TRANSACTION}
"""What no permission can be asked for before the message is found: its handlers ask then."""

UPSTREAM_ADMIN = {17, 25, 200, 207, 215}


@pytest.mark.parametrize("code", list(Code), ids=lambda code: code.name)
def test_every_code_of_the_protocol_has_a_rule_at_both_servers(code: Code) -> None:
    assert code in BROKER_RULES
    assert code in NAMESERVER_RULES


@pytest.mark.parametrize("code", sorted(refmq.broker.SERVED))
def test_what_a_broker_serves_is_never_taken_for_what_it_does_not(code: int) -> None:
    rule = BROKER_RULES[code]
    assert not isinstance(rule, NotServed | Open)
    assert isinstance(rule, Signed) == (code in FOR_EVERY_ACCOUNT)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code.name)
def test_a_code_that_a_broker_may_come_to_serve_has_a_rule_of_its_own(row: object) -> None:
    from refmq.protocol.registry import Row

    assert isinstance(row, Row)
    if Role.BROKER in row.served_by and row.declined is None:
        assert not isinstance(BROKER_RULES[row.code], NotServed)


def test_admin_codes_are_more_than_those_of_upstream() -> None:
    """B108: the requests that change accounts were left out there, and anybody could make himself an admin."""
    admin = {code for code, rule in BROKER_RULES.items() if isinstance(rule, Admin)}
    assert admin > UPSTREAM_ADMIN
    assert {Code.UPDATE_AND_CREATE_ACL_CONFIG, Code.DELETE_ACL_CONFIG, Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG} < admin


def test_a_nameserver_lets_everybody_read_and_admins_change() -> None:
    served = set(refmq.nameserver.SERVED)
    admin = {code for code in served if isinstance(NAMESERVER_RULES[code], Admin)}
    assert admin == {
        Code.PUT_KV_CONFIG, Code.DELETE_KV_CONFIG, Code.REGISTER_BROKER, Code.UNREGISTER_BROKER,
        Code.WIPE_WRITE_PERM_OF_BROKER, Code.DELETE_TOPIC_IN_NAMESRV, Code.UPDATE_NAMESRV_CONFIG,
        Code.GET_NAMESRV_CONFIG, Code.QUERY_DATA_VERSION, Code.ADD_WRITE_PERM_OF_BROKER,
    }  # fmt: skip
    assert all(isinstance(NAMESERVER_RULES[code], Open) for code in served - admin)


def needs(code: Code, fields: dict[str, str] | None = None, body: bytes = b"") -> list[tuple[str, Permission]]:
    rule = BROKER_RULES[code]
    assert isinstance(rule, Needs)
    return list(rule.find(request(code, fields or {}, body)))


@pytest.mark.parametrize(
    ("code", "name"),
    [(Code.SEND_MESSAGE, "topic"), (Code.SEND_MESSAGE_V2, "b"), (Code.SEND_BATCH_MESSAGE, "b"),
     (Code.SEND_REPLY_MESSAGE, "topic"), (Code.SEND_REPLY_MESSAGE_V2, "b")],
)  # fmt: skip
def test_a_send_needs_its_topic_under_the_name_that_the_broker_reads(code: Code, name: str) -> None:
    fields = {name: "orders", "topic" if name == "b" else "b": "mine"}
    assert needs(code, fields) == [("orders", PUB)]
    assert needs(code, {}) == [("", PUB)]


@pytest.mark.parametrize("code", [Code.SEND_MESSAGE, Code.SEND_MESSAGE_V2, Code.SEND_BATCH_MESSAGE])
def test_a_send_to_a_retry_topic_needs_its_group_whatever_group_the_request_names(code: Code) -> None:
    fields = {"topic": "%RETRY%other", "b": "%RETRY%other", "a": "mine", "producerGroup": "mine"}
    assert needs(code, fields) == [("%RETRY%other", SUB)]


@pytest.mark.parametrize(
    "code", [Code.PULL_MESSAGE, Code.LITE_PULL_MESSAGE, Code.QUERY_CONSUMER_OFFSET, Code.UPDATE_CONSUMER_OFFSET]
)
def test_a_pull_and_an_offset_need_topic_and_group(code: Code) -> None:
    assert needs(code, {"topic": "orders", "consumerGroup": "g"}) == [("orders", SUB), ("%RETRY%g", SUB)]


@pytest.mark.parametrize(
    "code",
    [Code.QUERY_MESSAGE, Code.SEARCH_OFFSET_BY_TIMESTAMP, Code.GET_MAX_OFFSET, Code.GET_MIN_OFFSET,
     Code.GET_EARLIEST_MSG_STORETIME],
)  # fmt: skip
def test_reading_needs_the_topic(code: Code) -> None:
    assert needs(code, {"topic": "orders"}) == [("orders", SUB)]


def test_group_requests_need_their_group() -> None:
    assert needs(Code.CONSUMER_SEND_MSG_BACK, {"group": "g"}) == [("%RETRY%g", SUB)]
    assert needs(Code.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "g"}) == [("%RETRY%g", SUB)]
    assert needs(Code.UNREGISTER_CLIENT, {"consumerGroup": "g"}) == [("%RETRY%g", SUB)]
    assert needs(Code.UNREGISTER_CLIENT, {"producerGroup": "p"}) == []


def test_bodies_name_their_groups_and_topics() -> None:
    subscriptions = (SubscriptionData(topic="orders", sub_string="*"), SubscriptionData(topic="more", sub_string="*"))
    consumer = ConsumerData(
        group_name="g",
        consume_type=ConsumeType.CONSUME_PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        subscription_data_set=subscriptions,
    )
    beat = HeartbeatData(
        client_id="c", producer_data_set=(ProducerData(group_name="p"),), consumer_data_set=(consumer,)
    )
    assert needs(Code.HEART_BEAT, body=encode_body(beat)) == [("%RETRY%g", SUB), ("orders", SUB), ("more", SUB)]
    lock = encode_body(LockBatchRequestBody(consumer_group="g", client_id="c"))
    assert needs(Code.LOCK_BATCH_MQ, body=lock) == needs(Code.UNLOCK_BATCH_MQ, body=lock) == [("%RETRY%g", SUB)]
    check = encode_body(CheckClientRequestBody(client_id="c", group="g", subscription_data=subscriptions[0]))
    assert needs(Code.CHECK_CLIENT_CONFIG, body=check) == [("%RETRY%g", SUB), ("orders", SUB)]
    assert needs(Code.CHECK_CLIENT_CONFIG) == []
