"""What each request code needs. A code without a rule is denied.

    rule          who may
    ------------  --------------------------------------------------------------------------------
    `Admin`       an account with `admin: true`
    `Signed`      every account whose signature is right
    `Needs`       an account with the permissions that the function finds in the request
    `Open`        everybody; only at nameservers
    `NotServed`   every account: the answer is that the code is not supported

Upstream has five codes that need an admin, permissions for nine more, and lets any account do the rest. Here a code
that changes or shows configuration, accounts, tables, or the progress of others needs an admin, and what an ordinary
client does needs the permission for the topic or group that it does it with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from refmq.acl.accounts import Permission
from refmq.protocol.bodies.codec import decode_body
from refmq.protocol.bodies.heartbeat import CheckClientRequestBody, HeartbeatData
from refmq.protocol.bodies.offsets import LockBatchRequestBody
from refmq.protocol.codes import RequestCode as Code
from refmq.protocol.command import RemotingCommand
from refmq.protocol.headers.send import LETTERS
from refmq.protocol.names import RETRY_PREFIX, retry_topic
from refmq.protocol.registry import ROWS, Role

BODY_BYTES_MAX: Final = 1 << 20
"""The longest JSON body that is read for its names: as long as the handlers take."""

Need: TypeAlias = tuple[str, Permission]
"""A topic, or a group under the name of its retry topic, and what has to be allowed."""
FindNeeds: TypeAlias = Callable[[RemotingCommand], Iterator[Need]]


@dataclass(frozen=True, slots=True)
class Admin:
    """An account with `admin: true`."""


@dataclass(frozen=True, slots=True)
class Signed:
    """Every account."""


@dataclass(frozen=True, slots=True)
class Open:
    """Everybody."""


@dataclass(frozen=True, slots=True)
class NotServed:
    """Every account; nothing happens."""


@dataclass(frozen=True, slots=True)
class Needs:
    """An account with these permissions."""

    find: FindNeeds


Rule: TypeAlias = Admin | Signed | Open | NotServed | Needs


def _field(command: RemotingCommand, name: str) -> str:
    return command.fields.get(name) or ""


def _send(command: RemotingCommand) -> Iterator[Need]:
    """The topic of a send. Sending to the retry topic of a group is part of consuming with it.

    Upstream asks for the producer's group then, which is whatever the request says.
    """
    is_long = command.code in (Code.SEND_MESSAGE, Code.SEND_REPLY_MESSAGE)
    topic = _field(command, "topic" if is_long else LETTERS["topic"])
    yield topic, Permission.SUB if topic.startswith(RETRY_PREFIX) else Permission.PUB


def _topic(command: RemotingCommand) -> Iterator[Need]:
    yield _field(command, "topic"), Permission.SUB


def _group(name: str) -> Need:
    return retry_topic(name), Permission.SUB


def _pull(command: RemotingCommand) -> Iterator[Need]:
    yield _field(command, "topic"), Permission.SUB
    yield _group(_field(command, "consumerGroup"))


def _send_back(command: RemotingCommand) -> Iterator[Need]:
    yield _group(_field(command, "group"))


def _consumer_group(command: RemotingCommand) -> Iterator[Need]:
    yield _group(_field(command, "consumerGroup"))


def _unregister(command: RemotingCommand) -> Iterator[Need]:
    group = _field(command, "consumerGroup")
    if group:
        yield _group(group)


def _heartbeat(command: RemotingCommand) -> Iterator[Need]:
    for consumer in decode_body(HeartbeatData, command.body, bytes_max=BODY_BYTES_MAX).consumer_data_set:
        yield _group(consumer.group_name)
        for subscription in consumer.subscription_data_set:
            yield subscription.topic, Permission.SUB


def _lock(command: RemotingCommand) -> Iterator[Need]:
    yield _group(decode_body(LockBatchRequestBody, command.body, bytes_max=BODY_BYTES_MAX).consumer_group)


def _check_client(command: RemotingCommand) -> Iterator[Need]:
    if command.body:
        body = decode_body(CheckClientRequestBody, command.body, bytes_max=BODY_BYTES_MAX)
        yield _group(body.group)
        yield body.subscription_data.topic, Permission.SUB


_ADMIN_CODES: Final = (
    Code.UPDATE_AND_CREATE_TOPIC,
    Code.UPDATE_AND_CREATE_TOPIC_LIST,
    Code.GET_ALL_TOPIC_CONFIG,
    Code.UPDATE_BROKER_CONFIG,
    Code.GET_BROKER_CONFIG,
    Code.GET_BROKER_RUNTIME_INFO,
    Code.GET_ALL_CONSUMER_OFFSET,
    Code.GET_ALL_DELAY_OFFSET,
    Code.UPDATE_AND_CREATE_ACL_CONFIG,
    Code.DELETE_ACL_CONFIG,
    Code.GET_BROKER_CLUSTER_ACL_INFO,
    Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
    Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    Code.GET_TOPIC_STATS_INFO,
    Code.GET_CONSUMER_CONNECTION_LIST,
    Code.GET_PRODUCER_CONNECTION_LIST,
    Code.DELETE_SUBSCRIPTIONGROUP,
    Code.GET_CONSUME_STATS,
    Code.DELETE_TOPIC_IN_BROKER,
    Code.INVOKE_BROKER_TO_RESET_OFFSET,
    Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
    Code.QUERY_TOPIC_CONSUME_BY_WHO,
    Code.QUERY_CONSUME_TIME_SPAN,
    Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
    Code.CLEAN_EXPIRED_CONSUMEQUEUE,
    Code.GET_CONSUMER_RUNNING_INFO,
    Code.QUERY_CORRECTION_OFFSET,
    Code.CONSUME_MESSAGE_DIRECTLY,
    Code.CLONE_GROUP_OFFSET,
    Code.VIEW_BROKER_STATS_DATA,
    Code.CLEAN_UNUSED_TOPIC,
    Code.GET_BROKER_CONSUME_STATS,
    Code.QUERY_CONSUME_QUEUE,
    Code.RESUME_CHECK_HALF_MESSAGE,
    Code.GET_ALL_PRODUCER_INFO,
    Code.DELETE_EXPIRED_COMMITLOG,
    Code.QUERY_TOPICS_BY_CONSUMER,
    Code.QUERY_SUBSCRIPTION_BY_CONSUMER,
    Code.GET_TOPIC_CONFIG,
    Code.GET_SUBSCRIPTIONGROUP_CONFIG,
    Code.UPDATE_AND_GET_GROUP_FORBIDDEN,
)

_NEEDS: Final[Mapping[Code, FindNeeds]] = {
    Code.SEND_MESSAGE: _send,
    Code.SEND_MESSAGE_V2: _send,
    Code.SEND_BATCH_MESSAGE: _send,
    Code.SEND_REPLY_MESSAGE: _send,
    Code.SEND_REPLY_MESSAGE_V2: _send,
    Code.PULL_MESSAGE: _pull,
    Code.LITE_PULL_MESSAGE: _pull,
    Code.QUERY_MESSAGE: _topic,
    Code.QUERY_CONSUMER_OFFSET: _pull,
    Code.UPDATE_CONSUMER_OFFSET: _pull,
    Code.SEARCH_OFFSET_BY_TIMESTAMP: _topic,
    Code.GET_MAX_OFFSET: _topic,
    Code.GET_MIN_OFFSET: _topic,
    Code.GET_EARLIEST_MSG_STORETIME: _topic,
    Code.HEART_BEAT: _heartbeat,
    Code.UNREGISTER_CLIENT: _unregister,
    Code.CONSUMER_SEND_MSG_BACK: _send_back,
    Code.GET_CONSUMER_LIST_BY_GROUP: _consumer_group,
    Code.LOCK_BATCH_MQ: _lock,
    Code.UNLOCK_BATCH_MQ: _lock,
    Code.CHECK_CLIENT_CONFIG: _check_client,
}

_BY_WHAT_IS_FOUND: Final = (Code.VIEW_MESSAGE_BY_ID, Code.END_TRANSACTION)
"""Requests that name an offset of the log: the handler asks for the topic of what stands there (`check.may_use`). So it
does for 36, besides the group."""


_BY_CODE: Final = {row.code: row for row in ROWS}


def _never_served(code: Code, role: Role) -> bool:
    """Declined, or for others. A code that is not declined any more has no rule until somebody gives it one."""
    row = _BY_CODE[code]
    return row.declined is not None or role not in row.served_by


def _broker_rules() -> dict[int, Rule]:
    rules: dict[int, Rule] = {row.code: NotServed() for row in ROWS if _never_served(row.code, Role.BROKER)}
    rules |= {code: Admin() for code in _ADMIN_CODES}
    rules |= {code: Needs(find) for code, find in _NEEDS.items()}
    rules |= {code: Signed() for code in _BY_WHAT_IS_FOUND}
    return rules


BROKER_RULES: Final[Mapping[int, Rule]] = _broker_rules()
"""The rules of a broker."""

_NAMESERVER_CHANGES: Final = (
    Code.PUT_KV_CONFIG,
    Code.DELETE_KV_CONFIG,
    Code.REGISTER_BROKER,
    Code.UNREGISTER_BROKER,
    Code.WIPE_WRITE_PERM_OF_BROKER,
    Code.DELETE_TOPIC_IN_NAMESRV,
    Code.REGISTER_TOPIC_IN_NAMESRV,
    Code.UPDATE_NAMESRV_CONFIG,
    Code.GET_NAMESRV_CONFIG,
    Code.QUERY_DATA_VERSION,
    Code.ADD_WRITE_PERM_OF_BROKER,
    Code.BROKER_HEARTBEAT,
)
"""What changes the tables of a nameserver (322 keeps a broker alive there), or shows its configuration."""

_NAMESERVER_READS: Final = (
    Code.GET_KV_CONFIG,
    Code.GET_ROUTEINFO_BY_TOPIC,
    Code.GET_BROKER_CLUSTER_INFO,
    Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
    Code.GET_KVLIST_BY_NAMESPACE,
    Code.GET_TOPICS_BY_CLUSTER,
    Code.GET_SYSTEM_TOPIC_LIST_FROM_NS,
    Code.GET_UNIT_TOPIC_LIST,
    Code.GET_HAS_UNIT_SUB_TOPIC_LIST,
    Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
)


def _nameserver_rules() -> dict[int, Rule]:
    rules: dict[int, Rule] = {row.code: Open() for row in ROWS if _never_served(row.code, Role.NAMESERVER)}
    rules |= {code: Admin() for code in _NAMESERVER_CHANGES}
    rules |= {code: Open() for code in _NAMESERVER_READS}
    return rules


NAMESERVER_RULES: Final[Mapping[int, Rule]] = _nameserver_rules()
"""The rules of a nameserver that demands signatures: reading is open, as clients of upstream do not sign for it."""
