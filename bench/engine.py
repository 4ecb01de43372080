"""What the fast engine can do, beside the real broker and a bare echo of the same frames, all in one run.

    python -m bench.engine --rounds 5 --seconds 2 --json build/bench-engine.json --plot build/bench-engine.png

The load is generated in C (`bench/native`). Each round measures every side, one after the other, and a ratio is the
median of the rounds' ratios: what the machine does otherwise, it does to all. Processor time is the server's whole
process, kernel included. `--no-real` leaves the real broker out, where there is no JDK.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from bench.broker import LARGE_LOG, ORDINARY_JVM
from bench.native_load import Answered, Arrived, arrive, echo, load, resident_bytes
from interop.ours import OurBroker, OurNameserver, ask
from interop.rocketmq import Broker, Nameserver
from refmq.errors import RefmqError
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request
from refmq.protocol.frame import encode
from refmq.protocol.headers.admin import CreateTopicRequest
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.pull import PullMessageRequest, PullSysFlag
from refmq.protocol.headers.send import SendMessageRequest, encode_send_header
from refmq.protocol.record import BatchedMessage, encode_batch, join_properties
from refmq.trace.reader import read_file, trace_files

REAL: Final = "4.9.7"
FAST: Final = "fast"
TRACED: Final = "fast with trace"
ECHO: Final = "echo"
QUEUES: Final = 8
BATCH: Final = 16
PULL: Final = 32
RATE: Final = 15_000.0
"""Sends a second at which latencies are compared: a third of what the real broker can do."""


@dataclass(frozen=True, slots=True)
class Side:
    """Somebody who is measured."""

    name: str
    port: int
    pid: int


@dataclass
class Case:
    """One thing that is measured on each side."""

    what: str
    messages: int = 1
    """In each frame."""
    rounds: dict[str, list[Answered]] = field(default_factory=dict)

    def ratio(self, of: Callable[[Answered], float], over: str, of_whom: str = FAST) -> float | None:
        """The median of the rounds' ratios; None if that side was not measured."""
        ours, theirs = self.rounds.get(of_whom, []), self.rounds.get(over, [])
        if not ours or not theirs:
            return None
        return statistics.median(of(a) / of(b) for a, b in zip(ours, theirs, strict=True))


def create(address: str, topic: str, queues: int = QUEUES) -> None:
    header = CreateTopicRequest(
        topic=topic, default_topic="TBW102", read_queue_nums=queues, write_queue_nums=queues, perm=6,
        topic_filter_type="SINGLE_TAG",
    )  # fmt: skip
    answer = ask(address, request(RequestCode.UPDATE_AND_CREATE_TOPIC, encode_header(header)))
    if answer.code != ResponseCode.SUCCESS:
        raise RefmqError(f"no topic at {address}: {answer.code} {answer.remark}")


def send_frame(topic: str, queue: int, body: bytes, *, batch: bool = False) -> bytes:
    """310 as Java sends it, with the properties that it has there."""
    properties = join_properties({"UNIQ_KEY": f"{queue:032d}", "WAIT": "true"})
    header = SendMessageRequest(
        producer_group="bench", topic=topic, default_topic="TBW102", default_topic_queue_nums=QUEUES, queue_id=queue,
        sys_flag=0, born_timestamp=int(time.time() * 1000), flag=0, properties=properties, batch=batch,
    )  # fmt: skip
    code = RequestCode.SEND_BATCH_MESSAGE if batch else RequestCode.SEND_MESSAGE_V2
    return encode(request(code, encode_send_header(header), body))


def send_frames(topic: str, size: int) -> bytes:
    return b"".join(send_frame(topic, queue, b"m" * size) for queue in range(QUEUES))


def batch_frames(topic: str, size: int) -> bytes:
    one = BatchedMessage(body=b"m" * size, properties=join_properties({"WAIT": "true"}).encode(), flag=0)
    body = encode_batch((one,) * BATCH)
    return b"".join(send_frame(topic, queue, body, batch=True) for queue in range(QUEUES))


def pull_frames(topic: str, ends: dict[int, int]) -> bytes:
    """Pulls of the whole topic, queue by queue, that begin anew at the end."""

    def pull(queue: int, offset: int) -> bytes:
        header = PullMessageRequest(
            consumer_group="bench", topic=topic, queue_id=queue, queue_offset=offset, max_msg_nums=PULL,
            sys_flag=PullSysFlag.SUBSCRIPTION, subscription="*", expression_type="TAG",
        )  # fmt: skip
        return encode(request(RequestCode.PULL_MESSAGE, encode_header(header)))

    return b"".join(
        pull(queue, offset) for queue, end in ends.items() for offset in range(0, min(end, 512 * PULL) - PULL, PULL)
    )


def arriving_frames(topic: str) -> bytes:
    """Sends that carry the time, and long pulls with a hole for their offset, as `arrive.c` wants them."""
    sends = [send_frame(topic, queue, b"refmq-at".ljust(128, b"m")) for queue in range(QUEUES)]

    def pull(queue: int) -> bytes:
        header = PullMessageRequest(
            consumer_group="bench", topic=topic, queue_id=queue, queue_offset=0, max_msg_nums=PULL,
            sys_flag=PullSysFlag.SUBSCRIPTION | PullSysFlag.SUSPEND, suspend_timeout_millis=15_000, subscription="*",
            expression_type="TAG",
        )  # fmt: skip
        fields = encode_header(header) | {"queueOffset": "@@"}
        return encode(replace(request(RequestCode.PULL_MESSAGE, fields), opaque=QUEUES + queue))

    return b"".join([*sends, *map(pull, range(QUEUES))])


def ends_of(address: str, topic: str) -> dict[int, int]:
    def end(queue: int) -> int:
        fields = {"topic": topic, "queueId": str(queue)}
        return int(ask(address, request(RequestCode.GET_MAX_OFFSET, fields)).fields["offset"])

    return {queue: end(queue) for queue in range(QUEUES)}


class Rounds:
    """Every case on every side, round by round."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._topics = 0
        self.small = Case("send of 128 bytes, 8 connections x 8")
        self.large = Case("send of 1 KiB, 2 connections x 32")
        self.batch = Case(f"batch of {BATCH} x 128 bytes", BATCH)
        self.pull = Case(f"pull of {PULL} x 128 bytes", PULL)
        self.single = Case("send of 128 bytes, one in flight")
        self.paced = Case(f"send of 128 bytes at {RATE:.0f} a second")
        self.arrived: dict[str, list[Arrived]] = {}
        self.cases = [self.small, self.large, self.batch, self.pull, self.single, self.paced]

    def measure(self, side: Side) -> None:
        self._topics += 1
        topic = f"Bench{self._topics}"
        is_broker = side.name != ECHO
        address = f"127.0.0.1:{side.port}"
        if is_broker:
            create(address, topic)
        small = send_frames(topic, 128)
        self._run(self.small, side, small, connections=8, window=8)
        self._run(self.single, side, small, connections=1, window=1)
        if side.name != TRACED:
            # Before the case that leaves most to be written: who is quicker leaves more, and would pay for it here.
            self._run(self.paced, side, small, connections=8, window=64, rate=RATE)
        self._run(self.large, side, send_frames(topic, 1024), connections=2, window=32)
        if side.name == TRACED:
            return
        if not is_broker:
            return
        self._topics += 1
        waited_for = f"Bench{self._topics}"
        create(address, waited_for)
        arrived = arrive(side.port, arriving_frames(waited_for), queues=QUEUES, seconds=self._seconds, rate=RATE)
        self.arrived.setdefault(side.name, []).append(arrived)
        self._run(self.batch, side, batch_frames(topic, 128), connections=2, window=8)
        self._topics += 1
        topic = f"Bench{self._topics}"
        create(address, topic)
        load(side.port, side.pid, send_frames(topic, 128), connections=4, window=16, seconds=1.0)
        ask(address, request(RequestCode.PULL_MESSAGE, {}))  # whatever it says, the group is made by the next
        self._run(self.pull, side, pull_frames(topic, ends_of(address, topic)), connections=2, window=4)

    def arrival_ratio(self) -> float | None:
        """Of the p99 of the way to a consumer."""
        if REAL not in self.arrived:
            return None
        pairs = zip(self.arrived[FAST], self.arrived[REAL], strict=True)
        return statistics.median(ours.p99_us / theirs.p99_us for ours, theirs in pairs)

    def _run(self, case: Case, side: Side, frames: bytes, *, connections: int, window: int, rate: float = 0) -> None:
        answered = load(
            side.port, side.pid, frames, connections=connections, window=window, seconds=self._seconds, rate=rate
        )
        case.rounds.setdefault(side.name, []).append(answered)


@contextmanager
def sides(folder: Path, *, with_real: bool) -> Iterator[list[Side]]:
    with ExitStack() as stack:
        found: list[Side] = []
        if with_real:
            names = stack.enter_context(Nameserver(folder / "real-names"))
            real = stack.enter_context(Broker(folder / "real", names.address, settings=LARGE_LOG, jvm=ORDINARY_JVM))
            found.append(Side(REAL, real.port, real.pid))
        ours = stack.enter_context(OurNameserver(folder / "our-names"))
        fast = stack.enter_context(OurBroker(folder / "fast", ours.address, "broker-f", LARGE_LOG, engine="fast"))
        traced = stack.enter_context(
            OurBroker(folder / "traced", ours.address, "broker-t", LARGE_LOG, engine="fast", trace=folder / "trace")
        )
        found += [Side(FAST, fast.port, fast.pid), Side(TRACED, traced.port, traced.pid)]
        port, pid = stack.enter_context(echo())
        found.append(Side(ECHO, port, pid))
        yield found


# --- what is measured once -------------------------------------------------------------------------------------------


def acks_per_flush(folder: Path, in_flight: int, seconds: float) -> float:
    """Sync flush: how many puts one flush makes safe, as the trace tells."""
    settings = {**LARGE_LOG, "flushDiskType": "SYNC_FLUSH"}
    trace = folder / f"flush-trace-{in_flight}"
    with OurNameserver(folder / f"flush-names-{in_flight}") as names:
        broker = OurBroker(folder / f"flush-{in_flight}", names.address, settings=settings, engine="fast", trace=trace)
        with broker:
            create(broker.address, "Flush")
            load(
                broker.port, broker.pid, send_frames("Flush", 128), connections=8, window=in_flight // 8,
                seconds=seconds,
            )  # fmt: skip
    counts = {"AckPut": 0, "FlushLog": 0}
    for path in trace_files(trace):
        for recorded in read_file(path).events:
            action = recorded.event.action
            if action in counts:
                counts[action] += 1
    return counts["AckPut"] / max(1, counts["FlushLog"])


def many_queues(folder: Path, count: int, seconds: float) -> tuple[float, int]:
    """Rate and resident memory with so many queues."""
    with OurNameserver(folder / f"queues-names-{count}") as names:
        broker = OurBroker(folder / f"queues-{count}", names.address, settings=LARGE_LOG, engine="fast")
        with broker:
            per_topic = min(count, 500)
            topics = [f"Queues{number}" for number in range(count // per_topic)]
            for topic in topics:
                create(broker.address, topic, per_topic)
            frames = b"".join(send_frame(topic, queue, b"m" * 128) for queue in range(per_topic) for topic in topics)
            made = 0
            while made < 2 * count:  # each queue has its files then
                made += load(broker.port, broker.pid, frames, connections=8, window=8, seconds=seconds).answers
            answered = load(broker.port, broker.pid, frames, connections=8, window=8, seconds=seconds)
            return answered.per_s, resident_bytes(broker.pid)


def start_and_rest(folder: Path) -> tuple[float, int]:
    """Seconds until a broker is ready, and its memory when nothing happens."""
    with OurNameserver(folder / "idle-names") as names:
        broker = OurBroker(folder / "idle", names.address, settings=LARGE_LOG, engine="fast")
        begun = time.monotonic()
        with broker:
            ready_s = time.monotonic() - begun
            time.sleep(1.0)
            return ready_s, resident_bytes(broker.pid)


def busy_python(folder: Path, seconds: float, rounds: int) -> float:
    """The p99 of sends while Python computes, to what it is when Python rests: the median of some rounds."""
    command = [sys.executable, "-m", "bench.busy_broker", str(folder / "busy")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdin is not None
        assert broker.stdout is not None
        port = int(broker.stdout.readline())
        create(f"127.0.0.1:{port}", "Busy")
        frames = send_frames("Busy", 128)

        def p99_us() -> int:
            return load(port, broker.pid, frames, connections=8, window=64, seconds=seconds, rate=RATE).p99_us

        p99_us()  # makes the files
        found = []
        for _ in range(rounds):
            calm = p99_us()
            broker.stdin.write(f"{seconds + 1}\n")
            broker.stdin.flush()
            time.sleep(0.5)
            found.append(p99_us() / calm)
            time.sleep(1.0)
        broker.stdin.close()
    return statistics.median(found)


# --- the result ------------------------------------------------------------------------------------------------------


def figures(rounds: Rounds) -> dict[str, tuple[float | None, str]]:
    """Each figure with what is asked for."""

    def rate(one: Answered) -> float:
        return one.per_s

    def cpu(one: Answered) -> float:
        return one.cpu_us

    return {
        "send 128 B, rate / 4.9.7": (rounds.small.ratio(rate, REAL), ">= 5"),
        "send 128 B, rate / echo": (rounds.small.ratio(rate, ECHO), ">= 0.7"),
        "send 128 B, cpu / 4.9.7": (rounds.small.ratio(cpu, REAL), "<= 0.067"),
        "send 128 B, cpu / echo": (rounds.small.ratio(cpu, ECHO), "<= 1.4"),
        "send 128 B, cpu with trace / without": (rounds.small.ratio(cpu, FAST, TRACED), "<= 1.2"),
        "send 1 KiB, rate / 4.9.7": (rounds.large.ratio(rate, REAL), ""),
        "send 1 KiB, cpu / echo": (rounds.large.ratio(cpu, ECHO), ""),
        "batch of 16, cpu / 4.9.7": (rounds.batch.ratio(cpu, REAL), "<= 0.1"),
        "pull of 32, cpu / 4.9.7": (rounds.pull.ratio(cpu, REAL), "<= 0.167"),
        "one in flight, p50 / echo": (rounds.single.ratio(lambda one: one.p50_us, ECHO), "<= 1.3"),
        "to a waiting consumer, p99 / 4.9.7": (rounds.arrival_ratio(), "<= 0.3"),
        "send at a fixed rate, cpu / 4.9.7": (rounds.paced.ratio(cpu, REAL), ""),
        "send at a fixed rate, cpu / echo": (rounds.paced.ratio(cpu, ECHO), ""),
        "send at a fixed rate, p99 / 4.9.7": (rounds.paced.ratio(lambda one: one.p99_us, REAL), ""),
    }


def plot(found: dict[str, tuple[float | None, str]], path: Path) -> None:
    # By name: matplotlib is an extra, and without it everything but the plot works.
    importlib.import_module("matplotlib").use("Agg")
    plt = importlib.import_module("matplotlib.pyplot")
    shown = [(name, value, wanted) for name, (value, wanted) in found.items() if value is not None][::-1]
    figure, axis = plt.subplots(figsize=(10, 4.5))
    axis.barh([name for name, _, _ in shown], [value for _, value, _ in shown])
    axis.bar_label(axis.containers[0], [f"{value:.3g}   {wanted}" for _, value, wanted in shown], padding=3)
    axis.set_xscale("log")
    axis.margins(x=0.3)
    axis.set_title("the fast engine beside the real broker and a bare echo (ratios, and what is asked for)")
    figure.tight_layout()
    figure.savefig(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each case of a round takes")
    parser.add_argument("--no-real", action="store_true", help="without the real broker")
    parser.add_argument("--queues", type=int, default=10_000, help="many queues")
    parser.add_argument("--folder", type=Path, help="where the stores go; a temporary directory by default")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    parser.add_argument("--plot", type=Path, help="draw the numbers here (needs matplotlib, extra `bench`)")
    options = parser.parse_args()
    rounds = Rounds(options.seconds)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        with sides(folder, with_real=not options.no_real) as measured:
            for side in measured:
                if side.name == REAL:
                    print("warming up 4.9.7 ...", file=sys.stderr, flush=True)
                    Rounds(5.0).measure(side)
            for number in range(options.rounds):
                for side in measured:
                    rounds.measure(side)
                    print(
                        f"round {number + 1} of {options.rounds}, {side.name}: "
                        f"{rounds.small.rounds[side.name][-1].per_s:.0f} sends/s",
                        file=sys.stderr,
                        flush=True,
                    )
        found = figures(rounds)
        print("flushes, queues, start ...", file=sys.stderr, flush=True)
        found["acknowledgements per flush, 64 in flight"] = acks_per_flush(folder, 64, options.seconds), ">= 30"
        found["acknowledgements per flush, 1024 in flight"] = acks_per_flush(folder, 1024, options.seconds), ">= 300"
        few, _ = many_queues(folder, QUEUES, options.seconds)
        many, memory = many_queues(folder, options.queues, options.seconds)
        found[f"{options.queues} queues, rate / 8 queues"] = many / few, ">= 0.95"
        found[f"{options.queues} queues, resident MB"] = memory / 1e6, "<= 150"
        found["p99 while Python is busy / calm"] = busy_python(folder, options.seconds, options.rounds), "<= 2"
        ready_s, idle = start_and_rest(folder)
        found["ready after, s"] = ready_s, "<= 1"
        found["idle, resident MB"] = idle / 1e6, "<= 60"
    for case in rounds.cases:
        for side_name, answered in case.rounds.items():
            per_s = statistics.median(one.per_s for one in answered) * case.messages
            cpu_us = statistics.median(one.cpu_us for one in answered) / case.messages
            p50, p99 = (
                statistics.median(times) for times in zip(*((o.p50_us, o.p99_us) for o in answered), strict=True)
            )
            print(f"{case.what:42} {side_name:16} {per_s:>10.0f}/s {cpu_us:>8.2f} us  p50 {p50:>6.0f}  p99 {p99:>6.0f}")
    for side_name, messages in rounds.arrived.items():
        p50, p99 = (statistics.median(times) for times in zip(*((o.p50_us, o.p99_us) for o in messages), strict=True))
        print(f"{'to a waiting consumer':42} {side_name:16} {'':>12} {'':>11}  p50 {p50:>6.0f}  p99 {p99:>6.0f}")
    for figure_name, (value, wanted) in found.items():
        print(f"{figure_name:44} {'-' if value is None else format(value, '.3g'):>8}   {wanted}")
    if options.json is not None:
        document = {name: {"value": value, "asked": wanted} for name, (value, wanted) in found.items()}
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.plot is not None:
        plot(found, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
