"""What operators arrange at brokers and nameservers, and whether it is so afterwards.

What is asked for and what is read back are numbers; `ArrangedIsSo` compares them. Topics and groups that are arranged
are used for nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, get_args

from conformance.cluster.client import TIMEOUT_S, ScriptedClient
from conformance.cluster.known import TOPIC, BrokerAddress
from conformance.cluster.steps_of_clients import Arranged
from refmq.errors import RefmqError
from refmq.model.broker_config import PERM_READ_WRITE, PERM_WRITE
from refmq.model.step import Event
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.config import KVTable, SubscriptionGroupConfig, TopicConfig
from refmq.protocol.bodies.route import TopicRouteData
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.names import BENCHMARK_TOPIC
from refmq.trace.record import Outcome
from refmq.verify.oracles.arranged import SILENT, SeenArrangement

ARRANGED: Final = "arranged"
CLONED: Final = ("arranged-from", "arranged-to")
NAMESPACE: Final = "ARRANGED"
GONE: Final = -1
"""The value of what is not there."""
MIXED: Final = -2
"""... of what is not alone where it should be."""
PERMS: Final = (6, 4, 2)
AT_NAMESERVERS: Final[tuple[Arranged, ...]] = ("a route", "a route that is gone", "a permission", "a value")

Fields = dict[str, str]


class Unanswered(Exception):
    """A request of an arrangement got no answer, or one that cannot be read."""


async def arrange(client: ScriptedClient, broker: BrokerAddress, nameserver: str, what: Arranged, number: int) -> None:
    """Arranges one thing and reads it back. Nothing is noted when an answer is missing."""
    how, wanted = ARRANGEMENTS[what](number)
    events = client.node.world.events
    begin = len(events)
    try:
        status, found = await how(client, broker, BrokerAddress("", nameserver), number)
    except (Unanswered, RefmqError, ValueError):
        status, found = SILENT, GONE
    asks_nameserver = what in AT_NAMESERVERS
    seen = SeenArrangement(what, broker.name, wanted, found, status, begin, len(events), asks_nameserver)
    client.common.arranged.append(seen)


How = Callable[[ScriptedClient, BrokerAddress, BrokerAddress, int], Awaitable[tuple[int, int]]]
"""Gives the code of the answer, and what was found."""


async def _ask(
    client: ScriptedClient, node: BrokerAddress, code: RequestCode, fields: Fields | None = None, body: bytes = b""
) -> RemotingCommand:
    answer = await client.ask(node, request(code, fields or {}, body), TIMEOUT_S)
    if isinstance(answer, Outcome):
        raise Unanswered
    return answer


def _packed(read: int, write: int, perm: int, sys_flag: int = 0) -> int:
    """A topic as a number."""
    return ((read * 100 + write) * 10 + perm) * 10 + sys_flag


def _topic(number: int) -> TopicConfig:
    """Another topic for each number: what is for reading and what is for writing differ."""
    perm, sys_flag = PERMS[number % len(PERMS)], number % 4
    return TopicConfig(
        topic_name=ARRANGED,
        read_queue_nums=1 + number % 5,
        write_queue_nums=1 + number % 3,
        perm=perm,
        topic_sys_flag=sys_flag,
    )


def _value(topic: TopicConfig) -> int:
    return _packed(topic.read_queue_nums, topic.write_queue_nums, topic.perm, topic.topic_sys_flag)


async def _make(client: ScriptedClient, broker: BrokerAddress, number: int) -> int:
    topic = _topic(number)
    fields = {
        "topic": ARRANGED,
        "defaultTopic": "TBW102",
        "readQueueNums": str(topic.read_queue_nums),
        "writeQueueNums": str(topic.write_queue_nums),
        "perm": str(topic.perm),
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": str(topic.topic_sys_flag),
        "order": "false",
    }
    return (await _ask(client, broker, RequestCode.UPDATE_AND_CREATE_TOPIC, fields)).code


async def _topic_at_broker(client: ScriptedClient, broker: BrokerAddress, _: BrokerAddress, n: int) -> tuple[int, int]:
    status = await _make(client, broker, n)
    answer = await _ask(client, broker, RequestCode.GET_TOPIC_CONFIG, {"topic": ARRANGED})
    known = answer.code == ResponseCode.SUCCESS
    return status, _value(decode_body(TopicConfig, answer.body)) if known else GONE


async def _route(client: ScriptedClient, broker: BrokerAddress, nameserver: BrokerAddress, topic: str) -> int:
    """What a nameserver says of the queues of a broker."""
    answer = await _ask(client, nameserver, RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    if answer.code == ResponseCode.TOPIC_NOT_EXIST:
        return GONE
    if answer.code != ResponseCode.SUCCESS:
        raise Unanswered
    for data in decode_body(TopicRouteData, answer.body).queue_datas:
        if data.broker_name == broker.name:
            return _packed(data.read_queue_nums, data.write_queue_nums, data.perm, data.topic_sys_flag)
    return GONE


async def _topic_in_route(
    client: ScriptedClient, broker: BrokerAddress, nameserver: BrokerAddress, n: int
) -> tuple[int, int]:
    return await _make(client, broker, n), await _route(client, broker, nameserver, ARRANGED)


async def _topic_forgotten(
    client: ScriptedClient, broker: BrokerAddress, nameserver: BrokerAddress, n: int
) -> tuple[int, int]:
    await _make(client, broker, n)
    status = (await _ask(client, nameserver, RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": ARRANGED})).code
    return status, await _route(client, broker, nameserver, ARRANGED)


async def _permission(
    client: ScriptedClient, broker: BrokerAddress, nameserver: BrokerAddress, number: int
) -> tuple[int, int]:
    """The right to write is taken from a broker, or given back, in the routes of all its topics."""
    code = RequestCode.ADD_WRITE_PERM_OF_BROKER if number % 2 else RequestCode.WIPE_WRITE_PERM_OF_BROKER
    status = (await _ask(client, nameserver, code, {"brokerName": broker.name})).code
    found = await _route(client, broker, nameserver, (TOPIC, BENCHMARK_TOPIC, broker.name)[number % 3])
    if found == GONE:  # nobody has sent anything there
        raise Unanswered
    perm = found // 10 % 10
    return status, perm if number % 2 else perm & PERM_WRITE


async def _group(client: ScriptedClient, broker: BrokerAddress, _: BrokerAddress, number: int) -> tuple[int, int]:
    group = SubscriptionGroupConfig(
        group_name=ARRANGED,
        retry_max_times=number % 9,
        retry_queue_nums=1 + number % 4,
        which_broker_when_consume_slowly=number % 2,
    )
    status = (await _ask(client, broker, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=encode_body(group))).code
    answer = await _ask(client, broker, RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": ARRANGED})
    if answer.code != ResponseCode.SUCCESS:
        return status, GONE
    found = decode_body(SubscriptionGroupConfig, answer.body)
    is_same = found == group
    return status, number if is_same else GONE


async def _kv(client: ScriptedClient, _: BrokerAddress, nameserver: BrokerAddress, number: int) -> tuple[int, int]:
    """A value of the configuration that nameservers keep; every third one is taken away again. Another
    namespace has another key."""
    key = {"namespace": NAMESPACE, "key": "k"}
    for namespace, name in ((NAMESPACE, "k"), (f"{NAMESPACE}2", "other")):
        fields = {"namespace": namespace, "key": name, "value": str(number)}
        status = (await _ask(client, nameserver, RequestCode.PUT_KV_CONFIG, fields)).code
    if number % 3 == 0:
        status = (await _ask(client, nameserver, RequestCode.DELETE_KV_CONFIG, key)).code
    answer = await _ask(client, nameserver, RequestCode.GET_KV_CONFIG, key)
    found = int((answer.ext_fields or {}).get("value", GONE))
    answer = await _ask(client, nameserver, RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": NAMESPACE})
    listed = dict(decode_body(KVTable, answer.body).table) if answer.body else {}
    answer = await _ask(client, nameserver, RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": f"{NAMESPACE}2"})
    beside = dict(decode_body(KVTable, answer.body).table) if answer.body else {}
    are_apart = (listed, beside) == ({} if found == GONE else {"k": str(found)}, {"other": str(number)})
    return status, found if are_apart else MIXED


async def _clone(client: ScriptedClient, broker: BrokerAddress, _: BrokerAddress, number: int) -> tuple[int, int]:
    """The offsets of one group are given to another one, in a topic that has to be there."""
    if (await _ask(client, broker, RequestCode.GET_TOPIC_CONFIG, {"topic": TOPIC})).code != ResponseCode.SUCCESS:
        raise Unanswered
    source, target = CLONED
    where = {"topic": TOPIC, "queueId": "0"}
    operation, event = client.begin(), Event("CommitOffset", f"{source}@{client.name}", f"{TOPIC}@{broker.name}", 0)
    event = event._replace(a=-1, b=number)
    client.node.recorder.record(event, Outcome.INVOKE, operation)
    fields = {**where, "consumerGroup": source, "commitOffset": str(number)}
    answer = await client.ask(broker, request(RequestCode.UPDATE_CONSUMER_OFFSET, fields), TIMEOUT_S)
    client.node.recorder.record(event, answer if isinstance(answer, Outcome) else Outcome.OK, operation)
    groups = {"srcGroup": source, "destGroup": target, "topic": TOPIC, "offline": "true"}
    status = (await _ask(client, broker, RequestCode.CLONE_GROUP_OFFSET, groups)).code
    fields = {**where, "consumerGroup": target, "setZeroIfNotFound": "false"}
    answer = await _ask(client, broker, RequestCode.QUERY_CONSUMER_OFFSET, fields)
    return status, int((answer.ext_fields or {}).get("offset", GONE))


ARRANGEMENTS: Final[dict[Arranged, Callable[[int], tuple[How, int]]]] = {
    "a topic": lambda n: (_topic_at_broker, _value(_topic(n))),
    "a group": lambda n: (_group, n),
    "a route": lambda n: (_topic_in_route, _value(_topic(n))),
    "a route that is gone": lambda n: (_topic_forgotten, GONE),
    "a permission": lambda n: (_permission, PERM_READ_WRITE if n % 2 else 0),
    "a value": lambda n: (_kv, GONE if n % 3 == 0 else n),
    "a clone": lambda n: (_clone, n),
}
"""What it is -> how it is arranged, and what has to be found."""

assert set(ARRANGEMENTS) == set(get_args(Arranged))
