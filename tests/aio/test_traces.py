"""Message traces of clients."""

from __future__ import annotations

from dataclasses import replace

from refmq.aio.consumer import Consumer
from refmq.aio.producer import Producer
from refmq.model.broker_config import BrokerConfig
from refmq.protocol.record import decode_properties
from tests.aio.harness import run, servers, stored, take


def test_the_trace_of_a_message_is_in_the_trace_topic() -> None:
    async def story() -> None:
        config = replace(BrokerConfig(), trace_topic_enable=True)
        async with servers(config=config) as running:
            async with Producer(running.namesrv, group="g", message_trace=True) as producer:
                result = await producer.send("Orders", b"x", keys=["o-1"], tag="Paid")
            (record,) = await stored(running, "RMQ_SYS_TRACE_TOPIC")
            fields = record.body.decode().removesuffix("\x02").split("\x01")
            assert fields[0] == "Pub"
            assert fields[3:8] == ["g", "Orders", result.msg_id, "Paid", "o-1"]
            assert fields[13] == "true"
            assert decode_properties(record.properties)["KEYS"] == f"{result.msg_id} o-1"

    run(story())


def test_the_trace_of_a_consumption_is_in_the_trace_topic() -> None:
    async def story() -> None:
        config = replace(BrokerConfig(), trace_topic_enable=True)
        async with servers(config=config) as running, Producer(running.namesrv, group="p") as producer:
            sent = await producer.send("Orders", b"x")
            options = {"group": "g", "topics": "Orders", "start": "first", "message_trace": True}
            async with Consumer(running.namesrv, **options) as consumer:  # type: ignore[arg-type]  # a plain dict
                await take(consumer, 1)
            (record,) = await stored(running, "RMQ_SYS_TRACE_TOPIC")
            before, after, _ = record.body.decode().split("\x02")
            assert before.split("\x01")[0] == "SubBefore"
            assert before.split("\x01")[5] == sent.msg_id
            assert after.split("\x01")[0] == "SubAfter"
            assert after.split("\x01")[4] == "true"

    run(story())
