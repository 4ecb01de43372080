"""The keys of broker.conf: upstream's names for our settings, and which may be changed while the broker runs.

A key belongs to the broker (`BrokerConfig`), to the store (`StoreConfig`), or to a part of upstream that works
differently here (threads, buffers: accepted, no effect) or does not exist yet (reported as such). Unknown keys are
reported with the nearest known one.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Final

from refmq.errors import UsageError
from refmq.model.broker_config import BrokerConfig
from refmq.plane.topic_rules import name_mistake
from refmq.protocol.headers.codec import camel_case
from refmq.store.config import FlushMode, StoreConfig
from refmq.store.delay import DelayLevels

NUMBER_MAX: Final = 2**63 - 1

_SPELLING: Final = {"broker_ip1": "brokerIP1", "use_tls": "useTLS"}
BROKER_KEYS: Final = {_SPELLING.get(f.name, camel_case(f.name)): f.name for f in fields(BrokerConfig)}
"""Upstream's key -> field of `BrokerConfig`."""


@dataclass(frozen=True, slots=True)
class StoreKey:
    """One key of the store: the field, how its text is read and how it is shown."""

    field: str
    read: Callable[[str], Any]
    show: Callable[[Any], str]


def _integer(text: str) -> int:
    number = text.strip()
    digits = number.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19 and int(digits) <= NUMBER_MAX):
        raise ValueError("a whole number")
    return int(number)


def _boolean(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.strip().lower() == "true"


def _flush_mode(text: str) -> FlushMode:
    modes = {"SYNC_FLUSH": FlushMode.SYNC, "ASYNC_FLUSH": FlushMode.ASYNC}
    if text.strip() not in modes:
        raise ValueError("SYNC_FLUSH or ASYNC_FLUSH")
    return modes[text.strip()]


def _hours(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(";") if part.strip()]
    if not parts or not all(part.isdigit() and int(part) < 24 for part in parts):
        raise ValueError("hours of the day (0 to 23), separated by ;")
    return tuple(map(int, parts))


def _delay_levels(text: str) -> str:
    DelayLevels.parse(text)  # its error says what is wrong
    return text.strip()


def _shown(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _number_key(field: str) -> StoreKey:
    return StoreKey(field, _integer, _shown)


def _flag_key(field: str) -> StoreKey:
    return StoreKey(field, _boolean, _shown)


STORE_KEYS: Final = {
    "mappedFileSizeCommitLog": _number_key("log_file_bytes"),
    "mappedFileSizeConsumeQueue": _number_key("queue_file_bytes"),
    "mappedFileSizeConsumeQueueExt": _number_key("ext_file_bytes"),
    "enableConsumeQueueExt": _flag_key("ext_enabled"),
    "messageIndexEnable": _flag_key("index_enabled"),
    "maxHashSlotNum": _number_key("index_slots"),
    "maxIndexNum": _number_key("index_entries"),
    "maxMessageSize": _number_key("message_bytes_max"),
    "maxMsgsNumBatch": _number_key("query_count_max"),
    "maxTransferBytesOnMessageInMemory": _number_key("memory_transfer_bytes_max"),
    "maxTransferCountOnMessageInMemory": _number_key("memory_transfer_count_max"),
    "maxTransferBytesOnMessageInDisk": _number_key("disk_transfer_bytes_max"),
    "maxTransferCountOnMessageInDisk": _number_key("disk_transfer_count_max"),
    "accessMessageInMemoryMaxRatio": _number_key("memory_ratio_percent"),
    "flushDiskType": StoreKey("flush_mode", _flush_mode, lambda mode: f"{mode.name}_FLUSH"),
    "flushIntervalCommitLog": _number_key("log_flush_interval_ms"),
    "flushCommitLogLeastPages": _number_key("log_flush_pages"),
    "flushCommitLogThoroughInterval": _number_key("log_flush_thorough_ms"),
    "flushIntervalConsumeQueue": _number_key("queue_flush_interval_ms"),
    "flushConsumeQueueLeastPages": _number_key("queue_flush_pages"),
    "flushConsumeQueueThoroughInterval": _number_key("queue_flush_thorough_ms"),
    "transientStorePoolEnable": _flag_key("transient_pool"),
    "commitIntervalCommitLog": _number_key("commit_interval_ms"),
    "commitCommitLogLeastPages": _number_key("commit_pages"),
    "commitCommitLogThoroughInterval": _number_key("commit_thorough_ms"),
    "deleteWhen": StoreKey("delete_when", _hours, lambda hours: ";".join(f"{hour:02d}" for hour in hours)),
    "fileReservedTime": StoreKey(
        "file_reserved_ms", lambda text: _integer(text) * 3_600_000, lambda ms: str(ms // 3_600_000)
    ),
    "diskMaxUsedSpaceRatio": _number_key("disk_used_percent_max"),
    "cleanFileForciblyEnable": _flag_key("clean_forcibly"),
    "messageDelayLevel": StoreKey("delay_levels", _delay_levels, str),
    "offsetCheckInSlave": _flag_key("correct_offsets_on_slave"),
    "checkCRCOnRecover": _flag_key("check_crc"),
}

PLACE_KEYS: Final = frozenset(
    {"storePathRootDir", "storePathCommitLog", "rocketmqHome", "brokerConfigPath", "bindAddress"}
)
"""Paths and addresses: read by the process, never changed over the wire."""

TLS_DEFAULTS: Final = {
    "tls.server.mode": "permissive",
    "tls.server.certPath": "",
    "tls.server.keyPath": "",
    "tls.server.keyPassword": "",
    "tls.server.trustCertPath": "",
    "tls.client.trustCertPath": "",
    "tls.client.certPath": "",
    "tls.client.keyPath": "",
    "tls.client.keyPassword": "",
}
"""TLS on the same port, and with `useTLS` towards nameservers (upstream: in tls.properties). Read by the process, never
changed over the wire."""

LATER: Final = {
    "brokerRole": "replication",
    "haListenPort": "replication",
    "haMasterAddress": "replication",
    "haSendHeartbeatInterval": "replication",
    "haHousekeepingInterval": "replication",
    "haTransferBatchSize": "replication",
    "haSlaveFallbehindMax": "replication",
    "slaveTimeout": "replication",
    "enableDLegerCommitLog": "DLedger, which is not planned",
    "dLegerGroup": "DLedger, which is not planned",
    "dLegerPeers": "DLedger, which is not planned",
    "dLegerSelfId": "DLedger, which is not planned",
    "enableLmq": "light message queues",
    "enableMultiDispatch": "light message queues",
    "timerWheelEnable": "timer messages of 5.x",
    "enableControllerMode": "controller mode of 5.x",
    "controllerAddr": "controller mode of 5.x",
}
"""Keys of features that do not exist yet, with the feature."""

NO_EFFECT: Final = frozenset(
    {
        "brokerIP2", "sendMessageThreadPoolNums", "putMessageFutureThreadPoolNums", "pullMessageThreadPoolNums",
        "processReplyMessageThreadPoolNums", "queryMessageThreadPoolNums", "adminBrokerThreadPoolNums",
        "clientManageThreadPoolNums", "consumerManageThreadPoolNums", "heartbeatThreadPoolNums",
        "endTransactionThreadPoolNums", "flushConsumerOffsetHistoryInterval", "fetchNamesrvAddrByAddressServer",
        "putThreadPoolQueueCapacity", "replyThreadPoolQueueCapacity", "queryThreadPoolQueueCapacity",
        "clientManagerThreadPoolQueueCapacity", "consumerManagerThreadPoolQueueCapacity",
        "filterServerNums", "highSpeedMode",
        "transferMsgByHeap", "maxDelayTime", "disableConsumeIfConsumerReadSlowly", "consumerFallbehindThreshold",
        "enableDetailStat", "autoDeleteUnusedStats", "isolateLogEnable", "messageStorePlugIn",
        "serverWorkerThreads", "serverCallbackExecutorThreads", "serverSelectorThreads",
        "serverOnewaySemaphoreValue", "serverAsyncSemaphoreValue", "serverSocketSndBufSize",
        "serverSocketRcvBufSize", "serverPooledByteBufAllocatorEnable", "useEpollNativeSelector",
        "warmMapedFileEnable", "flushLeastPagesWhenWarmMapedFile",
        "useReentrantLockWhenPutMessage", "transientStorePoolSize", "fastFailIfNoBufferInStorePool",
        "osPageCacheBusyTimeOutMills", "cleanResourceInterval",
        "deleteCommitLogFilesInterval", "deleteConsumeQueueFilesInterval", "destroyMapedFileIntervalForcibly",
        "redeleteHangedFileInterval", "duplicationEnable", "messageIndexSafe",
    }
)  # fmt: skip
"""Keys that size Java's threads and buffers, or choose between variants of which there is only one here."""

BOUNDS: Final = {
    "listenPort": (0, 65535),
    "brokerPermission": (0, 7),
    "defaultTopicQueueNums": (0, 65_536),
    "flushConsumerOffsetInterval": (10, NUMBER_MAX),
    "flushDelayOffsetInterval": (10, NUMBER_MAX),
    "serverChannelMaxIdleTimeSeconds": (1, NUMBER_MAX),
    "transactionCheckInterval": (10, NUMBER_MAX),
    "registerBrokerTimeoutMills": (1, NUMBER_MAX),
    "expectConsumerNumUseFilter": (1, 10_000),
    "maxErrorRateOfBloomFilter": (1, 99),
}
"""The range of each number that may not be just 0 or more: a timer of 0 would never rest."""

CHANGEABLE: Final = frozenset(
    {
        "brokerPermission", "autoCreateTopicEnable", "autoCreateSubscriptionGroup", "defaultTopicQueueNums",
        "regionId", "traceOn", "startAcceptSendRequestTimeStamp", "rejectTransactionMessage",
        "storeReplyMessageEnable", "longPollingEnable", "shortPollingTimeMills", "slaveReadEnable",
        "enablePropertyFilter", "filterSupportRetry", "filterDataCleanTimeSpan", "notifyConsumerIdsChangedEnable",
        "transactionTimeOut", "transactionCheckMax", "transactionCheckInterval", "registerBrokerTimeoutMills",
        "compressedRegister", "forceRegister", "defaultQueryMaxNum",
        "brokerFastFailureEnable", "waitTimeMillsInSendQueue",
        "waitTimeMillsInPullQueue", "waitTimeMillsInHeartbeatQueue", "waitTimeMillsInTransactionQueue",
        "sendThreadPoolQueueCapacity", "pullThreadPoolQueueCapacity", "heartbeatThreadPoolQueueCapacity",
        "endTransactionPoolQueueCapacity",
    }
)  # fmt: skip
"""What an administrator may change over the wire: read at each use, and harmless in the wrong hands."""


def known_keys() -> frozenset[str]:
    return (
        frozenset(BROKER_KEYS) | frozenset(STORE_KEYS) | frozenset(LATER) | NO_EFFECT | PLACE_KEYS | set(TLS_DEFAULTS)
    )


def unknown_key(name: str) -> str:
    """The sentence that reports an unknown key."""
    names = {candidate.lower(): candidate for candidate in known_keys()}
    close = difflib.get_close_matches(name.lower(), names, n=1)
    return f"unknown key {name!r}" + (f" (did you mean {names[close[0]]!r}?)" if close else "")


def apply_settings(
    broker: BrokerConfig, store: StoreConfig, given: Mapping[str, str]
) -> tuple[BrokerConfig, StoreConfig, tuple[str, ...]]:
    """The two configurations with the settings of a file applied, and a sentence for each key that has no effect.

    `UsageError` for a value that cannot be right.
    """
    broker_changes: dict[str, Any] = {}
    store_changes: dict[str, Any] = {}
    complaints: list[str] = []
    for name, text in given.items():
        if name in BROKER_KEYS:
            broker_changes[BROKER_KEYS[name]] = _read_broker_value(name, text)
        elif name in STORE_KEYS:
            store_changes[STORE_KEYS[name].field] = _checked(name, text, STORE_KEYS[name].read)
        elif name in LATER:
            if not (name == "brokerRole" and text.strip() == "ASYNC_MASTER"):
                complaints.append(f"{name} belongs to {LATER[name]}: it has no effect yet")
        elif name not in NO_EFFECT and name not in PLACE_KEYS and name not in TLS_DEFAULTS:
            complaints.append(unknown_key(name))
    broker, store = replace(broker, **broker_changes), replace(store, **store_changes)
    if broker.enable_calc_filter_bit_map and not store.ext_enabled:
        complaints.append("enableCalcFilterBitMap has no effect without enableConsumeQueueExt")
    return broker, store, tuple(complaints)


def _read_broker_value(name: str, text: str) -> Any:
    default = getattr(BrokerConfig(), BROKER_KEYS[name])
    read: Callable[[str], Any] = _TEXTS.get(name, _printable)
    if isinstance(default, bool):
        read = _boolean
    elif isinstance(default, int):
        read = partial(_integer_between, *BOUNDS.get(name, (0, NUMBER_MAX)))
    return _checked(name, text, read)


def _integer_between(low: int, high: int, text: str) -> int:
    number = _integer(text)
    if not low <= number <= high:
        raise ValueError(f"at least {low}" if high == NUMBER_MAX else f"a number from {low} to {high}")
    return number


def _topic_name(text: str) -> str:
    if name_mistake(text.strip()) is not None:
        raise ValueError("a name of letters, digits and %|_- (a topic has it as well)")
    return text.strip()


def _addresses(text: str) -> str:
    for address in filter(None, map(str.strip, text.split(";"))):
        host, _, port = address.rpartition(":")
        if not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise ValueError("addresses host:port, separated by ;")
    return text.strip()


def _host(text: str) -> str:
    host = text.strip()
    if not host or any(character.isspace() or character in "/;,@" for character in host):
        raise ValueError("an address or the name of a host")
    return host


_TEXTS: Final[dict[str, Callable[[str], str]]] = {
    "brokerName": _topic_name,
    "brokerClusterName": _topic_name,
    "msgTraceTopicName": _topic_name,
    "namesrvAddr": _addresses,
    "brokerIP1": _host,
}


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("text without line breaks")
    return text.strip()


def _checked(name: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError as error:
        raise UsageError(f"{name} should be {error}, not {text[:80]!r}") from None


SHOWN_AS_THEY_ARE: Final = {"brokerRole": "ASYNC_MASTER", "filterServerNums": "0"}
"""Keys that cannot be set here, with their fixed values: mqadmin's exportConfigs fails without them."""


def shown_settings(broker: BrokerConfig, store: StoreConfig) -> dict[str, str]:
    """Every setting under upstream's name, sorted: the body of 26 GET_BROKER_CONFIG."""
    shown = {**SHOWN_AS_THEY_ARE}
    shown |= {name: _shown(getattr(broker, field)) for name, field in BROKER_KEYS.items()}
    shown |= {name: key.show(getattr(store, key.field)) for name, key in STORE_KEYS.items()}
    return {name: shown[name] for name in sorted(shown)}


def change_over_the_wire(broker: BrokerConfig, given: Mapping[str, str]) -> BrokerConfig:
    """The configuration after a remote change. `UsageError` names the first key that may not be changed this way."""
    for name in given:
        if name not in CHANGEABLE:
            known = name in known_keys()
            reason = "cannot be changed while the broker runs" if known else f"is not known: {unknown_key(name)}"
            raise UsageError(f"{name} {reason}; nothing was changed")
    changes = {BROKER_KEYS[name]: _read_broker_value(name, text) for name, text in given.items()}
    return replace(broker, **changes)
