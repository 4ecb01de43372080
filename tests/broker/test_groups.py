"""Groups: when first use creates one."""

from __future__ import annotations

from dataclasses import replace

from refmq.broker import groups
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import TimestampMs

CONFIG = BrokerConfig()


NOW = TimestampMs(1_000)


def test_groups_come_to_be_when_used_if_that_is_allowed() -> None:
    start = groups.start_groups(None, NOW)
    made = groups.ensure_group(start, CONFIG, "g", NOW)
    assert made is not None
    assert made.groups["g"].retry_max_times == 16
    strict = replace(CONFIG, auto_create_subscription_group=False)
    assert groups.ensure_group(start, strict, "g", NOW) is None
    assert groups.ensure_group(start, strict, groups.TRANSACTION_GROUP, NOW) is not None
    assert groups.ensure_group(start, strict, "TOOLS_CONSUMER", NOW) is start
