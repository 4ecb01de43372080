"""A loop in a thread: calls from outside get their results, and nothing is left when it is closed."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading

import pytest

from refmq.errors import ClosedError, UsageError
from refmq.sync.loop import LoopThread


async def thread_name() -> str:
    return threading.current_thread().name


def test_calls_run_on_one_other_thread_and_bring_back_results_and_errors() -> None:
    loop = LoopThread()
    try:
        name = loop.call(thread_name())
        assert name != threading.current_thread().name
        assert loop.call(thread_name()) == name

        async def fails() -> None:
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            loop.call(fails())
    finally:
        loop.close()


def test_a_call_that_takes_too_long_is_cancelled() -> None:
    loop = LoopThread()
    cancelled = threading.Event()

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    try:
        with pytest.raises(concurrent.futures.TimeoutError):
            loop.call(waits(), 0.01)
        assert cancelled.wait(10)
        assert loop.call(asyncio.sleep(0, "goes on")) == "goes on"
    finally:
        loop.close()


def test_a_listener_that_calls_its_own_loop_is_told_instead_of_waiting_for_ever() -> None:
    loop = LoopThread()

    async def listener() -> None:
        loop.call(thread_name(), 5)

    try:
        with pytest.raises(UsageError, match="use the asynchronous client there"):
            loop.call(listener(), 10)
    finally:
        loop.close()


def test_after_its_end_it_says_so_and_its_thread_is_gone() -> None:
    loop = LoopThread()
    thread = loop._thread
    loop.close()
    assert not thread.is_alive()
    with pytest.raises(ClosedError):
        loop.call(thread_name())
    loop.close()
