"""What mqadmin's ACL commands do: 50 updates or creates an account, 51 deletes one, 53 replaces a white list.

Each is a function from the mapping of a file to the next one. Keys that it does not know stay. The version counts up,
so that 52 shows the change. Whoever calls reads the result back (`policy.file_of`) before it is written: what would
not load is not written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from refmq.acl.accounts import (
    check_keys,
    is_permission_word,
    read_flag,
    split_resource,
    text_of,
)
from refmq.acl.addresses import parse_pattern
from refmq.acl.document import number_of
from refmq.acl.policy import ACCOUNTS, VERSION, WHITE_LIST, read_version
from refmq.errors import UsageError
from refmq.protocol.headers.admin import UpdateAclConfigRequest

_TEXTS: Final = {
    "whiteRemoteAddress": "white_remote_address",
    "defaultTopicPerm": "default_topic_perm",
    "defaultGroupPerm": "default_group_perm",
}
_LISTS: Final = {"topicPerms": "topic_perms", "groupPerms": "group_perms"}


def put_account(document: Mapping[str, Any], given: UpdateAclConfigRequest, now_ms: int) -> dict[str, Any]:
    """The file after 50. What the request leaves out stays as it is; a new account needs a secret key.

    A list of permissions that is there and empty takes the permissions away, and so leaves the defaults.
    """
    accounts = _accounts(document)
    at = _index_of(accounts, given.access_key)
    account: dict[str, Any] = dict(accounts[at]) if at is not None else {"accessKey": given.access_key}
    if given.secret_key:
        account["secretKey"] = given.secret_key
    check_keys(given.access_key, text_of(account, "secretKey"))
    account["admin"] = given.admin
    for name, field in _TEXTS.items():
        value: str | None = getattr(given, field)
        if value is not None and value.strip():
            account[name] = _checked_text(name, value.strip())
    for name, field in _LISTS.items():
        entries: str | None = getattr(given, field)
        if entries is not None:
            account[name] = split_list(entries, name)
    if at is None:
        accounts.append(account)
    else:
        accounts[at] = account
    return _next(document, now_ms, {ACCOUNTS: accounts})


def delete_account(document: Mapping[str, Any], access_key: str, now_ms: int) -> dict[str, Any]:
    """The file after 51. `UsageError` if it has no such account."""
    accounts = _accounts(document)
    at = _index_of(accounts, access_key)
    if at is None:
        raise UsageError(f"there is no account {access_key[:80]}")
    del accounts[at]
    return _next(document, now_ms, {ACCOUNTS: accounts})


def put_white_list(document: Mapping[str, Any], addresses: str, now_ms: int) -> dict[str, Any]:
    """The file after 53. Blank addresses are none, so an empty text empties the list."""
    patterns = [part.strip() for part in _split_addresses(addresses) if part.strip()]
    for pattern in patterns:
        parse_pattern(pattern)
    return _next(document, now_ms, {WHITE_LIST: patterns})


def split_list(entries: str, what: str) -> list[str]:
    """The entries `name=PERM` of a text with commas. An empty text has none."""
    found = []
    for entry in entries.split(","):
        if not entry.strip():
            continue
        name, word = split_resource(entry, what)
        if not is_permission_word(word):
            raise UsageError(f"{what}: {word[:20]!r} is no permission; DENY, PUB, SUB and PUB|SUB are")
        found.append(f"{name}={word}")
    return found


def _split_addresses(text: str) -> list[str]:
    """At commas, but not at those inside a set `{1,2}`."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _checked_text(name: str, value: str) -> str:
    if name == "whiteRemoteAddress":
        parse_pattern(value)
    elif not is_permission_word(value):
        raise UsageError(f"{name}: {value[:20]!r} is no permission; DENY, PUB, SUB and PUB|SUB are")
    return value


def _accounts(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = document.get(ACCOUNTS)
    return [_typed(account) for account in given] if isinstance(given, list) else []


def _typed(account: Mapping[str, Any]) -> dict[str, Any]:
    """An account as it is written: `admin` is a flag again, which reading made a text."""
    flag = {"admin": read_flag(text_of(account, "admin"))} if isinstance(account.get("admin"), str) else {}
    return {**account, **flag}


def _index_of(accounts: list[dict[str, Any]], access_key: str) -> int | None:
    return next((at for at, account in enumerate(accounts) if text_of(account, "accessKey") == access_key), None)


def _next(document: Mapping[str, Any], now_ms: int, changed: Mapping[str, Any]) -> dict[str, Any]:
    version = {"counter": number_of(read_version(document).counter) + 1, "timestamp": now_ms}
    accounts = {ACCOUNTS: _accounts(document)} if ACCOUNTS in document else {}
    return {**document, **accounts, **changed, VERSION: [version]}
