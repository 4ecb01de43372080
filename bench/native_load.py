"""The load generators and the echo of `bench/native`, built when they are first wanted.

They are in C because a generator in Python costs more than a broker in C: what would be measured is the generator.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from refmq.errors import MissingTool, RefmqError

SOURCES: Final = Path(__file__).parent / "native"
BUILD: Final = Path(__file__).parent.parent / "build" / "bench"
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
SLACK_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Answered:
    """What a load brought, and what it cost the server."""

    answers: int
    wall_s: float
    client_cpu_s: float
    server_cpu_s: float
    p50_us: int
    p99_us: int
    p999_us: int
    max_us: int

    @property
    def per_s(self) -> float:
        return self.answers / self.wall_s

    @property
    def cpu_us(self) -> float:
        """Processor time of the server for each answer."""
        return self.server_cpu_s / max(1, self.answers) * 1e6


def program(name: str) -> Path:
    """One of the two programs. `MissingTool` without a compiler."""
    source, target = SOURCES / f"{name}.c", BUILD / name
    if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
        return target
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise MissingTool("a C compiler", "Install gcc or clang: the load is generated in C.")
    BUILD.mkdir(parents=True, exist_ok=True)
    command = [compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RefmqError(f"{source} does not compile: {done.stderr}")
    return target


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used, all threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def resident_bytes(pid: int) -> int:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def load(
    port: int, pid: int, frames: bytes, *, connections: int, window: int, seconds: float, rate: float = 0
) -> Answered:
    """Sends frames for some time, as fast as the server answers or at a rate."""
    command = [str(program("load")), "127.0.0.1", *map(str, (port, connections, window, seconds, rate))]
    before = cpu_seconds(pid)
    done = subprocess.run(command, input=frames, capture_output=True, check=False, timeout=seconds + SLACK_S)
    after = cpu_seconds(pid)
    if done.returncode:
        raise RefmqError(done.stderr.decode(errors="replace").strip())
    answers, wall_s, _, cpu_s, *times = done.stdout.split()
    return Answered(int(answers), float(wall_s), float(cpu_s), after - before, *map(int, times))


@dataclass(frozen=True, slots=True)
class Arrived:
    """How long messages were under way to a consumer that waits for them."""

    messages: int
    wall_s: float
    p50_us: int
    p99_us: int
    p999_us: int
    max_us: int


def arrive(port: int, frames: bytes, *, queues: int, seconds: float, rate: float) -> Arrived:
    """Sends at a rate and pulls what was sent; `arrive.c` says what the frames are."""
    command = [str(program("arrive")), "127.0.0.1", *map(str, (port, queues, seconds, rate))]
    done = subprocess.run(command, input=frames, capture_output=True, check=False, timeout=seconds + SLACK_S)
    if done.returncode:
        raise RefmqError(done.stderr.decode(errors="replace").strip())
    messages, wall_s, *times = done.stdout.split()
    return Arrived(int(messages), float(wall_s), *map(int, times))


@contextmanager
def echo() -> Iterator[tuple[int, int]]:
    """A server that sends every frame back: its port and process."""
    process = subprocess.Popen([str(program("echo"))], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid
    finally:
        process.kill()
        process.wait()
