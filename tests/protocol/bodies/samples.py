"""Values of Java's classes, and the two ways to read a body, for the tests of this folder."""

from __future__ import annotations

from typing import Any

from refmq.errors import WireError
from refmq.model.ids import MessageQueue
from refmq.protocol.bodies import (
    BrokerData,
    DataVersion,
    JsonStyle,
    QueueData,
    TopicConfig,
    TopicConfigSerializeWrapper,
    TopicRouteData,
    codec,
    decode_body,
    encode_body,
)
from refmq.protocol.bodies.shapes import bean_shape

T1_A2 = MessageQueue("T1", "broker-a", 2)


BROKER = BrokerData(
    cluster="DefaultCluster", broker_name="broker-a", broker_addrs={0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}
)


ROUTE = TopicRouteData(
    broker_datas=(BROKER,),
    queue_datas=(QueueData(broker_name="broker-a", read_queue_nums=4, write_queue_nums=4, perm=6),),
)


VERSION = DataVersion(timestamp=1700000000000, counter=7)


T1 = TopicConfig(topic_name="T1", read_queue_nums=4, write_queue_nums=4)


TOPICS = TopicConfigSerializeWrapper(data_version=VERSION, topic_config_table={"T1": T1})


def carefully(body_type: Any, data: bytes) -> Any:
    return codec.read_carefully(bean_shape(body_type), data)


def round_trips(body: Any, style: JsonStyle) -> None:
    """Through the reader that is used, and through the careful one alone."""
    data = encode_body(body, style)
    assert decode_body(type(body), data) == body
    assert carefully(type(body), data) == body


def both_readers_agree(body_type: Any, data: bytes) -> None:
    """The quick reader gives the careful one's values and never an error of its own."""
    outcomes: list[Any] = []
    for reader in (decode_body, carefully):
        try:
            outcomes.append(reader(body_type, data))
        except WireError as error:
            outcomes.append(error.args)
    assert outcomes[0] == outcomes[1]
    if not isinstance(outcomes[0], tuple):
        encode_body(outcomes[0])  # whatever was accepted can be written again
