"""Administration: topics, groups, offsets, lag, messages, the cluster.

async with refmq.Admin("127.0.0.1:9876") as admin:
    await admin.create_topic("Orders", queues=8)
    print(await admin.lag("billing"))
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import TracebackType
from typing import Final, Self, TypeVar, Unpack

from refmq.aio.instance import CLOSE_TIMEOUT_S, ConnectionOptions, Instance
from refmq.client.message import ReceivedMessage, checked_group, checked_topic, host_text, received_message
from refmq.client.route import MASTER_ID, all_addresses, master_of, masters, subscribe_queues
from refmq.client.start_offset import StartAt, checked_start
from refmq.errors import BrokerError, ConnectFailed, RefmqError, UsageError, WireError
from refmq.model.ids import MessageQueue
from refmq.protocol import headers, names
from refmq.protocol.bodies.codec import decode_body
from refmq.protocol.bodies.config import SubscriptionGroupConfig, SubscriptionGroupWrapper
from refmq.protocol.bodies.connections import Connection, ConsumerConnection
from refmq.protocol.bodies.offsets import ResetOffsetBody
from refmq.protocol.bodies.route import ClusterInfo, TopicList, TopicRouteData
from refmq.protocol.bodies.stats import ConsumeStats, TopicOffset, TopicStatsTable
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.headers.codec import decode_header
from refmq.protocol.record import decode_record, decode_records, parse_message_id

TIMEOUT_S: Final = 5.0
KEY_QUERY_MAX: Final = 1_000
PULL_MAX: Final = 32
END_OF_TIME_MS: Final = 2**63 - 1

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """How far a group is in one queue."""

    queue: MessageQueue
    committed: int
    end: int

    @property
    def lag(self) -> int:
        return max(0, self.end - self.committed)


@dataclass(frozen=True, slots=True)
class Lag:
    """What a group has not consumed yet. ``total`` counts messages; ``retry`` those that wait for another attempt."""

    group: str
    queues: tuple[QueueProgress, ...] = ()
    retry_queues: tuple[QueueProgress, ...] = ()

    @property
    def total(self) -> int:
        return sum(queue.lag for queue in self.queues)

    @property
    def retry(self) -> int:
        return sum(queue.lag for queue in self.retry_queues)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The brokers that nameservers know: cluster -> broker name -> broker id -> address."""

    clusters: Mapping[str, Mapping[str, Mapping[int, str]]] = field(default_factory=dict)

    @property
    def masters(self) -> dict[str, str]:
        """Broker name -> address of the master."""
        return {
            name: addresses[MASTER_ID]
            for brokers in self.clusters.values()
            for name, addresses in brokers.items()
            if MASTER_ID in addresses
        }


class Admin:
    """Looks at a cluster and changes it. ``timeout`` (seconds) is for each request."""

    def __init__(
        self,
        namesrv: str | list[str] | tuple[str, ...] | None = None,
        *,
        timeout: float = TIMEOUT_S,
        **options: Unpack[ConnectionOptions],
    ) -> None:
        self._instance = Instance(namesrv, "admin", options=options)
        self._timeout = timeout

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        await self._instance.open()

    async def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        await self._instance.close(timeout)

    # Cluster and topics ---------------------------------------------------------------------------------------------

    async def cluster(self) -> Cluster:
        """The brokers that the nameservers know."""
        answer = await self._ask_name_server(self._instance.make(RequestCode.GET_BROKER_CLUSTER_INFO))
        info = decode_body(ClusterInfo, answer.body)
        return Cluster(
            {
                cluster: {
                    name: dict(info.broker_addr_table[name].broker_addrs)
                    for name in sorted(members)
                    if name in info.broker_addr_table
                }
                for cluster, members in sorted(info.cluster_addr_table.items())
            }
        )

    async def topics(self, *, system: bool = False) -> tuple[str, ...]:
        """All topics, sorted. Those of RocketMQ itself, of retries and of dead letters, only with ``system``."""
        answer = await self._ask_name_server(self._instance.make(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER))
        found = decode_body(TopicList, answer.body).topic_list if answer.body else ()
        cluster = await self.cluster()
        hidden = {*cluster.clusters, *(name for brokers in cluster.clusters.values() for name in brokers)}

        def is_plain(topic: str) -> bool:
            is_own = names.is_system_topic(topic) or topic in hidden or topic.endswith(names.REPLY_TOPIC_SUFFIX)
            return not is_own and not topic.startswith((names.RETRY_PREFIX, names.DLQ_PREFIX))

        return tuple(sorted(topic for topic in found if system or is_plain(topic)))

    async def create_topic(
        self, topic: str, *, queues: int = 8, write_queues: int | None = None, perm: int = 6, order: bool = False
    ) -> None:
        """Makes a topic on every master, or changes it there."""
        checked_topic(topic)
        if names.is_system_topic(topic):
            raise UsageError(f"{topic} belongs to RocketMQ; choose another name.")
        if not 1 <= queues <= 65_536:
            raise UsageError(f"A topic has between 1 and 65536 queues, not {queues}.")
        header = headers.CreateTopicRequest(
            topic=self._wire(topic),
            default_topic=names.AUTO_CREATE_TOPIC,
            read_queue_nums=queues,
            write_queue_nums=queues if write_queues is None else write_queues,
            perm=perm,
            topic_filter_type="SINGLE_TAG",
            topic_sys_flag=0,
            order=order,
        )
        command = self._instance.make(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
        await self._at_every_master(lambda address: self._call(address, command))

    async def delete_topic(self, topic: str) -> None:
        """Deletes a topic everywhere, with its messages."""
        wire = self._wire(topic)
        command = self._instance.make(RequestCode.DELETE_TOPIC_IN_BROKER, headers.DeleteTopicRequest(topic=wire))
        await self._at_every_master(lambda address: self._call(address, command))
        header = headers.DeleteTopicInNamesrvRequest(topic=wire)
        command = self._instance.make(RequestCode.DELETE_TOPIC_IN_NAMESRV, header)
        for address in self._instance.name_servers:
            await self._call(address, command)

    async def route(self, topic: str) -> TopicRouteData:
        """Where the queues of a topic are. ``RouteNotFound`` says what is known instead."""
        route = await self._instance.refresh_route(self._wire(topic))
        if route is None:
            raise await self._instance.no_route(topic)
        return route

    async def topic_offsets(self, topic: str) -> dict[MessageQueue, TopicOffset]:
        """The first and the next offset of every queue, and when it last changed."""
        header = headers.GetTopicStatsInfoRequest(topic=self._wire(topic))
        command = self._instance.make(RequestCode.GET_TOPIC_STATS_INFO, header)
        found: dict[MessageQueue, TopicOffset] = {}
        for address in masters(await self.route(topic)):
            answer = await self._call(address, command)
            for queue, offsets in decode_body(TopicStatsTable, answer.body).offset_table.items():
                found[replace(queue, topic=topic)] = offsets
        return dict(sorted(found.items()))

    # Groups ---------------------------------------------------------------------------------------------------------

    async def create_group(self, group: str, *, max_retries: int = 16, retry_queues: int = 1) -> None:
        """Makes a consumer group on every master, or changes it there."""
        checked_group(group, "consumer")
        config = SubscriptionGroupConfig(
            group_name=self._wire(group), retry_max_times=max_retries, retry_queue_nums=retry_queues
        )
        command = self._instance.make(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, config)
        await self._at_every_master(lambda address: self._call(address, command))

    async def delete_group(self, group: str, *, offsets: bool = True) -> None:
        """Deletes a group, with its offsets unless they shall stay."""
        header = headers.DeleteSubscriptionGroupRequest(group_name=self._wire(group), remove_offset=offsets)
        command = self._instance.make(RequestCode.DELETE_SUBSCRIPTIONGROUP, header)
        await self._at_every_master(lambda address: self._call(address, command))

    async def groups(self, *, system: bool = False) -> tuple[str, ...]:
        """All consumer groups that brokers know, sorted."""
        command = self._instance.make(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        found: set[str] = set()
        for answer in await self._at_every_master(lambda address: self._call(address, command)):
            found.update(decode_body(SubscriptionGroupWrapper, answer.body).subscription_group_table)
        upstream = {"TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "SELF_TEST_P_GROUP"}
        return tuple(
            sorted(
                group
                for group in found
                if system or (group not in upstream and not group.startswith(("CID_ONS", "CID_RMQ_SYS_", "CID_SYS_")))
            )
        )

    async def members(self, group: str) -> tuple[Connection, ...]:
        """The consumers of a group that are connected; empty when there is none."""
        header = headers.GetConsumerConnectionListRequest(consumer_group=self._wire(group))
        command = self._instance.make(RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
        found: dict[str, Connection] = {}
        for address in (await self.cluster()).masters.values():
            with contextlib.suppress(BrokerError):  # nobody of the group is connected there
                answer = await self._call(address, command)
                connections = decode_body(ConsumerConnection, answer.body).connection_set
                found.update({connection.client_id: connection for connection in connections})
        return tuple(found[name] for name in sorted(found))

    # Offsets --------------------------------------------------------------------------------------------------------

    async def lag(self, group: str, topic: str | None = None) -> Lag:
        """How far a group is, queue by queue. A group that never consumed has no queues."""
        wire = self._wire(group)
        header = headers.GetConsumeStatsRequest(consumer_group=wire, topic=self._wire(topic) if topic else None)
        command = self._instance.make(RequestCode.GET_CONSUME_STATS, header)
        found: dict[MessageQueue, QueueProgress] = {}
        for address in (await self.cluster()).masters.values():
            answer = await self._instance.ask(address, command, self._timeout)
            if answer.code != ResponseCode.SUCCESS or not answer.body:
                continue
            for queue, offsets in decode_body(ConsumeStats, answer.body).offset_table.items():
                shown = replace(queue, topic=names.without_namespace(queue.topic, self._instance.namespace))
                found[shown] = QueueProgress(shown, offsets.consumer_offset, offsets.broker_offset)
        progress = [found[queue] for queue in sorted(found)]
        return Lag(
            group,
            tuple(entry for entry in progress if not entry.queue.topic.startswith(names.RETRY_PREFIX)),
            tuple(entry for entry in progress if entry.queue.topic.startswith(names.RETRY_PREFIX)),
        )

    async def offsets(self, group: str, topic: str) -> dict[MessageQueue, int]:
        """The committed offset of a group in every queue of a topic that has one."""
        wire = self._wire(topic)
        route = await self.route(topic)
        found: dict[MessageQueue, int] = {}
        for queue in subscribe_queues(wire, route):
            header = headers.QueryConsumerOffsetRequest(
                consumer_group=self._wire(group), topic=wire, queue_id=queue.queue_id, broker_name=queue.broker
            )
            command = self._instance.make(RequestCode.QUERY_CONSUMER_OFFSET, header)
            answer = await self._instance.ask(self._master(route, queue), command, self._timeout)
            if answer.code == ResponseCode.SUCCESS:
                offset = decode_header(headers.QueryConsumerOffsetResponse, answer).offset
                found[replace(queue, topic=topic)] = offset
        return found

    async def set_offset(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Commits an offset for a group. Members that are connected do not notice: use ``reset_offset`` for them."""
        route = await self.route(queue.topic)
        header = headers.UpdateConsumerOffsetRequest(
            consumer_group=self._wire(group),
            topic=self._wire(queue.topic),
            queue_id=queue.queue_id,
            commit_offset=offset,
            broker_name=queue.broker,
        )
        command = self._instance.make(RequestCode.UPDATE_CONSUMER_OFFSET, header)
        await self._call(self._master(route, queue), command)

    async def reset_offset(self, *, group: str, topic: str, to: StartAt, force: bool = True) -> dict[MessageQueue, int]:
        """Sends a group to another time: its connected members at once, and the stored offsets. Without ``force`` no
        queue goes forward. Returns where each queue is now."""
        place = checked_start(to)
        at_ms = -1 if place == "last" else 0 if place == "first" else _ms(place)
        header = headers.ResetOffsetRequest(
            topic=self._wire(topic), group=self._wire(group), timestamp=at_ms, is_force=force
        )
        command = self._instance.make(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
        route = await self.route(topic)
        found: dict[MessageQueue, int] = {}
        for address in masters(route):
            answer = await self._instance.ask(address, command, self._timeout)
            if answer.code == ResponseCode.SUCCESS and answer.body:
                table = decode_body(ResetOffsetBody, answer.body).offset_table
                found.update({replace(queue, topic=topic): offset for queue, offset in table.items()})
        missing = [queue for queue in subscribe_queues(self._wire(topic), route) if _shown(queue, topic) not in found]
        for queue in missing:
            shown = _shown(queue, topic)
            found[shown] = await self._reset_offline(group, shown, place, force)
        return dict(sorted(found.items()))

    async def _reset_offline(self, group: str, queue: MessageQueue, place: StartAt, force: bool) -> int:
        """A broker whose group is not connected is told the offset, queue by queue."""
        target = await self.offset_at(queue, place)
        known = (await self.offsets(group, queue.topic)).get(queue)
        if known is not None and target > known and not force:
            return known
        await self.set_offset(group, queue, target)
        return target

    async def clone_offsets(self, source: str, target: str, topic: str) -> None:
        """Lets one group begin where another one is."""
        header = headers.CloneGroupOffsetRequest(
            src_group=self._wire(source), dest_group=self._wire(target), topic=self._wire(topic), offline=True
        )
        command = self._instance.make(RequestCode.CLONE_GROUP_OFFSET, header)
        for address in masters(await self.route(topic)):
            await self._call(address, command)

    async def offset_at(self, queue: MessageQueue, when: StartAt) -> int:
        """The first offset of a queue from a time on; its first one, or the next."""
        place = checked_start(when)
        address = self._master(await self.route(queue.topic), queue)
        topic, queue_id = self._wire(queue.topic), queue.queue_id
        if place == "first":
            command = self._instance.make(
                RequestCode.GET_MIN_OFFSET, headers.GetMinOffsetRequest(topic=topic, queue_id=queue_id)
            )
            return decode_header(headers.GetMinOffsetResponse, await self._call(address, command)).offset
        if place == "last":
            command = self._instance.make(
                RequestCode.GET_MAX_OFFSET, headers.GetMaxOffsetRequest(topic=topic, queue_id=queue_id)
            )
            return decode_header(headers.GetMaxOffsetResponse, await self._call(address, command)).offset
        header = headers.SearchOffsetRequest(topic=topic, queue_id=queue_id, timestamp=_ms(place))
        command = self._instance.make(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        return decode_header(headers.SearchOffsetResponse, await self._call(address, command)).offset

    # Messages -------------------------------------------------------------------------------------------------------

    async def message(self, topic: str, msg_id: str) -> ReceivedMessage | None:
        """A message by the id that a send returned: the client's (``msg_id``) or the broker's (``offset_msg_id``)."""
        found = await self._query(topic, msg_id, unique=True, limit=64)
        found = [message for message in found if message.msg_id == msg_id]
        if found:
            return min(found, key=lambda message: message.store_timestamp_ms)
        with contextlib.suppress(RefmqError):
            return await self.message_at(msg_id)
        return None

    async def message_at(self, offset_msg_id: str) -> ReceivedMessage:
        """A message by the id that its broker gave it, which says where it is."""
        host, physical_offset = parse_message_id(offset_msg_id)
        command = self._instance.make(
            RequestCode.VIEW_MESSAGE_BY_ID, headers.ViewMessageRequest(offset=physical_offset)
        )
        answer = await self._call(host_text(host), command)
        return received_message(decode_record(answer.body, error=WireError), "", namespace=self._instance.namespace)

    async def messages_by_key(
        self, topic: str, key: str, *, limit: int = 64, begin: datetime | None = None, end: datetime | None = None
    ) -> tuple[ReceivedMessage, ...]:
        """Messages with a key, the oldest first."""
        found = await self._query(topic, key, unique=False, limit=limit, begin=begin, end=end)
        return tuple(message for message in found if key in message.keys)

    async def messages_by_time(
        self, topic: str, *, begin: datetime, end: datetime, limit: int = 1_000
    ) -> tuple[ReceivedMessage, ...]:
        """Messages that were stored between two times, the oldest first; ``limit`` of each queue at most."""
        wire = self._wire(topic)
        route = await self.route(topic)
        found: list[ReceivedMessage] = []
        for queue in subscribe_queues(wire, route):
            offset = await self.offset_at(_shown(queue, topic), begin)
            found += await self._read(route, queue, offset, _ms(begin), _ms(end), limit)
        return tuple(sorted(found, key=lambda message: (message.store_timestamp_ms, message.queue_offset)))

    async def messages_in(self, queue: MessageQueue, offset: int = 0, *, limit: int = 32) -> list[ReceivedMessage]:
        """Messages of one queue from an offset on, as they lie there."""
        route = await self.route(queue.topic)
        wire = replace(queue, topic=self._wire(queue.topic))
        return await self._read(route, wire, offset, 0, END_OF_TIME_MS, limit)

    async def _read(
        self, route: TopicRouteData, queue: MessageQueue, offset: int, begin_ms: int, end_ms: int, limit: int
    ) -> list[ReceivedMessage]:
        return await self._read_at(self._master(route, queue), queue, offset, begin_ms, end_ms, limit)

    async def read_queue(self, address: str, queue: MessageQueue, *, limit: int = 10_000) -> list[ReceivedMessage]:
        """Messages of a queue of a broker that the caller names, whatever the nameservers say of the topic."""
        self._instance.check_usable()
        return await self._read_at(address, queue, 0, 0, END_OF_TIME_MS, limit)

    async def _read_at(
        self, address: str, queue: MessageQueue, offset: int, begin_ms: int, end_ms: int, limit: int
    ) -> list[ReceivedMessage]:
        found: list[ReceivedMessage] = []
        while len(found) < limit:
            header = headers.PullMessageRequest(
                consumer_group="TOOLS_CONSUMER",
                topic=queue.topic,
                queue_id=queue.queue_id,
                queue_offset=offset,
                max_msg_nums=min(PULL_MAX, limit - len(found)),
                sys_flag=4,
                subscription="*",
            )
            answer = await self._instance.ask(
                address, self._instance.make(RequestCode.PULL_MESSAGE, header), self._timeout
            )
            if answer.code not in (ResponseCode.SUCCESS, ResponseCode.PULL_OFFSET_MOVED):
                return found
            following = decode_header(headers.PullMessageResponse, answer).next_begin_offset
            for record in decode_records(answer.body) if answer.code == ResponseCode.SUCCESS else ():
                if record.store_timestamp_ms > end_ms:
                    return found
                if record.store_timestamp_ms >= begin_ms:
                    found.append(received_message(record, queue.broker, namespace=self._instance.namespace))
            if following <= offset:
                return found
            offset = following
        return found

    async def _query(
        self,
        topic: str,
        key: str,
        *,
        unique: bool,
        limit: int,
        begin: datetime | None = None,
        end: datetime | None = None,
    ) -> list[ReceivedMessage]:
        if not 1 <= limit <= KEY_QUERY_MAX:
            raise UsageError(f"limit is between 1 and {KEY_QUERY_MAX}, not {limit}.")
        header = headers.QueryMessageRequest(
            topic=self._wire(topic),
            key=key,
            max_num=limit,
            begin_timestamp=0 if begin is None else _ms(begin),
            end_timestamp=END_OF_TIME_MS if end is None else _ms(end),
            unique_key_query=unique,
        )
        command = self._instance.make(RequestCode.QUERY_MESSAGE, header)
        found: list[ReceivedMessage] = []
        route = await self.route(topic)
        for data in route.broker_datas:
            address = data.broker_addrs.get(MASTER_ID) or next(iter(all_addresses(route)))
            answer = await self._instance.ask(address, command, 3 * self._timeout)
            if answer.code == ResponseCode.SUCCESS:
                found += [
                    received_message(record, data.broker_name, namespace=self._instance.namespace)
                    for record in decode_records(answer.body)
                ]
        return sorted(found, key=lambda message: message.store_timestamp_ms)

    # Requests -------------------------------------------------------------------------------------------------------

    async def _call(self, address: str, command: RemotingCommand) -> RemotingCommand:
        return await self._instance.call(address, command, self._timeout)

    async def _ask_name_server(self, command: RemotingCommand) -> RemotingCommand:
        self._instance.check_usable()
        return await self._instance.ask_name_server(command, self._timeout)

    async def _at_every_master(self, act: Callable[[str], Awaitable[T]]) -> list[T]:
        found = (await self.cluster()).masters
        if not found:
            raise ConnectFailed(";".join(self._instance.name_servers), "the nameservers know no broker")
        return list(await asyncio.gather(*(act(address) for address in found.values())))

    def _master(self, route: TopicRouteData, queue: MessageQueue) -> str:
        address = master_of(route, queue.broker)
        if address is None:
            raise ConnectFailed(queue.broker, "no nameserver knows a master of this broker")
        return address

    def _wire(self, name: str) -> str:
        return names.with_namespace(name, self._instance.namespace)


def _ms(when: StartAt) -> int:
    assert isinstance(when, datetime)
    if when.tzinfo is None:
        raise UsageError("A time needs a time zone: datetime(..., tzinfo=UTC).")
    return int(when.timestamp() * 1000)


def _shown(queue: MessageQueue, topic: str) -> MessageQueue:
    return replace(queue, topic=topic)
