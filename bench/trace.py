"""What recording a trace costs a broker, as a share of what a send costs without it.

    python -m bench.trace [--rounds 200] [--json FILE]

Two brokers run in one process, on real files, one with a trace and one without. They get the same messages of 1 KiB in
turns, a small batch each. A send is everything from the bytes of the request to the bytes of the answer and the
dispatch to its queue; only the socket is left out, so a real send costs more and the share is rather too large.
Measured is CPU time of the thread, plus that of the thread that encodes and writes the trace: time that other processes
take on the machine does not count. Each round gives one ratio; the median is the result.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from refmq.broker.config import BrokerConfig
from refmq.net.broker import BrokerNode
from refmq.net.connection import Connection
from refmq.net.files import RealDisk
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.frame import FrameDecoder, encode
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.send import SendMessageRequest
from refmq.protocol.record import join_properties
from refmq.store.config import StoreConfig
from refmq.store.store import ReferenceStore
from refmq.trace.writer import TraceWriter

BODY_BYTES = 1024
BATCH = 50
WARM_UP_ROUNDS = 20
SHARE_MAX = 0.05
"""Recording may cost this share of a send."""
STORE = StoreConfig(log_file_bytes=64 << 20, queue_file_bytes=20 * 4096, index_slots=1000, index_entries=4000)


class Sender:
    """The other end of a connection, as far as a send looks at it."""

    number = 1
    peer = "127.0.0.1:40000"
    closed = False

    def on_close(self, callback: Callable[[Any], None]) -> None:
        """It never closes."""


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


async def started(folder: Path, trace: TraceWriter | None) -> BrokerNode:
    disk = RealDisk(folder)
    store = ReferenceStore(disk, STORE, emit=trace.record if trace is not None else None)
    node = BrokerNode(BrokerConfig(listen_port=0), STORE, disk, store, recorder=trace)
    await node.start("127.0.0.1")
    return node


async def send_batch(node: BrokerNode, first: int) -> float:
    """CPU microseconds per send, over one batch."""
    sender, decoder = cast("Connection", Sender()), FrameDecoder()
    requests = [send_bytes(number) for number in range(first, first + BATCH)]
    begin_s = time.thread_time()
    for data in requests:
        for command in decoder.feed(data):
            answer = node._serve(sender, command)
            if inspect.isawaitable(answer):
                answer = await answer
            assert isinstance(answer, RemotingCommand)
            assert answer.code == ResponseCode.SUCCESS, answer.remark
            encode(answer)
        await asyncio.sleep(0)  # the dispatch has its turn
    return (time.thread_time() - begin_s) / BATCH * 1e6


def writer_cpu_s(trace: TraceWriter) -> float:
    assert trace._thread.ident is not None
    return time.clock_gettime(time.pthread_getcpuclockid(trace._thread.ident))


async def measure(root: Path, rounds: int) -> tuple[list[float], list[float], float, int]:
    """Microseconds per send without and with a trace, those of the writer's thread, and how many were dropped."""
    trace = TraceWriter(root / "trace", "broker-a")
    plain, traced = await started(root / "plain", None), await started(root / "traced", trace)
    without, with_trace = [], []
    before_s = 0.0
    for number in range(-WARM_UP_ROUNDS, rounds):
        if number == 0:
            before_s = writer_cpu_s(trace)
        pair = {}
        for node in (plain, traced) if number % 2 else (traced, plain):
            pair[node] = await send_batch(node, (number + WARM_UP_ROUNDS) * BATCH)
        if number >= 0:
            without.append(pair[plain])
            with_trace.append(pair[traced])
    await asyncio.sleep(1)  # the writer takes what is left
    writer_us = (writer_cpu_s(trace) - before_s) / (rounds * BATCH) * 1e6
    for node in (plain, traced):
        await node.stop(5)
    trace.close()
    return without, with_trace, writer_us, trace.dropped_count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        without, with_trace, writer_us, dropped = asyncio.run(measure(Path(folder), arguments.rounds))
    ratios = [(traced + writer_us) / plain for plain, traced in zip(without, with_trace, strict=True)]
    share = statistics.median(ratios) - 1
    low, _, high = statistics.quantiles(ratios, n=4)
    plain_us, traced_us = statistics.median(without), statistics.median(with_trace)
    print(f"a send without a trace      {plain_us:6.1f} us")
    print(f"a send with a trace         {traced_us:6.1f} us, and {writer_us:.1f} us in the writer's thread")
    print(f"share of a send             {share:+.1%} (quartiles {low - 1:+.1%} to {high - 1:+.1%})")
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
