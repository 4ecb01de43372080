"""The C plane in front of the reference's: it serves what it can, and the rest is served as ever.

C says yes or hands over; it never refuses. It sees the tables of a snapshot by their difference from the one before,
and only what it can serve of them. The control plane's table takes over the offsets that C has committed before anybody
looks at it.

| kept twice    | who changes it first | how the other learns                                        |
|---------------|----------------------|-------------------------------------------------------------|
| tables        | the control plane    | `install`, before anybody is told of the change             |
| offsets       | both                 | `take_offsets` before a step here; `set_offset` behind it   |
| waiting pulls | each has its own     | a woken one that C cannot serve any more comes back         |
| waiting puts  | each has its own     | both are acknowledged from the same flush                   |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import refmq_fast
from refmq.errors import UsageError
from refmq.filter.registry import is_tag_expression
from refmq.model.ids import QueueOffset
from refmq.net.fast_store import FastStore
from refmq.plane.counts import Counts, Tally
from refmq.plane.inputs import Commit, Frame, Moment
from refmq.plane.offsets import OffsetTable
from refmq.plane.snapshot import Snapshot, Subscribers
from refmq.plane.topic_rules import name_mistake
from refmq.protocol.bodies.config import SubscriptionGroupConfig, TopicConfig, TopicFilterType
from refmq.protocol.bodies.heartbeat import MessageModel, SubscriptionData
from refmq.protocol.codes import RequestCode
from refmq.protocol.host_address import host_of
from refmq.protocol.names import NOT_FOR_CLIENTS, RETRY_PREFIX
from refmq.store.config import FlushMode
from refmq.store.parts import Emit
from refmq.store.values import Dispatched

HOT: Final = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.PULL_MESSAGE,
        RequestCode.LITE_PULL_MESSAGE,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.QUERY_CONSUMER_OFFSET,
    }
)
"""The requests that C may serve."""


class Output(NamedTuple):
    """What became of a request."""

    connection: int
    number: int
    frame: bytes | None
    """Its answer; None for a parked pull that has to be served here after all."""


class FastPlane:
    """The C plane over a started store, and the tables that were installed last."""

    def __init__(self, store: FastStore, emit: Emit | refmq_fast.Notes | None) -> None:
        self._native = refmq_fast.Plane(store.native, emit, store.hash_seed)
        self._installed: Snapshot | None = None

    @property
    def native(self) -> refmq_fast.Plane:
        """The plane itself, for the threads that drive it."""
        return self._native

    # --- steps -----------------------------------------------------------------------------------------------------

    def serve(self, frame: Frame, now: Moment) -> bool:
        """Takes the step of a request. False if it is none of C's: then nothing has happened."""
        command = frame.command
        if not command.header:
            return False
        peer = host_of(frame.peer)
        return self._native.serve(
            frame.number,
            frame.connection,
            peer.ip,
            peer.port,
            command.serialize_type,
            command.header,
            command.body,
            frame.waited_ms,
            frame.draw,
            frame.on_vip_port,
            now.wall_ms,
            now.uptime_ms,
        )

    def durable(self, flushed_to: int, now: Moment) -> None:
        self._native.durable(flushed_to, now.wall_ms, now.uptime_ms)

    def flush_failed(self, now: Moment) -> None:
        self._native.flush_failed(now.wall_ms, now.uptime_ms)

    def tick(self, now: Moment) -> None:
        self._native.tick(now.wall_ms, now.uptime_ms)

    def drain(self, now: Moment) -> None:
        self._native.drain(now.wall_ms, now.uptime_ms)

    def dispatch(self, count_max: int, now: Moment) -> tuple[Dispatched, ...]:
        return tuple(map(Dispatched._make, self._native.dispatch(count_max, now.wall_ms, now.uptime_ms)))

    def closed(self, connection: int) -> None:
        self._native.closed(connection)

    def take_output(self) -> list[Output]:
        """What there is to do since the last call."""
        return list(map(Output._make, self._native.take_output()))

    def take_wants(self) -> tuple[bool, bool]:
        """Whether a flush and a dispatch are wanted since the last call."""
        return self._native.take_wants()

    def waiting(self) -> tuple[int, int]:
        """How many puts and how many pulls wait."""
        return self._native.waiting()

    # --- tables ----------------------------------------------------------------------------------------------------

    def install(self, snapshot: Snapshot, *, new_group: str | None = None) -> None:
        """From now on requests are checked against this. If all that is new is a group, its name saves comparing the
        others: there may be a hundred thousand."""
        before, self._installed = self._installed, snapshot
        if (
            before is None
            or before.config is not snapshot.config
            or before.store_config is not snapshot.store_config
            or before.store_host != snapshot.store_host
        ):
            self._configure(snapshot)
        takes_retries = before is None or before.config.filter_support_retry == snapshot.config.filter_support_retry
        if before is None or before.topics is not snapshot.topics or not takes_retries:
            self._install_topics({} if before is None or not takes_retries else before.topics, snapshot)
        if before is not None and new_group is not None:
            assert len(snapshot.groups) == len(before.groups) + 1, "one group is new"
            self._put_group(new_group, snapshot.groups[new_group])
        elif before is None or before.groups is not snapshot.groups:
            self._install_groups({} if before is None else before.groups, snapshot.groups)
        if before is None or before.consumers is not snapshot.consumers:
            self._install_consumers({} if before is None else before.consumers, snapshot.consumers)

    def _configure(self, snapshot: Snapshot) -> None:
        config, store = snapshot.config, snapshot.store_config
        settings: dict[str, int | bytes] = {
            "cluster": config.broker_cluster_name.encode(),
            "region": config.region_id.encode(),
            "trace_on": config.trace_on,
            "sync_flush": store.flush_mode is FlushMode.SYNC,
            "is_slave": store.is_slave,
            "waits_for_slaves": False,
            "slave_read": config.slave_read_enable,
            "long_polling": config.long_polling_enable,
            "fast_failure": config.broker_fast_failure_enable,
            "hands_over_all": config.acl_enable,
            "permission": config.broker_permission,
            "short_polling_ms": config.short_polling_time_mills,
            "flush_timeout_ms": config.sync_flush_timeout,
            "accepts_sends_from_ms": config.start_accept_send_request_time_stamp,
            "sends_max": config.send_thread_pool_queue_capacity,
            "pulls_max": config.pull_thread_pool_queue_capacity,
            "send_wait_ms": config.wait_time_mills_in_send_queue,
            "pull_wait_ms": config.wait_time_mills_in_pull_queue,
        }
        self._native.configure(settings, snapshot.store_host.ip, snapshot.store_host.port)

    def _install_topics(self, before: Mapping[str, TopicConfig], snapshot: Snapshot) -> None:
        after, filters_retries = snapshot.topics, snapshot.config.filter_support_retry
        for name in [name for name in before if name not in after]:
            self._native.remove_topic(name.encode())
        for name, topic in after.items():
            if before.get(name) is topic:
                continue
            is_retry = name.startswith(RETRY_PREFIX)
            self._native.put_topic(
                name.encode(),
                topic.read_queue_nums,
                topic.write_queue_nums,
                topic.perm,
                not is_retry and name not in NOT_FOR_CLIENTS and name_mistake(name) is None,
                not (is_retry and filters_retries),
                topic.topic_filter_type is TopicFilterType.MULTI_TAG,
            )

    def _install_groups(
        self, before: Mapping[str, SubscriptionGroupConfig], after: Mapping[str, SubscriptionGroupConfig]
    ) -> None:
        for name in [name for name in before if name not in after]:
            self._native.remove_group(name.encode())
        for name, group in after.items():
            if before.get(name) is not group:
                self._put_group(name, group)

    def _put_group(self, name: str, group: SubscriptionGroupConfig) -> None:
        self._native.put_group(
            name.encode(),
            group.consume_enable,
            group.consume_broadcast_enable,
            group.broker_id,
            group.which_broker_when_consume_slowly,
        )

    def _install_consumers(self, before: Mapping[str, Subscribers], after: Mapping[str, Subscribers]) -> None:
        for name in [name for name in before if name not in after]:
            self._forget_subscriptions(name, before[name].subscriptions)
        for name, consumer in after.items():
            known = before.get(name)
            same_model = known is not None and known.message_model is consumer.message_model
            if known is not None and same_model and known.subscriptions is consumer.subscriptions:
                continue
            old: Mapping[str, SubscriptionData] = {} if known is None else known.subscriptions
            gone = {topic: old[topic] for topic in old if topic not in consumer.subscriptions}
            self._forget_subscriptions(name, gone)
            for topic, subscription in consumer.subscriptions.items():
                if not same_model or old.get(topic) is not subscription:
                    self._put_subscription(name, consumer.message_model, subscription)

    def _put_subscription(self, group: str, model: MessageModel, subscription: SubscriptionData) -> None:
        if not is_tag_expression(subscription.expression_type):
            self._native.remove_subscription(group.encode(), subscription.topic.encode())
            return
        wants_all = subscription.class_filter_mode or subscription.sub_string == "*"
        self._native.put_subscription(
            group.encode(),
            subscription.topic.encode(),
            model is MessageModel.BROADCASTING,
            subscription.sub_version,
            wants_all,
            () if wants_all else tuple(subscription.code_set),
        )

    def _forget_subscriptions(self, group: str, subscriptions: Mapping[str, SubscriptionData]) -> None:
        for topic in subscriptions:
            self._native.remove_subscription(group.encode(), topic.encode())

    # --- offsets ---------------------------------------------------------------------------------------------------

    def set_offset(self, commit: Commit) -> None:
        """An offset that the control plane's table has already."""
        self._native.set_offset(commit.topic.encode(), commit.group.encode(), commit.queue_id, commit.offset)

    def set_offsets(self, table: OffsetTable) -> None:
        """All offsets anew."""
        self._native.forget_offsets()
        for (topic, group), queues in table.offsets.items():
            for queue_id, offset in queues.items():
                self.set_offset(Commit(group, topic, queue_id, offset))

    def take_offsets(self) -> list[Commit]:
        """The offsets that were committed in C since the last call."""
        return [
            Commit(group, topic, queue_id, QueueOffset(offset))
            for topic, group, queue_id, offset in self._native.take_offsets()
        ]

    # --- counts ----------------------------------------------------------------------------------------------------

    def add_counts(self, counts: Counts) -> None:
        """Adds what was counted in C since the last call. C keeps sums: each send of a topic counts with the average
        time, and a pull, which takes microseconds, with none."""
        sends, pulls = self._native.take_counts()
        for topic, calls, messages, size_bytes, took_ms in sends:
            _add(counts.sends.setdefault(topic, Tally()), calls, messages, size_bytes, took_ms)
            counts.put_times_ms[took_ms // calls] += calls
        for topic, queue_id, group, calls, found, messages, size_bytes in pulls:
            key = (topic, queue_id, group)
            _add(counts.pulls.setdefault(key, Tally()), calls, messages, size_bytes, 0)
            counts.pull_times_ms[0] += calls
            if found:
                _add(counts.found.setdefault(key, Tally()), found, messages, size_bytes, 0)


def _add(tally: Tally, calls: int, messages: int, size_bytes: int, took_ms: int) -> None:
    tally.calls += calls
    tally.messages += messages
    tally.size_bytes += size_bytes
    tally.took_ms += took_ms


def refusal() -> str | None:
    """Why there is no C plane here; None if there is one."""
    return None if refmq_fast.AVAILABLE else f"the C extension is missing: {refmq_fast.REASON}"


def require() -> None:
    """`UsageError` if there is no C plane here."""
    reason = refusal()
    if reason is not None:
        raise UsageError(f"--engine fast: {reason}; use --engine reference")
