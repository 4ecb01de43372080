"""A nameserver with a crowd of idle connections, asked before and while garbage is sent to it.

    python -m bench.hostile [--idle 10000] [--mb-per-s 100] [--seconds 15] [--real] [--json FILE]

| measured      | what it is                                                                                    |
|---------------|-----------------------------------------------------------------------------------------------|
| quiet         | time of a request (106 GET_BROKER_CLUSTER_INFO) on one connection, with the crowd, no garbage |
| garbage       | the same while two senders write garbage: frames of the greatest length with random bytes,    |
|               | and connections closed by the server are opened again                                         |
| sent          | how many megabytes a second the senders really got rid of                                     |
| memory        | resident memory of the server: before, with the crowd, at its peak                            |
| idle left     | idle connections that were still open in the end                                              |

With ``--real`` the same is done to the real 4.9.7 nameserver in the same run, and times are given as a ratio to it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import resource
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection as Pipe
from multiprocessing.synchronize import Event
from pathlib import Path

from interop.ours import OurNameserver
from interop.rocketmq import Nameserver
from refmq.net.client import Client
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import request
from refmq.protocol.frame import FRAME_LENGTH_MAX

SENDERS = 2
PIECE_BYTES = 256 * 1024
QUIET_QUESTIONS = 500
QUESTION_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Result:
    """What was measured at one server."""

    server: str
    idle: int
    idle_left: int
    sent_mb_per_s: float
    answered_quiet: int
    answered_garbage: int
    quiet_ms: list[float]
    """Median, 99th percentile and greatest time of a request."""
    garbage_ms: list[float]
    memory_start_mb: float
    memory_idle_mb: float
    memory_peak_mb: float


def memory_mb(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


def hold_idle(port: int, count: int, pipe: Pipe) -> None:
    """In a process of its own: open connections, wait, and tell how many are still open."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sockets = []
    for _ in range(count):
        sockets.append(socket.create_connection(("127.0.0.1", port), timeout=30))
    pipe.send(len(sockets))
    pipe.recv()
    left = 0
    for each in sockets:
        each.setblocking(False)
        try:
            left += 1 if each.recv(1) else 0
        except BlockingIOError:
            left += 1  # nothing to read and not closed
        except OSError:
            pass
    pipe.send(left)


def send_garbage(port: int, bytes_per_s: float, stop: Event, pipe: Pipe) -> None:
    """In a process of its own: write at a rate, connect again when the server closes."""
    noise = random.Random(port).randbytes(PIECE_BYTES)
    head = (FRAME_LENGTH_MAX - 4).to_bytes(4, "big") + (1000).to_bytes(4, "big")
    sent, began = 0, time.monotonic()
    while not stop.is_set():
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
            peer.sendall(head)
            while not stop.is_set():
                peer.sendall(noise)
                sent += len(noise)
                ahead = sent / bytes_per_s - (time.monotonic() - began)
                if ahead > 0:
                    time.sleep(ahead)
    pipe.send(sent / (time.monotonic() - began) / 1e6)


async def ask(client: Client, address: str) -> float:
    began = time.perf_counter()
    await client.invoke(address, request(RequestCode.GET_BROKER_CLUSTER_INFO), QUESTION_TIMEOUT_S)
    return (time.perf_counter() - began) * 1000


def summary(times_ms: list[float]) -> list[float]:
    ordered = sorted(times_ms)
    return [round(ordered[int(len(ordered) * part)], 3) for part in (0.5, 0.99)] + [round(ordered[-1], 3)]


async def measure(server: str, address: str, pid: int, idle: int, mb_per_s: float, seconds: float) -> Result:
    port = int(address.rpartition(":")[2])
    spawn = multiprocessing.get_context("spawn")
    start_mb = memory_mb(pid, "VmRSS")
    loop = asyncio.get_running_loop()
    crowd_pipe, crowd_end = spawn.Pipe()
    crowd = spawn.Process(target=hold_idle, args=(port, idle, crowd_end), daemon=True)
    crowd.start()
    opened = await loop.run_in_executor(None, crowd_pipe.recv)
    idle_mb = memory_mb(pid, "VmRSS")
    client = Client()
    await ask(client, address)
    quiet = [await ask(client, address) for _ in range(QUIET_QUESTIONS)]

    stop = spawn.Event()
    pipes, senders = [], []
    for _ in range(SENDERS):
        mine, theirs = spawn.Pipe()
        rate = mb_per_s * 1e6 / SENDERS
        sender = spawn.Process(target=send_garbage, args=(port, rate, stop, theirs), daemon=True)
        sender.start()
        pipes.append(mine)
        senders.append(sender)
    await asyncio.sleep(2)  # the processes start
    garbage: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        garbage.append(await ask(client, address))
        await asyncio.sleep(0.005)
    stop.set()
    sent = sum([await loop.run_in_executor(None, pipe.recv) for pipe in pipes])
    crowd_pipe.send("count")
    left = await loop.run_in_executor(None, crowd_pipe.recv)
    await client.close()
    for process in (crowd, *senders):
        process.join(30)
    return Result(
        server,
        opened,
        left,
        round(sent, 1),
        len(quiet),
        len(garbage),
        summary(quiet),
        summary(garbage),
        round(start_mb, 1),
        round(idle_mb, 1),
        round(memory_mb(pid, "VmHWM"), 1),
    )


def show(results: list[Result]) -> None:
    print(f"{'':<26}" + "".join(f"{result.server:>24}" for result in results))
    rows: dict[str, Callable[[Result], object]] = {
        "idle connections, left": lambda r: f"{r.idle}, {r.idle_left}",
        "garbage sent, MB/s": lambda r: r.sent_mb_per_s,
        "requests answered": lambda r: r.answered_quiet + r.answered_garbage,
        "quiet ms (50%, 99%, max)": lambda r: " ".join(map(str, r.quiet_ms)),
        "garbage ms (50%, 99%, max)": lambda r: " ".join(map(str, r.garbage_ms)),
        "memory MB (start)": lambda r: r.memory_start_mb,
        "memory MB (idle crowd)": lambda r: r.memory_idle_mb,
        "memory MB (peak)": lambda r: r.memory_peak_mb,
    }
    for name, value in rows.items():
        print(f"{name:<26}" + "".join(f"{value(result)!s:>24}" for result in results))
    if len(results) == 2:
        ours, real = results
        print(
            f"ratio of the medians under garbage, ours to the real one: {ours.garbage_ms[0] / real.garbage_ms[0]:.2f}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--idle", type=int, default=10_000)
    parser.add_argument("--mb-per-s", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--real", action="store_true", help="measure the real nameserver too (needs a JDK and Maven)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="refmq-bench-") as folder:
        kinds: dict[str, OurNameserver | Nameserver] = {"refmq": OurNameserver(Path(folder) / "ours")}
        if options.real:
            kinds["RocketMQ 4.9.7"] = Nameserver(Path(folder) / "real")
        for name, nameserver in kinds.items():
            with nameserver:
                work = measure(
                    name, nameserver.address, nameserver.pid, options.idle, options.mb_per_s, options.seconds
                )
                results.append(asyncio.run(work))
    show(results)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
