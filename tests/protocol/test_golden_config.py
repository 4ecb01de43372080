"""The configuration files of real 4.9.7 brokers are bodies, printed over many lines and in fastjson's dialect."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from refmq.protocol.bodies import (
    ConsumerOffsets,
    DelayOffsets,
    JsonStyle,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicConfigSerializeWrapper,
    codec,
    decode_body,
    encode_body,
)
from refmq.protocol.bodies.shapes import bean_shape

STORES = Path(__file__).parent.parent / "golden" / "store"
FILES = {
    "topics.json": TopicConfigSerializeWrapper,
    "subscriptionGroup.json": SubscriptionGroupWrapper,
    "consumerOffset.json": ConsumerOffsets,
    "delayOffset.json": DelayOffsets,
}


def content(archive: str, name: str) -> bytes:
    with zipfile.ZipFile(STORES / f"{archive}-4.9.7.zip") as opened:
        return opened.read(f"store/config/{name}")


@pytest.mark.parametrize("archive", ["clean", "killed"])
@pytest.mark.parametrize(("name", "body_type"), FILES.items(), ids=list(FILES))
def test_files_of_a_real_broker_are_read_and_written_again(archive: str, name: str, body_type: Any) -> None:
    data = content(archive, name)
    body = decode_body(body_type, data)
    assert codec.read_carefully(bean_shape(body_type), data) == body
    # The same but for the white space, which Java puts in for people. There is none inside the names.
    assert encode_body(body, JsonStyle.FASTJSON) == b"".join(data.split())


def test_the_values_are_those_that_the_clients_left() -> None:
    offsets = decode_body(ConsumerOffsets, content("clean", "consumerOffset.json")).offset_table
    assert offsets["OtherTopic@RetryGroup"] == {0: 3, 1: 3, 2: 3, 3: 3}
    assert sum(offsets["GoldenTopic@GoldenGroup"].values()) == 235
    groups = decode_body(SubscriptionGroupWrapper, content("clean", "subscriptionGroup.json"))
    assert groups.subscription_group_table["GoldenGroup"] == SubscriptionGroupConfig(group_name="GoldenGroup")
    topics = decode_body(TopicConfigSerializeWrapper, content("clean", "topics.json")).topic_config_table
    assert topics["SCHEDULE_TOPIC_XXXX"].write_queue_nums == 18
