from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.acl.accounts import Permission
from refmq.acl.check import EXCEPTION, Guard, broker_guard, nameserver_guard
from refmq.acl.policy import Policy
from refmq.acl.rules import BROKER_RULES, Admin
from refmq.protocol.acl import Credentials, sign
from refmq.protocol.codes import RequestCode as Code
from refmq.protocol.command import RemotingCommand, request
from tests.acl.files import ADMIN, ALICE, BOB, LIMITED, PEER, REPLY_TOPIC, guard, signed

GUARD = guard()


def refusal(command: RemotingCommand, peer: str = PEER, by: Guard = GUARD) -> str | None:
    said = by.refusal(command, peer)
    assert said is None or said.startswith(EXCEPTION)
    return None if said is None else said.removeprefix(EXCEPTION)


def send(topic: str, who: Credentials = ALICE, code: int = Code.SEND_MESSAGE_V2) -> RemotingCommand:
    return signed(code, who, {"topic" if code in (10, 324) else "b": topic}, b"body")


# --- who one is ------------------------------------------------------------------------------------------------------


def test_whoever_does_not_sign_is_refused() -> None:
    assert refusal(request(Code.SEND_MESSAGE_V2, {"b": "orders"})) == "No accessKey is configured"
    assert refusal(request(Code.GET_BROKER_RUNTIME_INFO)) == "No accessKey is configured"
    assert refusal(request(Code.GET_BROKER_RUNTIME_INFO, {"AccessKey": ""})) == "No accessKey is configured"
    assert refusal(request(10, {"AccessKey": "nobody!"})) == "No acl config for nobody!"


def test_a_wrong_signature_is_refused() -> None:
    right = send("orders")
    wrong = "Check signature failed for accessKey=alice-key"
    assert refusal(right) is None
    assert refusal(send("orders", Credentials("alice-key", "bob-secret"))) == wrong
    assert refusal(replace(right, body=b"another")) == wrong
    assert refusal(replace(right, ext_fields={**right.fields, "b": "write-only"})) == wrong
    assert refusal(replace(right, ext_fields={**right.fields, "z": "more"})) == wrong
    assert refusal(replace(right, ext_fields={**right.fields, "AccessKey": "bob-key"})) is not None
    without = {name: value for name, value in right.fields.items() if name != "Signature"}
    assert refusal(replace(right, ext_fields=without)) == wrong
    assert refusal(replace(right, ext_fields={**without, "Signature": ""})) == wrong


def test_a_key_query_may_be_signed_with_and_without_its_mark() -> None:
    """Clients from 4.9.4 on sign `_UNIQUE_KEY_QUERY`, and a 4.9.8 server leaves it out: both kinds are let in."""
    fields = {"topic": "orders", "key": "k"}
    with_mark = sign(request(Code.QUERY_MESSAGE, {**fields, "_UNIQUE_KEY_QUERY": "true"}), ALICE)
    assert refusal(with_mark) is None
    without = sign(request(Code.QUERY_MESSAGE, fields), ALICE)
    assert refusal(replace(without, ext_fields={**without.fields, "_UNIQUE_KEY_QUERY": "true"})) is None
    assert refusal(replace(without, ext_fields={**without.fields, "key": "j"})) is not None


def test_a_white_address_needs_no_signature() -> None:
    unsigned = request(Code.UPDATE_BROKER_CONFIG)
    assert refusal(unsigned, "10.10.103.7:1") is None
    assert refusal(unsigned, "10.10.104.7:1") == "No accessKey is configured"
    named = request(Code.SEND_MESSAGE_V2, {"AccessKey": "alice-key", "b": "closed"})
    assert refusal(named, "192.168.0.7:1") is None
    assert refusal(named, "192.168.0.77:1") == "Check signature failed for accessKey=alice-key"
    assert refusal(request(10, {"AccessKey": "bob-key"}), "192.168.0.7:1") is not None


def test_a_blank_white_address_is_no_address() -> None:
    assert refusal(request(10, {"AccessKey": "bob-key"}), ":1") is not None
    assert refusal(request(10, {"AccessKey": "bob-key"}), "unknown") is not None


# --- what one may do -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [c for c, rule in BROKER_RULES.items() if isinstance(rule, Admin)])
def test_an_admin_code_needs_an_admin(code: int) -> None:
    no = f"Need admin permission for request code={code}, but accessKey=alice-key is not"
    assert refusal(signed(code, ALICE)) == no
    assert refusal(signed(code, ADMIN)) is None
    assert refusal(signed(code, LIMITED)) is None


@pytest.mark.parametrize("code", [Code.SEND_MESSAGE, Code.SEND_MESSAGE_V2, Code.SEND_BATCH_MESSAGE])
def test_sends_need_pub_batches_too(code: int) -> None:
    assert refusal(send("orders", code=code)) is None
    assert refusal(send("write-only", code=code)) is None
    for topic in ("read-only", "closed", "unlisted", ""):
        assert refusal(send(topic, code=code)) == f"No default permission for topic:{topic}"


def test_pulls_need_topic_and_group() -> None:
    def pull(topic: str, group: str) -> str | None:
        return refusal(signed(Code.PULL_MESSAGE, ALICE, {"topic": topic, "consumerGroup": group}))

    assert pull("read-only", "alice-group") is None
    assert pull("read-only", "any-other") is None  # by its default
    assert pull("write-only", "alice-group") == "No default permission for topic:write-only"
    assert pull("read-only", "closed-group") == "No default permission for group:closed-group"


def test_the_defaults_come_from_the_account_and_not_from_the_request() -> None:
    """B109: they were read from the request."""
    fields = {"b": "unlisted", "defaultTopicPerm": "PUB|SUB", "defaultGroupPerm": "PUB|SUB"}
    assert refusal(signed(Code.SEND_MESSAGE_V2, ALICE, fields)) == "No default permission for topic:unlisted"
    assert refusal(signed(Code.GET_CONSUMER_LIST_BY_GROUP, ALICE, {"consumerGroup": "unlisted"})) is None
    assert refusal(signed(Code.GET_CONSUMER_LIST_BY_GROUP, BOB, {"consumerGroup": "unlisted"})) is not None


def test_a_name_is_compared_as_a_whole() -> None:
    for topic in ("orders2", "order", "Orders", "%RETRY%orders", "orders "):
        assert refusal(send(topic, BOB)) is not None
    assert refusal(send("orders2")) == "No default permission for topic:orders2"


def test_an_admin_with_permissions_of_its_own_has_those() -> None:
    assert refusal(send("anything", ADMIN)) is None
    assert refusal(send("orders", LIMITED)) == "No default permission for topic:orders"
    assert refusal(signed(Code.QUERY_MESSAGE, LIMITED, {"topic": "orders"})) is None


def test_traces_and_answers_are_free_and_nothing_beside_them() -> None:
    assert refusal(send("RMQ_SYS_TRACE_TOPIC", BOB)) is None
    assert refusal(signed(Code.QUERY_MESSAGE, BOB, {"topic": "RMQ_SYS_TRACE_TOPIC"})) is not None
    assert refusal(send(REPLY_TOPIC, BOB, Code.SEND_REPLY_MESSAGE_V2)) is None
    assert refusal(send("orders", BOB, Code.SEND_REPLY_MESSAGE_V2)) == "No default permission for topic:orders"
    assert refusal(send(f"my{REPLY_TOPIC}", BOB, Code.SEND_REPLY_MESSAGE)) is not None
    assert refusal(send(REPLY_TOPIC, BOB)) is not None


def test_what_is_not_served_is_let_through_to_be_told_so() -> None:
    assert refusal(signed(Code.POP_MESSAGE, BOB)) is None
    assert refusal(request(Code.POP_MESSAGE)) == "No accessKey is configured"


@pytest.mark.parametrize("code", [99_999, -1, 54])
def test_what_has_no_rule_is_denied(code: int) -> None:
    for who in (ALICE, ADMIN):
        assert refusal(signed(code, who)) == f"No rule for request code={code}"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"consumerDataSet":7}', b"\xff"])
def test_a_body_that_cannot_be_read_is_refused(body: bytes) -> None:
    said = refusal(signed(Code.HEART_BEAT, ALICE, body=body))
    assert said is not None
    assert said.startswith("the request cannot be read")


def test_without_accounts_everybody_is_refused() -> None:
    empty = broker_guard(Policy())
    assert all(empty.refusal(signed(code, ADMIN), PEER) for code in Code)
    assert all(empty.refusal(request(code), "127.0.0.1:1") for code in Code)


@given(st.sampled_from(list(Code)), st.sampled_from([ALICE, BOB]), st.sampled_from(["orders", "unlisted", "closed"]))
def test_no_remark_says_a_secret(code: Code, who: Credentials, name: str) -> None:
    fields = dict.fromkeys(("topic", "b", "group", "consumerGroup"), name)
    assert who.secret_key not in (refusal(signed(code, who, fields)) or "")


# --- what a handler finds --------------------------------------------------------------------------------------------


def test_the_topic_of_a_message_that_was_found_is_asked_for() -> None:
    def use(who: Credentials, topic: str, permission: Permission = Permission.SUB) -> str | None:
        return GUARD.refusal_of_use(signed(Code.VIEW_MESSAGE_BY_ID, who, {"offset": "0"}), PEER, topic, permission)

    assert use(ALICE, "orders") is None
    assert use(ADMIN, "secrets") is None
    assert use(ALICE, "write-only") == f"{EXCEPTION}No default permission for topic:write-only"
    assert use(ALICE, "write-only", Permission.PUB) is None
    assert use(LIMITED, "secrets") is not None
    unsigned = request(Code.VIEW_MESSAGE_BY_ID, {"offset": "0"})
    assert GUARD.refusal_of_use(unsigned, PEER, "orders", Permission.SUB) is not None
    assert GUARD.refusal_of_use(unsigned, "10.10.103.1:1", "orders", Permission.SUB) is None


def test_who_may_be_shown_what_producers_see() -> None:
    assert GUARD.may_be_told("alice-key", PEER, "orders")
    assert GUARD.may_be_told("administrator", PEER, "anything")
    assert GUARD.may_be_told(None, "10.10.103.1:1", "orders")
    assert not GUARD.may_be_told("alice-key", PEER, "read-only")
    assert not GUARD.may_be_told("bob-key", PEER, "orders")
    assert not GUARD.may_be_told(None, PEER, "orders")
    assert not GUARD.may_be_told("gone-key", PEER, "orders")


# --- nameservers -----------------------------------------------------------------------------------------------------


def test_a_nameserver_lets_everybody_ask_and_admins_change() -> None:
    names = nameserver_guard(GUARD.policy)
    assert refusal(request(Code.GET_ROUTEINFO_BY_TOPIC, {"topic": "orders"}), by=names) is None
    assert refusal(request(Code.REGISTER_BROKER), by=names) == "No accessKey is configured"
    assert refusal(signed(Code.REGISTER_BROKER, ALICE), by=names) is not None
    assert refusal(signed(Code.REGISTER_BROKER, ADMIN), by=names) is None
    assert refusal(signed(99_999, ADMIN), by=names) == "No rule for request code=99999"
