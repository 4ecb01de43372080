"""A nameserver as a process: its configuration file and folder, TLS, signals, and the line that says it is up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from refmq.errors import MissingTool, UsageError
from refmq.nameserver.settings import DEFAULT_PORT, read_settings
from refmq.net.acl_files import AclFiles
from refmq.net.address import format_address
from refmq.net.files import RealDisk
from refmq.net.limits import Limits, within_descriptors
from refmq.net.nameserver import FileOn, Nameserver, run_nameserver
from refmq.net.process import raise_open_files_limit, stop_on_signals
from refmq.net.reach import open_door
from refmq.net.tls import ClientTls, ServerTls, TlsMode, client_context, self_signed_certificate, server_context
from refmq.protocol.properties import parse_properties
from refmq.trace.writer import recording

KV_FILE: Final = "kvConfig.json"
SETTINGS_FILE: Final = "namesrv.properties"
STOP_TIMEOUT_S: Final = 10.0
CONF_BYTES_MAX: Final = 1 << 20

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class NameserverOptions:
    """Settings from the command line and the environment; None defers to the file, then to the default."""

    conf: Path | None = None
    port: int | None = None
    listen: str | None = None
    folder: Path | None = None
    trace: Path | None = None


@dataclass(frozen=True, slots=True)
class NameserverPlan:
    """Everything decided, nothing started."""

    settings: dict[str, str]
    complaints: tuple[str, ...]
    listen: str
    port: int
    kv_path: Path
    settings_path: Path
    tls_folder: Path
    acl_folder: Path
    """Where `plain_acl.yml` is."""
    trace: Path | None = None

    @property
    def acl_enable(self) -> bool:
        return self.settings["aclEnable"] == "true"


def plan_nameserver(options: NameserverOptions) -> NameserverPlan:
    """Read the configuration and make all decisions. ``UsageError`` for an invalid value."""
    given = read_conf(options.conf) if options.conf is not None else {}
    settings, complaints = read_settings(given)
    folder = options.folder if options.folder is not None else Path.home() / "namesrv"
    kv_path = Path(settings["kvConfigPath"]) if settings["kvConfigPath"] else folder / KV_FILE
    if options.folder is not None:
        kv_path = folder / KV_FILE
    settings_path = options.conf if options.conf is not None else folder / SETTINGS_FILE
    port = options.port if options.port is not None else int(settings["listenPort"])
    if not 0 <= port < 65536:
        raise UsageError(f"listenPort is a number from 0 to 65535, not {port}.")
    listen = options.listen if options.listen is not None else settings["bindAddress"]
    settings |= {
        "kvConfigPath": str(kv_path),
        "configStorePath": str(settings_path),
        "listenPort": str(port),
        "bindAddress": listen,
    }
    tls_folder = folder / "tls"
    home = settings["rocketmqHome"].strip()
    acl_folder = Path(home) / "conf" if home else settings_path.parent
    return NameserverPlan(
        settings, tuple(complaints), listen, port, kv_path, settings_path, tls_folder, acl_folder, options.trace
    )


def read_conf(path: Path) -> dict[str, str]:
    """The keys and values of a properties file."""
    try:
        if path.stat().st_size > CONF_BYTES_MAX:
            raise UsageError(f"{path} is larger than {CONF_BYTES_MAX} bytes, too large for a configuration file.")
        return parse_properties(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None


def plan_tls(settings: Mapping[str, str], folder: Path, warn: Say) -> ServerTls:
    """TLS as configured. The default is permissive; without a certificate one is made in ``folder`` if possible."""
    try:
        mode = TlsMode(settings["tls.server.mode"])
    except ValueError:
        given = settings["tls.server.mode"]
        raise UsageError(f"tls.server.mode is disabled, permissive or enforcing, not {given!r}.") from None
    if mode is TlsMode.DISABLED:
        return ServerTls()
    certificate, key = settings["tls.server.certPath"], settings["tls.server.keyPath"]
    if bool(certificate) != bool(key):
        raise UsageError("tls.server.certPath and tls.server.keyPath must be given together.")
    authority = settings["tls.server.trustCertPath"]
    if certificate:
        pair = Path(certificate), Path(key)
    else:
        try:
            pair = self_signed_certificate(folder)
        except MissingTool as missing:
            if mode is TlsMode.ENFORCING:
                raise
            warn(f"no TLS, plain connections only: {missing}")
            return ServerTls()
    context = server_context(
        *pair,
        key_password=settings["tls.server.keyPassword"] or None,
        client_authority=Path(authority) if authority else None,
    )
    return ServerTls(mode, context)


def plan_client_tls(settings: Mapping[str, str]) -> ClientTls:
    """TLS towards nameservers. Without `tls.client.trustCertPath` any certificate is taken, as upstream does."""
    authority, certificate = settings["tls.client.trustCertPath"], settings["tls.client.certPath"]
    key = settings["tls.client.keyPath"]
    if bool(certificate) != bool(key):
        raise UsageError("tls.client.certPath and tls.client.keyPath must be given together.")
    context = client_context(
        authority=Path(authority) if authority else None,
        certificate=Path(certificate) if certificate else None,
        key=Path(key) if key else None,
        key_password=settings["tls.client.keyPassword"] or None,
    )
    return ClientTls(context)


async def run_nameserver_process(plan: NameserverPlan, say: Say, warn: Say) -> None:
    """Serve until SIGTERM or Ctrl-C, then stop in bounded time."""
    stop = stop_on_signals()
    for complaint in plan.complaints:
        warn(complaint)
    idle_s = int(plan.settings["serverChannelMaxIdleTimeSeconds"])
    if idle_s == 0:
        raise UsageError("serverChannelMaxIdleTimeSeconds must be at least 1.")
    limits = Limits(idle_timeout_s=float(idle_s), frame_timeout_s=float(idle_s))
    limits = within_descriptors(limits, raise_open_files_limit())
    tls = plan_tls(plan.settings, plan.tls_folder, warn)
    for path in (plan.kv_path, plan.settings_path):
        path.parent.mkdir(parents=True, exist_ok=True)
    accounts = AclFiles(plan.acl_folder) if plan.acl_enable else None
    if accounts is not None:
        accounts.load()
    kv_disk, settings_disk = RealDisk(plan.kv_path.parent), RealDisk(plan.settings_path.parent)
    try:
        with recording(plan.trace, nameserver_label(plan.port)) as trace:
            nameserver = Nameserver(
                kv_file=FileOn(kv_disk, plan.kv_path.name),
                settings_file=FileOn(settings_disk, plan.settings_path.name),
                settings=plan.settings,
                limits=limits,
                tls=tls,
                accounts=accounts,
                record=None if trace is None else trace.record,
            )
            host, port = await nameserver.start(plan.listen, plan.port)
            demands = "an account" if plan.acl_enable else "a certificate" if tls.demands_certificate else None
            line = open_door("nameserver", plan.listen, port, demands=demands)
            if line is not None:
                warn(line)
            say(f"The Name Server boot success. serializeType=JSON, address {format_address(host, port)}")
            await run_nameserver(nameserver, stop, STOP_TIMEOUT_S)
    finally:
        kv_disk.close()
        settings_disk.close()


def nameserver_label(port: int) -> str:
    """The name of a nameserver in traces, as it has none of its own."""
    return f"namesrv-{port}"


__all__ = ["DEFAULT_PORT", "NameserverOptions", "NameserverPlan", "plan_nameserver", "run_nameserver_process"]
