from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.acl.accounts import Account, Permission
from refmq.acl.changes import delete_account, put_account, put_white_list, split_list
from refmq.acl.document import read_document, write_document
from refmq.acl.policy import AclFile, file_of
from refmq.errors import UsageError
from refmq.protocol.headers.admin import UpdateAclConfigRequest
from tests.acl.files import TEXT

PUB, SUB, DENY = Permission.PUB, Permission.SUB, Permission.DENY


def document(text: str = TEXT) -> dict[str, Any]:
    return read_document(text.encode(), "f")


def back(changed: dict[str, Any]) -> AclFile:
    """As the file would be read again."""
    return file_of(read_document(write_document(changed), "f"), "f")


def account(file: AclFile, access_key: str) -> Account:
    return next(each for each in file.accounts if each.access_key == access_key)


def change(**fields: Any) -> UpdateAclConfigRequest:
    return UpdateAclConfigRequest(**fields)


def test_a_new_account_is_added() -> None:
    given = change(
        access_key="carol-key", secret_key="0123456", topic_perms="a=PUB,b=SUB|PUB", group_perms="g=SUB",
        default_topic_perm="SUB", white_remote_address="10.1.2.*",
    )  # fmt: skip
    file = back(put_account(document(), given, 17))
    carol = account(file, "carol-key")
    assert (carol.secret_key, carol.admin, carol.default_topic) == ("0123456", False, SUB)
    assert dict(carol.resources) == {"a": PUB, "b": PUB | SUB, "%RETRY%g": SUB}
    assert carol.white_address.matches("10.1.2.9")
    assert len(file.accounts) == 5
    assert file.version.counter == 1
    assert file.version.timestamp == 17


def test_what_the_request_leaves_out_stays() -> None:
    before = account(back(document()), "alice-key")
    after = account(
        back(put_account(document(), change(access_key="alice-key", default_topic_perm="SUB"), 1)), "alice-key"
    )
    assert after.secret_key == before.secret_key
    assert after.resources == before.resources
    assert after.white_address == before.white_address
    assert (before.default_topic, after.default_topic) == (DENY, SUB)


def test_a_change_is_written_and_not_the_record_that_was_read() -> None:
    """B115: the old record was written back, with success."""
    file = back(put_account(document(), change(access_key="alice-key", secret_key="another-secret", admin=True), 1))
    assert account(file, "alice-key").secret_key == "another-secret"
    assert account(file, "alice-key").admin
    assert len(file.accounts) == 4


@pytest.mark.parametrize("blank", ["", " ", ",", " , ,"])
def test_an_empty_list_of_permissions_has_no_entry(blank: str) -> None:
    """B113: it became a list with one empty entry."""
    assert split_list(blank, "topicPerms") == []
    file = back(put_account(document(), change(access_key="alice-key", topic_perms=blank), 1))
    assert set(account(file, "alice-key").resources) == {"%RETRY%alice-group", "%RETRY%closed-group"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"secret_key": "short"}, {"topic_perms": "orders"}, {"topic_perms": "orders=ALL"}, {"group_perms": "a=b=c"},
        {"default_topic_perm": "ALL"}, {"white_remote_address": "nowhere"},
    ],
)  # fmt: skip
def test_a_wrong_change_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError) as refused:
        put_account(document(), change(access_key="alice-key", **wrong), 1)
    assert "alice-secret" not in str(refused.value)


def test_a_new_account_needs_keys() -> None:
    for keys in ({"access_key": "carol-key"}, {"access_key": "short", "secret_key": "12345678"}):
        with pytest.raises(UsageError, match="longer than 6"):
            put_account(document(), change(**keys), 1)


def test_an_account_is_deleted_once() -> None:
    after = delete_account(document(), "bob-key", 5)
    assert [each.access_key for each in back(after).accounts] == ["administrator", "alice-key", "limited-admin"]
    with pytest.raises(UsageError, match="there is no account bob-key"):
        delete_account(after, "bob-key", 6)


def test_flags_and_unknown_keys_stay() -> None:
    text = TEXT + "somethingElse: kept\ndataVersion:\n- counter: 41\n  timestamp: 9\n"
    after = delete_account(document(text), "bob-key", 10)
    assert after["somethingElse"] == "kept"
    assert b"admin: true" in write_document(after)
    assert back(after).version.counter == 42
    assert account(back(after), "administrator").admin


def test_the_white_list_is_replaced() -> None:
    file = back(put_white_list(document(), "10.1.1.{1,2}, 10.2.*,", 1))
    assert [pattern.text for pattern in file.white_list] == ["10.1.1.{1,2}", "10.2.*"]
    assert back(put_white_list(document(), "", 1)).white_list == ()
    with pytest.raises(UsageError):
        put_white_list(document(), "nowhere", 1)


def test_nothing_given_is_changed() -> None:
    given = document()
    put_account(given, change(access_key="alice-key", admin=True), 1)
    delete_account(given, "bob-key", 1)
    put_white_list(given, "", 1)
    assert given == document()


NAMES = st.text("abc-_", min_size=1, max_size=5)


@given(
    st.dictionaries(NAMES, st.sampled_from(["PUB", "SUB", "PUB|SUB", "DENY"])),
    st.text("abcdefgh0123456789", min_size=7),
)
def test_what_is_put_is_what_is_read_back(permissions: dict[str, str], secret: str) -> None:
    given = ",".join(f"{name}={word}" for name, word in permissions.items())
    file = back(put_account({}, change(access_key="carol-key", secret_key=secret, topic_perms=given), 1))
    assert account(file, "carol-key").secret_key == secret
    assert set(account(file, "carol-key").resources) == set(permissions)
