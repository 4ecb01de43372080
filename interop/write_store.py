"""`python -m interop.write_store DIR`: fills a store with the reference engine, as a broker would, and says so.

Prints one line `stored PHYSICAL_OFFSET MESSAGE_ID TOPIC QUEUE QUEUE_OFFSET UNIQUE_KEY KEY` for each message, then
`filled`, and waits. SIGTERM stops the store cleanly; SIGKILL does what it does.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path

from interop.rocketmq import TINY_STORE
from refmq.model.ids import HostAddress, TimestampMs
from refmq.net.files import RealDisk
from refmq.protocol.bodies.codec import JsonStyle, encode_body
from refmq.protocol.bodies.config import DataVersion, TopicConfig, TopicConfigSerializeWrapper
from refmq.protocol.record import BatchedMessage, decode_record, encode_batch, encode_properties
from refmq.store import BatchToStore, MessageToStore, PutResult, ReferenceStore, StoreConfig, direct
from refmq.store.text_file import replace_text_file

TINY = StoreConfig(
    log_file_bytes=int(TINY_STORE["mappedFileSizeCommitLog"]),
    queue_file_bytes=int(TINY_STORE["mappedFileSizeConsumeQueue"]),
    index_slots=int(TINY_STORE["maxHashSlotNum"]),
    index_entries=int(TINY_STORE["maxIndexNum"]),
)
"""The sizes that the real broker is started with."""

HERE = HostAddress(bytes((127, 0, 0, 1)), 10911)
TOPICS = ("Written-0", "Written-1")
QUEUES = 4
MESSAGES = 400
CHECKPOINT_EVERY = 90


def now() -> TimestampMs:
    return TimestampMs(time.time_ns() // 1_000_000)


def say(store: ReferenceStore, result: PutResult, unique: str, key: str) -> None:
    position = result.physical_offset
    for offset in range(result.count):
        data = store.message_at(position)
        assert data is not None
        record = decode_record(data)
        queue = f"{record.topic} {record.queue_id} {record.queue_offset}"
        print("stored", int(position), record.message_id, queue, f"{unique}.{offset}", key)
        position = type(position)(position + len(data))


def put(store: ReferenceStore, number: int) -> None:
    """One message, or a batch of three, of a kind that depends on the number."""
    topic, queue_id = TOPICS[number % 2], number // 2 % QUEUES
    unique, key = f"U{number}", f"K{number % 50}"
    tag = "even" if number % 2 == 0 else "odd"

    def properties(member: int) -> bytes:
        return encode_properties({"KEYS": f"{key} all", "UNIQ_KEY": f"{unique}.{member}", "TAGS": tag})

    if number % 17 == 5:
        members = tuple(BatchedMessage(0, b"member %d" % member, properties(member)) for member in range(3))
        batch = BatchToStore(topic, queue_id, encode_batch(members), b"CLUSTER\x01c", now(), HERE, HERE)
        result = direct.put_batch(store, batch, now())
    else:
        level = 18 if number % 23 == 7 else 0  # two hours: the broker keeps them
        kind = 0x8 if number % 11 == 3 else 0
        body = b"%d " % number * (1 + number % 60)
        message = MessageToStore(
            topic, queue_id, body, properties(0), now(), HERE, HERE, sys_flag=kind, delay_level=level
        )
        result = direct.put(store, message, now())
    assert result.status == 0, result
    say(store, result, unique, key)


async def fill(folder: Path) -> None:
    disk = RealDisk(folder)
    store = ReferenceStore(disk, TINY)
    await store.start(now())
    table = {name: TopicConfig(topic_name=name, read_queue_nums=QUEUES, write_queue_nums=QUEUES) for name in TOPICS}
    wrapper = TopicConfigSerializeWrapper(
        data_version=DataVersion(timestamp=now(), counter=1), topic_config_table=table
    )
    await replace_text_file(disk, "config/topics.json", encode_body(wrapper, JsonStyle.FASTJSON))
    for number in range(MESSAGES):
        put(store, number)
        store.dispatch(100)
        if number % CHECKPOINT_EVERY == 0:
            await store.maintain(TimestampMs(now() + 60_000 * (1 + number)))
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    print("filled", flush=True)
    await stopping.wait()
    await store.stop(now())


if __name__ == "__main__":
    asyncio.run(fill(Path(sys.argv[1])))
