"""Sends rounds of frames to two brokers, and compares."""

from __future__ import annotations

import contextlib
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias

from conformance.frames.generate import TOPICS, Kind, Maker, Round
from conformance.frames.mask import mask_answer, masked_store
from interop.ours import OurBroker, OurNameserver, ask
from interop.processes import free_port
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.frame import FrameDecoder, decode, encode
from refmq.protocol.headers.admin import CreateTopicRequest
from refmq.protocol.headers.codec import encode_header

WAIT_S: Final = 30.0
FRAMES_PER_PAIR: Final = 500_000
"""Behind so many frames both brokers are stopped, their stores compared, and new ones started."""
PROGRESS_EVERY_S: Final = 10.0
SHOWN_MAX: Final = 600
INDEX_SLOTS: Final = 1000
SETTINGS: Final = {
    "maxHashSlotNum": str(INDEX_SLOTS),
    "maxIndexNum": "20000",
    "transactionCheckInterval": "86400000",
    "flushDelayOffsetInterval": "86400000",
    "longPollingEnable": "true",
}
Change: TypeAlias = tuple[str, str, str]
"""Of a module, a text and what stands there instead."""
HOSTS: Final = {"reference": "127.0.0.1", "fast": "127.0.0.2"}


@dataclass
class Side:
    """One broker, and the connection to it."""

    engine: str
    broker: OurBroker
    socket: socket.socket | None = None
    decoder: FrameDecoder = field(default_factory=FrameDecoder)

    def connect(self, port: int) -> None:
        """From a port that the other side's connection has as well."""
        self.close()
        self.socket = made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(("127.0.0.1", port))
        made.settimeout(WAIT_S)
        made.connect((HOSTS[self.engine], self.broker.port))
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Ends at once, so that the port is free for a next connection.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.decoder = FrameDecoder()

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def answers(self, waits_for: frozenset[int]) -> tuple[list[RemotingCommand], str]:
        """Answers until all of these are there; and how that ended: "", "closed" or "silent"."""
        assert self.socket is not None, "it is connected"
        missing, found = set(waits_for), list[RemotingCommand]()
        while missing:
            try:
                data = self.socket.recv(1 << 18)
            except TimeoutError:
                return found, "silent"
            except ConnectionError:
                data = b""
            if not data:
                return found, "closed"
            for command in self.decoder.feed(data):
                if command.is_response:
                    found.append(command)
                    missing.discard(command.opaque)
        return found, ""


@dataclass
class Driver:
    """Both brokers of a pair."""

    sides: tuple[Side, Side]
    maker: Maker
    port: int = 0
    barriers: int = 0
    frames: int = 0

    def connect(self) -> None:
        self.port = free_port()
        for side in self.sides:
            side.connect(self.port)

    def exchange(self, frames: tuple[bytes, ...], waits_for: frozenset[int]) -> tuple[Any, Any]:
        """What both sides answer to the same frames, without what may differ."""
        data = b"".join(frames)
        asked = {command.opaque: command for command in map(_read, frames) if command is not None}
        for side in self.sides:
            assert side.socket is not None, "it is connected"
            with contextlib.suppress(ConnectionError):
                side.socket.sendall(data)
        told = []
        for side in self.sides:
            found, end = side.answers(waits_for)
            codes = {answer.opaque: getattr(asked.get(answer.opaque), "code", 0) for answer in found}
            told.append((sorted((a.opaque, mask_answer(codes[a.opaque], a)) for a in found), end))
            self.learn_ends(asked, found)
        self.frames += len(frames)
        return told[0], told[1]

    def learn_ends(self, asked: dict[int, RemotingCommand], found: list[RemotingCommand]) -> None:
        """Where queues end, from the answers to sends: pulls aim around it."""
        for answer in found:
            fields = answer.fields
            if "queueOffset" in fields and answer.opaque in asked:
                sent = asked[answer.opaque].fields
                topic = sent.get("b") or sent.get("topic", "")
                self.maker.end[topic, int(fields["queueId"])] = int(fields["queueOffset"]) + 1

    def take(self, given: Round) -> str | None:
        """Plays a round; in words what is different."""
        mine, theirs = self.exchange(given.frames, given.waits_for)
        found = different(given, mine, theirs)
        if found is None and mine[1] == "silent":
            return f"{given.kind.value}: neither answers {sorted(given.waits_for)} within {WAIT_S:g} s"
        if given.kind is Kind.DAMAGED:
            self.barriers += any(opaque in given.waits_for for opaque, _ in mine[0])
            self.connect()
        if found is None and given.kind is not Kind.PULLS:
            found = self.pass_barrier(given)
        return found

    def pass_barrier(self, given: Round) -> str | None:
        """Waits until everything so far can be pulled."""
        send, pull = self.maker.barrier(self.barriers)
        for command in (send, pull):
            mine, theirs = self.exchange((encode(command),), frozenset((command.opaque,)))
            found = different(given, mine, theirs)
            if found is not None:
                return f"the barrier behind it: {found}"
        self.barriers += 1
        return None


def _read(frame: bytes) -> RemotingCommand | None:
    try:
        return decode(frame)
    except Exception:  # a damaged one, of which no answer has records
        return None


def different(given: Round, mine: Any, theirs: Any) -> str | None:
    """The first answer in which two sides differ, in words."""
    if mine == theirs:
        return None
    answers, others = dict(mine[0]), dict(theirs[0])
    for opaque in sorted({*answers, *others}):
        if answers.get(opaque) != others.get(opaque):
            asked = next((frame for frame in given.frames if (read := _read(frame)) and read.opaque == opaque), b"")
            shown = [repr(each.get(opaque, "nothing"))[:SHOWN_MAX] for each in (answers, others)]
            return f"{given.kind.value}, request {asked[:SHOWN_MAX]!r}: reference answers {shown[0]}, fast {shown[1]}"
    return f"{given.kind.value}, {given.frames!r}: reference ends with {mine[1]!r}, fast with {theirs[1]!r}"


@contextmanager
def pair(seed: int, folder: Path, is_sync: bool, change: Change | None = None) -> Iterator[Driver]:
    """Two new brokers, with the same topics and a connection each. They are stopped behind it. With a `change` the
    reference has a mistake."""
    with ExitStack() as stack:
        nameserver = stack.enter_context(OurNameserver(folder))
        settings = {**SETTINGS, "flushDiskType": "SYNC_FLUSH" if is_sync else "ASYNC_FLUSH"}
        port = free_port((-2, 0, 1))
        sides = []
        for engine, host in HOSTS.items():
            place = folder / engine
            place.mkdir()
            broker = OurBroker(
                place,
                nameserver.address,
                settings=settings,
                port=port,
                change=change if engine == "reference" else None,
                engine=engine,
                host=host,
            )
            stack.enter_context(broker)
            for topic, (queues, permission) in TOPICS.items():
                create(broker.address, topic, queues, permission)
            sides.append(Side(engine, broker))
            stack.callback(sides[-1].close)
        driver = Driver((sides[0], sides[1]), Maker(Random(seed)))
        driver.connect()
        yield driver


def create(address: str, topic: str, queues: int, permission: int) -> None:
    header = CreateTopicRequest(
        topic=topic,
        default_topic="TBW102",
        read_queue_nums=queues,
        write_queue_nums=0 if permission == 4 else queues,
        perm=permission,
        topic_filter_type="SINGLE_TAG",
    )
    answer = ask(address, request(RequestCode.UPDATE_AND_CREATE_TOPIC, encode_header(header)))
    assert answer.code == ResponseCode.SUCCESS, answer


def compare_pair(
    seed: int, frames: int, *, progress: bool = True, change: Change | None = None
) -> tuple[int, str | None]:
    """Sends so many frames to a new pair: how many it were, and the first difference in answers or files."""
    shown = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with pair(seed, folder, is_sync=seed % 2 == 1, change=change) as driver:
            while driver.frames < frames:
                found = driver.take(driver.maker.round())
                if found is not None:
                    return driver.frames, f"seed {seed}, after {driver.frames} frames: {found}"
                if progress and time.monotonic() - shown >= PROGRESS_EVERY_S:
                    shown = time.monotonic()
                    print(f"seed {seed}: {driver.frames} frames alike", file=sys.stderr, flush=True)
            found = driver.pass_barrier(Round(Kind.SENDS, (), frozenset()))  # one-way frames may not have been read
            if found is not None:
                return driver.frames, f"seed {seed}, after {driver.frames} frames: {found}"
        return driver.frames, compare_files(seed, folder)


def compare_files(seed: int, folder: Path) -> str | None:
    """The first file in which the two stores differ."""
    mine, theirs = (masked_store(folder / engine / "store", INDEX_SLOTS) for engine in HOSTS)
    for name in sorted({*mine, *theirs}):
        a, b = mine.get(name), theirs.get(name)
        if a != b:
            if a is None or b is None:
                return f"seed {seed}: only {'fast' if a is None else 'the reference'} has the file {name}"
            at = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            return f"seed {seed}: {name} differs at byte {at}: {a[at : at + 40]!r} and {b[at : at + 40]!r}"
    return None


def compare(seed: int, frames: int, *, progress: bool = True) -> tuple[int, str | None]:
    """Sends so many frames, to as many pairs of brokers as that takes; stops at the first difference."""
    total = 0
    while total < frames:
        count, found = compare_pair(seed, min(FRAMES_PER_PAIR, frames - total), progress=progress)
        total += count
        if found is not None:
            return total, found
        seed += 1
    return total, None
