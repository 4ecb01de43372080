"""What recording a trace costs a broker, as a share of what a send costs without it.

    python -m bench.trace [--rounds 200] [--json FILE]

Brokers run in one process, on real files and real sockets: one without a trace, one with, and where the extension was
built one more, which packs its events without it. A producer in another process sends messages of 1 KiB to them in
turns, a small batch each, a few at a time. Measured is CPU time of the brokers' thread, plus that of the thread that
writes the trace: time that other processes take on the machine does not count, but their use of caches does, and it
only ever adds. So the result compares the fastest fifth of the batches of each side; the ratios of single rounds, and
their quartiles, show how noisy the machine was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import socket
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import refmq_fast
from refmq.model.broker_config import BrokerConfig
from refmq.net.broker_node import BrokerNode
from refmq.net.engine import reference_engine
from refmq.net.files import RealDisk
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request
from refmq.protocol.frame import FrameDecoder, encode
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.send import SendMessageRequest
from refmq.protocol.record import join_properties
from refmq.store.config import StoreConfig
from refmq.trace.page import NewPage, PlainPage
from refmq.trace.writer import TraceWriter

BODY_BYTES = 1024
BATCH = 100
WINDOW = 8
"""Requests that the producer has under way."""
WARM_UP_ROUNDS = 20
TIMEOUT_S = 60.0
SHARE_MAX = 0.05
"""Recording may cost this share of a send."""
STORE = StoreConfig(log_file_bytes=64 << 20, queue_file_bytes=20 * 4096, index_slots=1000, index_entries=4000)


def send_bytes(number: int) -> bytes:
    header = SendMessageRequest(
        producer_group="bench",
        topic="bench",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=number % 4,
        sys_flag=0,
        born_timestamp=1_700_000_000_000,
        flag=0,
        properties=join_properties({"UNIQ_KEY": f"{number:032X}", "WAIT": "true"}),
    )
    return encode(request(RequestCode.SEND_MESSAGE, encode_header(header), b"x" * BODY_BYTES))


def produce() -> None:
    """The producer: for every line `port first` on its standard input a batch of sends, and a line when it is done."""
    connections: dict[str, tuple[socket.socket, FrameDecoder]] = {}
    for line in sys.stdin:
        port, first = line.split()
        if port not in connections:
            connections[port] = (socket.create_connection(("127.0.0.1", int(port))), FrameDecoder())
        connection, decoder = connections[port]
        waiting = [send_bytes(number) for number in range(int(first), int(first) + BATCH)]
        answered = 0
        connection.sendall(b"".join(waiting[:WINDOW]))
        del waiting[:WINDOW]
        while answered < BATCH:
            for answer in decoder.feed(connection.recv(1 << 16)):
                assert answer.code == ResponseCode.SUCCESS, answer.remark
                answered += 1
                if waiting:
                    connection.sendall(waiting.pop(0))
        print("done", flush=True)


async def started(folder: Path, trace: TraceWriter | None) -> tuple[BrokerNode, int]:
    disk = RealDisk(folder)
    engine = reference_engine(disk, STORE, recorder=trace)
    node = BrokerNode(BrokerConfig(listen_port=0), STORE, disk, engine, recorder=trace)
    return node, (await node.start("127.0.0.1"))[1]


async def send_batch(producer: asyncio.subprocess.Process, port: int, first: int) -> float:
    """CPU microseconds of the brokers' thread per send, over one batch."""
    assert producer.stdin is not None and producer.stdout is not None
    begin_s = time.thread_time()
    producer.stdin.write(f"{port} {first}\n".encode())
    line = await asyncio.wait_for(producer.stdout.readline(), TIMEOUT_S)
    assert line == b"done\n", line
    return (time.thread_time() - begin_s) / BATCH * 1e6


@dataclass
class Side:
    """A broker, and what a send costs it."""

    name: str
    trace: TraceWriter | None = None
    node: BrokerNode | None = None
    port: int = 0
    times_us: list[float] = field(default_factory=list)
    """Of the brokers' thread, one for each round."""
    writer_us: float = 0.0
    """Of the thread that writes the trace."""

    @property
    def fast_us(self) -> float:
        """The mean of the fastest fifth, and the writer's share."""
        return statistics.fmean(sorted(self.times_us)[: max(1, len(self.times_us) // 5)]) + self.writer_us

    def writer_cpu_s(self) -> float:
        if self.trace is None:
            return 0.0
        assert self.trace._thread.ident is not None
        return time.clock_gettime(time.pthread_getcpuclockid(self.trace._thread.ident))


def make_sides(root: Path) -> list[Side]:
    pages: list[tuple[str, NewPage]] = [("a trace", PlainPage)]
    if refmq_fast.AVAILABLE:
        pages = [("a trace", refmq_fast.TracePage), ("a trace, no extension", PlainPage)]
    traced = [
        Side(name, TraceWriter(root / f"trace-{number}", f"broker-{number}", new_page=new_page))
        for number, (name, new_page) in enumerate(pages)
    ]
    return [Side("no trace"), *traced]


async def measure(root: Path, rounds: int) -> list[Side]:
    """The broker without a trace, the one with a trace as users have it, and perhaps one more."""
    sides = make_sides(root)
    for side in sides:
        side.node, side.port = await started(root / f"store-{side.name}", side.trace)
    pipe = asyncio.subprocess.PIPE
    producer = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.trace", "--produce", stdin=pipe, stdout=pipe
    )
    try:
        for number in range(-WARM_UP_ROUNDS, rounds):
            if number == 0:
                before_s = [side.writer_cpu_s() for side in sides]
            turn = number % len(sides)
            for side in sides[turn:] + sides[:turn]:
                taken_us = await send_batch(producer, side.port, (number + WARM_UP_ROUNDS) * BATCH)
                if number >= 0:
                    side.times_us.append(taken_us)
        await asyncio.sleep(1)  # the writers take what is left
    finally:
        producer.kill()
        await producer.wait()
    for side, begin_s in zip(sides, before_s, strict=True):
        side.writer_us = (side.writer_cpu_s() - begin_s) / (rounds * BATCH) * 1e6
        assert side.node is not None
        await side.node.stop(5)
        if side.trace is not None:
            side.trace.close()
    return sides


def report(plain: Side, traced: Side) -> dict[str, object]:
    """Says what a trace costs, and the same as numbers."""
    share = traced.fast_us / plain.fast_us - 1
    ratios = [(b + traced.writer_us) / a - 1 for a, b in zip(plain.times_us, traced.times_us, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    dropped = 0 if traced.trace is None else traced.trace.dropped_count
    verdict = "within" if share <= SHARE_MAX else "ABOVE"
    print(
        f"{traced.name:<22} {traced.fast_us:6.1f} us ({traced.writer_us:.1f} in the writer's thread): {share:+.1%}, "
        f"{verdict} {SHARE_MAX:.0%}; single rounds {low:+.1%} to {high:+.1%} (quartiles); {dropped} events dropped"
    )
    return {
        "traced_us": traced.fast_us,
        "writer_us": traced.writer_us,
        "share": share,
        "quartiles": [low, high],
        "dropped": dropped,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--produce", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.produce:
        produce()
        return 0
    with tempfile.TemporaryDirectory() as folder:
        plain, *traced = asyncio.run(measure(Path(folder), arguments.rounds))
    print(f"the extension: {refmq_fast.REASON}")
    print(f"{plain.name:<22} {plain.fast_us:6.1f} us for a send")
    results = {side.name: report(plain, side) for side in traced}
    if arguments.json:
        result = {
            "machine": platform.platform(),
            "extension": refmq_fast.AVAILABLE,
            "plain_us": plain.fast_us,
            "share_max": SHARE_MAX,
            "sides": results,
        }
        arguments.json.write_text(json.dumps(result, indent=2))
    return 0 if traced[0].fast_us <= plain.fast_us * (1 + SHARE_MAX) else 3


if __name__ == "__main__":
    sys.exit(main())
