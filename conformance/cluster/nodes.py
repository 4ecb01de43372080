"""How the brokers of a history are set up."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from conformance.cluster import history as h
from conformance.cluster.consuming import DELAYS_S
from refmq.model.broker_config import BrokerConfig
from refmq.net.limits import Limits
from refmq.store.config import FlushMode, StoreConfig

CHECK_INTERVAL_MS: Final = 1_000
CHECK_IMMUNITY_MS: Final = 500
CHECKS_MAX: Final = 5
REGISTER_TIMEOUT_MS: Final = 2_000
"""So long a broker waits for a nameserver that is silent: who changes a topic waits with it, less than a timeout."""
FLUSH_TIMEOUT_MS: Final = 1_000
"""Less than what clients wait for an answer."""
IN_FLIGHT_BYTES: Final = 4_096
"""Less than two requests with the largest bodies of a history."""


def broker_config(history: h.History) -> BrokerConfig:
    """Without transactions brokers look for them less often: that costs time and finds nothing."""
    has_halves = any(isinstance(step, h.SendHalf) for step in history.steps)
    return BrokerConfig(
        force_register=history.setting.force_register,
        transaction_check_interval=CHECK_INTERVAL_MS if has_halves else 60 * CHECK_INTERVAL_MS,
        transaction_time_out=CHECK_IMMUNITY_MS,
        transaction_check_max=CHECKS_MAX,
        enable_property_filter=True,
        sync_flush_timeout=FLUSH_TIMEOUT_MS,
        register_broker_timeout_mills=REGISTER_TIMEOUT_MS,
    )


def limits(setting: h.Setting) -> Limits | None:
    """The bounds of a connection, or None for the usual ones."""
    found = Limits()
    if setting.write_buffer_bytes:
        found = replace(found, write_buffer_high_bytes=setting.write_buffer_bytes)
    if setting.in_flight_max:
        at_once = setting.in_flight_max
        found = replace(found, requests_in_flight_max=at_once, requests_per_turn_max=at_once + 1)
        found = replace(found, request_bytes_in_flight_max=IN_FLIGHT_BYTES)
    return None if found == Limits() else found


def store_config(setting: h.Setting) -> StoreConfig:
    return StoreConfig(
        log_file_bytes=setting.log_file_bytes,
        queue_file_bytes=20 * 64,
        index_slots=16,
        index_entries=64,
        message_bytes_max=16 * 1024,
        delay_levels=" ".join(f"{seconds}s" for seconds in DELAYS_S),
        flush_mode=FlushMode.SYNC if setting.sync_flush else FlushMode.ASYNC,
        maintain_period_ms=setting.maintain_ms,
    )
