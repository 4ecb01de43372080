"""The settings of a broker. Java's name of each (`BrokerConfig`, 4.9.8) is the field's name in camel case.

Where only a laptop can notice, the default is ours and the comment says so; everything that a client, a file or a
neighbour in the cluster can notice has upstream's default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PERM_INHERIT: Final = 1
PERM_WRITE: Final = 2
PERM_READ: Final = 4
PERM_READ_WRITE: Final = PERM_READ | PERM_WRITE

MASTER_ID: Final = 0


def perm_text(perm: int) -> str:
    """How a permission reads in remarks: `RWX`, with `-` for what is missing."""
    return "".join(
        letter if perm & bit else "-" for bit, letter in ((PERM_READ, "R"), (PERM_WRITE, "W"), (PERM_INHERIT, "X"))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """What a broker is and how it behaves. Times are milliseconds unless the name says otherwise."""

    # --- who it is -----------------------------------------------------------------------------------------------
    broker_name: str = "broker-a"  # upstream: the host's name
    broker_cluster_name: str = "DefaultCluster"
    broker_id: int = MASTER_ID
    broker_ip1: str = "127.0.0.1"  # upstream: the first address that is not loopback
    listen_port: int = 10911
    namesrv_addr: str = ""

    # --- topics and groups ---------------------------------------------------------------------------------------
    broker_permission: int = PERM_READ_WRITE
    default_topic_queue_nums: int = 8
    auto_create_topic_enable: bool = True
    auto_create_subscription_group: bool = True
    cluster_topic_enable: bool = True
    broker_topic_enable: bool = True
    msg_trace_topic_name: str = "RMQ_SYS_TRACE_TOPIC"
    trace_topic_enable: bool = False

    # --- sending -------------------------------------------------------------------------------------------------
    region_id: str = "DefaultRegion"
    trace_on: bool = True
    start_accept_send_request_time_stamp: int = 0
    reject_transaction_message: bool = False
    store_reply_message_enable: bool = True
    sync_flush_timeout: int = 5_000

    # --- flow control, see `refmq.plane.flow` ----------------------------------------------------------------------
    broker_fast_failure_enable: bool = True
    wait_time_mills_in_send_queue: int = 200
    wait_time_mills_in_pull_queue: int = 5_000
    wait_time_mills_in_heartbeat_queue: int = 31_000
    wait_time_mills_in_transaction_queue: int = 3_000
    send_thread_pool_queue_capacity: int = 10_000
    pull_thread_pool_queue_capacity: int = 100_000
    heartbeat_thread_pool_queue_capacity: int = 50_000
    end_transaction_pool_queue_capacity: int = 100_000

    # --- pulling -------------------------------------------------------------------------------------------------
    long_polling_enable: bool = True
    short_polling_time_mills: int = 1_000
    slave_read_enable: bool = False
    enable_property_filter: bool = False
    enable_calc_filter_bit_map: bool = False
    filter_support_retry: bool = False
    expect_consumer_num_use_filter: int = 32
    max_error_rate_of_bloom_filter: int = 20
    filter_data_clean_time_span: int = 24 * 3600 * 1000

    # --- looking at messages ---------------------------------------------------------------------------------------
    default_query_max_num: int = 32

    # --- clients, offsets, locks -----------------------------------------------------------------------------------
    server_channel_max_idle_time_seconds: int = 120
    notify_consumer_ids_changed_enable: bool = True
    flush_consumer_offset_interval: int = 5_000
    flush_delay_offset_interval: int = 10_000
    lock_grace_after_restart: bool = True  # ours: upstream lends queues again at once, to a second client as well

    # --- transactions ----------------------------------------------------------------------------------------------
    transaction_time_out: int = 6_000
    transaction_check_max: int = 15
    transaction_check_interval: int = 60_000

    # --- registration ----------------------------------------------------------------------------------------------
    register_broker_timeout_mills: int = 6_000
    register_name_server_period: int = 30_000
    force_register: bool = True
    compressed_register: bool = False
    use_tls: bool = False

    # --- administration --------------------------------------------------------------------------------------------
    config_black_list: str = "configBlackList;brokerConfigPath"
    acl_enable: bool = False

    @property
    def reply_topic(self) -> str:
        return f"{self.broker_cluster_name}_REPLY_TOPIC"

    @property
    def address(self) -> str:
        """Where clients reach it; also the store host inside message ids."""
        return f"{self.advertised_host}:{self.listen_port}"

    @property
    def advertised_host(self) -> str:
        """An IPv6 address stands in brackets before a port, as upstream writes it."""
        is_bare = ":" in self.broker_ip1 and not self.broker_ip1.startswith("[")
        return f"[{self.broker_ip1}]" if is_bare else self.broker_ip1
