from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import random
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from time import monotonic as monotonic_by_another_name
from typing import Any

import pytest

from refmq.sim.world import Node, RunFailed, World

ESCAPES: dict[str, Callable[[], Any]] = {
    "time.time": lambda: time.time(),
    "time.monotonic": lambda: time.monotonic(),
    "time.sleep": lambda: time.sleep(0),
    "time.perf_counter": lambda: time.perf_counter(),
    "time.process_time": lambda: time.process_time(),
    "time.clock_gettime": lambda: time.clock_gettime(time.CLOCK_REALTIME),
    "time.gmtime": lambda: time.gmtime(),
    "time.strftime": lambda: time.strftime("%H"),
    "a wait for an event": lambda: threading.Event().wait(0.01),
    "a wait for a queue": lambda: queue.Queue[int]().get(timeout=0.01),
    "select": lambda: select.select([], [], [], 0),
    "a file's existence": lambda: Path("/dev/null").exists(),
    "the room on a disk": lambda: shutil.disk_usage("/"),
    "the working directory": lambda: os.getcwd(),  # noqa: PTH109  # pathlib calls it as well
    "a variable of the environment": lambda: os.getenv("HOME"),
    "the number of processors": lambda: os.cpu_count(),
    "a signal": lambda: signal.signal(signal.SIGUSR1, signal.SIG_DFL),
    "the terminal": lambda: input(),
    "random.random": lambda: random.random(),
    "random.shuffle": lambda: random.shuffle([1, 2]),
    "an unseeded generator": lambda: random.Random(),
    "os.urandom": lambda: os.urandom(1),
    "uuid": lambda: uuid.uuid4(),
    "a uuid by time": lambda: uuid.uuid1(),
    "a socket": lambda: socket.socket(),
    "a thread": lambda: threading.Thread(target=print).start(),
    "a file": lambda: Path("/dev/null").read_bytes(),
    "a directory": lambda: list(Path("/").iterdir()),
    "a process": lambda: subprocess.run(["true"]),
    "a file descriptor": lambda: asyncio.get_running_loop().add_reader(0, print),
}

HIDDEN: dict[str, Callable[[], Any]] = {
    "datetime.now": lambda: datetime.now(),
    "a clock imported under another name": lambda: monotonic_by_another_name(),
    "os.getpid": lambda: os.getpid(),
    "the generator behind random": lambda: random._inst.random(),
}


def run(reach: Callable[[], Any], *, strict: bool = False) -> None:
    world = World(seed=1, strict=strict)

    async def main(node: Node) -> None:
        with contextlib.suppress(Exception):  # an escape fails the run also when the code swallows it
            reach()
        await asyncio.Event().wait()

    world.node("node", main).start()
    world.run(asyncio.sleep(1))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("reach", ESCAPES.values(), ids=list(ESCAPES))
def test_an_escape_is_an_error_that_names_the_place(reach: Callable[[], Any], strict: bool) -> None:
    with pytest.raises(RunFailed, match=r"test_escape\.py:\d+ .*lambda"):
        run(reach, strict=strict)


@pytest.mark.parametrize("reach", HIDDEN.values(), ids=list(HIDDEN))
def test_the_strict_guard_finds_what_hides_behind_a_reference(reach: Callable[[], Any]) -> None:
    with pytest.raises(RunFailed, match=r"test_escape\.py:\d+ .*lambda"):
        run(reach, strict=True)


@pytest.mark.parametrize("strict", [False, True])
def test_what_is_allowed_stays_allowed(strict: bool, caplog: pytest.LogCaptureFixture) -> None:
    def reach() -> None:
        logging.getLogger("refmq.test").warning("said in simulated time")
        random.Random(5).random()
        assert time.localtime(0).tm_hour == time.gmtime(0).tm_hour == 0
        assert time.mktime((1970, 7, 1, 0, 0, 0, 0, 0, -1)) == 181 * 24 * 3600  # whatever the zone of the machine
        assert time.strftime("%Y", time.gmtime(0)) == "1970"
        threading.Lock().acquire()
        import colorsys  # noqa: F401  # a module that nobody has imported yet is read from a real file

    run(reach, strict=strict)
    assert "said in simulated time" in caplog.text


def test_log_records_carry_virtual_time(caplog: pytest.LogCaptureFixture) -> None:
    run(lambda: logging.getLogger("refmq.test").warning("now"))
    assert caplog.records[-1].created == 1_700_000_000.0


def test_the_fence_is_gone_after_the_run_and_other_threads_never_see_it() -> None:
    seen: list[float] = []
    stop = threading.Event()

    def outside() -> None:
        while not stop.is_set():
            seen.append(time.time())

    thread = threading.Thread(target=outside)
    thread.start()
    try:
        run(lambda: None)
    finally:
        stop.set()
        thread.join()
    assert seen
    assert time.time() >= seen[0]
    assert os.urandom(1)


def test_code_in_an_executor_runs_inside_the_loop() -> None:
    world = World(seed=1)
    threads: list[int] = []

    async def story() -> float:
        before_s = world.loop.elapsed_s
        await asyncio.to_thread(lambda: threads.append(threading.get_ident()))
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 / 0)
        return world.loop.elapsed_s - before_s

    assert world.run(story()) > 0
    assert threads == [threading.get_ident()]
