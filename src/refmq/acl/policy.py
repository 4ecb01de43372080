"""What all ACL files of a server say together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from refmq.acl.accounts import Account, read_account
from refmq.acl.addresses import AddressPattern, parse_pattern
from refmq.acl.document import number_of, read_document
from refmq.errors import UsageError
from refmq.protocol.bodies.config import DataVersion

ACCOUNTS_MAX: Final = 100_000
PATTERNS_MAX: Final = 1_000
"""The most patterns of a white list: each request is compared with all of them. One pattern may list many addresses."""

ACCOUNTS: Final = "accounts"
WHITE_LIST: Final = "globalWhiteRemoteAddresses"
VERSION: Final = "dataVersion"


@dataclass(frozen=True, slots=True)
class AclFile:
    """What one file says."""

    white_list: tuple[AddressPattern, ...] = ()
    accounts: tuple[Account, ...] = ()
    version: DataVersion = field(default_factory=lambda: DataVersion(timestamp=0, counter=0))


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may do what at a server. An empty one lets nobody in."""

    files: Mapping[str, AclFile] = field(default_factory=dict)
    """By path, in the order in which they count."""
    white_list: tuple[AddressPattern, ...] = ()
    accounts: Mapping[str, Account] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What an operator should know: an account that stands in two files."""

    def file_of(self, access_key: str) -> str | None:
        """The file whose account counts."""
        for path, file in self.files.items():
            if any(account.access_key == access_key for account in file.accounts):
                return path
        return None

    def is_white(self, host: str) -> bool:
        return any(pattern.matches(host) for pattern in self.white_list)


def read_file(data: bytes, name: str) -> AclFile:
    """`UsageError` names the file and what is wrong with it."""
    return file_of(read_document(data, name), name)


def file_of(document: Mapping[str, Any], name: str) -> AclFile:
    try:
        accounts = tuple(read_account(given) for given in _list(document, ACCOUNTS))
        white_list = tuple(_pattern(given) for given in _list(document, WHITE_LIST))
    except UsageError as mistake:
        raise UsageError(f"{name}: {mistake}") from None
    if len(accounts) > ACCOUNTS_MAX or len(white_list) > PATTERNS_MAX:
        raise UsageError(f"{name} has more than {ACCOUNTS_MAX} accounts, or {PATTERNS_MAX} patterns of addresses")
    keys = [account.access_key for account in accounts]
    if len(set(keys)) < len(keys):
        twice = next(key for at, key in enumerate(keys) if key in keys[:at])
        raise UsageError(f"{name} has the account {twice} twice")
    return AclFile(white_list, accounts, read_version(document))


def join_files(files: Mapping[str, AclFile]) -> Policy:
    """The policy of all files. Of two accounts with one access key the first counts."""
    accounts: dict[str, Account] = {}
    notes: list[str] = []
    for path, file in files.items():
        for account in file.accounts:
            if account.access_key in accounts:
                notes.append(f"{path}: the account {account.access_key} stands in another file already, which counts")
            else:
                accounts[account.access_key] = account
    white_list = tuple(pattern for file in files.values() for pattern in file.white_list)
    return Policy(dict(files), white_list, accounts, tuple(notes))


def read_version(document: Mapping[str, Any]) -> DataVersion:
    """A list of one mapping, as upstream writes it, or the mapping itself."""
    given = document.get(VERSION)
    if isinstance(given, list):
        given = given[0] if given else None
    if not isinstance(given, Mapping):
        return DataVersion(timestamp=0, counter=0)
    return DataVersion(timestamp=number_of(given.get("timestamp")), counter=number_of(given.get("counter")))


def _list(document: Mapping[str, Any], name: str) -> list[Any]:
    given = document.get(name)
    if given is None or given in ("", "~", "null"):
        return []
    if not isinstance(given, list):
        raise UsageError(f"{name} should be a list")
    return given


def _pattern(given: object) -> AddressPattern:
    if not isinstance(given, str):
        raise UsageError(f"{WHITE_LIST} should be a list of texts")
    return parse_pattern(given)
