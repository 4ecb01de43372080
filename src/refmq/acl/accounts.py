"""Accounts and what they may do with topics and groups.

A permission is a set of bits: `PUB` to send, `SUB` to consume, `DENY` to do nothing. The permission of a group stands
under the name of its retry topic, as upstream has it, so that both kinds of names live in one table. What an account
does not list it has by its defaults, and a default that is missing is DENY.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any, Final

from refmq.acl.addresses import AddressPattern, parse_pattern
from refmq.errors import UsageError
from refmq.protocol.names import RETRY_PREFIX, retry_topic

KEY_LENGTH_MIN: Final = 7
"""Upstream wants more than 6 characters, of the access key and of the secret key."""

RESOURCES_MAX: Final = 100_000
"""The most permissions of one account."""


class Permission(IntFlag):
    """What one may do with a topic or a group."""

    DENY = 1
    PUB = 4
    SUB = 8


_WORDS: Final = {
    "PUB": Permission.PUB,
    "SUB": Permission.SUB,
    "PUB|SUB": Permission.PUB | Permission.SUB,
    "SUB|PUB": Permission.PUB | Permission.SUB,
    "DENY": Permission.DENY,
}


def parse_permission(word: str | None) -> Permission:
    """The permission of a word of a file. What is missing or unknown is DENY."""
    return _WORDS.get((word or "").strip(), Permission.DENY)


def is_permission_word(word: str) -> bool:
    return word.strip() in _WORDS


@dataclass(frozen=True, slots=True, repr=False)
class Account:
    """One account."""

    access_key: str
    secret_key: str
    white_address: AddressPattern = field(default_factory=lambda: AddressPattern(""))
    admin: bool = False
    default_topic: Permission = Permission.DENY
    default_group: Permission = Permission.DENY
    resources: Mapping[str, Permission] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Account({self.access_key!r}, ...)"  # secrets do not belong in logs

    def allows(self, resource: str, needed: Permission) -> bool:
        """Whether it may do this with a topic, or with a group under the name of its retry topic."""
        default = self.default_group if resource.startswith(RETRY_PREFIX) else self.default_topic
        owned = self.resources.get(resource, default)
        return not owned & Permission.DENY and owned & needed == needed


def read_account(given: object) -> Account:
    """An account as a file describes it. `UsageError` says what is wrong, and never shows a secret."""
    if not isinstance(given, Mapping):
        raise UsageError("each of the accounts should be a mapping")
    access_key, secret_key = text_of(given, "accessKey"), text_of(given, "secretKey")
    check_keys(access_key, secret_key)
    resources = read_resources(given.get("topicPerms"), "topicPerms")
    groups = read_resources(given.get("groupPerms"), "groupPerms")
    resources |= {name if name.startswith(RETRY_PREFIX) else retry_topic(name): p for name, p in groups.items()}
    return Account(
        access_key=access_key,
        secret_key=secret_key,
        white_address=parse_pattern(text_of(given, "whiteRemoteAddress")),
        admin=read_flag(text_of(given, "admin")),
        default_topic=parse_permission(text_of(given, "defaultTopicPerm")),
        default_group=parse_permission(text_of(given, "defaultGroupPerm")),
        resources=resources,
    )


def check_keys(access_key: str, secret_key: str) -> None:
    if len(access_key) < KEY_LENGTH_MIN or len(secret_key) < KEY_LENGTH_MIN:
        raise UsageError(
            f"The accessKey={access_key[:80]} and its secretKey cannot be null and length should longer than 6"
        )


def read_flag(text: str) -> bool:
    flag = text.strip().lower()
    if flag in ("true", "yes", "on"):
        return True
    if flag in ("", "false", "no", "off"):
        return False
    raise UsageError(f"admin should be true or false, not {text[:20]!r}")


def read_resources(given: object, what: str) -> dict[str, Permission]:
    """A list of `name=PERM`. Blank entries are none: an empty list may have become a list with an empty text."""
    if given is None or given == "" or given == "null" or given == "~":
        return {}
    if not isinstance(given, Sequence) or isinstance(given, str) or not all(isinstance(entry, str) for entry in given):
        raise UsageError(f"{what} should be a list of name=PERM")
    if len(given) > RESOURCES_MAX:
        raise UsageError(f"{what} has more than {RESOURCES_MAX} entries")
    resources: dict[str, Permission] = {}
    for entry in given:
        if not entry.strip():
            continue
        name, word = split_resource(entry, what)
        resources[name] = parse_permission(word)
    return resources


def split_resource(entry: str, what: str) -> tuple[str, str]:
    parts = [part.strip() for part in entry.split("=")]
    if len(parts) != 2 or not all(parts):
        raise UsageError(f"{what} should have entries name=PERM, not {entry[:80]!r}")
    return parts[0], parts[1]


def text_of(given: Mapping[str, Any], name: str) -> str:
    """A text of a mapping; what is missing or null is the empty one."""
    value = given.get(name)
    if value is None or value in ("~", "null"):
        return ""
    if not isinstance(value, str):
        raise UsageError(f"{name} should be a text")
    return value.strip()
