"""A recording: `refmq serve --trace` in a process of its own, under clients of ours, over several lives.

Each life sends single messages, batches, delayed messages and transactions, while two members of a group consume
them, one of which comes later and leaves earlier. The first life ends in good order, the second one is killed, and the
last one ends in good order again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from refmq.aio.consumer import Consumer
from refmq.aio.instance import ConnectionOptions
from refmq.aio.producer import Producer
from refmq.client.message import Message, ReceivedMessage
from refmq.client.transaction import TransactionState
from refmq.errors import RefmqError
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.recordings import Settings, Verdict, judge_recording, read_recording
from refmq.verify.spec.tlc import find_tlc

START_TIMEOUT_S: Final = 60.0
LIFE_TIMEOUT_S: Final = 1_800.0
JUDGE_TIMEOUT_S: Final = 1_800
STOP_TIMEOUT_S: Final = 30.0
SPEC: Final = Path(__file__).parents[2] / "spec"
TOPIC: Final = "T"
GROUP: Final = "g"
IN_FLIGHT: Final = 16
BATCH: Final = 5
ADDRESS: Final = re.compile(r"nameserver (\S+), broker")


@dataclass(frozen=True, slots=True)
class Load:
    """What the clients of one life do."""

    messages: int = 40
    batches: int = 2
    delayed: int = 2
    transactions: int = 6
    consume: bool = True
    killed: bool = False
    """Whether the life ends by SIGKILL."""
    interrupted: bool = False
    """Whether that comes in the middle: producers send until nobody answers. Nobody consumes."""


SHORT: Final = (Load(), Load(killed=True), Load(messages=10, batches=1, delayed=1, transactions=3))
INTERRUPTED: Final = (Load(15_000, interrupted=True), Load())
LONG: Final = (Load(4_000, transactions=250), Load(4_000, transactions=250, killed=True), Load())


def lives_of(events: int) -> tuple[Load, ...]:
    """Lives that leave about so many events: each message leaves eight or nine, with what its clients record."""
    messages = max(1, events // 17)
    return Load(messages, transactions=messages // 20), Load(messages, transactions=messages // 20), Load()


def record(folder: Path, engine: str, lives: tuple[Load, ...] = SHORT, *, clients_record: bool = True) -> Path:
    """Records some lives of a server and, unless they do not, of its clients; the folder of the traces."""
    for load in lives:
        with serving(folder, engine) as (process, namesrv):
            trace = folder / "trace" if clients_record else None
            story = interrupted(namesrv, load, process) if load.interrupted else live(namesrv, trace, load)
            asyncio.run(asyncio.wait_for(story, LIFE_TIMEOUT_S))
            process.send_signal(signal.SIGKILL if load.killed else signal.SIGTERM)
            process.wait(STOP_TIMEOUT_S)
    return folder / "trace"


@contextlib.contextmanager
def serving(folder: Path, engine: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server that is up, and the address of its nameserver; it is gone at the end in any case."""
    command = [sys.executable, "-m", "refmq", "serve", "--port", "0", "--broker-port", "0", "--engine", engine]
    command += ["--dir", str(folder / "node"), "--trace", str(folder / "trace")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        assert process.stdout is not None
        watch = asyncio.run(_first_line(process))
        found = ADDRESS.search(watch)
        assert found is not None, f"the server said {watch!r}"
        yield process, found[1]
    finally:
        process.kill()
        process.wait(STOP_TIMEOUT_S)
        if process.stdout is not None:
            process.stdout.close()


async def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), START_TIMEOUT_S)


async def interrupted(namesrv: str, load: Load, process: subprocess.Popen[str]) -> None:
    """Producers that are cut off, after so many messages."""
    sent = 0

    async def send_until_nobody_answers(producer: Producer) -> None:
        nonlocal sent
        with contextlib.suppress(RefmqError):
            while True:
                await producer.send(TOPIC, b"i%d" % sent)
                sent += 1
                if sent == load.messages:
                    process.kill()

    async with Producer(namesrv, group="p", retries=0, timeout=1.0) as producer:
        await asyncio.gather(*(send_until_nobody_answers(producer) for _ in range(IN_FLIGHT)))


async def live(namesrv: str, trace: Path | None, load: Load) -> None:
    """One life of the clients."""
    sent: set[bytes] = set()
    seen: set[bytes] = set()

    async def listen(message: ReceivedMessage) -> None:
        seen.add(bytes(message.body))

    def consumer(name: str) -> Consumer:
        options: ConnectionOptions = {"instance_name": name}
        if trace is not None:
            options["trace"] = trace
        return Consumer(
            namesrv,
            group=GROUP,
            topics=TOPIC,
            start="first",
            listener=listen,
            commit_interval=0.2,
            **options,
        )

    async def check(message: ReceivedMessage) -> TransactionState:
        return TransactionState.COMMIT

    async with Producer(namesrv, group="p", check=check) as producer:
        await producer.send(TOPIC, b"first")
        async with contextlib.AsyncExitStack() as members:
            if load.consume:
                await members.enter_async_context(consumer("a"))
                async with consumer("b"):
                    await send_all(producer, load, sent)
                while not sent <= seen:
                    await asyncio.sleep(0.02)
                await asyncio.sleep(0.5)  # for a commit
            else:
                await send_all(producer, load, sent)


async def send_all(producer: Producer, load: Load, sent: set[bytes]) -> None:
    """Sends everything; `sent` gets what consumers will see."""
    stamp = os.urandom(4).hex().encode()

    async def send(first: int) -> None:
        for number in range(first, load.messages, IN_FLIGHT):
            body = b"m%d-%b" % (number, stamp)
            await producer.send(TOPIC, body * (1 + number % 7), tag="ab"[number % 2], keys=[f"k{number}"])
            sent.add(body * (1 + number % 7))

    await asyncio.gather(*(send(first) for first in range(IN_FLIGHT)))
    for number in range(load.batches):
        bodies = [b"b%d-%d-%b" % (number, each, stamp) for each in range(BATCH)]
        await producer.send_batch([Message(TOPIC, body) for body in bodies])
        sent.update(bodies)
    for number in range(load.delayed):
        body = b"d%d-%b" % (number, stamp)
        await producer.send(TOPIC, body, delay_level=1)
        sent.add(body)
    for number in range(load.transactions):
        body = b"t%d-%b" % (number, stamp)
        transaction = producer.transaction(TOPIC, body)
        await transaction.begin()
        if number % 3 == 2:
            await transaction.rollback()
        else:
            await transaction.commit()
            sent.add(body)


def record_and_judge(events: int, engine: str) -> Iterator[Verdict]:
    """Records about so many events, and judges them."""
    tlc = find_tlc()
    with tempfile.TemporaryDirectory(prefix="refmq-judged-") as folder, tlc.threads(1):
        recording = read_recording(record(Path(folder), engine, lives_of(events)))
        options = RunOptions(timeout_s=JUDGE_TIMEOUT_S)
        yield from judge_recording(tlc, SPEC, recording, options, Settings())
