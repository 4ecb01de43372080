"""The defaults that clients, files and neighbours notice are upstream's; the others say that they are ours."""

from __future__ import annotations

from dataclasses import fields

import pytest

from refmq.model.broker_config import BrokerConfig, perm_text

# The defaults of `BrokerConfig` and its kin in 4.9.8.
UPSTREAM = {
    "broker_cluster_name": "DefaultCluster",
    "broker_id": 0,
    "listen_port": 10911,
    "broker_permission": 6,
    "default_topic_queue_nums": 8,
    "auto_create_topic_enable": True,
    "auto_create_subscription_group": True,
    "cluster_topic_enable": True,
    "broker_topic_enable": True,
    "msg_trace_topic_name": "RMQ_SYS_TRACE_TOPIC",
    "trace_topic_enable": False,
    "region_id": "DefaultRegion",
    "trace_on": True,
    "start_accept_send_request_time_stamp": 0,
    "reject_transaction_message": False,
    "store_reply_message_enable": True,
    "sync_flush_timeout": 5000,
    "broker_fast_failure_enable": True,
    "wait_time_mills_in_send_queue": 200,
    "wait_time_mills_in_pull_queue": 5000,
    "wait_time_mills_in_heartbeat_queue": 31000,
    "wait_time_mills_in_transaction_queue": 3000,
    "send_thread_pool_queue_capacity": 10000,
    "pull_thread_pool_queue_capacity": 100000,
    "heartbeat_thread_pool_queue_capacity": 50000,
    "end_transaction_pool_queue_capacity": 100000,
    "long_polling_enable": True,
    "short_polling_time_mills": 1000,
    "slave_read_enable": False,
    "enable_property_filter": False,
    "enable_calc_filter_bit_map": False,
    "filter_support_retry": False,
    "expect_consumer_num_use_filter": 32,
    "max_error_rate_of_bloom_filter": 20,
    "filter_data_clean_time_span": 86400000,
    "default_query_max_num": 32,
    "server_channel_max_idle_time_seconds": 120,
    "notify_consumer_ids_changed_enable": True,
    "flush_consumer_offset_interval": 5000,
    "flush_delay_offset_interval": 10000,
    "transaction_time_out": 6000,
    "transaction_check_max": 15,
    "transaction_check_interval": 60000,
    "register_broker_timeout_mills": 6000,
    "register_name_server_period": 30000,
    "force_register": True,
    "compressed_register": False,
    "acl_enable": False,
    "use_tls": False,
    "config_black_list": "configBlackList;brokerConfigPath",
}
OURS = {"broker_name", "broker_ip1", "namesrv_addr", "lock_grace_after_restart"}


def test_every_default_is_upstreams_or_said_to_be_ours() -> None:
    defaults = {field.name: field.default for field in fields(BrokerConfig)}
    assert {name: default for name, default in defaults.items() if name not in OURS} == UPSTREAM
    assert set(defaults) >= OURS


@pytest.mark.parametrize(
    ("perm", "text"), [(0, "---"), (1, "--X"), (2, "-W-"), (4, "R--"), (6, "RW-"), (7, "RWX"), (8, "---")]
)
def test_a_permission_reads_as_upstream_writes_it(perm: int, text: str) -> None:
    assert perm_text(perm) == text


def test_names_that_are_derived_follow_what_they_are_derived_from() -> None:
    config = BrokerConfig(broker_cluster_name="c", broker_ip1="10.0.0.1", listen_port=7)
    assert (config.reply_topic, config.address) == ("c_REPLY_TOPIC", "10.0.0.1:7")


def test_an_address_of_16_bytes_stands_in_brackets_before_its_port() -> None:
    for host in ("fd00::4", "[fd00::4]"):
        assert BrokerConfig(broker_ip1=host, listen_port=7).address == "[fd00::4]:7"
    assert BrokerConfig(broker_ip1="10.0.0.4", listen_port=7).address == "10.0.0.4:7"
