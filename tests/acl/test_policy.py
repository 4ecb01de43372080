from __future__ import annotations

import pytest

from refmq.acl.policy import Policy, file_of, join_files, read_file, read_version
from refmq.errors import UsageError
from refmq.protocol.bodies.config import DataVersion
from tests.acl.files import TEXT


def one(access_key: str, secret: str = "12345678") -> bytes:
    return f"accounts:\n- accessKey: {access_key}\n  secretKey: {secret}\n".encode()


def test_a_file_has_accounts_a_white_list_and_a_version() -> None:
    file = read_file((TEXT + "dataVersion:\n- counter: 3\n  timestamp: 17\n").encode(), "f")
    assert [account.access_key for account in file.accounts] == [
        "administrator",
        "alice-key",
        "bob-key",
        "limited-admin",
    ]
    assert [pattern.text for pattern in file.white_list] == ["10.10.103.*"]
    assert file.version == DataVersion(timestamp=17, counter=3)
    assert read_version({"dataVersion": {"counter": "4"}}) == DataVersion(timestamp=0, counter=4)
    assert read_version({"dataVersion": []}) == DataVersion(timestamp=0, counter=0)


def test_the_first_of_two_files_counts_for_an_account() -> None:
    policy = join_files({"a": read_file(one("account", "first-secret"), "a"), "b": read_file(one("account"), "b")})
    assert policy.accounts["account"].secret_key == "first-secret"
    assert policy.file_of("account") == "a"
    assert policy.file_of("nobody") is None
    assert "b: the account account stands in another file" in policy.notes[0]


def test_an_empty_policy_lets_nobody_in() -> None:
    assert not Policy().is_white("127.0.0.1")
    assert Policy().accounts == {}


@pytest.mark.parametrize(
    "text",
    [
        "accounts: x",
        "accounts:\n- x",
        "accounts:\n- accessKey: short\n  secretKey: 12345678",
        "globalWhiteRemoteAddresses: [nowhere]",
        "globalWhiteRemoteAddresses: [[a]]",
        "accounts:\n- {accessKey: account, secretKey: 12345678}\n- {accessKey: account, secretKey: 12345678}",
        "accounts:\n- {accessKey: account, secretKey: 12345678, topicPerms: [orders]}",
        "accounts:\n- {accessKey: account, secretKey: 12345678, whiteRemoteAddress: nowhere}",
    ],
)
def test_a_mistake_names_the_file(text: str) -> None:
    with pytest.raises(UsageError, match="the-file"):
        read_file(text.encode(), "the-file")


def test_a_document_of_nulls_is_an_empty_file() -> None:
    assert file_of({"accounts": "", "globalWhiteRemoteAddresses": "~"}, "f").accounts == ()
