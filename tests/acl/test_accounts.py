from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.acl.accounts import (
    Account,
    Permission,
    parse_permission,
    read_account,
    read_flag,
    read_resources,
    split_resource,
)
from refmq.errors import UsageError

KEYS = {"accessKey": "account", "secretKey": "12345678"}
PUB, SUB, DENY = Permission.PUB, Permission.SUB, Permission.DENY


@pytest.mark.parametrize(
    ("word", "permission"),
    [("PUB", PUB), ("SUB", SUB), ("PUB|SUB", PUB | SUB), ("SUB|PUB", PUB | SUB), ("DENY", DENY), ("", DENY),
     (None, DENY), ("pub", DENY), ("PUB|SUB|", DENY), ("ANY", DENY)],
)  # fmt: skip
def test_an_unknown_word_denies(word: str | None, permission: Permission) -> None:
    assert parse_permission(word) == permission


def test_what_is_missing_is_denied() -> None:
    account = read_account(KEYS)
    assert (account.admin, account.default_topic, account.default_group) == (False, DENY, DENY)
    assert not account.allows("orders", PUB)
    assert not account.allows("%RETRY%group", SUB)
    assert not account.white_address.matches("10.1.2.3")


def test_the_defaults_are_those_of_the_account() -> None:
    account = read_account({**KEYS, "defaultTopicPerm": "SUB", "defaultGroupPerm": "PUB"})
    assert account.allows("any", SUB)
    assert not account.allows("any", PUB)
    assert account.allows("%RETRY%any", PUB)
    assert not account.allows("%RETRY%any", SUB)


def test_what_is_listed_counts_before_the_default() -> None:
    given = {"defaultTopicPerm": "PUB|SUB", "topicPerms": ["t=DENY"], "groupPerms": ["g=SUB", "%RETRY%h=SUB"]}
    account = read_account({**KEYS, **given})
    assert not account.allows("t", PUB)
    assert account.allows("u", PUB | SUB)
    assert account.allows("%RETRY%g", SUB)
    assert account.allows("%RETRY%h", SUB)
    assert not account.allows("%RETRY%other", SUB)


def test_a_denial_beats_everything_beside_it() -> None:
    assert not Account("account", "12345678", default_topic=DENY | PUB | SUB).allows("t", PUB)


@pytest.mark.parametrize("keys", [("short", "12345678"), ("account", "short"), ("", ""), ("account", "123456")])
def test_short_keys_are_refused_and_no_secret_is_said(keys: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="longer than 6") as refused:
        read_account({"accessKey": keys[0], "secretKey": keys[1]})
    assert not keys[1] or keys[1] not in str(refused.value).replace(f"accessKey={keys[0]}", "")


@pytest.mark.parametrize("entry", ["orders", "orders=", "=PUB", "a=b=PUB"])
def test_an_entry_is_a_name_and_a_word(entry: str) -> None:
    with pytest.raises(UsageError, match="name=PERM"):
        read_resources([entry], "topicPerms")


def test_blank_entries_are_none() -> None:
    assert read_resources(["", " "], "topicPerms") == {}
    assert read_resources("", "topicPerms") == read_resources(None, "topicPerms") == {}
    assert split_resource(" a = PUB ", "topicPerms") == ("a", "PUB")


@pytest.mark.parametrize("given", [{"a": "b"}, "orders=PUB", [["a"]]])
def test_permissions_are_a_list(given: object) -> None:
    with pytest.raises(UsageError, match="a list of name=PERM"):
        read_resources(given, "topicPerms")


def test_a_flag_that_is_none_is_refused() -> None:
    assert read_flag("TRUE")
    assert not read_flag("")
    with pytest.raises(UsageError, match="true or false"):
        read_flag("perhaps")


@pytest.mark.parametrize(
    "given", [None, [], "account", {**KEYS, "admin": ["true"]}, {**KEYS, "secretKey": ["12345678"]}]
)
def test_what_is_no_account_is_refused(given: object) -> None:
    with pytest.raises(UsageError):
        read_account(given)


def test_an_account_does_not_show_its_secret() -> None:
    assert "12345678" not in repr(read_account(KEYS))


@given(st.sampled_from(list(Permission)), st.sampled_from([PUB, SUB]))
def test_a_permission_is_what_its_bits_say(owned: Permission, needed: Permission) -> None:
    account = Account("account", "12345678", resources={"t": owned})
    assert account.allows("t", needed) == (owned == needed)
