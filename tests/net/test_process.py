"""What a server process asks of its operating system."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys

import pytest

from refmq.net import process
from refmq.net.process import RESERVED_FILES, raise_open_files_limit, stop_on_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_asks_to_stop_and_the_second_is_the_systems(number: signal.Signals) -> None:
    async def story() -> None:
        stop = stop_on_signals()
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        async with asyncio.timeout(10):
            await stop.wait()
        loop = asyncio.get_running_loop()
        assert not loop.remove_signal_handler(signal.SIGTERM)
        assert not loop.remove_signal_handler(signal.SIGINT)

    asyncio.run(story())


LIMITS = """
import resource, sys
from refmq.net.process import raise_open_files_limit
soft, hard = int(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(raise_open_files_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("soft", "hard"), [(64, 512), (512, 512), (64, 80), (64, 4000)])
def test_connections_get_what_the_hard_limit_leaves(soft: int, hard: int) -> None:
    command = [sys.executable, "-c", LIMITS, str(soft), str(hard)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == [str(hard - min(RESERVED_FILES, hard // 2)), str(hard), str(hard)]


def test_a_limit_that_may_not_be_raised_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (300, 900))
    monkeypatch.setattr(resource, "setrlimit", forbidden)
    assert raise_open_files_limit() == 150
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert process.raise_open_files_limit() == 1_000_000
