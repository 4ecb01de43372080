"""What our client does in a second, beside the wheel `rocketmq` 0.4.4 and nats-py, in one run.

    python -m bench.client --others PYTHON [--rounds 3] [--messages 20000] [--json FILE] [--plot FILE]

| measured   | what is timed                                                                                        |
|------------|------------------------------------------------------------------------------------------------------|
| sequential | sends of 1 KiB, each after the answer to the one before                                              |
| in flight  | the same with 64 under way all the time; the wheel, which only blocks, does it with 64 threads       |
| consume    | from the first message to the last; every message is acknowledged or its offset committed            |
| cpu        | processor time of the client's process per message                                                   |

Ours and the wheel use one real RocketMQ 4.9.7; nats-py uses JetStream of `nats-server`, which acknowledges what it has
stored. Each contestant is a process of its own and they take turns. ``--others`` is the Python of an environment with
`rocketmq==0.4.4` and `nats-py`. A contestant that is not there is left out, with a line that says so. Figures are
medians of the rounds, ratios the medians of the ratios of rounds that followed each other.
"""

from __future__ import annotations

import argparse
import importlib
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bench.broker import LARGE_LOG, ORDINARY_JVM, make_topic
from interop.processes import accepts, free_port, wait_until
from interop.rocketmq import Broker, Nameserver
from refmq.errors import RefmqError

WORKER: Final = Path(__file__).parent / "client_worker.py"
KINDS: Final = ("sequential", "in flight", "consume")
NAMES: Final = {"refmq": "refmq", "wheel": "rocketmq 0.4.4", "nats": "nats-py"}
WORKER_TIMEOUT_S: Final = 600
PLOTTED: Final = {"per_s": "messages per second", "cpu_us": "µs of processor time per message"}
COLOURS: Final = ("tab:blue", "tab:gray", "tab:green")

Result = dict[str, dict[str, float]]


@contextmanager
def nats_server(folder: Path) -> Iterator[str]:
    port = free_port()
    command = ["nats-server", "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: accepts(port), "nats-server", 30)
        yield f"127.0.0.1:{port}"
    finally:
        child.terminate()
        child.wait(30)


def work(python: str, kind: str, address: str, topic: str, messages: int) -> Result:
    command = [python, str(WORKER), kind, address, topic, str(messages)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WORKER_TIMEOUT_S, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("result "):
            found: Result = json.loads(line.removeprefix("result "))
            return found
    raise RefmqError(f"{NAMES[kind]} failed: {(done.stderr or done.stdout)[-800:]}")


def has(python: str | None, module: str) -> bool:
    if python is None:
        return False
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def run(options: argparse.Namespace) -> dict[str, list[Result]]:
    found: dict[str, list[Result]] = {"refmq": []}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="refmq-bench-")))
        nameserver = stack.enter_context(Nameserver(folder / "names"))
        broker = Broker(folder / "broker", nameserver.address, settings=LARGE_LOG, jvm=ORDINARY_JVM)
        stack.enter_context(broker)
        addresses = {"refmq": nameserver.address}
        if has(options.others, "rocketmq.client"):
            addresses["wheel"] = nameserver.address
        if shutil.which("nats-server") is not None and has(options.others, "nats"):
            addresses["nats"] = stack.enter_context(nats_server(folder / "nats"))
        for kind in NAMES:
            if kind not in addresses:
                print(f"{NAMES[kind]} is not there and is left out")
        for number in range(options.rounds + 1):
            for kind, address in addresses.items():
                topic = f"Bench{kind}{number}"
                if kind != "nats":
                    make_topic(broker, topic)
                python = sys.executable if kind == "refmq" else options.others
                result = work(python, kind, address, topic, options.messages)
                if number > 0:  # the first round warms the servers up
                    found.setdefault(kind, []).append(result)
    return found


def report(found: dict[str, list[Result]]) -> dict[str, dict[str, dict[str, float]]]:
    lines: dict[str, dict[str, dict[str, float]]] = {}
    for what in KINDS:
        for kind, rounds in found.items():
            per_s = statistics.median(each[what]["per_s"] for each in rounds)
            cpu_us = statistics.median(each[what]["cpu_us"] for each in rounds)
            pairs = zip(found["refmq"], rounds, strict=True)
            ratio = statistics.median(ours[what]["per_s"] / theirs[what]["per_s"] for ours, theirs in pairs)
            lines.setdefault(what, {})[kind] = {"per_s": per_s, "cpu_us": cpu_us, "ours_is_times": ratio}
            print(f"{what:12}{NAMES[kind]:18}{per_s:10.0f}/s {cpu_us:8.0f} us cpu   ours is {ratio:5.2f} times this")
    return lines


def plot(lines: dict[str, dict[str, dict[str, float]]], path: Path) -> None:
    pyplot = importlib.import_module("matplotlib.pyplot")  # from the extra `bench`, without types here
    pyplot.switch_backend("Agg")
    figure, rows = pyplot.subplots(len(PLOTTED), len(KINDS), figsize=(11, 6))
    for row, (measure, label) in zip(rows, PLOTTED.items(), strict=True):
        for axis, what in zip(row, KINDS, strict=True):
            kinds = list(lines[what])
            values = [lines[what][kind][measure] for kind in kinds]
            bars = axis.bar([NAMES[kind] for kind in kinds], values, color=COLOURS[: len(kinds)])
            axis.bar_label(bars, fmt="%.0f")
            axis.set_title(what)
            axis.set_ylabel(label)
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--others", help="the Python of an environment with rocketmq==0.4.4 and nats-py")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    lines = report(run(options))
    if options.json is not None:
        options.json.write_text(json.dumps(lines, indent=1) + "\n")
    if options.plot is not None:
        plot(lines, options.plot)


if __name__ == "__main__":
    main()
