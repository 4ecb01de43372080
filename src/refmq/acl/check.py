"""The decision for one request, in upstream's order.

    1  the address is on a global white list               allowed
    2  no access key, or one that no account has           refused
    3  the address is on the account's white list          allowed
    4  the signature is wrong                              refused
    5  the code needs an admin, and the account is none    refused
    6  an admin without permissions of its own             allowed
    7  a needed permission is missing                      refused
       otherwise                                           allowed

Sending to the trace topic needs no permission, because every client does that; nor does an answer (324, 325) to a
request that goes to the topic for answers. A code without a rule is refused to everybody but the white-listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from refmq.acl.accounts import Account, Permission
from refmq.acl.addresses import host_part
from refmq.acl.policy import Policy
from refmq.acl.rules import BROKER_RULES, NAMESERVER_RULES, Admin, Need, Needs, NotServed, Open, Rule, Signed
from refmq.errors import RefmqError
from refmq.protocol.acl import ACCESS_KEY, signature_is_valid
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.names import RETRY_PREFIX, TRACE_TOPIC

EXCEPTION: Final = "org.apache.rocketmq.acl.common.AclException: "
"""How upstream's remarks begin; some clients look for it."""

_REPLIES: Final = (RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2)

SHOWN_MAX: Final = 80
"""How much of a name that a stranger sent is said back."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A policy with the rules of one kind of server."""

    policy: Policy
    rules: Mapping[int, Rule]
    reply_topic: str = ""
    """Where this broker keeps answers to requests."""

    def refusal(self, command: RemotingCommand, peer: str) -> str | None:
        """Why a request may not be served, as the remark of its answer; None if it may. `peer` is `host:port`."""
        found = self._admit(command, peer)
        if isinstance(found, str):
            return EXCEPTION + found
        if found is None:
            return None
        refused = self._judge(command, found)
        return None if refused is None else EXCEPTION + refused

    def refusal_of_use(self, command: RemotingCommand, peer: str, resource: str, permission: Permission) -> str | None:
        """The same for what a handler has found in the store: may whoever sent `command` do this with a topic?"""
        found = self._admit(command, peer)
        if isinstance(found, str):
            return EXCEPTION + found
        if found is None or _has_all(found):
            return None
        missing = _missing(found, [(resource, permission)])
        return None if missing is None else EXCEPTION + missing

    def may_be_told(self, access_key: str | None, peer: str, topic: str) -> bool:
        """Whether a client that was let in with this access key, or None from a white address, may be shown what
        producers of a topic see. An account that is gone may not."""
        host = host_part(peer)
        if self.policy.is_white(host):
            return True
        account = None if access_key is None else self.policy.accounts.get(access_key)
        if account is None:
            return False
        return account.white_address.matches(host) or _has_all(account) or account.allows(topic, Permission.PUB)

    def _admit(self, command: RemotingCommand, peer: str) -> Account | str | None:
        """The account of a request, why there is none, or None for one that needs none."""
        host = host_part(peer)
        if self.policy.is_white(host) or isinstance(self.rules.get(command.code), Open):
            return None
        access_key = command.fields.get(ACCESS_KEY)
        if not access_key:
            return "No accessKey is configured"
        account = self.policy.accounts.get(access_key)
        if account is None:
            return f"No acl config for {access_key[:SHOWN_MAX]}"
        if account.white_address.matches(host):
            return None
        if not signature_is_valid(command, account.secret_key):
            return f"Check signature failed for accessKey={access_key}"
        return account

    def _judge(self, command: RemotingCommand, account: Account) -> str | None:
        match self.rules.get(command.code):
            case None:
                return f"No rule for request code={command.code}"
            case Admin() if not account.admin:
                who = f"accessKey={account.access_key}"
                return f"Need admin permission for request code={command.code}, but {who} is not"
            case Needs(find) if not _has_all(account):
                try:
                    return _missing(account, [need for need in find(command) if not self._is_free(command.code, need)])
                except RefmqError as error:
                    return f"the request cannot be read: {error}"
            case Admin() | Signed() | Open() | NotServed() | Needs():
                return None

    def _is_free(self, code: int, need: Need) -> bool:
        if need == (TRACE_TOPIC, Permission.PUB):
            return True
        return code in _REPLIES and need == (self.reply_topic, Permission.PUB)


def _has_all(account: Account) -> bool:
    return account.admin and not account.resources


def _missing(account: Account, needs: Iterable[Need]) -> str | None:
    for resource, permission in needs:
        if not account.allows(resource, permission):
            is_group = resource.startswith(RETRY_PREFIX)
            name = resource.removeprefix(RETRY_PREFIX)[:SHOWN_MAX]
            return f"No default permission for {'group' if is_group else 'topic'}:{name}"
    return None


def broker_guard(policy: Policy, reply_topic: str = "") -> Guard:
    return Guard(policy, BROKER_RULES, reply_topic)


def nameserver_guard(policy: Policy) -> Guard:
    return Guard(policy, NAMESERVER_RULES)
