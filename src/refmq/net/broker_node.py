"""A broker on an event loop: timers, files and nameservers around the pure `refmq.broker` and a given engine.

    disk, store_config = RealDisk(folder), StoreConfig()
    engine = reference_engine(disk, store_config)
    node = BrokerNode(BrokerConfig(namesrv_addr="127.0.0.1:9876"), store_config, disk, engine)
    host, port = await node.start("127.0.0.1")
    ...
    await node.stop(timeout_s=10)

All decisions are made in `refmq.broker`; this module only runs the loops that ask for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from refmq.broker import clients, registered_filters
from refmq.broker.check_rounds import CheckLimits, CheckRounds, Progress
from refmq.broker.config_files import FILTERS_FILE, StoredTables, read_tables, start_state
from refmq.broker.control_plane import Broker
from refmq.broker.handed_over import HandedOver
from refmq.broker.handlers.transaction import ask_producer
from refmq.broker.queue_locks import QueueLocks, restart_broker
from refmq.broker.stats import SAMPLING, Period
from refmq.errors import DiskError, FlushFailed, RefmqError, UsageError
from refmq.model.broker_config import BrokerConfig
from refmq.model.disk import Disk
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.model.step import Event
from refmq.net.acl_files import AclFiles
from refmq.net.address import format_address
from refmq.net.broker_registration import UNSIGNED, Registrar, Signing
from refmq.net.clock import wall_ms
from refmq.plane.engine import Engine, Peer
from refmq.plane.offsets import load_offsets
from refmq.protocol.bodies.codec import JsonStyle, encode_body
from refmq.protocol.host_address import host_of, is_ip
from refmq.protocol.names import SCHEDULE_TOPIC, TRANS_GROUP, TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC
from refmq.protocol.properties import format_properties, parse_properties
from refmq.store.config import StoreConfig
from refmq.store.text_file import read_text_file, read_text_file_or_backup, replace_text_file
from refmq.store.values import RecoveryReport
from refmq.trace.record import NoRecorder, Recorder

CONFIG_DIRECTORY: Final = "config"

T = TypeVar("T")

VIP_PORT_BELOW: Final = 2
"""Java clients with the VIP channel use the port this far below the main one."""

DELIVER_AGAIN_S: Final = 1.0
"""After an error delayed messages are looked at again."""

log = logging.getLogger("refmq.broker")


class BrokerNode:
    """One listening broker. It is the `Environment` of its pure broker."""

    def __init__(
        self,
        config: BrokerConfig,
        store_config: StoreConfig,
        disk: Disk,
        engine: Engine,
        *,
        recorder: Recorder | None = None,
        settings_file: tuple[Disk, str] | None = None,
        accounts: AclFiles | None = None,
        signing: Signing = UNSIGNED,
        seed: int | None = None,
        survives_bugs: bool = True,
    ) -> None:
        """`survives_bugs`: a bug of ours in a timer is a line in the log; for whoever looks for bugs it is the end."""
        self.engine = engine
        self.recovery: RecoveryReport | None = None
        self._config = config
        self._store_config = store_config
        self._disk = disk
        self._settings_file = settings_file
        self._accounts = accounts
        self._signing = signing
        self._recorder = recorder or NoRecorder()
        self._random = random.Random(seed)
        self._survives_bugs = survives_bugs
        self._broker: Broker | None = None
        self._registration: Registrar | None = None
        self._rounds: CheckRounds | None = None
        self._delayed = asyncio.Event()
        """A message was put into a delay queue."""
        self._day: int | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._to_save: dict[str, Callable[[], bytes]] = {}
        self._saving: dict[str, asyncio.Lock] = {}
        self._loop = asyncio.get_running_loop()
        self.failure: asyncio.Future[BaseException] = self._loop.create_future()
        """Done when the broker cannot continue: a bug in refmq, or a failed disk."""

    @property
    def broker(self) -> Broker:
        assert self._broker is not None, "the broker is started first"
        return self._broker

    @property
    def rounds(self) -> CheckRounds:
        assert self._rounds is not None, "the broker is started first"
        return self._rounds

    @property
    def registration(self) -> Registrar:
        assert self._registration is not None, "the broker is started first"
        return self._registration

    # --- life ------------------------------------------------------------------------------------------------------

    async def start(self, host: str) -> tuple[str, int]:
        """Recovers the store, listens and registers. Returns the address of the main port."""
        stored = read_tables(self._read_file)
        for note in stored.notes:
            log.warning("%s", note)
        store_host = await self._store_host()
        had_a_life = not stored.is_empty or self._disk.exists("commitlog")
        self.recovery = await self.engine.recover(self.now_ms())
        try:
            address, port = await self.engine.listen(host, self._config.listen_port)
        except BaseException:
            await self.engine.stop(self.now_ms())
            raise
        self._config = replace(self._config, listen_port=port)
        self._broker = self._start_broker(stored, self._start_locks(had_a_life), store_host)
        self._registration = Registrar(self._broker, self._signing)
        self._admit(self._broker)
        self._broker.run(HandedOver(self._broker), load_offsets(stored.offsets))
        self._rounds = self._start_rounds(self._broker)
        self.engine.watch(SCHEDULE_TOPIC, self._delayed.set)
        asyncio.ensure_future(self.engine.failure).add_done_callback(self._engine_failed)
        await self._start_vip_port(host, port)
        self._start_timers()
        await self.registration.register_all()
        return address, port

    def _admit(self, broker: Broker) -> None:
        """Installs who may do what, before anybody is served. Without files nobody is, if `aclEnable` is set."""
        if self._accounts is not None and self._config.acl_enable:
            broker.account_files = self._accounts
            broker.install_policy(self._accounts.policy)
            self._accounts.changed = broker.install_policy
            self.spawn(self._accounts.watch(), "access control")

    async def _store_host(self) -> str:
        """The broker's address as records carry it: that of `brokerIP1`, which may be a host name."""
        host = self._config.broker_ip1.strip("[]")
        if is_ip(host):
            return host
        try:
            found = await self._loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            raise RefmqError(f"cannot resolve brokerIP1={host}: {error.strerror or error}") from None
        return str(found[0][4][0])

    def _start_broker(self, stored: StoredTables, locks: QueueLocks, host: str) -> Broker:
        state = start_state(self._config, stored, locks, self.now_ms(), self.engine.store.log_max)
        store_host = host_of(format_address(host, self._config.listen_port))
        return Broker(state, self._store_config, self.engine, self, store_host, stored.delays)

    def _start_locks(self, had_a_life: bool) -> QueueLocks:
        """An earlier broker on this store may have lent queues a moment ago; nothing recorded until when."""
        return restart_broker(self.now_ms() if had_a_life and self._config.lock_grace_after_restart else None)

    async def _start_vip_port(self, host: str, port: int) -> None:
        if port <= VIP_PORT_BELOW:
            return
        try:
            await self.engine.listen_vip(host, port - VIP_PORT_BELOW)
        except RefmqError as error:
            log.warning("no VIP port: %s", error)

    def _read_file(self, name: str) -> tuple[bytes | None, bytes | None]:
        path = f"{CONFIG_DIRECTORY}/{name}"
        return read_text_file(self._disk, path), read_text_file(self._disk, f"{path}.bak")

    async def stop(self, timeout_s: float) -> None:
        """Drains, unregisters, saves everything and stops the store, in about `timeout_s`."""
        await self.engine.close(timeout_s / 2)
        await self.registration.unregister_all(timeout_s / 4)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            await self._save_all()
        finally:
            await self.engine.stop(self.now_ms())

    async def _save_all(self) -> None:
        """Flushes the log, then saves each table, even if saving another one failed."""
        await self.engine.store.flush()
        errors: list[RefmqError] = []
        broker = self.broker
        timed = (self._save_offsets, broker.save_delay_offsets, self._save_filters)
        for save in (*timed, broker.topics_saved, broker.groups_saved):
            try:
                await save()
            except RefmqError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _engine_failed(self, failed: asyncio.Future[BaseException]) -> None:
        if not failed.cancelled() and not self.failure.done():
            self.failure.set_result(failed.result())

    # --- timers ----------------------------------------------------------------------------------------------------

    def _start_timers(self) -> None:
        config = self._config
        self.every(10.0, self._scan_clients)
        self.every(config.flush_consumer_offset_interval / 1000, self._save_offsets, first_s=10.0)
        self.every(10.0, self._save_filters)
        self.every(10.0, self._clean, first_s=60.0)
        self.every(60.0, self._turn_minute)
        for period, (period_ms, _) in SAMPLING.items():
            self.every(period_ms / 1000, partial(self._sample, period))
        self.every(1.0, self._measure)
        self.every(config.flush_delay_offset_interval / 1000, self.broker.save_delay_offsets, first_s=10.0)
        self.spawn(self._deliver_delayed(), "delay")
        self.spawn(self._check_transactions(), "check rounds")
        register_s = min(max(config.register_name_server_period, 10_000), 60_000) / 1000
        self.every(register_s, self.registration.register_again, first_s=10.0)

    def every(self, period_s: float, work: Callable[[], Awaitable[None]], *, first_s: float | None = None) -> None:
        """Runs something periodically. An error is reported and does not stop the next turn."""

        async def turns() -> None:
            await asyncio.sleep(period_s if first_s is None else first_s)
            while True:
                await self._survived(work(), "a timer")
                await asyncio.sleep(period_s)

        self.spawn(turns(), "timer")

    async def _deliver_delayed(self) -> None:
        """Delivers delayed messages when due; sleeps until the next one is due or a new one arrives."""
        while True:
            self._delayed.clear()
            turn = await self._survived(
                self.broker.delay.deliver_due(self.now_ms()), "the delivery of delayed messages"
            )
            wait_s: float | None = DELIVER_AGAIN_S
            if turn is not None:
                wait_s = None if turn.next_due_ms is None else max(0, turn.next_due_ms - self.now_ms()) / 1000
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._delayed.wait()

    async def _check_transactions(self) -> None:
        """Runs a check round every interval while this is a master; an error ends only the current round."""
        while True:
            config = self.broker.config
            await asyncio.sleep(config.transaction_check_interval / 1000)
            await self._survived(self.broker.ensure_topic(TRANS_HALF_TOPIC, 1), "the topic of half messages")
            limits = CheckLimits(config.transaction_check_max, config.transaction_time_out)
            await self._survived(self.rounds.run(limits), "a check round")

    async def _survived(self, work: Awaitable[T], what: str) -> T | None:
        """The result of work of a timer, or None after an error, which is reported.

        A timer looks at what peers have sent. Whatever one of them has found to send, the others' turns come: so no
        error ends the timer, nor the process. What it did before the error stays done, and its next turn begins anew.
        """
        try:
            return await work
        except RefmqError as error:
            log.warning("%s: %s", what, error)
            self._end_if_flush_failed(error)
        except Exception as error:
            if not self._survives_bugs:
                raise
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(where.filename).name}:{where.lineno}"
            log.error("%s hit a bug in refmq, at %s: %s: %s", what, place, type(error).__name__, error)
        return None

    async def _save_offsets(self) -> None:
        """Saves the offsets; those of the check rounds only as far as the log justifies them."""
        progress = self.rounds.persist_progress()
        if progress is not None:
            for topic, offset in zip((TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC), progress, strict=True):
                self.broker.commit_offset(TRANS_GROUP, topic, 0, offset)
        await self.broker.save_offsets()

    def _start_rounds(self, broker: Broker) -> CheckRounds:
        def committed(topic: str) -> QueueOffset:
            return broker.engine.offsets.get(topic, TRANS_GROUP, 0) or QueueOffset(0)

        progress = Progress(committed(TRANS_HALF_TOPIC), committed(TRANS_OP_HALF_TOPIC), PhysicalOffset(0))
        ask = partial(ask_producer, broker)
        return CheckRounds(self.engine, self, broker.transactions, progress, ask, broker.ensure_topic)

    async def _scan_clients(self) -> None:
        self.broker.apply_clients(clients.scan_members(self.broker.state.clients, self.now_ms()))

    async def _save_filters(self) -> None:
        broker = self.broker
        kept = registered_filters.purge(broker.state.filters, self.now_ms(), broker.config.filter_data_clean_time_span)
        broker.state = replace(broker.state, filters=kept)
        if len(kept) or self._disk.exists(f"{CONFIG_DIRECTORY}/{FILTERS_FILE}"):
            await self.save(FILTERS_FILE, lambda: encode_body(registered_filters.to_file(kept), JsonStyle.FASTJSON))

    async def _clean(self) -> None:
        now_ms = self.now_ms()
        await self.engine.store.clean(now_ms, time.localtime(now_ms / 1000).tm_hour)

    async def _measure(self) -> None:
        now_ms, stats = self.now_ms(), self.broker.counted()
        self.broker.meter.sample(now_ms, stats.totals())
        day = time.localtime(now_ms / 1000).tm_yday
        if self._day is not None and day != self._day:
            stats.turn_day()
        self._day = day

    async def _turn_minute(self) -> None:
        self.broker.counted().put_times.turn()

    async def _sample(self, period: Period) -> None:
        self.broker.counted().sample(period, self.now_ms())

    # --- the world of the pure broker --------------------------------------------------------------------------------

    def now_ms(self) -> TimestampMs:
        return wall_ms()

    async def give_way(self) -> None:
        await asyncio.sleep(0)

    def local_time(self, at_ms: TimestampMs) -> str:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1000)) + f",{at_ms % 1000:03d}"

    def random_below(self, bound: int) -> int:
        return self._random.randrange(bound)

    def emit(self, event: Event) -> None:
        self._recorder.record(event)

    async def save(self, file: str, encode: Callable[[], bytes]) -> None:
        """Saves one version of a file at a time; requests that arrive meanwhile share one more write, of the newest."""
        self._to_save[file] = encode
        async with self._saving.setdefault(file, asyncio.Lock()):
            newest = self._to_save.pop(file, None)
            if newest is None:
                return
            try:
                await replace_text_file(self._disk, f"{CONFIG_DIRECTORY}/{file}", newest())
            except DiskError as error:
                self._to_save.setdefault(file, newest)  # the next in line tries again
                self._end_if_flush_failed(error)
                raise

    async def save_settings(self, given: Mapping[str, str]) -> None:
        if self._settings_file is None:
            return
        disk, path = self._settings_file
        async with self._saving.setdefault(path, asyncio.Lock()):
            stored = parse_properties((read_text_file_or_backup(disk, path) or b"").decode("utf-8", "replace"))
            wanted = {**stored, **given}
            text = format_properties(wanted)
            if parse_properties(text) != wanted:
                raise UsageError("the settings would be read back as others; nothing was changed")
            await replace_text_file(disk, path, text.encode())

    def disk_capacity(self) -> tuple[int, int]:
        usage = self._disk.usage("")
        return usage.total_bytes, usage.free_bytes

    async def register(self) -> None:
        await self.registration.register_all()

    def warn(self, sentence: str) -> None:
        log.warning("%s", sentence)

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = self._loop.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or task.exception() is None:
            return
        error = task.exception()
        assert error is not None
        if isinstance(error, RefmqError):
            log.warning("%s: %s", task.get_name(), error)
            self._end_if_flush_failed(error)
        elif not self.failure.done():
            self.failure.set_result(error)

    def _end_if_flush_failed(self, error: RefmqError) -> None:
        """After other errors the next turn may succeed. After a failed flush no table can be saved any more, and a
        broker that carried on would refuse every request that needs one."""
        if isinstance(error, FlushFailed) and not self.failure.done():
            self.failure.set_result(error)

    def connection(self, number: int) -> Peer | None:
        return self.engine.connection(number)
