"""From a request to a step: what a nameserver answers to each request code. Read from DefaultRequestProcessor, 4.9.8.

Every step returns its effects in the order in which they must happen: what is persisted stands before the reply. If
persisting fails, the shell answers with an error instead, because nothing may be acknowledged that is not kept.

Two things are done otherwise on purpose. A code that a nameserver does not serve is answered with code 3, as 5.3.3
does; 4.9.8 never answers it and lets the caller wait. And a change of the settings is checked (see ``settings``).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from rpds import HashTrieMap

from refmq.errors import RefmqError, UsageError, WireError
from refmq.model.ids import BrokerId, TimestampMs
from refmq.model.step import Event, Step
from refmq.nameserver import topics
from refmq.nameserver.kv import (
    FILE_BYTES_MAX,
    ORDER_TOPIC_CONFIG,
    KvConfig,
    delete_kv,
    encode_kv_file,
    get_kv,
    kv_namespace,
    put_kv,
)
from refmq.nameserver.registration import (
    CloseChannel,
    Registration,
    close_broker_channel,
    expire_brokers,
    has_room_on,
    master_of,
    query_data_version,
    query_data_version_enabled,
    register_broker,
    register_broker_enabled,
    unregister_broker,
)
from refmq.nameserver.settings import (
    HIDDEN,
    KEY_BY_NAME,
    SETTINGS_BYTES_MAX,
    black_list,
    checked_value,
    default_settings,
    unknown_key,
)
from refmq.nameserver.tables import ChannelId, RouteTable
from refmq.protocol import headers
from refmq.protocol.bodies.codec import JsonStyle, decode_body, encode_body
from refmq.protocol.bodies.config import DataVersion, KVTable, TopicConfigSerializeWrapper
from refmq.protocol.bodies.registration import RegisterBrokerBody, decode_register_broker_body
from refmq.protocol.bodies.route import TopicList, route_style
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, response
from refmq.protocol.names import FAQ
from refmq.protocol.properties import format_properties, parse_properties
from refmq.protocol.versions import V3_0_11

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

REFUSED: Final = "register broker failed"
VERSION_BYTES_MAX: Final = 4096
CRC_MASK: Final = 0x7FFF_FFFF  # UtilAll.crc32 of upstream drops the sign bit
NO_VERSION: Final = DataVersion(timestamp=0, counter=0)


@dataclass(frozen=True, slots=True)
class NameserverState:
    """All that a nameserver knows."""

    routes: RouteTable = field(default_factory=RouteTable)
    kv: KvConfig = field(default_factory=HashTrieMap)
    settings: HashTrieMap[str, str] = field(default_factory=lambda: HashTrieMap(default_settings()))


@dataclass(frozen=True, slots=True)
class Reply:
    """Effect: send the response to the connection that asked."""

    command: RemotingCommand


@dataclass(frozen=True, slots=True)
class PersistKv:
    """Effect: replace the file of the key-value configuration."""

    content: bytes


@dataclass(frozen=True, slots=True)
class PersistSettings:
    """Effect: replace the file of the settings."""

    content: bytes


Effect: TypeAlias = Reply | PersistKv | PersistSettings | CloseChannel
NameserverStep: TypeAlias = Step[NameserverState, Effect]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, who asked and when."""

    command: RemotingCommand
    channel: ChannelId
    now_ms: TimestampMs


Server: TypeAlias = Callable[[NameserverState, Asked], NameserverStep]
HeaderT = TypeVar("HeaderT", bound="DataclassInstance")


def serve_request(
    state: NameserverState, channel: ChannelId, command: RemotingCommand, now_ms: TimestampMs
) -> NameserverStep:
    """The step of any request. A request that makes no sense is answered with code 1 and changes nothing."""
    asked = Asked(command, channel, now_ms)
    server = SERVERS.get(command.code)
    if server is None:
        remark = f" request type {command.code} not supported"
        return answer(state, asked, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
    try:
        step = server(state, asked)
    except RefmqError as error:
        return answer(state, asked, ResponseCode.SYSTEM_ERROR, remark=str(error))
    assert isinstance(step.effects[-1], Reply), "the answer comes after everything that it promises"
    return step


def lose_channel(state: NameserverState, channel: ChannelId) -> NameserverStep:
    """A connection is gone, for whatever reason."""
    return of_routes(state, close_broker_channel(state.routes, channel))


def scan_brokers(state: NameserverState, now_ms: TimestampMs) -> NameserverStep:
    """The regular look for brokers that were silent for too long."""
    return of_routes(state, expire_brokers(state.routes, now_ms))


# Brokers -----------------------------------------------------------------------------------------------------------


def serve_register_broker(state: NameserverState, asked: Asked) -> NameserverStep:
    return serve_registration(state, asked, decode_registration(asked.command))


def decode_registration(command: RemotingCommand) -> Registration:
    """What a broker says of itself. Apart from the step, because a shell may read a long one somewhere else."""
    header = headers.decode_header(headers.RegisterBrokerRequest, command)
    if header.body_crc32 not in (0, zlib.crc32(command.body) & CRC_MASK):
        raise RefmqError("crc32 not match")
    body = registration_body(command.version, command.body, compressed=header.compressed)
    return Registration(
        cluster=header.cluster_name,
        broker_name=header.broker_name,
        broker_id=BrokerId(header.broker_id),
        address=header.broker_addr,
        ha_server_addr=header.ha_server_addr,
        data_version=body.topic_config_serialize_wrapper.data_version,
        topics=body.topic_config_serialize_wrapper.topic_config_table,
        filter_servers=body.filter_server_list,
    )


def serve_registration(state: NameserverState, asked: Asked, broker: Registration) -> NameserverStep:
    if not register_broker_enabled(state.routes, broker) or not has_room_on(state.routes, broker, asked.channel):
        remark = f"{REFUSED}: an unknown broker sent a single topic, a name is too long, or there are too many"
        return answer(state, asked, ResponseCode.SYSTEM_ERROR, remark=remark)
    step = of_routes(state, register_broker(state.routes, broker, asked.channel, asked.now_ms))
    master = master_of(step.state.routes, broker.broker_name, broker.broker_id)
    told = headers.RegisterBrokerResponse(
        ha_server_addr=master.ha_server_addr if master is not None else None,
        master_addr=master.address if master is not None else None,
    )
    order = kv_namespace(state.kv, ORDER_TOPIC_CONFIG)
    return answered(step, asked, told, b"" if order is None else encode_body(KVTable(table=order)))


def registration_body(version: int, data: bytes, *, compressed: bool) -> RegisterBrokerBody:
    if not data:
        return RegisterBrokerBody(topic_config_serialize_wrapper=TopicConfigSerializeWrapper(data_version=NO_VERSION))
    if version < V3_0_11:
        return RegisterBrokerBody(topic_config_serialize_wrapper=decode_body(TopicConfigSerializeWrapper, data))
    return decode_register_broker_body(data, compressed=compressed)


def serve_unregister_broker(state: NameserverState, asked: Asked) -> NameserverStep:
    header = headers.decode_header(headers.UnregisterBrokerRequest, asked.command)
    id_ = BrokerId(header.broker_id)
    step = unregister_broker(state.routes, header.cluster_name, header.broker_name, id_, header.broker_addr)
    return answered(of_routes(state, step), asked)


def serve_query_data_version(state: NameserverState, asked: Asked) -> NameserverStep:
    header = headers.decode_header(headers.QueryDataVersionRequest, asked.command)
    version = decode_body(DataVersion, asked.command.body, bytes_max=VERSION_BYTES_MAX)
    changed = not query_data_version_enabled(state.routes, header.broker_addr, version)
    step = of_routes(state, query_data_version(state.routes, header.broker_addr, version, asked.now_ms))
    known = state.routes.live.get(header.broker_addr)
    body = encode_body(known.data_version) if known is not None else b""
    return answered(step, asked, headers.QueryDataVersionResponse(changed=changed), body)


def serve_cluster_info(state: NameserverState, asked: Asked) -> NameserverStep:
    info = topics.cluster_info(state.routes)
    # Java always answers bare integer keys here; quoted ones are read by all clients that ask.
    return answered(Step(state), asked, body=encode_body(info, style=JsonStyle.FASTJSON))


# Topics ------------------------------------------------------------------------------------------------------------


def serve_topic_route(state: NameserverState, asked: Asked) -> NameserverStep:
    header = headers.decode_header(headers.GetRouteInfoRequest, asked.command)
    ordered = state.settings.get("orderMessageEnable") == "true"
    order = get_kv(state.kv, ORDER_TOPIC_CONFIG, header.topic) if ordered else None
    route = topics.topic_route(state.routes, header.topic, order)
    if route is None:
        remark = f"No topic route info in name server for the topic: {header.topic}{FAQ}"
        return answer(state, asked, ResponseCode.TOPIC_NOT_EXIST, remark=remark)
    strict = bool(header.accept_standard_json_only)
    style = route_style(asked.command.version, accept_standard_json_only=strict)
    return answered(Step(state), asked, body=encode_body(route, style=style))


def serve_delete_topic(state: NameserverState, asked: Asked) -> NameserverStep:
    header = headers.decode_header(headers.DeleteTopicInNamesrvRequest, asked.command)
    cluster = header.cluster_name or None
    return answered(of_routes(state, topics.delete_topic(state.routes, header.topic, cluster)), asked)


def serve_wipe_write_perm(state: NameserverState, asked: Asked) -> NameserverStep:
    name = headers.decode_header(headers.WipeWritePermOfBrokerRequest, asked.command).broker_name
    count = len(topics.topics_of_broker(state.routes, name))
    told = headers.WipeWritePermOfBrokerResponse(wipe_topic_count=count)
    return answered(of_routes(state, topics.wipe_write_perm(state.routes, name)), asked, told)


def serve_add_write_perm(state: NameserverState, asked: Asked) -> NameserverStep:
    name = headers.decode_header(headers.AddWritePermOfBrokerRequest, asked.command).broker_name
    count = len(topics.topics_of_broker(state.routes, name))
    told = headers.AddWritePermOfBrokerResponse(add_topic_count=count)
    return answered(of_routes(state, topics.add_write_perm(state.routes, name)), asked, told)


def serve_topics_of_cluster(state: NameserverState, asked: Asked) -> NameserverStep:
    cluster = headers.decode_header(headers.GetTopicsByClusterRequest, asked.command).cluster
    return answered(Step(state), asked, body=encode_body(topics.topics_of_cluster(state.routes, cluster)))


def topic_list(chosen: Callable[[RouteTable], TopicList]) -> Server:
    """The server of a request that only asks for a list of topics."""

    def serve(state: NameserverState, asked: Asked) -> NameserverStep:
        return answered(Step(state), asked, body=encode_body(chosen(state.routes)))

    return serve


# Key-value configuration -------------------------------------------------------------------------------------------


def serve_put_kv(state: NameserverState, asked: Asked) -> NameserverStep:
    fields = asked.command.fields
    namespace, key, value = fields.get("namespace"), fields.get("key"), fields.get("value")
    if namespace is None or key is None:
        return answer(state, asked, ResponseCode.SYSTEM_ERROR, remark="namespace or key is null")
    if value is None:
        raise WireError("value", 0, "present", "absent")
    return changed_kv(state, asked, put_kv(state.kv, namespace, key, value), Event("PutKv", namespace, key))


def serve_delete_kv(state: NameserverState, asked: Asked) -> NameserverStep:
    header = headers.decode_header(headers.DeleteKvConfigRequest, asked.command)
    after = delete_kv(state.kv, header.namespace, header.key)
    return changed_kv(state, asked, after, Event("DeleteKv", header.namespace, header.key))


def changed_kv(state: NameserverState, asked: Asked, after: KvConfig, event: Event) -> NameserverStep:
    content = encode_kv_file(after)
    if len(content) > FILE_BYTES_MAX:
        raise UsageError(f"The key-value configuration has at most {FILE_BYTES_MAX} bytes.")
    assert event.action in ("PutKv", "DeleteKv")
    return answered(Step(replace(state, kv=after), (PersistKv(content),), event), asked)


def serve_get_kv(state: NameserverState, asked: Asked) -> NameserverStep:
    header = headers.decode_header(headers.GetKvConfigRequest, asked.command)
    value = get_kv(state.kv, header.namespace, header.key)
    if value is None:
        remark = f"No config item, Namespace: {header.namespace} Key: {header.key}"
        return answer(state, asked, ResponseCode.QUERY_NOT_FOUND, remark=remark)
    return answered(Step(state), asked, headers.GetKvConfigResponse(value=value))


def serve_kv_list(state: NameserverState, asked: Asked) -> NameserverStep:
    namespace = headers.decode_header(headers.GetKvListByNamespaceRequest, asked.command).namespace
    entries = kv_namespace(state.kv, namespace)
    if entries is None:
        remark = f"No config item, Namespace: {namespace}"
        return answer(state, asked, ResponseCode.QUERY_NOT_FOUND, remark=remark)
    return answered(Step(state), asked, body=encode_body(KVTable(table=entries)))


# Settings ----------------------------------------------------------------------------------------------------------


def serve_update_settings(state: NameserverState, asked: Asked) -> NameserverStep:
    if len(asked.command.body) > SETTINGS_BYTES_MAX:
        raise UsageError(f"Settings have at most {SETTINGS_BYTES_MAX} bytes.")
    try:
        given = parse_properties(asked.command.body.decode())
    except (UnicodeDecodeError, WireError):
        return answer(state, asked, ResponseCode.SYSTEM_ERROR, remark="string2Properties error")
    if black_list(state.settings) & given.keys():
        remark = "Can not update config in black list."
        return answer(state, asked, ResponseCode.NO_PERMISSION, remark=remark)
    settings = state.settings
    for name, value in given.items():
        key = KEY_BY_NAME.get(name)
        if key is None:
            return answer(state, asked, ResponseCode.SYSTEM_ERROR, remark=unknown_key(name))
        settings = settings.insert(name, checked_value(key, value))
    after = replace(state, settings=settings)
    content = format_properties(sorted_settings(settings)).encode()
    assert parse_properties(content.decode()) == sorted_settings(settings), "what is written is read back"
    return answered(Step(after, (PersistSettings(content),), Event("UpdateSettings", a=len(given))), asked)


def serve_get_settings(state: NameserverState, asked: Asked) -> NameserverStep:
    shown = {name: value for name, value in sorted_settings(state.settings).items() if name not in HIDDEN}
    return answered(Step(state), asked, body=format_properties(shown).encode())


def sorted_settings(settings: Mapping[str, str]) -> dict[str, str]:
    return {name: settings[name] for name in sorted(settings)}


# Answers -----------------------------------------------------------------------------------------------------------


def of_routes(state: NameserverState, step: Step[RouteTable, CloseChannel]) -> NameserverStep:
    """A step of the routes as a step of the whole."""
    return Step(replace(state, routes=step.state), step.effects, step.event)


def answered(
    step: NameserverStep, asked: Asked, header: DataclassInstance | None = None, body: bytes = b""
) -> NameserverStep:
    """The step with a reply of success after everything else that it does."""
    assert not any(isinstance(effect, Reply) for effect in step.effects), "a request has one answer"
    fields = headers.encode_header(header) if header is not None else None
    return replace(step, effects=(*step.effects, Reply(response(asked.command, ResponseCode.SUCCESS, fields, body))))


def answer(state: NameserverState, asked: Asked, code: ResponseCode, *, remark: str) -> NameserverStep:
    """A step that changes nothing and says why."""
    assert code is not ResponseCode.SUCCESS
    return Step(state, (Reply(response(asked.command, code, remark=remark)),))


SERVERS: Final[Mapping[int, Server]] = {
    RequestCode.PUT_KV_CONFIG: serve_put_kv,
    RequestCode.GET_KV_CONFIG: serve_get_kv,
    RequestCode.DELETE_KV_CONFIG: serve_delete_kv,
    RequestCode.REGISTER_BROKER: serve_register_broker,
    RequestCode.UNREGISTER_BROKER: serve_unregister_broker,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: serve_topic_route,
    RequestCode.GET_BROKER_CLUSTER_INFO: serve_cluster_info,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: serve_wipe_write_perm,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: topic_list(topics.all_topics),
    RequestCode.DELETE_TOPIC_IN_NAMESRV: serve_delete_topic,
    RequestCode.GET_KVLIST_BY_NAMESPACE: serve_kv_list,
    RequestCode.GET_TOPICS_BY_CLUSTER: serve_topics_of_cluster,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: topic_list(topics.system_topics),
    RequestCode.GET_UNIT_TOPIC_LIST: topic_list(topics.unit_topics),
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: topic_list(topics.unit_subscription_topics),
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: topic_list(topics.unit_subscription_without_unit_topics),
    RequestCode.UPDATE_NAMESRV_CONFIG: serve_update_settings,
    RequestCode.GET_NAMESRV_CONFIG: serve_get_settings,
    RequestCode.QUERY_DATA_VERSION: serve_query_data_version,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: serve_add_write_perm,
}
"""Every request code that a nameserver serves."""
