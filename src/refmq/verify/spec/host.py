"""JVMs that run TLC many times: TlcHost.java, and how to talk to it.

Most runs of TLC here are so small that a new JVM spends its life loading and compiling TLC. A host stays up and does
one run after the other, each with the result it would have in a process of its own. It is started from its source,
which takes a JDK. With a JRE, or with a `tlc` that finds its own Java, there are no hosts, and every run is a process.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).parent / "TlcHost.java"
OPERATORS = (Path(__file__).parent / "TraceEvents.java",)
"""Operators of TLA+ modules that are written in Java; the host compiles them."""
READY = "@!@!@HOST-READY @!@!@"
RUN_END = re.compile(r"@!@!@HOST-END (\d+) (\d+) @!@!@")
OPENED_PACKAGES = ("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "java.util.concurrent.locks")
START_LINES_MAX = 100  # what a JVM may print before it is ready; one without a compiler prints two lines
START_TIMEOUT_S = 120  # it compiles the source first, which takes a second
STOP_TIMEOUT_S = 30

Start = Callable[[Sequence[str], Path], "subprocess.Popen[str]"]
"""Starts a process in a folder; its input and output are pipes."""


@dataclass(slots=True)
class HostedRun:
    """One run in a host: its output and, after the last line, how it ended (no code: the host died)."""

    process: subprocess.Popen[str]
    code: int | None = None
    cpu_seconds: float = 0.0

    def lines(self) -> Iterator[str]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            end = RUN_END.match(line)
            if end is not None:
                self.code, self.cpu_seconds = int(end[1]), int(end[2]) / 1000
                return
            yield line


@dataclass(frozen=True, slots=True)
class Host:
    """One JVM and the folder for its temporary files."""

    process: subprocess.Popen[str]
    folder: Path

    def begin(self, library: str, arguments: Sequence[str]) -> HostedRun:
        """Request a run. Read its output to the end before requesting the next one."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # if it died, the output ends without a code, which tells
            os.write(
                self.process.stdin.fileno(), request(library, *arguments)
            )  # short enough for a pipe to take it whole
        return HostedRun(self.process)

    def stop(self) -> None:
        """End the JVM, even in the middle of a run, and remove what it left."""
        self.process.kill()
        self.process.wait(STOP_TIMEOUT_S)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def request(*strings: str) -> bytes:
    """A count, then each string preceded by its length in bytes (Java's `DataInput.readUTF`)."""
    encoded = [text.encode() for text in strings]
    return struct.pack(">i", len(encoded)) + b"".join(struct.pack(">H", len(text)) + text for text in encoded)


@dataclass(slots=True)
class Hosts:
    """The hosts of one TLC. Between `open` and `close` they are lent, one to each thread that asks."""

    start: Start
    command: tuple[str, ...]
    """java, and after its options the jar of TLC; empty when TLC is a program of its own."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    idle: list[Host] = field(default_factory=list)
    lending: bool = False

    def open(self) -> None:
        self.lending = bool(self.command)

    def close(self) -> None:
        with self.lock:
            self.lending = False
            idle, self.idle = self.idle, []
        for host in idle:
            host.stop()

    def borrow(self, jvm: Sequence[str]) -> Host | None:
        """A host for one run, or None where there are none. The borrower gives it back or stops it."""
        with self.lock:
            if not self.lending:
                return None
            if self.idle:
                return self.idle.pop()
        host = start_host(self.start, self.command[0], jvm, self.command[1])
        if host is None:
            self.lending = False  # this Java has no compiler, and will not grow one
        return host

    def has_one(self, jvm: Sequence[str]) -> bool:
        """Whether runs go to hosts, which know our operators."""
        host = self.borrow(jvm)
        if host is not None:
            with self.lock:
                self.idle.append(host)
        return host is not None

    def take_back(self, host: Host, run: HostedRun, usable: bool) -> tuple[int, float]:
        """End a loan: the exit code of the run and its processor time. A host that died is replaced later."""
        with self.lock:
            kept = usable and run.code is not None and self.lending
            if kept:
                self.idle.append(host)
        if not kept:
            host.stop()
        return host.process.returncode if run.code is None else run.code, run.cpu_seconds


def start_host(start: Start, java: str, jvm: Sequence[str], jar: str) -> Host | None:
    """A host that is ready, or None when this Java cannot run a source file."""
    folder = Path(tempfile.mkdtemp(prefix="refmq-tlc-host-"))
    opened = [part for name in OPENED_PACKAGES for part in ("--add-opens", f"java.base/{name}=ALL-UNNAMED")]
    host = Host(
        start([java, *jvm, f"-Djava.io.tmpdir={folder}", *opened, str(SOURCE), jar, *map(str, OPERATORS)], folder),
        folder,
    )
    timer = threading.Timer(START_TIMEOUT_S, host.process.kill)
    timer.daemon = True
    timer.start()
    try:
        assert host.process.stdout is not None
        for _, line in zip(range(START_LINES_MAX), host.process.stdout, strict=False):
            if line.startswith(READY):
                return host
    except BaseException:
        host.stop()
        raise
    finally:
        timer.cancel()
    host.stop()
    return None
