"""Child processes that never outlive us.

Each child is the leader of a process group of its own. It is ended by ``stop`` (SIGTERM, then SIGKILL to the whole
group), at the latest when this process exits; if this process is killed, the kernel kills the child too where
``setpriv`` can ask for that.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from refmq.errors import RefmqError

POLL_S = 0.02
STOP_TIMEOUT_S = 15.0
START_TIMEOUT_S = 60.0

# Below the range from which the kernel takes ports for outgoing connections, and all of the same number of digits:
# the recorder replaces one by the other inside frames.
PORT_RANGE = range(12_000, 32_000)

_running: set[Child] = set()

_starter = ThreadPoolExecutor(1, "starter")
"""The kernel ends a child with the thread that started it, not with the process: so one that stays starts them all."""


class Child:
    """A running command with its output in a file; one that ``talks`` is spoken with line by line instead."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        *,
        talks: bool = False,
        cwd: Path | None = None,
    ) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = log
        guard = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with log.open("ab") as output:
            self._process = _starter.submit(
                subprocess.Popen,
                [*guard, *command],
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talks else output,
                stderr=output,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
                cwd=cwd,
            ).result()
        self.pid = self._process.pid
        _running.add(self)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def say(self, line: str) -> None:
        """Write a line to the command's input. Lost when the command is gone."""
        assert self._process.stdin is not None, "this command does not talk"
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def lines(self) -> Iterator[str]:
        """What the command says, line by line until its end."""
        assert self._process.stdout is not None, "this command does not talk"
        with contextlib.suppress(ValueError):  # `kill` closes it under our hands: that is its end
            for line in self._process.stdout:
                yield line.decode()

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def wait(self, timeout_s: float) -> int:
        """The exit code, waited for; the group is killed and an error raised when it takes too long."""
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RefmqError(f"{self.log.name} did not end within {timeout_s:g} s") from None
        _running.discard(self)
        return code

    def wait_for(self, condition: Callable[[], bool], what: str, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until ``condition`` holds; fail at once when the process ends before."""
        until = time.monotonic() + timeout_s
        while not condition():
            if not self.alive:
                raise RefmqError(f"{self.log.name} ended before {what}: {last_line(self.output())}")
            if time.monotonic() > until:
                raise RefmqError(f"{self.log.name}: no {what} within {timeout_s:g} s")
            time.sleep(POLL_S)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """A polite end: SIGTERM, and SIGKILL to the group when that is not enough. Returns the exit code."""
        if self.alive:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout_s)
        self.kill()
        return self._process.wait()

    def kill(self) -> None:
        """SIGKILL to the whole group."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        for pipe in filter(None, (self._process.stdin, self._process.stdout)):
            with contextlib.suppress(OSError, ValueError):  # unsent words, or somebody reads there at this moment
                pipe.close()
        _running.discard(self)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)


def stop_all() -> None:
    """End everything that is still running, without mercy."""
    for child in list(_running):
        child.kill()


atexit.register(stop_all)


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "(no output)"


def accepts(port: int, host: str = "127.0.0.1") -> bool:
    """Whether somebody listens on the port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float) -> None:
    """Wait until ``condition`` holds."""
    until = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > until:
            raise RefmqError(f"{what} did not come true within {timeout_s:g} s")
        time.sleep(POLL_S)


def free_port(neighbours: Sequence[int] = (0,)) -> int:
    """A port on which nobody listens now, and nobody at the given distances from it either."""
    for _ in range(1000):
        port = random.choice(PORT_RANGE)
        if all(bindable(port + distance) for distance in neighbours):
            return port
    raise RefmqError("no free port was found")


def bindable(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True
