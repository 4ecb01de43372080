"""What a broker does in a second and what a message costs it: both engines of refmq beside the real 4.9.7, in one run.

    python -m bench.broker [--rounds 10] [--seconds 2] [--body 1024] [--connections 2] [--json FILE] [--plot FILE]

| measured | what is timed                                                                                             |
|----------|-----------------------------------------------------------------------------------------------------------|
| send     | messages acknowledged in a second, 64 under way all the time, 8 queues, async flush (the default of both) |
| pull     | reading all of them back, 32 at a time, one pull of each queue under way                                  |
| cpu      | processor time of the broker's process per message, from /proc: all its threads, user and system          |
| client   | the share of one core that the client took: near 100 % would mean that the client was measured            |

All brokers run all the time and are asked in turns by the same client, each with a nameserver of its own kind; those
that are not asked do nothing. The real one gets an ordinary JVM (server compiler, G1, 1 GiB) and is warmed up until it
is compiled. After each round the queues must hold exactly what was acknowledged. The figures are the medians of the
rounds, and a ratio is the median of the ratios of rounds that followed each other. On a machine that does other things
besides, rates favour the broker with more threads: it gets more of the processor. The ratio of processor time per
message is then the better figure.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Protocol

import refmq_fast
from bench.load import Load, SendSlots, pull_all, send_for, wires
from interop.ours import OurBroker, OurNameserver, ask
from interop.rocketmq import Broker, Nameserver
from refmq.errors import RefmqError
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request
from refmq.protocol.headers.admin import CreateTopicRequest
from refmq.protocol.headers.codec import encode_header

REAL: Final = "4.9.7"
REFERENCE: Final = "refmq"
FAST: Final = "refmq fast"
WINDOW: Final = 64
QUEUES: Final = 8
WARM_UP_S: Final = 10.0
"""After so long the real broker's rate does not rise any more."""

RATIO_MIN: Final = 0.1
"""The reference is asked for a tenth of the real broker's rate."""

ORDINARY_JVM: Final = ("-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-Xms1g", "-Xmx1g")
LARGE_LOG: Final = {"mappedFileSizeCommitLog": str(256 << 20)}
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


class Running(Protocol):
    """A broker process, ours or the real one."""

    address: str
    port: int

    @property
    def pid(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Round:
    """One load on one broker."""

    load: Load
    broker_cpu_s: float

    @property
    def cpu_us(self) -> float:
        return self.broker_cpu_s / self.load.messages * 1e6

    @property
    def client_share(self) -> float:
        return self.load.client_cpu_s / self.load.wall_s


@dataclass
class Measured:
    """The rounds of one broker."""

    name: str
    sends: list[Round] = field(default_factory=list)
    pulls: list[Round] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the result: medians."""

    broker: str
    what: str
    messages_per_s: float
    cpu_us_per_message: float
    client_share: float
    rounds: list[float]
    """Messages per second of each round."""
    cpu_us_rounds: list[float]


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def make_topic(broker: Running, topic: str) -> None:
    header = CreateTopicRequest(
        topic=topic, default_topic="TBW102", read_queue_nums=QUEUES, write_queue_nums=QUEUES, perm=6,
        topic_filter_type="SINGLE_TAG",
    )  # fmt: skip
    answer = ask(broker.address, request(RequestCode.UPDATE_AND_CREATE_TOPIC, encode_header(header)))
    if answer.code != ResponseCode.SUCCESS:
        raise RefmqError(f"no topic at {broker.address}: {answer.code} {answer.remark}")


def ends_of(broker: Running, topic: str) -> dict[int, int]:
    def end(queue: int) -> int:
        fields = {"topic": topic, "queueId": str(queue)}
        return int(ask(broker.address, request(RequestCode.GET_MAX_OFFSET, fields)).fields["offset"])

    return {queue: end(queue) for queue in range(QUEUES)}


class Bench:
    """The same rounds for each broker."""

    def __init__(self, connections: int, body: bytes) -> None:
        self._connections = connections
        self._body = body
        self._keys = 0
        self._topics = 0

    def round(self, broker: Running, seconds: float) -> tuple[Round, Round]:
        """Sends for some time to a topic of its own, then pulls everything."""
        self._topics += 1
        topic = f"Bench{self._topics}"
        make_topic(broker, topic)
        with wires(broker.port, self._connections) as opened:
            slots = SendSlots(topic, QUEUES, self._body, WINDOW, self._keys)
            before = cpu_seconds(broker.pid)
            sent = send_for(opened, slots, WINDOW, seconds)
            send = Round(sent, cpu_seconds(broker.pid) - before)
            self._keys += sent.messages
            ends = ends_of(broker, topic)
            if sum(ends.values()) != sent.messages:
                raise RefmqError(f"{sent.messages} sends were acknowledged, {sum(ends.values())} messages are there")
            before = cpu_seconds(broker.pid)
            pulled = pull_all(opened, topic, ends)
            return send, Round(pulled, cpu_seconds(broker.pid) - before)


def summarise(measured: Measured) -> list[Line]:
    def line(what: str, rounds: list[Round]) -> Line:
        return Line(
            broker=measured.name,
            what=what,
            messages_per_s=statistics.median(each.load.per_s for each in rounds),
            cpu_us_per_message=statistics.median(each.cpu_us for each in rounds),
            client_share=statistics.median(each.client_share for each in rounds),
            rounds=[each.load.per_s for each in rounds],
            cpu_us_rounds=[each.cpu_us for each in rounds],
        )

    return [line("send", measured.sends), line("pull", measured.pulls)]


def ratios(lines: list[Line]) -> dict[str, float]:
    """Ours to theirs: rates, and processor time per message."""
    by_name = {(line.broker, line.what): line for line in lines}
    found: dict[str, float] = {}
    for name in dict.fromkeys(line.broker for line in lines if line.broker != REAL):
        for what in ("send", "pull"):
            ours, real = by_name[name, what], by_name[REAL, what]
            found[f"{name} {what} rate"] = in_pairs(ours.rounds, real.rounds)
            found[f"{name} {what} cpu"] = in_pairs(ours.cpu_us_rounds, real.cpu_us_rounds)
    return found


def in_pairs(ours: list[float], real: list[float]) -> float:
    return statistics.median(mine / theirs for mine, theirs in zip(ours, real, strict=True))


def plot(lines: list[Line], ratio: dict[str, float], path: Path) -> None:
    # By name: matplotlib is an extra, and without it everything but the plot works.
    importlib.import_module("matplotlib").use("Agg")
    plt = importlib.import_module("matplotlib.pyplot")
    figure, (rates, costs) = plt.subplots(1, 2, figsize=(10, 3.5))
    labels = [f"{line.what}, {line.broker}" for line in lines][::-1]
    for axis, values, title in (
        (rates, [line.messages_per_s for line in lines], "messages per second"),
        (costs, [line.cpu_us_per_message for line in lines], "microseconds of the broker's processor per message"),
    ):
        axis.barh(labels, values[::-1])
        axis.bar_label(axis.containers[0], fmt="%.0f", padding=3)
        axis.set_xlabel(title)
        axis.margins(x=0.2)
    said = (
        f"{name} sends at {ratio[f'{name} send rate']:.2f}, pulls at {ratio[f'{name} pull rate']:.2f}"
        for name in (REFERENCE, FAST)
        if f"{name} send rate" in ratio
    )
    figure.suptitle("; ".join(said) + " of 4.9.7's rate")
    figure.tight_layout()
    figure.savefig(path)


def measure(options: argparse.Namespace, folder: Path) -> list[Line]:
    bench = Bench(options.connections, b"m" * options.body)
    with ExitStack() as stack:
        real_names = stack.enter_context(Nameserver(folder / "real-names"))
        our_names = stack.enter_context(OurNameserver(folder / "our-names"))
        real = stack.enter_context(
            Broker(folder / "real", real_names.address, settings=LARGE_LOG, jvm=ORDINARY_JVM),
        )
        ours = stack.enter_context(
            OurBroker(folder / "ours", our_names.address, settings=LARGE_LOG, engine="reference"),
        )
        sides: list[tuple[Measured, Running]] = [(Measured(REAL), real), (Measured(REFERENCE), ours)]
        if refmq_fast.AVAILABLE:
            fast = OurBroker(folder / "fast", our_names.address, "broker-f", LARGE_LOG, engine="fast")
            sides.append((Measured(FAST), stack.enter_context(fast)))
        for measured, broker in sides:
            print(f"warming up {measured.name} ...", file=sys.stderr, flush=True)
            bench.round(broker, WARM_UP_S if measured.name == REAL else 1.0)
        for number in range(options.rounds):
            for measured, broker in sides:
                send, pull = bench.round(broker, options.seconds)
                measured.sends.append(send)
                measured.pulls.append(pull)
                print(
                    f"round {number + 1} of {options.rounds}, {measured.name}: "
                    f"{send.load.per_s:.0f} sends/s, {pull.load.per_s:.0f} pulled/s",
                    file=sys.stderr,
                    flush=True,
                )
        return [line for measured, _ in sides for line in summarise(measured)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each round sends")
    parser.add_argument("--body", type=int, default=1024, help="bytes of a message's body")
    parser.add_argument("--connections", type=int, default=2, help="connections that share the 64 requests")
    parser.add_argument("--folder", type=Path, help="where the stores go; a temporary directory by default")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    parser.add_argument("--plot", type=Path, help="draw the numbers here (needs matplotlib, extra `bench`)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        lines = measure(options, Path(folder))
    ratio = ratios(lines)
    print(f"{'':16}{'messages/s':>12}{'cpu us/message':>16}{'client':>9}   rounds")
    for line in lines:
        rounds = " ".join(f"{value:.0f}" for value in line.rounds)
        print(
            f"{line.what + ' ' + line.broker:16}{line.messages_per_s:>12.0f}{line.cpu_us_per_message:>16.1f}"
            f"{line.client_share:>8.0%}   {rounds}"
        )
    for what, value in ratio.items():
        print(f"{what} / that of 4.9.7 = {value:.3f}")
    print(f"(a send rate of at least {RATIO_MIN:g} is asked for of the reference)")
    if options.json is not None:
        machine = f"{platform.machine()} {platform.python_implementation()} {platform.python_version()}"
        document = {"machine": machine, "lines": [asdict(line) for line in lines], "ratio": ratio}
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.plot is not None:
        plot(lines, ratio, options.plot)
    return 0 if min(ratio[f"{REFERENCE} send rate"], ratio[f"{REFERENCE} pull rate"]) >= RATIO_MIN else 3


if __name__ == "__main__":
    sys.exit(main())
