"""A broker as a process, alone or with a nameserver beside it: configuration, folders, signals, and the line that says
that it is up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from refmq.broker.settings import TLS_DEFAULTS, apply_settings
from refmq.errors import RefmqError, UsageError
from refmq.model.broker_config import BrokerConfig
from refmq.model.disk import Disk
from refmq.net.acl_files import AclFiles
from refmq.net.address import format_address
from refmq.net.broker_node import BrokerNode
from refmq.net.broker_registration import UNSIGNED, Signing
from refmq.net.credentials import credentials_of_server
from refmq.net.engines import EngineChoice, EngineSurroundings, open_engine
from refmq.net.files import RealDisk
from refmq.net.limits import Limits, within_descriptors
from refmq.net.nameserver import FileOn, Nameserver
from refmq.net.nameserver_process import KV_FILE, nameserver_label, plan_client_tls, plan_tls, read_conf
from refmq.net.process import raise_open_files_limit, stop_on_signals
from refmq.net.reach import LOOPBACK, advertised_host, open_door, unreachable
from refmq.net.tls import ServerTls
from refmq.store import StoreConfig
from refmq.trace.writer import recording

STOP_TIMEOUT_S: Final = 10.0
REQUESTS_PER_TURN_MAX: Final = 16
"""Of one peer: a pull may take a tenth of a millisecond, and several peers may have a burst of them."""

SETTINGS_FILE: Final = "broker.properties"
STORE_FOLDER: Final = "store"

LAPTOP_STORE: Final = StoreConfig(
    log_file_bytes=64 << 20, queue_file_bytes=20 * 15_000, index_slots=50_000, index_entries=200_000
)
"""The store of `refmq serve`: upstream's file sizes (a GiB of log, 400 MB of index) are for servers."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    """Settings from the command line and the environment; None defers to the file, then to the default."""

    conf: Path | None = None
    namesrv: str | None = None
    port: int | None = None
    listen: str | None = None
    folder: Path | None = None
    trace: Path | None = None
    engine: EngineChoice = EngineChoice.AUTO


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """Everything decided, nothing started."""

    config: BrokerConfig
    store: StoreConfig
    complaints: tuple[str, ...]
    listen: str
    folder: Path
    settings_path: Path
    acl_folder: Path = Path()
    """Where `plain_acl.yml` and `tools.yml` are."""
    trace: Path | None = None
    tls: Mapping[str, str] = field(default_factory=lambda: dict(TLS_DEFAULTS))
    engine: EngineChoice = EngineChoice.AUTO


def plan_broker(options: BrokerOptions) -> BrokerPlan:
    """Reads the configuration and makes all decisions. `UsageError` for an invalid value."""
    given = read_conf(options.conf) if options.conf is not None else {}
    config, store, complaints = apply_settings(BrokerConfig(), StoreConfig(), given)
    if config.broker_id != 0:
        raise UsageError("brokerId must be 0: slaves need replication, which is not supported yet")
    root = options.folder or Path(given.get("storePathRootDir") or Path.home() / STORE_FOLDER)
    if "storePathCommitLog" in given and Path(given["storePathCommitLog"]) != root / "commitlog":
        complaints = (*complaints, "storePathCommitLog has no effect: the log is in commitlog under storePathRootDir")
    if options.namesrv is not None:
        config = replace(config, namesrv_addr=options.namesrv)
    if options.port is not None:
        config = replace(config, listen_port=options.port)
    settings_path = options.conf if options.conf is not None else root / "config" / SETTINGS_FILE
    tls = {name: given.get(name, default).strip() for name, default in TLS_DEFAULTS.items()}
    listen = options.listen or given.get("bindAddress", "").strip() or LOOPBACK
    if "brokerIP1" not in given:
        config = replace(config, broker_ip1=advertised_host(listen, config.namesrv_addr))
    home = given.get("rocketmqHome", "").strip()
    acl_folder = Path(home) / "conf" if home else settings_path.parent
    return BrokerPlan(
        config, store, complaints, listen, root, settings_path, acl_folder, options.trace, tls, options.engine
    )


def plan_signing(plan: BrokerPlan) -> Signing:
    """How the broker shows nameservers who it is: with its account, and with `useTLS` over TLS."""
    credentials = credentials_of_server(plan.acl_folder)
    return Signing(credentials, plan_client_tls(plan.tls) if plan.config.use_tls else None)


def warnings_of_reach(plan: BrokerPlan, tls: ServerTls, port: int) -> list[str]:
    """What an operator should know about who reaches this broker."""
    demands = "an account" if plan.config.acl_enable else "a certificate" if tls.demands_certificate else None
    lines = (
        open_door("broker", plan.listen, port, demands=demands),
        unreachable(plan.listen, plan.config.broker_ip1),
    )
    return [line for line in lines if line is not None]


@contextlib.asynccontextmanager
async def running_broker(
    plan: BrokerPlan,
    disk: Disk,
    settings_file: tuple[Disk, str] | None,
    tls: ServerTls,
    descriptors: int,
    accounts: AclFiles | None = None,
    signing: Signing = UNSIGNED,
) -> AsyncIterator[tuple[BrokerNode, str]]:
    """A listening broker with so many descriptors for its connections, and its address; stopped in bounded time on
    exit."""
    idle_s = float(plan.config.server_channel_max_idle_time_seconds)
    limits = Limits(idle_timeout_s=idle_s, frame_timeout_s=idle_s, requests_per_turn_max=REQUESTS_PER_TURN_MAX)
    limits = within_descriptors(limits, descriptors)
    with recording(plan.trace, plan.config.broker_name) as recorder:
        surroundings = EngineSurroundings(limits=limits, tls=tls, recorder=recorder)
        engine = open_engine(plan.engine, disk, plan.store, surroundings)
        node = BrokerNode(
            plan.config,
            plan.store,
            disk,
            engine,
            recorder=engine.recorder,
            settings_file=settings_file,
            accounts=accounts,
            signing=signing,
        )
        host, port = await node.start(plan.listen)
        try:
            yield node, format_address(host, port)
        finally:
            await node.stop(STOP_TIMEOUT_S)


async def run_broker_process(plan: BrokerPlan, say: Say, warn: Say) -> None:
    """Serves until SIGTERM or Ctrl-C, then stops in bounded time."""
    stop = stop_on_signals()
    for complaint in plan.complaints:
        warn(complaint)
    plan.folder.mkdir(parents=True, exist_ok=True)
    plan.settings_path.parent.mkdir(parents=True, exist_ok=True)
    tls = plan_tls(plan.tls, plan.folder / "tls", warn)
    accounts = AclFiles(plan.acl_folder) if plan.config.acl_enable else None
    if accounts is not None:
        accounts.load()
    signing = plan_signing(plan)
    disk, settings_disk = RealDisk(plan.folder), RealDisk(plan.settings_path.parent)
    try:
        settings_file = (settings_disk, plan.settings_path.name)
        descriptors = raise_open_files_limit()
        given = (plan, disk, settings_file, tls, descriptors, accounts, signing)
        async with running_broker(*given) as (node, _):
            config = node.broker.config
            for line in warnings_of_reach(plan, tls, config.listen_port):
                warn(line)
            at = f" and name server is {config.namesrv_addr}" if config.namesrv_addr else ""
            for note in node.recovery.notes if node.recovery is not None else ():
                warn(note)
            say(f"The broker[{config.broker_name}, {config.address}] boot success. serializeType=JSON{at}")
            say(f"engine: {node.engine.name}")
            await wait_for_end(stop, node)
    finally:
        disk.close()
        settings_disk.close()


async def run_serve_process(
    plan: BrokerPlan,
    namesrv_port: int,
    disk: Disk,
    kv_disk: Disk | None,
    tls: ServerTls,
    say: Callable[[str, BrokerNode], None],
) -> None:
    """A nameserver and a broker that knows it, in one process, until SIGTERM or Ctrl-C."""
    stop = stop_on_signals()
    descriptors = raise_open_files_limit()
    with recording(plan.trace, nameserver_label(namesrv_port)) as trace:
        nameserver = Nameserver(
            kv_file=FileOn(kv_disk, KV_FILE) if kv_disk is not None else None,
            limits=within_descriptors(Limits(), descriptors // 4),
            tls=tls,
            record=None if trace is None else trace.record,
        )
        host, port = await nameserver.start(plan.listen, namesrv_port)
        address = format_address(host, port)
        try:
            known = replace(plan, config=replace(plan.config, namesrv_addr=address))
            async with running_broker(known, disk, None, tls, descriptors - descriptors // 4) as (node, _):
                say(address, node)
                nameserver.failure.add_done_callback(lambda _: stop.set())
                await wait_for_end(stop, node)
        finally:
            await nameserver.close(STOP_TIMEOUT_S / 4)


async def wait_for_end(stop: asyncio.Event, node: BrokerNode) -> None:
    """Waits until asked to stop, or until the broker cannot continue; then raises the reason."""
    node.failure.add_done_callback(lambda _: stop.set())
    await stop.wait()
    if node.failure.done():
        error = node.failure.result()
        raise error if isinstance(error, (RefmqError, AssertionError)) else AssertionError(repr(error)) from error
