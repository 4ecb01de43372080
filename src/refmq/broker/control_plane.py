"""The control plane: one broker, its tables, and what request handlers do with them.

The requests that every message pays for are served by the engine's plane (`refmq.plane`). It hands over all others, and
those that need a topic or a group first (`refmq.broker.handed_over`). A handler is a function of the broker, the peer
and the command (see `refmq.broker.handlers`). The broker holds the current `BrokerState`, of which the plane has a
snapshot; its methods are the few changes that several handlers need. Everything that waits or leaves the process goes
through `Environment` and the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from refmq.acl.accounts import Permission
from refmq.acl.check import Guard, broker_guard
from refmq.acl.policy import Policy
from refmq.broker import clients, groups, queue_locks, topics
from refmq.broker.clients import ClientStep, ConnectionId
from refmq.broker.config_files import DELAY_FILE, GROUPS_FILE, OFFSETS_FILE, TOPICS_FILE
from refmq.broker.delay import DelayService
from refmq.broker.environment import AccountFiles, Environment
from refmq.broker.registered_filters import bury_group
from refmq.broker.state import BrokerState
from refmq.broker.stats import RateMeter, StatsTable
from refmq.broker.topics import TopicTable
from refmq.broker.transactions import Transactions
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import HostAddress, QueueOffset, TimestampMs
from refmq.model.step import Event
from refmq.plane.engine import ControlPlane, Engine, Peer
from refmq.plane.needs import SendCreation
from refmq.plane.offsets import OffsetTable
from refmq.plane.snapshot import NO_POLICY, Snapshot
from refmq.protocol.acl import ACCESS_KEY
from refmq.protocol.bodies.codec import JsonStyle, encode_body
from refmq.protocol.bodies.config import DataVersion, SubscriptionGroupConfig
from refmq.protocol.bodies.offsets import DelayOffsets
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import RemotingCommand, oneway
from refmq.protocol.headers.clients import NotifyConsumerIdsChangedRequest
from refmq.protocol.headers.codec import encode_header
from refmq.store.config import StoreConfig
from refmq.store.delay import DelayLevels


class Broker:
    """One broker."""

    def __init__(
        self,
        state: BrokerState,
        store_config: StoreConfig,
        engine: Engine,
        environment: Environment,
        store_host: HostAddress,
        delay_offsets: DelayOffsets | None = None,
    ) -> None:
        self._state = state
        self._is_running = False
        self._is_gathering = False
        self.store_config = store_config
        self.engine = engine
        self.environment = environment
        self.store_host = store_host
        """This broker's address as records carry it."""
        self._saved_topics = state.topics
        self._saved_groups = state.groups
        self._saved_offsets: OffsetTable | None = None
        self._access: Guard | None = None
        self._heard_as: dict[int, str | None] = {}
        """With access control on, the access key of each connection's last heartbeat."""
        self.account_files: AccountFiles | None = None
        """Where administrators change accounts; None while access control is off."""
        self.stats = StatsTable()
        self.meter = RateMeter()
        self.transactions = Transactions(engine, environment, store_host)
        self.check_turn = 0
        """The producer of each group to ask next."""
        self.delay = DelayService(engine, environment, DelayLevels.parse(store_config.delay_levels), delay_offsets)
        self.started_ms = environment.now_ms()
        self.config_version = DataVersion(timestamp=self.started_ms, counter=0)

    def run(self, control: ControlPlane, offsets: OffsetTable) -> None:
        """Starts the engine, which hands over to `control`."""
        assert not self._is_running, "a broker runs once"
        self._saved_offsets = offsets
        self._is_running = True
        self.engine.run(control, self.snapshot(), offsets)

    @property
    def state(self) -> BrokerState:
        return self._state

    @state.setter
    def state(self, state: BrokerState) -> None:
        """Installs a change; the plane sees it before anyone else."""
        self._state = state
        if self._is_running and not self._is_gathering:
            self.engine.install(self.snapshot())

    @contextmanager
    def one_change(self) -> Iterator[None]:
        """Several changes that the plane sees as one. Nothing is awaited meanwhile."""
        assert not self._is_gathering, "one change at a time"
        before = self._state
        self._is_gathering = True
        try:
            yield
        finally:
            self._is_gathering = False
            if self._state is not before:
                self.state = self._state

    def snapshot(self) -> Snapshot:
        """What the plane may rely on now. A topic is included only once it is durable."""
        state, opens_ms = self._state, self.config.start_accept_send_request_time_stamp
        return Snapshot(
            config=state.config,
            store_config=self.store_config,
            store_host=self.store_host,
            topics=self._saved_topics.topics,
            groups=state.groups.groups,
            consumers=state.clients.consumers,
            filters=state.filters,
            access=self._access,
            opens_at=self.environment.local_time(TimestampMs(opens_ms)) if opens_ms else "",
        )

    @property
    def config(self) -> BrokerConfig:
        return self.state.config

    @property
    def is_slave(self) -> bool:
        return self.store_config.is_slave

    def install_policy(self, policy: Policy) -> None:
        """From now on requests are checked against this policy, if `aclEnable` is set."""
        self._access = broker_guard(policy, self.config.reply_topic)
        if self._is_running:
            self.engine.install(self.snapshot())

    def heard(self, peer: Peer, command: RemotingCommand) -> None:
        """A client has sent a heartbeat that was let in: from now on it may be asked, as this account."""
        if self.config.acl_enable and not peer.closed:
            self._heard_as[peer.number] = command.fields.get(ACCESS_KEY)

    def may_be_told(self, peer: Peer, topic: str) -> bool:
        """Whether a client may see a half message of this topic, which a check-back carries."""
        if not self.config.acl_enable:
            return True
        if self._access is None or peer.number not in self._heard_as:
            return False
        return self._access.may_be_told(self._heard_as[peer.number], peer.peer, topic)

    def refusal_of_use(self, command: RemotingCommand, peer: Peer, topic: str, permission: Permission) -> str | None:
        """Why whoever sent a request may not use the topic that its handler has found; None if it may."""
        if not self.config.acl_enable:
            return None
        if self._access is None:
            return NO_POLICY
        return self._access.refusal_of_use(command, peer.peer, topic, permission)

    async def change_config(self, config: BrokerConfig, given: Mapping[str, str]) -> None:
        """Applies a configuration change that came over the wire, and makes it durable."""
        await self.environment.save_settings(given)  # what cannot be kept is not applied
        before, self.state = self.config, replace(self.state, config=config)
        self.config_version = topics.next_version(self.config_version, self.environment.now_ms())
        if config.broker_permission != before.broker_permission:
            version = topics.next_version(self.state.topics.version, self.environment.now_ms())
            await self.change_topics(replace(self.state.topics, version=version))

    # --- topics --------------------------------------------------------------------------------------------------

    async def change_topics(self, table: TopicTable, *, is_heard: bool = False) -> None:
        """Takes a new topic table, makes it durable and tells the nameservers; with `is_heard` waits until they know.

        Awaited before a send to a new topic is acknowledged: a topic lost in a crash would hide its messages.
        """
        if table is self.state.topics:
            await self.topics_saved()
            return
        self.state = replace(self.state, topics=table)
        await self.save_topics()
        if is_heard:
            await self.environment.register()
        else:
            self.environment.spawn(self.environment.register(), "register")

    async def save_topics(self) -> None:
        table = self.state.topics
        await self.environment.save(TOPICS_FILE, lambda: encode_body(table.wrapper(), JsonStyle.FASTJSON))
        self._saved_topics = table
        if self._is_running:
            self.engine.install(self.snapshot())

    async def topics_saved(self) -> None:
        """Waits until every known topic is durable: another send may have just created one, or a
        save may have failed since."""
        if self._saved_topics is not self.state.topics:
            await self.save_topics()

    async def create_topic_on_send(self, creation: SendCreation) -> bool:
        """Creates the topic of a send if needed; returns whether it exists."""
        table = topics.create_on_send(self.state.topics, self.config, creation, self.environment.now_ms())
        if table is None:
            return False
        await self.change_topics(table)
        return True

    async def ensure_topic(self, name: str, queues: int, sys_flag: int = 0) -> bool:
        """Creates a topic the broker itself needs, if it is missing; returns whether it exists."""
        table = topics.ensure_topic(self.state.topics, name, queues, sys_flag, self.environment.now_ms())
        if table is None:
            return False
        await self.change_topics(table)
        return True

    async def ensure_topics(self, wanted: Mapping[str, tuple[int, int]]) -> None:
        """Creates those of some topics that are missing, as far as there is room: name -> its queues and its flag."""
        table, now_ms = self.state.topics, self.environment.now_ms()
        for name, (queues, sys_flag) in wanted.items():
            table = topics.ensure_topic(table, name, queues, sys_flag, now_ms) or table
        await self.change_topics(table)

    # --- groups --------------------------------------------------------------------------------------------------

    def group(self, name: str) -> SubscriptionGroupConfig | None:
        """A group's settings; creates the group if that is allowed."""
        table = groups.ensure_group(self.state.groups, self.config, name, self.environment.now_ms())
        if table is None:
            return None
        if table is not self.state.groups:
            self._state = replace(self.state, groups=table)
            if self._is_running and not self._is_gathering:
                self.engine.install(self.snapshot(), new_group=name)
            self.environment.spawn(self.save_groups(), "save groups")
        return table.get(name)

    async def save_groups(self) -> None:
        table = self.state.groups
        await self.environment.save(GROUPS_FILE, lambda: encode_body(table.wrapper(), JsonStyle.FASTJSON))
        self._saved_groups = table

    async def groups_saved(self) -> None:
        """Waits until every known group is durable. Nobody waited for a group that its first use created."""
        if self._saved_groups is not self.state.groups:
            await self.save_groups()

    # --- offsets -------------------------------------------------------------------------------------------------

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: QueueOffset) -> None:
        self.engine.commit_offset(group, topic, queue_id, offset)

    async def save_offsets(self) -> None:
        """Saves the offsets. A trace records this only if they have not changed meanwhile: only then is everything
        committed so far durable."""
        saved = self.engine.offsets
        await self.environment.save(OFFSETS_FILE, lambda: encode_body(saved.body(), JsonStyle.FASTJSON))
        if self.engine.offsets is saved and saved is not self._saved_offsets:
            self._saved_offsets = saved
            self.environment.emit(Event("PersistOffsets"))

    async def save_delay_offsets(self) -> None:
        cursors = self.delay.to_file()
        await self.environment.save(DELAY_FILE, lambda: encode_body(cursors, JsonStyle.FASTJSON))

    # --- statistics ------------------------------------------------------------------------------------------------

    def counted(self) -> StatsTable:
        """The statistics, including everything the plane has counted so far."""
        self.stats.take(self.config.broker_cluster_name, self.engine.take_counts())
        return self.stats

    # --- clients -------------------------------------------------------------------------------------------------

    def expire_loans(self) -> None:
        """Makes room for new loans where there is none left."""
        step = queue_locks.expire_loans(self.state.locks, self.environment.now_ms())
        if step.events:
            self.state = replace(self.state, locks=step.state)
        for event in step.events:
            self.environment.emit(event)

    def apply_clients(self, step: ClientStep, *, notify: bool = True) -> None:
        """Applies a client-table step: notifies members, retires emptied groups' filters, closes silent connections."""
        with self.one_change() if not self._is_gathering else nullcontext():
            self.state = replace(self.state, clients=step.table)
            for event in step.events:
                self.environment.emit(event)
            for change in step.changed:
                if change.emptied:
                    filters = bury_group(self.state.filters, change.group, self.environment.now_ms())
                    self.state = replace(self.state, filters=filters)
        for change in step.changed:
            if not change.emptied and notify and self.config.notify_consumer_ids_changed_enable:
                self.notify_members(change.group)
        for number in step.expired:
            peer = self.environment.connection(number)
            if peer is not None:
                peer.close("no heartbeat for too long")

    def connection_closed(self, number: int) -> None:
        self._heard_as.pop(number, None)
        self.apply_clients(clients.remove_member(self.state.clients, ConnectionId(number)))

    def notify_members(self, group: str) -> None:
        """Notifies every member that its group changed. One-way: it may be lost, and clients also check on a timer."""
        consumer = self.state.clients.consumers.get(group)
        header = encode_header(NotifyConsumerIdsChangedRequest(consumer_group=group))
        for member in () if consumer is None else consumer.ordered_members():
            peer = self.environment.connection(member.connection)
            if peer is not None:
                peer.send_oneway(oneway(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, header))
