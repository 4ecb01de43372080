"""What recording a trace costs a broker, as a share of what a send costs without it.

    python -m bench.trace [--messages 3000] [--rounds 5] [--json FILE]

Two brokers run side by side as processes of their own, one with `--trace` and one without. They get the same messages
of 1 KiB over loopback, in turns, many requests at a time. Measured is the CPU time that each broker process spends per
send, from the kernel's books: it does not depend on whether the sender keeps up, and little on who else uses the
machine. The rates that the sender saw are shown as well. Each round gives one ratio; the median is the result.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from refmq.net.client import Client
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.send import SendMessageRequest
from refmq.protocol.record import join_properties
from refmq.trace.reader import read_file, trace_files

BODY_BYTES = 1024
IN_FLIGHT = 32
SHARE_MAX = 0.05
"""Recording may cost this share of a send."""
START_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of both brokers."""

    plain_us: float
    traced_us: float
    plain_per_s: float
    traced_per_s: float

    @property
    def share(self) -> float:
        return self.traced_us / self.plain_us - 1


class ServedBroker:
    """`refmq serve` in a process of its own."""

    def __init__(self, folder: Path, trace: Path | None) -> None:
        command = [sys.executable, "-m", "refmq", "serve", "--port", "0", "--broker-port", "0", "--dir", str(folder)]
        if trace is not None:
            command += ["--trace", str(trace)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.address = self._address()

    def _address(self) -> str:
        """Where the broker listens, read from what it says at its start."""
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line)
            found = re.search(r"broker\D*(127\.0\.0\.1:\d+)", line)
            if found:
                return found.group(1)
        raise RuntimeError(f"the broker did not start: {''.join(said)}")

    def cpu_s(self) -> float:
        """What all threads of the process have spent on a CPU so far, as the scheduler counts it."""
        threads = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(START_TIMEOUT_S)


def send_command(number: int) -> RemotingCommand:
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
    return request(RequestCode.SEND_MESSAGE, encode_header(header), b"x" * BODY_BYTES)


async def send_all(client: Client, address: str, first: int, count: int) -> float:
    """Sends messages with a fixed number of requests in flight; seconds that it took."""
    numbers = iter(range(first, first + count))
    begin = time.perf_counter()

    async def worker() -> None:
        for number in numbers:
            answer = await client.invoke(address, send_command(number), 30)
            assert answer.code == ResponseCode.SUCCESS, answer.remark

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    return time.perf_counter() - begin


async def measure(plain: ServedBroker, traced: ServedBroker, messages: int, rounds: int) -> list[Round]:
    client = Client()
    measured = []
    for broker in (plain, traced):
        await send_all(client, broker.address, 0, messages // 4)  # warm-up: the topic, the first files, the caches
    for number in range(rounds):
        costs: dict[ServedBroker, tuple[float, float]] = {}
        for broker in (plain, traced) if number % 2 else (traced, plain):
            before_s = broker.cpu_s()
            elapsed_s = await send_all(client, broker.address, (number + 1) * messages, messages)
            costs[broker] = ((broker.cpu_s() - before_s) / messages * 1e6, messages / elapsed_s)
        measured.append(Round(costs[plain][0], costs[traced][0], costs[plain][1], costs[traced][1]))
    await client.close()
    return measured


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        plain = ServedBroker(root / "plain", None)
        traced = ServedBroker(root / "traced", root / "trace")
        try:
            rounds = asyncio.run(measure(plain, traced, arguments.messages, arguments.rounds))
        finally:
            plain.stop()
            traced.stop()
        files = [read_file(path) for path in trace_files(root / "trace")]
    events, dropped = sum(len(file.events) for file in files), sum(file.dropped_count for file in files)
    share = statistics.median(each.share for each in rounds)
    for each in rounds:
        print(
            f"{each.plain_us:7.0f} us plain  {each.traced_us:7.0f} us traced  {each.share:+7.1%}"
            f"   {each.plain_per_s:6.0f}/s  {each.traced_per_s:6.0f}/s"
        )
    verdict = "within" if share <= SHARE_MAX else "ABOVE"
    print(f"median {share:+.1%} CPU per send, {verdict} {SHARE_MAX:.0%}; {events} events, {dropped} dropped")
    if arguments.json:
        result = {
            "machine": platform.platform(),
            "share": share,
            "share_max": SHARE_MAX,
            "events": events,
            "dropped": dropped,
            "rounds": [asdict(each) for each in rounds],
        }
        arguments.json.write_text(json.dumps(result, indent=2))
    return 0 if share <= SHARE_MAX else 3


if __name__ == "__main__":
    sys.exit(main())
