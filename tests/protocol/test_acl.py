from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.protocol import acl
from refmq.protocol.acl import Credentials, sign, signature, signature_is_valid, signed_content
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.frame import decode, encode
from tests.protocol.strategies import commands, names

SEND = {
    "a": "pg1",
    "b": "T1",
    "c": "TBW102",
    "d": "4",
    "e": "2",
    "f": "0",
    "g": "1700000000000",
    "h": "0",
    "i": "KEYS\x01k1\x02WAIT\x01true\x02",
    "j": "0",
    "k": "false",
    "m": "false",
    "n": "broker-a",
}

# Fields, body, secret, content and signature, as RocketMQ's client makes them.
VECTORS = {
    "route": ({"topic": "T1", "AccessKey": "ak1"}, b"", "sk1", b"ak1T1", "WULCUzv9qSKOjJbX+Cx6VVJ2krA="),
    "send": (
        {**SEND, "AccessKey": "ak1"},
        b"hello",
        "sk1",
        b"ak1pg1T1TBW10242017000000000000KEYS\x01k1\x02WAIT\x01true\x020falsefalsebroker-ahello",
        "Nuk3PSuMklQhZD1rh79/clu2Tt4=",
    ),
    "pull": (
        {"AccessKey": "ak", "queueId": "0", "topic": "T"},
        b"hi",
        "sk",
        b"ak0Thi",
        "mkoio365tMrLGezPv94Zx/ECkWI=",
    ),
}


@pytest.mark.parametrize(("fields", "body", "secret", "content", "expected"), VECTORS.values(), ids=list(VECTORS))
def test_contents_and_signatures_are_those_of_java(
    fields: dict[str, str], body: bytes, secret: str, content: bytes, expected: str
) -> None:
    assert signed_content(fields, body) == content
    assert signature(content, secret) == expected
    unsigned = request(10, {name: value for name, value in fields.items() if name != "AccessKey"}, body)
    signed = sign(unsigned, Credentials(fields["AccessKey"], secret))
    assert signed.fields["Signature"] == expected
    assert signature_is_valid(signed, secret)


def holds(command: RemotingCommand, credentials: Credentials) -> None:
    """A signature survives the wire, and nothing that it covers can be changed without its breaking."""
    received = decode(encode(sign(command, credentials)))
    assert signature_is_valid(received, credentials.secret_key)
    assert not signature_is_valid(received, credentials.secret_key + "x")
    assert not signature_is_valid(replace(received, body=received.body + b"x"), credentials.secret_key)
    more = {**received.fields, "AccessKey": received.fields["AccessKey"] + "x"}
    assert not signature_is_valid(replace(received, ext_fields=more), credentials.secret_key)


credentials = st.builds(Credentials, names, names, st.none() | names)


@given(commands(), credentials)
def test_a_signature_holds_for_what_was_signed_and_nothing_else(command: RemotingCommand, account: Credentials) -> None:
    holds(command, account)


@pytest.mark.parametrize(
    "broken",
    [
        lambda fields, body, leave_out=frozenset(): b"".join(v.encode() for v in fields.values()),  # not the body
        lambda fields, body, leave_out=frozenset(): body,  # not the fields
    ],
)
def test_the_property_catches_a_content_with_a_hole(broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl, "signed_content", broken)
    with pytest.raises(AssertionError):
        holds(request(10, {"b": "T1"}, b"hello"), Credentials("ak", "sk"))


def test_the_order_is_that_of_javas_strings() -> None:
    fields = {"b": "5", "_c": "4", "B": "1", "Z": "2", "\U0001f600": "6", "\uffee": "7", "Zb": "3"}
    assert signed_content(fields, b"") == b"1234567"


def test_a_query_by_unique_key_is_accepted_as_old_and_new_clients_sign_it() -> None:
    new = sign(request(12, {"topic": "T", "_UNIQUE_KEY_QUERY": "true"}), Credentials("ak", "sk"))
    assert signature_is_valid(new, "sk")
    old = sign(request(12, {"topic": "T"}), Credentials("ak", "sk"))
    old = replace(old, ext_fields={**old.fields, "_UNIQUE_KEY_QUERY": "true"})
    assert signature_is_valid(old, "sk")


def test_no_signature_is_no_valid_signature() -> None:
    assert not signature_is_valid(request(10), "sk")
    assert not signature_is_valid(request(10, {"Signature": "\U0001f600"}), "sk")
    assert not signature_is_valid(request(10, {"Signature": ""}), "sk")


def test_signing_again_replaces_the_signature_and_a_token_is_covered() -> None:
    once = sign(request(10, {"b": "T1"}), Credentials("ak", "sk", "token"))
    assert sign(once, Credentials("ak", "sk", "token")) == once
    assert signed_content(once.fields, b"") == b"aktokenT1"


def test_secrets_are_not_shown() -> None:
    assert "hush" not in repr(Credentials("ak", "hush", "hush"))
