"""A broker process that is killed at any moment: with sync flush nothing that was acknowledged is lost.

Each round starts the same broker again on the same store, sends from several tasks at once, commits offsets, and kills
the process with SIGKILL while it works. At the end everything that was ever acknowledged is read back. A few rounds run
with the tests; `REFMQ_KILLS=300` makes it a campaign.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from refmq.errors import RefmqError
from refmq.net.client import Client
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.offsets import QueryConsumerOffsetRequest, UpdateConsumerOffsetRequest
from refmq.protocol.headers.pull import PullMessageRequest, PullSysFlag
from refmq.protocol.headers.send import SendMessageRequest, encode_send_header
from refmq.protocol.record import decode_records

KILLS = int(os.environ.get("REFMQ_KILLS", "3"))
SOURCES = Path(__file__).parents[2] / "src"
QUEUES = 4
SENDERS = 8
START_TIMEOUT_S = 60.0

CONF = """\
brokerName=killed
brokerIP1=127.0.0.1
flushDiskType=SYNC_FLUSH
mappedFileSizeCommitLog=262144
mappedFileSizeConsumeQueue=4000
maxHashSlotNum=1000
maxIndexNum=4000
flushConsumerOffsetInterval=200
"""


@dataclass
class Ledger:
    """What clients know: bodies that were acknowledged, and offsets that were committed."""

    acked: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    sent: set[bytes] = field(default_factory=set)
    committed: int = 0


async def start(folder: Path) -> tuple[asyncio.subprocess.Process, str]:
    """A broker process and its address, read off the line that it prints."""
    conf = folder / "broker.conf"
    conf.write_text(CONF)
    command = [sys.executable, "-m", "refmq", "broker", "-c", str(conf), "--port", "0", "--listen", "127.0.0.1"]
    process = await asyncio.create_subprocess_exec(
        *command, "--dir", str(folder / "store"), env={**os.environ, "PYTHONPATH": str(SOURCES)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    line = (await asyncio.wait_for(process.stdout.readline(), START_TIMEOUT_S)).decode()
    if "boot success" not in line:
        _, complaint = await process.communicate()
        raise AssertionError(f"the broker did not start: {line}{complaint.decode()}")
    return process, line.split("[killed, ")[1].split("]")[0]


async def send(client: Client, address: str, ledger: Ledger, number: int, chance: random.Random) -> None:
    """Sends until the connection breaks."""
    count = 0
    while True:
        body = f"{number}-{count}-{chance.random()}".encode() + bytes(chance.randrange(2_000))
        count += 1
        header = SendMessageRequest(
            producer_group="p", topic="Killed", default_topic="TBW102", default_topic_queue_nums=QUEUES,
            queue_id=number % QUEUES, sys_flag=0, born_timestamp=0, flag=0,
        )  # fmt: skip
        ledger.sent.add(body)
        try:
            answer = await client.invoke(
                address, request(RequestCode.SEND_MESSAGE_V2, encode_send_header(header), body), 10
            )
        except RefmqError:
            return
        if answer.code == ResponseCode.SUCCESS:
            ledger.acked[body] = (int(answer.fields["queueId"]), int(answer.fields["queueOffset"]))


async def commit(client: Client, address: str, ledger: Ledger) -> None:
    """Commits growing offsets until the connection breaks."""
    while True:
        header = UpdateConsumerOffsetRequest(
            consumer_group="g", topic="Killed", queue_id=0, commit_offset=ledger.committed + 1
        )
        try:
            await client.invoke(address, request(RequestCode.UPDATE_CONSUMER_OFFSET, encode_header(header)), 10)
        except RefmqError:
            return
        ledger.committed += 1
        await asyncio.sleep(0.02)


async def read_all(client: Client, address: str) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for queue in range(QUEUES):
        bodies: list[bytes] = []
        while True:
            header = PullMessageRequest(
                consumer_group="g", topic="Killed", queue_id=queue, queue_offset=len(bodies), max_msg_nums=32,
                sys_flag=PullSysFlag.SUBSCRIPTION, commit_offset=0, suspend_timeout_millis=0, subscription="*",
                sub_version=0, expression_type="TAG",
            )  # fmt: skip
            answer = await client.invoke(address, request(RequestCode.PULL_MESSAGE, encode_header(header)), 10)
            records = [record.body for record in decode_records(answer.body)]
            if not records:
                break
            bodies.extend(records)
        found[queue] = bodies
    return found


async def stored_offset(client: Client, address: str) -> int:
    header = QueryConsumerOffsetRequest(consumer_group="g", topic="Killed", queue_id=0)
    answer = await client.invoke(address, request(RequestCode.QUERY_CONSUMER_OFFSET, encode_header(header)), 10)
    return int(answer.fields["offset"])


async def campaign(folder: Path, kills: int) -> None:
    ledger, chance = Ledger(), random.Random(7)
    for _ in range(kills):
        process, address = await start(folder)
        client = Client()
        try:
            work = [asyncio.create_task(send(client, address, ledger, n, chance)) for n in range(SENDERS)]
            work.append(asyncio.create_task(commit(client, address, ledger)))
            await asyncio.sleep(chance.uniform(0.05, 0.8))
            process.send_signal(signal.SIGKILL)
            await process.communicate()
            await asyncio.wait_for(asyncio.gather(*work), 30)
        finally:
            await client.close()
    process, address = await start(folder)
    client = Client()
    try:
        found = await read_all(client, address)
        assert await stored_offset(client, address) <= ledger.committed  # it may be older, never ahead
    finally:
        await client.close()
        process.send_signal(signal.SIGTERM)
        _, complaint = await asyncio.wait_for(process.communicate(), START_TIMEOUT_S)
    judge(ledger, found)
    assert process.returncode == 0, complaint.decode()


def judge(ledger: Ledger, found: dict[int, list[bytes]]) -> None:
    everything = [body for bodies in found.values() for body in bodies]
    assert len(everything) == len(set(everything)), "a message is there twice"
    assert set(everything) <= ledger.sent, "a message is there that nobody sent"
    lost = [place for body, place in ledger.acked.items() if found[place[0]][place[1] : place[1] + 1] != [body]]
    assert lost == [], f"{len(lost)} of {len(ledger.acked)} acknowledged messages are not where they were"
    assert ledger.acked, "nothing was acknowledged: the rounds are too short"


@pytest.mark.slow
def test_nothing_that_was_acknowledged_is_lost_when_a_broker_is_killed(tmp_path: Path) -> None:
    asyncio.run(campaign(tmp_path, KILLS))


def test_the_judge_sees_a_loss_a_repetition_and_an_invention() -> None:
    ledger = Ledger(acked={b"a": (0, 0)}, sent={b"a", b"b"})
    judge(ledger, {0: [b"a", b"b"]})
    wrongs: list[dict[int, list[bytes]]] = [{0: [b"b"]}, {0: [b"a", b"a"]}, {0: [b"a", b"c"]}, {0: []}]
    for wrong in wrongs:
        with pytest.raises(AssertionError):
            judge(ledger, wrong)
