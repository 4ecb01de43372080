"""One contestant of `bench.client`: sends and consumes with one client library, and prints what it measured.

    python client_worker.py refmq|wheel|nats ADDRESS TOPIC MESSAGES

It runs in an environment of its own, which has that library and perhaps nothing else, so it imports nothing at the top.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

BODY = b"x" * 1024
WINDOW = 64
SEQUENTIAL_SHARE = 8
"""One message in so many is sent sequentially: that takes longer."""


def measured(count: int, began: tuple[float, float]) -> dict[str, float]:
    wall_s, cpu_s = time.perf_counter() - began[0], time.process_time() - began[1]
    return {"per_s": count / wall_s, "cpu_us": cpu_s / count * 1e6}


def now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


async def windowed(send: Callable[[], Awaitable[object]], count: int) -> None:
    """Sends with so many under way all the time."""
    left = count

    async def one_after_the_other() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await send()

    await asyncio.gather(*(one_after_the_other() for _ in range(WINDOW)))


async def with_refmq(address: str, topic: str, count: int) -> dict[str, dict[str, float]]:
    import refmq

    found = {}
    async with refmq.Producer(address, group=f"p-{topic}", timeout=10) as producer:
        for _ in range(200):
            await producer.send(topic, BODY)
        began, few = now(), count // SEQUENTIAL_SHARE
        for _ in range(few):
            await producer.send(topic, BODY)
        found["sequential"] = measured(few, began)
        began = now()
        await windowed(lambda: producer.send(topic, BODY), count)
        found["in flight"] = measured(count, began)
    async with refmq.Consumer(address, group=f"c-{topic}", topics=topic, start="first") as consumer:
        seen = 0
        began = now()
        async for message in consumer:
            async with message.processing():
                seen += 1
            if seen == 1:
                began = now()
            if seen == count:
                break
        found["consume"] = measured(count - 1, began)
    return found


def with_wheel(address: str, topic: str, count: int) -> dict[str, dict[str, float]]:
    import threading
    from concurrent.futures import ThreadPoolExecutor

    from rocketmq.client import Message, Producer, PushConsumer
    from rocketmq.exceptions import RocketMQException

    def message() -> object:
        made = Message(topic)
        made.set_body(BODY)
        return made

    def send() -> None:
        """It forgets its route now and then, and finds it again."""
        for _ in range(50):
            try:
                producer.send_sync(message())
            except RocketMQException:
                time.sleep(0.02)
            else:
                return
        raise SystemExit("the wheel finds no route")

    found = {}
    producer = Producer(f"p-{topic}")
    producer.set_namesrv_addr(address)
    producer.start()
    for _ in range(200):
        send()
    began, few = now(), count // SEQUENTIAL_SHARE
    for _ in range(few):
        send()
    found["sequential"] = measured(few, began)
    with ThreadPoolExecutor(WINDOW) as threads:
        began = now()
        list(threads.map(lambda _: send(), range(count)))
        found["in flight"] = measured(count, began)
    producer.shutdown()

    seen = 0
    first: list[tuple[float, float]] = []
    done = threading.Event()

    def on_message(_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            first.append(now())
        if seen == count:
            done.set()

    consumer = PushConsumer(f"c-{topic}")
    consumer.set_namesrv_addr(address)
    consumer.subscribe(topic, on_message)
    consumer.start()
    if not done.wait(300):
        raise SystemExit(f"only {seen} of {count} messages came")
    found["consume"] = measured(count - 1, first[0])
    consumer.shutdown()
    return found


async def with_nats(address: str, topic: str, count: int) -> dict[str, dict[str, float]]:
    import nats

    found = {}
    connection = await nats.connect(f"nats://{address}")
    stream = connection.jetstream()
    await stream.add_stream(name=topic, subjects=[topic])
    for _ in range(200):
        await stream.publish(topic, BODY)
    began, few = now(), count // SEQUENTIAL_SHARE
    for _ in range(few):
        await stream.publish(topic, BODY)
    found["sequential"] = measured(few, began)
    began = now()
    await windowed(lambda: stream.publish(topic, BODY), count)
    found["in flight"] = measured(count, began)
    subscription = await stream.pull_subscribe(topic, durable="c")
    seen = 0
    began = now()
    while seen < count:
        for message in await subscription.fetch(32, timeout=5):
            await message.ack()
            seen += 1
    found["consume"] = measured(seen, began)
    await connection.close()
    return found


def main() -> None:
    kind, address, topic, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    if kind == "wheel":
        found = with_wheel(address, topic, count)
    else:
        found = asyncio.run((with_refmq if kind == "refmq" else with_nats)(address, topic, count))
    print("result " + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
