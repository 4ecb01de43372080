"""A real 4.9.7 broker opens a store that the reference wrote, and serves every message by queue, by key and by id."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from interop.processes import Child
from interop.rocketmq import TINY_STORE, Broker, Nameserver
from interop.write_store import QUEUES, TOPICS
from refmq.net.client import Client
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.headers.messages import QueryMessageRequest, ViewMessageRequest
from refmq.protocol.headers.pull import PullMessageRequest, PullMessageResponse
from refmq.protocol.record import decode_properties, decode_record, decode_records

SUBSCRIPTION_IN_REQUEST = 0x4
TIMEOUT_S = 10.0
DELAY_TOPIC = "SCHEDULE_TOPIC_XXXX"


@dataclass(frozen=True)
class Stored:
    """One line of the writer."""

    physical_offset: int
    message_id: str
    topic: str
    queue_id: int
    queue_offset: int
    unique: str
    key: str


def parse(output: str) -> list[Stored]:
    found = []
    for line in output.splitlines():
        if line.startswith("stored "):
            _, position, message_id, topic, queue_id, queue_offset, unique, key = line.split()
            found.append(Stored(int(position), message_id, topic, int(queue_id), int(queue_offset), unique, key))
    return found


class Asker:
    """Asks a broker with plain requests."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.client = Client()

    async def ask(
        self, code: RequestCode, header: PullMessageRequest | QueryMessageRequest | ViewMessageRequest
    ) -> RemotingCommand:
        command = request(code, encode_header(header))
        return await self.client.invoke(self.address, command, TIMEOUT_S)

    async def pull_all(self, topic: str, queue_id: int) -> dict[int, str]:
        """Queue offset -> message id of every message of a queue."""
        found: dict[int, str] = {}
        offset = 0
        while True:
            header = PullMessageRequest(
                consumer_group="reader",
                topic=topic,
                queue_id=queue_id,
                queue_offset=offset,
                max_msg_nums=32,
                sys_flag=SUBSCRIPTION_IN_REQUEST,
                commit_offset=0,
                suspend_timeout_millis=0,
                subscription="*",
                sub_version=0,
            )
            answer = await self.ask(RequestCode.PULL_MESSAGE, header)
            if answer.code != 0:
                return found
            for record in decode_records(answer.body or b""):
                found[record.queue_offset] = record.message_id
            offset = decode_header(PullMessageResponse, answer).next_begin_offset


async def check_served(address: str, stored: list[Stored]) -> None:
    asker = Asker(address)
    pulled: dict[tuple[str, int, int], str] = {}
    for topic, queues in [*((topic, range(QUEUES)) for topic in TOPICS), (DELAY_TOPIC, range(17, 18))]:
        for queue_id in queues:
            for queue_offset, message_id in (await asker.pull_all(topic, queue_id)).items():
                pulled[topic, queue_id, queue_offset] = message_id
    assert pulled == {(each.topic, each.queue_id, each.queue_offset): each.message_id for each in stored}
    for each in stored:
        answer = await asker.ask(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequest(offset=each.physical_offset))
        assert answer.code == 0
        assert decode_record(answer.body or b"").message_id == each.message_id
        header = QueryMessageRequest(
            topic=each.topic, key=each.unique, max_num=32, begin_timestamp=0, end_timestamp=2**62
        )
        answer = await asker.ask(RequestCode.QUERY_MESSAGE, header)
        assert answer.code == 0, each
        ids = [record.message_id for record in decode_records(answer.body or b"")]
        assert each.message_id in ids, each
    for key in sorted({each.key for each in stored}):
        for topic in TOPICS:
            wanted = {each.message_id for each in stored if (each.topic, each.key) == (topic, key)}
            header = QueryMessageRequest(topic=topic, key=key, max_num=64, begin_timestamp=0, end_timestamp=2**62)
            answer = await asker.ask(RequestCode.QUERY_MESSAGE, header)
            records = list(decode_records(answer.body or b""))
            assert wanted <= {record.message_id for record in records}
            assert all(key in decode_properties(record.properties)["KEYS"].split() for record in records)
    await asker.client.close()


@pytest.mark.parametrize("end", ["clean", "killed"])
def test_a_real_broker_serves_every_message_of_our_store(tmp_path: Path, end: str) -> None:
    folder = tmp_path / "broker"
    (folder / "store").mkdir(parents=True)
    writer = Child([sys.executable, "-m", "interop.write_store", str(folder / "store")], tmp_path / "writer.out")
    writer.wait_for(lambda: "filled" in writer.output(), "filled", 120)
    if end == "clean":
        assert writer.stop() == 0, writer.output()[-2000:]
        assert not (folder / "store/abort").exists()
    else:
        writer.kill()
        assert (folder / "store/abort").exists()
    stored = parse(writer.output())
    assert len(stored) > 400
    with Nameserver(tmp_path / "names") as names, Broker(folder, names.address, settings=TINY_STORE) as broker:
        asyncio.run(check_served(broker.address, stored))
