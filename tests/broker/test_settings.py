"""broker.conf: upstream's keys mean what they mean there, and what may not be changed is not."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from refmq.broker import settings
from refmq.errors import UsageError
from refmq.model.broker_config import BrokerConfig
from refmq.store.config import FlushMode, StoreConfig


def read(**given: str) -> tuple[BrokerConfig, StoreConfig, tuple[str, ...]]:
    return settings.apply_settings(BrokerConfig(), StoreConfig(), given)


def test_upstreams_keys_reach_broker_and_store() -> None:
    broker, store, complaints = read(
        brokerName="b7", brokerIP1="10.0.0.7", autoCreateTopicEnable="false", flushDiskType="SYNC_FLUSH",
        deleteWhen="03;04", fileReservedTime="48", mappedFileSizeCommitLog="1048576", sendMessageThreadPoolNums="9",
    )  # fmt: skip
    assert (broker.broker_name, broker.broker_ip1, broker.auto_create_topic_enable) == ("b7", "10.0.0.7", False)
    assert store.flush_mode is FlushMode.SYNC
    assert (store.delete_when, store.file_reserved_ms, store.log_file_bytes) == ((3, 4), 48 * 3_600_000, 1 << 20)
    assert complaints == ()


def test_what_does_nothing_is_said_with_its_reason() -> None:
    _, _, complaints = read(brokerNam="x", enableLmq="true", brokerRole="ASYNC_MASTER")
    assert complaints == (
        "unknown key 'brokerNam' (did you mean 'brokerName'?)",
        "enableLmq belongs to light message queues: it has no effect yet",
    )


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("listenPort", "many", "listenPort should be a whole number, not 'many'"),
        ("traceOn", "yes", "traceOn should be true or false"),
        ("flushDiskType", "FAST", "SYNC_FLUSH or ASYNC_FLUSH"),
        ("deleteWhen", "25", "hours of the day"),
        ("regionId", "a\nb", "text without line breaks"),
        ("mappedFileSizeCommitLog", "7", "log_file_bytes"),
    ],
)
def test_a_value_that_cannot_be_right_is_refused(key: str, value: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read(**{key: value})


def test_what_is_shown_can_be_read_again() -> None:
    broker, store, _ = read(brokerName="b7", flushDiskType="SYNC_FLUSH", fileReservedTime="48")
    again = settings.apply_settings(BrokerConfig(), StoreConfig(), settings.shown_settings(broker, store))
    assert again == (broker, store, ())


def test_what_mqadmin_exports_is_shown() -> None:
    wanted = (
        "brokerClusterName brokerId brokerName brokerRole fileReservedTime filterServerNums flushDiskType "
        "maxMessageSize messageDelayLevel msgTraceTopicName slaveReadEnable traceOn traceTopicEnable useTLS "
        "autoCreateTopicEnable autoCreateSubscriptionGroup"
    )
    shown = settings.shown_settings(BrokerConfig(), StoreConfig())
    assert set(wanted.split()) <= set(shown)
    assert (shown["brokerRole"], shown["filterServerNums"], shown["useTLS"]) == ("ASYNC_MASTER", "0", "false")


def test_every_changeable_key_is_one_of_the_broker() -> None:
    assert set(settings.BROKER_KEYS) >= settings.CHANGEABLE


def test_bitmaps_without_the_file_that_holds_them_are_reported() -> None:
    complaint = "enableCalcFilterBitMap has no effect without enableConsumeQueueExt"
    assert read(enableCalcFilterBitMap="true")[2] == (complaint,)
    assert read(enableCalcFilterBitMap="true", enableConsumeQueueExt="true")[2] == ()


def test_every_setting_is_read_somewhere() -> None:
    """A key that is accepted and shown must do something; what does nothing is in `NO_EFFECT`."""
    sources = Path(settings.__file__).parents[1]
    skipped = {Path(settings.__file__)}
    text = "".join(
        path.read_text()
        for part in ("plane", "broker", "net")
        for path in (sources / part).rglob("*.py")
        if path not in skipped
    )
    own = (sources / "model" / "broker_config.py").read_text()
    unread = [f.name for f in fields(BrokerConfig) if f".{f.name}" not in text and f"self.{f.name}" not in own]
    assert unread == []


def test_no_key_has_two_meanings() -> None:
    tables = [set(settings.BROKER_KEYS), set(settings.STORE_KEYS), set(settings.LATER), set(settings.NO_EFFECT)]
    assert sum(map(len, tables)) == len(set().union(*tables))
    assert settings.BOUNDS.keys() <= settings.BROKER_KEYS.keys()
    assert settings.BROKER_KEYS.keys() >= settings.CHANGEABLE
