"""A broker process that is killed again and again while clients work, and what they may expect of it afterwards.

Each round starts the same broker on the same store and lets several clients work: producers of plain, delayed and
transactional messages, a consumer, an administrator. Then the process gets SIGKILL, while it works, while it starts or
while it stops. After the last round everything that was ever acknowledged must be there:

- a plain message at the place that its producer was told, once, and nothing that nobody sent;
- a delayed message at least once and not before its time: how far a level is delivered never runs ahead;
- a transactional message exactly once if its producer decided to commit, never if it decided to roll back. Producers
  that died before they said so are asked: every half message that was stored is asked about until it is decided;
- the offset of a consumer: it may be older than the last commit, never ahead of it nor of the queue, and it never falls
  behind what an earlier life had kept;
- topics, groups and settings that were changed.

What a kill may take depends on the mode (`Mode`). SIGKILL ends the process and leaves what the kernel has, so with
async flush nothing is lost either; with the transient pool an acknowledged message waits in the process until the next
commit (`commitIntervalCommitLog`, 200 ms): such messages may be lost, but only the last ones, in the order of the log.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from refmq.errors import RefmqError
from refmq.net.client import Client
from refmq.net.connection import Connection
from refmq.protocol import names
from refmq.protocol.bodies.codec import decode_body
from refmq.protocol.bodies.config import SubscriptionGroupWrapper, TopicConfigSerializeWrapper
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, oneway, request
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.headers.messages import CheckTransactionStateRequest, EndTransactionRequest
from refmq.protocol.properties import parse_properties
from refmq.protocol.record import TRANSACTION_COMMIT, TRANSACTION_ROLLBACK, Record, parse_message_id
from tests.net.broker_requests import (
    TIMEOUT_S,
    commit_request,
    create_group_request,
    create_topic_request,
    max_offset,
    producer_heartbeat,
    pull_request,
    read_queue,
    send_request,
    stored_offset,
)

SOURCES = Path(__file__).parents[2] / "src"
QUEUES = 4
SENDERS = 6
START_TIMEOUT_S = 120.0
SETTLE_TIMEOUT_S = 180.0
DELAY_MS = 1_000
PLAIN, DELAYED, DECIDED = "Killed", "Later", "Decided"
TX_GROUP = "deciders"

CONF = f"""\
brokerName=killed
brokerIP1=127.0.0.1
mappedFileSizeCommitLog=262144
mappedFileSizeConsumeQueue=4000
maxHashSlotNum=1000
maxIndexNum=4000
flushConsumerOffsetInterval=200
messageDelayLevel={DELAY_MS // 1000}s 2s
transactionCheckInterval=300
transactionTimeOut=100
transactionCheckMax=9999
"""


@dataclass(frozen=True)
class Mode:
    """How the broker stores, and whether a kill may take back what was acknowledged last."""

    conf: str
    keeps_all: bool = True
    engine: str = "reference"


SYNC = Mode("flushDiskType=SYNC_FLUSH\n")
ASYNC = Mode(
    "flushDiskType=ASYNC_FLUSH\nenablePropertyFilter=true\nenableConsumeQueueExt=true\nenableCalcFilterBitMap=true\n"
    "mappedFileSizeConsumeQueueExt=8192\n"
)
"""With the extension files of queues, which have an end of their own to recover."""
POOL = Mode("flushDiskType=ASYNC_FLUSH\ntransientStorePoolEnable=true\n", keeps_all=False)
FAST_SYNC = Mode("flushDiskType=SYNC_FLUSH\n", engine="fast")
FAST_ASYNC = Mode("flushDiskType=ASYNC_FLUSH\n", engine="fast")
"""In C the newest queue units and index pages are in memory; a start has to build them again."""
LOSS_WINDOW_S = 10.0
"""With the pool a message waits 200 ms in the process, and longer on a machine that is busy."""


@dataclass(frozen=True)
class Acked:
    """A plain message whose producer was told where it is."""

    queue: int
    queue_offset: int
    physical_offset: int
    life: int
    at_s: float


@dataclass
class Ledger:
    """What clients know."""

    life: int = 0
    killed_at_s: dict[int, float] = field(default_factory=dict)
    sent: set[bytes] = field(default_factory=set)
    acked: dict[bytes, Acked] = field(default_factory=dict)
    delayed: dict[bytes, int] = field(default_factory=dict)
    """Delayed messages that were acknowledged: body -> when they were sent, in ms."""
    decisions: dict[str, int] = field(default_factory=dict)
    """What the producer of each transactional message thinks of it, from before it is sent."""
    halves: set[str] = field(default_factory=set)
    """Half messages that were acknowledged."""
    committed_max: int = 0
    """The highest offset that the consumer ever sent."""
    kept_offset: int = 0
    """The highest offset that a restarted broker ever had."""
    topics: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    regions: list[str] = field(default_factory=list)
    """Values of a setting, the last one acknowledged first, and those that were tried after it."""


# --- the process ----------------------------------------------------------------------------------------------------


async def spawn(folder: Path, mode: Mode) -> asyncio.subprocess.Process:
    """A broker process that begins to start."""
    conf = folder / "broker.conf"
    if not conf.exists():
        conf.write_text(CONF + mode.conf)  # later lives find what the broker has made of it
    command = [sys.executable, "-m", "refmq", "broker", "-c", str(conf), "--port", "0", "--listen", "127.0.0.1"]
    return await asyncio.create_subprocess_exec(
        *command, "--dir", str(folder / "store"), "--engine", mode.engine,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def started(process: asyncio.subprocess.Process) -> str:
    """The address of a broker, read off the line that it prints when it is up."""
    assert process.stdout is not None
    line = (await asyncio.wait_for(process.stdout.readline(), START_TIMEOUT_S)).decode()
    if "boot success" not in line:
        _, complaint = await process.communicate()
        raise AssertionError(f"the broker did not start: {line}{complaint.decode()}")
    return line.split("[killed, ")[1].split("]")[0]


# --- the clients, each until its connection breaks --------------------------------------------------------------------


class Work:
    """The clients of one life of the broker."""

    def __init__(self, ledger: Ledger, chance: random.Random, address: str) -> None:
        self.ledger = ledger
        self.chance = chance
        self.address = address
        self.client = Client(self.asked)

    async def ask(self, command: RemotingCommand) -> RemotingCommand:
        return await self.client.invoke(self.address, command, TIMEOUT_S)

    def tasks(self, mode: Mode) -> list[asyncio.Task[None]]:
        work = [self.send(number) for number in range(SENDERS)] + [self.consume()]
        if mode.keeps_all:
            work += [self.send_later(), self.decide(), self.administrate()]
        return [asyncio.create_task(self.until_broken(each)) for each in work]

    @staticmethod
    async def until_broken(work: object) -> None:
        try:
            assert asyncio.iscoroutine(work)
            await work
        except RefmqError:
            pass  # the broker is gone, which is what this is about

    def new_body(self, number: int) -> bytes:
        body = f"{self.ledger.life}-{number}-{self.chance.random()}".encode() + bytes(self.chance.randrange(2_000))
        self.ledger.sent.add(body)
        return body

    async def send(self, number: int) -> None:
        while True:
            body = self.new_body(number)
            answer = await self.ask(send_request(PLAIN, body, queue=number % QUEUES))
            if answer.code == ResponseCode.SUCCESS:
                _, physical_offset = parse_message_id(answer.fields["msgId"])
                place = (int(answer.fields["queueId"]), int(answer.fields["queueOffset"]), physical_offset)
                self.ledger.acked[body] = Acked(*place, self.ledger.life, time.monotonic())

    async def send_later(self) -> None:
        while True:
            body, now_ms = self.new_body(98), time.time_ns() // 1_000_000
            properties = {names.DELAY_TIME_LEVEL: "1"}
            answer = await self.ask(send_request(DELAYED, body, properties=properties))
            if answer.code == ResponseCode.SUCCESS:
                self.ledger.delayed[body] = now_ms
            await asyncio.sleep(0.03)

    async def decide(self) -> None:
        """Sends half messages and decides; one in four producers forgets to say what it decided."""
        await self.ask(producer_heartbeat(TX_GROUP))
        while True:
            key = f"{self.ledger.life}-{self.chance.getrandbits(60):x}"
            decision = self.chance.choice([TRANSACTION_COMMIT, TRANSACTION_ROLLBACK])
            self.ledger.decisions[key] = decision
            properties = {
                names.UNIQ_KEY: key, names.TRANSACTION_PREPARED: "true", names.PRODUCER_GROUP: TX_GROUP
            }  # fmt: skip
            answer = await self.ask(send_request(DECIDED, key.encode(), properties=properties, sys_flag=4))
            if answer.code == ResponseCode.SUCCESS:
                self.ledger.halves.add(key)
                if self.chance.random() < 0.75:
                    _, physical_offset = parse_message_id(answer.fields["msgId"])
                    fields = end_transaction(key, decision, int(answer.fields["queueOffset"]), physical_offset)
                    await self.ask(request(RequestCode.END_TRANSACTION, fields))
            await asyncio.sleep(0.03)

    def asked(self, connection: Connection, command: RemotingCommand) -> None:
        """Answers a check-back with what was decided; every second answer gets lost."""
        if command.code == RequestCode.CHECK_TRANSACTION_STATE and self.chance.random() < 0.5:
            check = decode_header(CheckTransactionStateRequest, command)
            key = check.msg_id or ""
            fields = end_transaction(
                key, self.ledger.decisions[key], check.tran_state_table_offset, check.commit_log_offset
            )
            connection.send_oneway(oneway(RequestCode.END_TRANSACTION, fields))

    async def consume(self) -> None:
        """Reads queue 0 from the stored offset on and commits what it has read."""
        offset = await stored_offset(self.client, self.address, PLAIN, 0)
        while True:
            answer = await self.ask(pull_request(PLAIN, offset=offset))
            if answer.code == ResponseCode.SUCCESS:
                offset = int(answer.fields["nextBeginOffset"])
                self.ledger.committed_max = max(self.ledger.committed_max, offset)
                await self.ask(commit_request(PLAIN, 0, offset))
            await asyncio.sleep(0.02)

    async def administrate(self) -> None:
        while True:
            number = self.chance.randrange(30)
            name, value = f"Made{number}", self.chance.randrange(1, 9)
            self.ledger.topics.pop(name, None)  # until the answer nobody knows which value it has
            if (await self.ask(create_topic_request(name, value))).code == ResponseCode.SUCCESS:
                self.ledger.topics[name] = value
            self.ledger.groups.pop(name, None)
            if (await self.ask(create_group_request(name, value))).code == ResponseCode.SUCCESS:
                self.ledger.groups[name] = value
            region = f"region{self.chance.getrandbits(30)}"
            self.ledger.regions.append(region)
            change = request(RequestCode.UPDATE_BROKER_CONFIG, body=f"regionId={region}\n".encode())
            if (await self.ask(change)).code == ResponseCode.SUCCESS:
                self.ledger.regions = [region]
            await asyncio.sleep(0.05)


def end_transaction(key: str, decision: int, half_offset: int, physical_offset: int) -> dict[str, str]:
    return encode_header(
        EndTransactionRequest(
            producer_group=TX_GROUP, tran_state_table_offset=half_offset, commit_log_offset=physical_offset,
            commit_or_rollback=decision, msg_id=key, transaction_id=key,
        )
    )  # fmt: skip


# --- rounds -----------------------------------------------------------------------------------------------------------


async def campaign(folder: Path, mode: Mode, kills: int, seed: int) -> Ledger:
    """Kills a broker `kills` times and judges what is left."""
    ledger, chance = Ledger(), random.Random(seed)
    for ledger.life in range(1, kills + 1):
        await one_life(folder, mode, ledger, chance)
    ledger.life = kills + 1
    await last_life(folder, mode, ledger, chance)
    return ledger


async def one_life(folder: Path, mode: Mode, ledger: Ledger, chance: random.Random) -> None:
    process = await spawn(folder, mode)
    try:
        if ledger.life > 1 and chance.random() < 0.15:  # it dies while it starts
            await asyncio.sleep(chance.uniform(0.1, 1.0))
            return
        work = Work(ledger, chance, await started(process))
        try:
            await look_at_offset(work)
            tasks = work.tasks(mode)
            await asyncio.sleep(chance.uniform(0.05, 0.8))
            if chance.random() < 0.15:  # it dies while it stops
                process.send_signal(signal.SIGTERM)
                await asyncio.sleep(chance.uniform(0.0, 0.3))
            kill(process)
            ledger.killed_at_s[ledger.life] = time.monotonic()
            await process.communicate()
            await asyncio.wait_for(asyncio.gather(*tasks), START_TIMEOUT_S)
        finally:
            await work.client.close()
    finally:
        kill(process)
        await process.communicate()


def kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.send_signal(signal.SIGKILL)


async def look_at_offset(work: Work) -> None:
    """The stored offset of the consumer: not ahead of what it committed, nor of the queue, nor behind an older one."""
    stored = await stored_offset(work.client, work.address, PLAIN, 0)
    end = await max_offset(work.client, work.address, PLAIN, 0)
    assert stored <= work.ledger.committed_max, "an offset is ahead of every commit"
    assert stored <= end, f"offset {stored} is ahead of a queue that ends at {end}"
    assert stored >= work.ledger.kept_offset, "an offset that a restart has seen fell back"
    work.ledger.kept_offset = stored


async def last_life(folder: Path, mode: Mode, ledger: Ledger, chance: random.Random) -> None:
    process = await spawn(folder, mode)
    work = Work(ledger, chance, await started(process))
    try:
        await look_at_offset(work)
        plain = {queue: await read_queue(work.client, work.address, PLAIN, queue) for queue in range(QUEUES)}
        if mode.keeps_all:
            await work.ask(producer_heartbeat(TX_GROUP))
            delayed, decided = await settled(work)
            judge_delayed(ledger, delayed)
            judge_decided(ledger, decided)
            await judge_settings(work)
    finally:
        await work.client.close()
        process.send_signal(signal.SIGTERM)
        _, complaint = await asyncio.wait_for(process.communicate(), START_TIMEOUT_S)
    judge_plain(ledger, {queue: [record.body for record in records] for queue, records in plain.items()}, mode)
    assert process.returncode == 0, complaint.decode()
    assert not (folder / "store" / "abort").exists(), "the clean stop left its mark of an unclean one"


async def settled(work: Work) -> tuple[list[Record], list[Record]]:
    """The delayed and the transactional messages, when all are delivered that must be, or the time is up."""
    delayed: list[Record] = []
    decided: list[Record] = []
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    while time.monotonic() < deadline:
        delayed += await read_queue(work.client, work.address, DELAYED, start=len(delayed))
        decided += await read_queue(work.client, work.address, DECIDED, start=len(decided))
        wanted = {key for key in work.ledger.halves if work.ledger.decisions[key] == TRANSACTION_COMMIT}
        if wanted <= {record.body.decode() for record in decided} and set(work.ledger.delayed) <= {
            record.body for record in delayed
        }:
            break
        await asyncio.sleep(0.1)
    return delayed, decided


# --- judges -----------------------------------------------------------------------------------------------------------


def judge_plain(ledger: Ledger, found: dict[int, list[bytes]], mode: Mode) -> None:
    everything = [body for bodies in found.values() for body in bodies]
    assert len(everything) == len(set(everything)), "a message is there twice"
    assert set(everything) <= ledger.sent, "a message is there that nobody sent"
    lost = {
        body: place
        for body, place in ledger.acked.items()
        if found[place.queue][place.queue_offset : place.queue_offset + 1] != [body]
    }
    if mode.keeps_all:
        assert not lost, f"{len(lost)} of {len(ledger.acked)} acknowledged messages are not where they were"
    for body, place in lost.items():
        assert body not in everything, "a message is somewhere else than its producer was told"
        behind = [
            other
            for key, other in ledger.acked.items()
            if key not in lost and other.life == place.life and other.physical_offset > place.physical_offset
        ]
        assert not behind, "a message is lost although later ones of the same life are there"
        assert ledger.killed_at_s[place.life] - place.at_s < LOSS_WINDOW_S, "a message is lost that was old"
    assert ledger.acked, "nothing was acknowledged: the rounds are too short"


def judge_delayed(ledger: Ledger, records: list[Record]) -> None:
    there = {record.body for record in records}
    lost = set(ledger.delayed) - there
    assert not lost, f"{len(lost)} of {len(ledger.delayed)} delayed messages were never delivered"
    assert there <= ledger.sent, "a delayed message is there that nobody sent"
    early = [r for r in records if r.store_timestamp_ms < ledger.delayed.get(r.body, 0) + DELAY_MS]
    assert not early, f"{len(early)} delayed messages came before their time"


def judge_decided(ledger: Ledger, records: list[Record]) -> None:
    counts = Counter(record.body.decode() for record in records)
    for key, count in counts.items():
        assert ledger.decisions.get(key) == TRANSACTION_COMMIT, "a message is visible that was rolled back"
        assert count == 1, f"a transactional message was delivered {count} times"
    lost = [k for k in ledger.halves if ledger.decisions[k] == TRANSACTION_COMMIT and k not in counts]
    assert not lost, f"{len(lost)} of {len(ledger.halves)} transactional messages were never delivered"


async def judge_settings(work: Work) -> None:
    ledger = work.ledger
    topics = decode_body(
        TopicConfigSerializeWrapper, (await work.ask(request(RequestCode.GET_ALL_TOPIC_CONFIG))).body
    ).topic_config_table
    for name, queues in ledger.topics.items():
        assert topics[name].read_queue_nums == queues, f"topic {name} was changed and is not"
    groups = decode_body(
        SubscriptionGroupWrapper, (await work.ask(request(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG))).body
    ).subscription_group_table
    for name, retries in ledger.groups.items():
        assert groups[name].retry_max_times == retries, f"group {name} was changed and is not"
    settings = parse_properties((await work.ask(request(RequestCode.GET_BROKER_CONFIG))).body.decode())
    assert not ledger.regions or settings["regionId"] in ledger.regions, "a setting was changed and is not"
