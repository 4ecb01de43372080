"""The keys of namesrv.conf: their kinds, defaults and meaning, and which of them may be changed over the wire.

The keys are those of NamesrvConfig and NettyServerConfig of 4.9.8. Those that size Java's threads and buffers are
accepted, kept and shown, and have no effect here; the table says which. Changes over the wire are checked against the
kind of the key, unknown keys are refused (upstream ignores them), and the black list is upstream's: anyone reaching
the port must not be able to name files, nor to smuggle a second line into the file that the settings are written to.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from refmq.errors import UsageError

DEFAULT_PORT: Final = 9876

SETTINGS_BYTES_MAX: Final = 64 << 10
"""Of a request that changes settings."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of namesrv.conf."""

    name: str
    kind: type[bool] | type[int] | type[str]
    default: str
    meaning: str
    has_effect: bool = True
    is_fixed: bool = False
    """Names a file, guards those that do, or says who can reach the nameserver and how: never changed over the wire."""


KEYS: Final = (
    Key("listenPort", int, str(DEFAULT_PORT), "The port to listen on.", is_fixed=True),
    Key("bindAddress", str, "127.0.0.1", "The address to listen on (upstream: 0.0.0.0, all of them).", is_fixed=True),
    Key("rocketmqHome", str, "", "Upstream's installation folder.", has_effect=False, is_fixed=True),
    Key("kvConfigPath", str, "", "The file of the key-value configuration.", is_fixed=True),
    Key("configStorePath", str, "", "The file that changed settings are written to.", is_fixed=True),
    Key(
        "configBlackList",
        str,
        "configBlackList;configStorePath;kvConfigPath",
        "More keys, separated by `;`, that cannot be changed over the wire.",
        is_fixed=True,
    ),
    Key("aclEnable", bool, "false", "Whether what changes something needs the signature of an admin.", is_fixed=True),
    Key("orderMessageEnable", bool, "false", "Whether routes carry the order configuration of their topic."),
    Key("serverChannelMaxIdleTimeSeconds", int, "120", "A connection silent for this long is closed."),
    Key("serverSocketBacklog", int, "1024", "Connections that wait to be accepted.", has_effect=False),
    Key("clusterTest", bool, "false", "Ask a product environment for unknown topics.", has_effect=False),
    Key("productEnvName", str, "center", "The name of that environment.", has_effect=False),
    Key("serverWorkerThreads", int, "8", "Threads of upstream's server.", has_effect=False),
    Key("serverCallbackExecutorThreads", int, "0", "Threads of upstream's server.", has_effect=False),
    Key("serverSelectorThreads", int, "3", "Threads of upstream's server.", has_effect=False),
    Key("serverOnewaySemaphoreValue", int, "256", "One-way requests in flight upstream.", has_effect=False),
    Key("serverAsyncSemaphoreValue", int, "64", "Asynchronous requests in flight upstream.", has_effect=False),
    Key("serverSocketSndBufSize", int, "0", "Socket buffer; 0 leaves it to the system.", has_effect=False),
    Key("serverSocketRcvBufSize", int, "0", "Socket buffer; 0 leaves it to the system.", has_effect=False),
    Key("writeBufferHighWaterMark", int, "0", "Netty's write buffer.", has_effect=False),
    Key("writeBufferLowWaterMark", int, "0", "Netty's write buffer.", has_effect=False),
    Key("serverPooledByteBufAllocatorEnable", bool, "true", "Netty's allocator.", has_effect=False),
    Key("useEpollNativeSelector", bool, "false", "Netty's selector.", has_effect=False),
    Key(
        "tls.server.mode",
        str,
        "permissive",
        "disabled, permissive or enforcing.",
        is_fixed=True,
    ),
    Key("tls.server.certPath", str, "", "The certificate; without one a self-signed one is made.", is_fixed=True),
    Key("tls.server.keyPath", str, "", "The key of the certificate.", is_fixed=True),
    Key("tls.server.keyPassword", str, "", "The password of the key.", is_fixed=True),
    Key("tls.server.trustCertPath", str, "", "Clients must show a certificate of this authority.", is_fixed=True),
)
KEY_BY_NAME: Final = {key.name: key for key in KEYS}
assert len(KEY_BY_NAME) == len(KEYS), "no key is there twice"

HIDDEN: Final = frozenset({"tls.server.keyPassword"})
"""Never sent to a peer."""


def default_settings() -> dict[str, str]:
    return {key.name: key.default for key in KEYS}


def nearest_key(name: str, known: Iterable[str] = KEY_BY_NAME) -> str | None:
    """The known key that looks most like ``name``, if any does."""
    names = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), names, n=1)
    return names[close[0]] if close else None


def unknown_key(name: str) -> str:
    """The sentence that reports an unknown key."""
    nearest = nearest_key(name)
    return f"unknown key {name!r}" + (f" (did you mean {nearest!r}?)" if nearest is not None else "")


def checked_value(key: Key, value: str) -> str:
    """The value in its normal form. ``UsageError`` when it does not fit the kind of its key."""
    text = value.strip()
    if key.kind is bool:
        if text.lower() not in ("true", "false"):
            raise UsageError(f"{key.name} is true or false, not {value!r}.")
        return text.lower()
    if key.kind is int:
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            raise UsageError(f"{key.name} is a number from 0 to 999999999, not {value!r}.")
        return str(int(text))
    if not value.isprintable():
        raise UsageError(f"{key.name} must not have control characters or line breaks.")
    return value


def read_settings(given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """All settings after a file was read, and a sentence for each key of it that is not known."""
    settings, complaints = default_settings(), []
    for name, value in given.items():
        key = KEY_BY_NAME.get(name)
        if key is None:
            complaints.append(unknown_key(name))
        else:
            settings[name] = checked_value(key, value)
    assert settings.keys() == KEY_BY_NAME.keys()
    return settings, complaints


def black_list(settings: Mapping[str, str]) -> frozenset[str]:
    """The keys that cannot be changed over the wire."""
    own = {key.name for key in KEYS if key.is_fixed}
    named = {name.strip() for name in settings.get("configBlackList", "").split(";")}
    return frozenset(own | named - {""})
