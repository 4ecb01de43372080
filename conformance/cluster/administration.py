"""What operators and broken programs ask a broker, between the requests of clients: every question gets one answer.

Each leaves an `Ask` event with the code of the request, and the code of the answer. `Configure` changes a setting and
reads it back: one that was refused is as it was before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from conformance.cluster.client import TIMEOUT_S, ScriptedClient
from conformance.cluster.known import TOPIC, BrokerAddress
from refmq.model.ids import MessageQueue
from refmq.nameserver.serve import SERVERS
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.config import (
    SubscriptionGroupConfig,
    SubscriptionGroupList,
    TopicConfig,
    TopicConfigList,
)
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.trace.record import Outcome

OTHER: Final = "other"
"""A topic and a group that no client of a history uses."""
NO_SUCH_REQUEST: Final = 9_999

QUESTIONS: Final = (
    RequestCode.GET_ALL_CONSUMER_OFFSET,
    RequestCode.GET_ALL_DELAY_OFFSET,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.GET_ALL_TOPIC_CONFIG,
    RequestCode.GET_BROKER_CONFIG,
    RequestCode.GET_BROKER_CONSUME_STATS,
    RequestCode.GET_BROKER_RUNTIME_INFO,
    RequestCode.GET_CONSUMER_CONNECTION_LIST,
    RequestCode.GET_CONSUME_STATS,
    RequestCode.GET_EARLIEST_MSG_STORETIME,
    RequestCode.GET_ALL_PRODUCER_INFO,
    RequestCode.GET_PRODUCER_CONNECTION_LIST,
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
    RequestCode.GET_TOPIC_CONFIG,
    RequestCode.GET_TOPIC_STATS_INFO,
    RequestCode.QUERY_CONSUME_QUEUE,
    RequestCode.QUERY_CONSUME_TIME_SPAN,
    RequestCode.QUERY_CORRECTION_OFFSET,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
    RequestCode.VIEW_BROKER_STATS_DATA,
    RequestCode.VIEW_MESSAGE_BY_ID,
    RequestCode.CHECK_CLIENT_CONFIG,
)
"""They change nothing, whatever they are asked about."""

CHANGES: Final = (
    RequestCode.UPDATE_AND_CREATE_TOPIC,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
    RequestCode.DELETE_TOPIC_IN_BROKER,
    RequestCode.DELETE_SUBSCRIPTIONGROUP,
    RequestCode.CLONE_GROUP_OFFSET,
    RequestCode.RESUME_CHECK_HALF_MESSAGE,
    RequestCode.CONSUMER_SEND_MSG_BACK,
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
    RequestCode.DELETE_EXPIRED_COMMITLOG,
    RequestCode.CLEAN_UNUSED_TOPIC,
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
    RequestCode.GET_CONSUMER_RUNNING_INFO,
    RequestCode.CONSUME_MESSAGE_DIRECTLY,
    RequestCode.SEND_REPLY_MESSAGE,
    RequestCode.SEND_REPLY_MESSAGE_V2,
)
"""They are asked about the other topic and group only."""

REQUESTS: Final = (*QUESTIONS, *CHANGES)

OF_NAMESERVERS: Final = tuple(RequestCode(code) for code in sorted(SERVERS))
"""They are asked about another broker, topic and namespace than those of the history."""


def _fields(topic: str, group: str) -> dict[str, str]:
    """What any of the requests may want to know; each takes what it knows."""
    return {
        **dict.fromkeys(("topic", "b"), topic),
        **dict.fromkeys(("group", "groupName", "consumerGroup", "producerGroup", "srcGroup", "destGroup", "a"), group),
        **dict.fromkeys(("queueId", "index", "e", "offset", "queueOffset", "commitOffset", "sysFlag"), "0"),
        **dict.fromkeys(("timestamp", "bornTimestamp", "commitLogOffset", "tranStateTableOffset"), "1"),
        **dict.fromkeys(("count", "maxMsgNums", "readQueueNums", "writeQueueNums"), "4"),
        **dict.fromkeys(("perm", "topicSysFlag", "delayLevel", "commitOrRollback", "suspendTimeoutMillis"), "0"),
        "msgId": "7F0000010000000000000000",
        "statsName": "TOPIC_PUT_NUMS",
        "statsKey": topic,
        "topicFilterType": "SINGLE_TAG",
        "defaultTopic": "TBW102",
        "order": "false",
        "subscription": "*",
        "subVersion": "0",
        "compareGroup": group,
        "filterGroups": group,
        "isOrder": "false",
        **dict.fromkeys(("brokerName", "namespace", "key", "value"), OTHER),
        **dict.fromkeys(("clusterName", "cluster"), "another"),
        "brokerAddr": "192.0.2.1:10911",
        "haServerAddr": "192.0.2.1:10912",
        "brokerId": "0",
    }


def _body(code: RequestCode, number: int) -> bytes:
    """What belongs into the body of a request that changes a table. It is another one each time."""
    group = SubscriptionGroupConfig(group_name=OTHER, retry_max_times=number % 7)
    match code:
        case RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP:
            return encode_body(group)
        case RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST:
            return encode_body(SubscriptionGroupList(group_config_list=(group,)))
        case RequestCode.UPDATE_AND_CREATE_TOPIC_LIST:
            topic = TopicConfig(topic_name=OTHER, read_queue_nums=1 + number % 3, write_queue_nums=1)
            return encode_body(TopicConfigList(topic_config_list=(topic,)))
        case _:
            return b""


@dataclass(frozen=True, slots=True)
class Damage:
    """One way in which a request is not as it should be."""

    fields: Callable[[dict[str, str]], dict[str, str]] = dict
    body: bytes = b""
    code: int | None = None


DAMAGES: Final = (
    Damage(),
    Damage(fields=lambda fields: {}),
    Damage(fields=lambda fields: dict.fromkeys(fields, "\u00e9{")),
    Damage(fields=lambda fields: dict.fromkeys(fields, "-9223372036854775808")),
    Damage(body=b'\xff{"a":'),
    Damage(code=NO_SUCH_REQUEST),
)
"""The first one is none."""


async def ask(client: ScriptedClient, broker: BrokerAddress, number: int, damage: int) -> None:
    """Asks one of the requests, whole or damaged."""
    code, how = REQUESTS[number % len(REQUESTS)], DAMAGES[damage % len(DAMAGES)]
    is_harmless = code in QUESTIONS and how is DAMAGES[0]
    fields = how.fields(_fields(TOPIC if is_harmless else OTHER, client.group if is_harmless else OTHER))
    command = request(how.code or code, fields, how.body or _body(code, number))
    await _ask(client, broker, code, command)


async def ask_nameserver(client: ScriptedClient, nameserver: BrokerAddress, number: int, damage: int) -> None:
    """The same of a nameserver."""
    code, how = OF_NAMESERVERS[number % len(OF_NAMESERVERS)], DAMAGES[damage % len(DAMAGES)]
    command = request(how.code or code, how.fields(_fields(OTHER, OTHER)), how.body)
    await _ask(client, nameserver, code, command)


async def _ask(client: ScriptedClient, broker: BrokerAddress, code: RequestCode, command: RemotingCommand) -> None:
    operation, about = client.begin(), MessageQueue(code.name, broker.name, -1)
    client.record(operation, Outcome.INVOKE, "Ask", about, command.code)
    answer = await client.ask(broker, command, TIMEOUT_S)
    outcome = answer if isinstance(answer, Outcome) else Outcome.OK
    status = 0 if isinstance(answer, Outcome) else answer.code
    client.record(operation, outcome, "Ask", about, command.code, d=status)


SETTING: Final = "defaultQueryMaxNum"
"""How many messages a question by key may bring; ours bring one."""
ILLEGAL: Final = -1


async def configure(client: ScriptedClient, broker: BrokerAddress, value: int) -> None:
    """Changes a setting, or tries to set it to what is no number beside one that is legal, and reads it back."""
    operation, about = client.begin(), MessageQueue(SETTING, broker.name, -1)
    client.record(operation, Outcome.INVOKE, "Configure", about, value)
    text = f"{SETTING}={value}" if value != ILLEGAL else f"{SETTING}=77\ntransactionCheckMax=soon"
    changed = await client.ask(broker, request(RequestCode.UPDATE_BROKER_CONFIG, body=text.encode()), TIMEOUT_S)
    read = await client.ask(broker, request(RequestCode.GET_BROKER_CONFIG), TIMEOUT_S)
    if isinstance(changed, Outcome) or isinstance(read, Outcome):
        client.record(operation, Outcome.UNKNOWN, "Configure", about, value)
        return
    found = _setting_of(read)
    outcome = Outcome.OK if found is not None else Outcome.UNKNOWN
    client.record(operation, outcome, "Configure", about, value, found or 0, d=changed.code if found else 0)


def _setting_of(answer: RemotingCommand) -> int | None:
    if answer.code != ResponseCode.SUCCESS:
        return None
    for line in answer.body.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == SETTING:
            return int(value)
    return None
