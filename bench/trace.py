"""What recording a trace costs a broker, as a share of what a send costs without it.

    python -m bench.trace [--rounds 200] [--json FILE]

Two brokers run in one process, on real files and real sockets, one with a trace and one without. A producer in another
process sends messages of 1 KiB to them in turns, a small batch each, a few at a time. Measured is CPU time of the
brokers' thread, plus that of the thread that writes the trace: time that other processes take on the machine does not
count, but their use of caches does, and it only ever adds. So the result compares the fastest fifth of the batches of
each side; the ratios of single rounds, and their quartiles, show how noisy the machine was.
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
from pathlib import Path

from refmq.broker.config import BrokerConfig
from refmq.net.broker import BrokerNode
from refmq.net.files import RealDisk
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request
from refmq.protocol.frame import FrameDecoder, encode
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.send import SendMessageRequest
from refmq.protocol.record import join_properties
from refmq.store.config import StoreConfig
from refmq.store.store import ReferenceStore
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
    store = ReferenceStore(disk, STORE, emit=trace.record if trace is not None else None)
    node = BrokerNode(BrokerConfig(listen_port=0), STORE, disk, store, recorder=trace)
    return node, (await node.start("127.0.0.1"))[1]


async def send_batch(producer: asyncio.subprocess.Process, port: int, first: int) -> float:
    """CPU microseconds of the brokers' thread per send, over one batch."""
    assert producer.stdin is not None and producer.stdout is not None
    begin_s = time.thread_time()
    producer.stdin.write(f"{port} {first}\n".encode())
    line = await asyncio.wait_for(producer.stdout.readline(), TIMEOUT_S)
    assert line == b"done\n", line
    return (time.thread_time() - begin_s) / BATCH * 1e6


def writer_cpu_s(trace: TraceWriter) -> float:
    assert trace._thread.ident is not None
    return time.clock_gettime(time.pthread_getcpuclockid(trace._thread.ident))


async def measure(root: Path, rounds: int) -> tuple[list[float], list[float], float, int]:
    """Microseconds per send without and with a trace, those of the writer's thread, and how many were dropped."""
    trace = TraceWriter(root / "trace", "broker-a")
    brokers = await started(root / "plain", None), await started(root / "traced", trace)
    pipe = asyncio.subprocess.PIPE
    producer = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.trace", "--produce", stdin=pipe, stdout=pipe
    )
    times: tuple[list[float], list[float]] = ([], [])
    before_s = 0.0
    try:
        for number in range(-WARM_UP_ROUNDS, rounds):
            if number == 0:
                before_s = writer_cpu_s(trace)
            for side in (0, 1) if number % 2 else (1, 0):
                taken_us = await send_batch(producer, brokers[side][1], (number + WARM_UP_ROUNDS) * BATCH)
                if number >= 0:
                    times[side].append(taken_us)
        await asyncio.sleep(1)  # the writer takes what is left
    finally:
        producer.kill()
        await producer.wait()
    writer_us = (writer_cpu_s(trace) - before_s) / (rounds * BATCH) * 1e6
    for node, _ in brokers:
        await node.stop(5)
    trace.close()
    return *times, writer_us, trace.dropped_count


def fast(times_us: list[float]) -> float:
    """The mean of the fastest fifth."""
    return statistics.fmean(sorted(times_us)[: max(1, len(times_us) // 5)])


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
        without, with_trace, writer_us, dropped = asyncio.run(measure(Path(folder), arguments.rounds))
    ratios = [(traced + writer_us) / plain for plain, traced in zip(without, with_trace, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    plain_us, traced_us = fast(without), fast(with_trace)
    share = (traced_us + writer_us) / plain_us - 1
    print(f"a send without a trace      {plain_us:6.1f} us")
    print(f"a send with a trace         {traced_us:6.1f} us, and {writer_us:.1f} us in the writer's thread")
    print(f"share of a send             {share:+.1%} (single rounds: quartiles {low - 1:+.1%} to {high - 1:+.1%})")
    print(f"{'within' if share <= SHARE_MAX else 'ABOVE'} {SHARE_MAX:.0%}; {dropped} events dropped")
    if arguments.json:
        result = {
            "machine": platform.platform(),
            "plain_us": plain_us,
            "traced_us": traced_us,
            "writer_us": writer_us,
            "share": share,
            "quartiles": [low - 1, high - 1],
            "share_max": SHARE_MAX,
            "dropped": dropped,
        }
        arguments.json.write_text(json.dumps(result, indent=2))
    return 0 if share <= SHARE_MAX else 3


if __name__ == "__main__":
    sys.exit(main())
