"""The app: decorated listeners, in a test's loop and as a program."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from refmq.aio.app import App
from refmq.aio.producer import Producer
from refmq.client.message import ReceivedMessage
from refmq.errors import ClosedError, UsageError
from tests.aio.harness import create_topic, run, servers, until

PROGRAM = """
import asyncio, sys
import refmq

app = refmq.App(sys.argv[1], producer_group="replies")

@app.listener("Orders", group="billing", start="first", tag="Paid")
async def on_paid(message):
    print("got", message.body.decode(), flush=True)
    await asyncio.sleep(0.3)
    await app.producer.send("Done", message.body)
    print("done", flush=True)

app.run()
print("drained", flush=True)
"""


def test_listeners_run_and_may_send() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "Orders")
            await create_topic(running, "Done")
            app = App(running.namesrv, producer_group="app")
            seen: list[bytes] = []
            threads: set[str] = set()
            hooks: list[str] = []

            @app.listener("Orders", group="billing", start="first", tag="Paid")
            async def on_paid(message: ReceivedMessage) -> None:
                await app.producer.send("Done", message.body + b" done")

            @app.listener("Done", group="watch", start="first")
            def on_done(message: ReceivedMessage) -> None:
                threads.add(threading.current_thread().name)
                seen.append(message.body)

            @app.on_startup
            async def start() -> None:
                hooks.append("start")

            @app.on_shutdown
            async def stop() -> None:
                hooks.append("stop")

            await producer.send("Orders", b"1", tag="Paid")
            await producer.send("Orders", b"2", tag="Open")
            with pytest.raises(ClosedError, match="no producer"):
                _ = app.producer
            async with app:
                assert sorted(app.consumers) == ["billing", "watch"]
                await until(lambda: seen == [b"1 done"])
            assert hooks == ["start", "stop"]
            assert threading.main_thread().name not in threads

    run(story())


def test_an_app_says_what_is_wrong_with_it() -> None:
    app = App("127.0.0.1:1")

    async def story() -> None:
        with pytest.raises(UsageError, match="nothing to do"):
            await app.open()

    run(story())

    @app.listener("Orders", group="g")
    async def first(message: ReceivedMessage) -> None: ...

    with pytest.raises(UsageError, match="already has a listener"):
        app.listener("Others", group="g")


def start_program(tmp_path: Path, namesrv: str, text: str = PROGRAM) -> subprocess.Popen[str]:
    script = tmp_path / "program.py"
    script.write_text(text)
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", str(script), namesrv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_program_finish_its_work(tmp_path: Path, signal_number: signal.Signals) -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "Orders")
            await create_topic(running, "Done")
            await producer.send("Orders", b"x", tag="Paid")
            program = start_program(tmp_path, running.namesrv)
            loop = asyncio.get_running_loop()
            assert program.stdout is not None
            assert program.stderr is not None
            try:
                line = await loop.run_in_executor(None, program.stdout.readline)
                assert line == "got x\n"
                program.send_signal(signal_number)
                rest = await loop.run_in_executor(None, program.stdout.read)
                problems = await loop.run_in_executor(None, program.stderr.read)
                assert rest == "done\ndrained\n"
                assert problems == ""
                assert program.wait(10) == 0
            finally:
                program.kill()
                program.wait(10)
                program.stdout.close()
                program.stderr.close()

    run(story())


def test_a_second_signal_ends_a_program_that_hangs(tmp_path: Path) -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "Orders")
            await producer.send("Orders", b"x", tag="Paid")
            program = start_program(tmp_path, running.namesrv, PROGRAM.replace("sleep(0.3)", "sleep(3600)"))
            loop = asyncio.get_running_loop()
            assert program.stdout is not None
            assert program.stderr is not None
            try:
                assert await loop.run_in_executor(None, program.stdout.readline) == "got x\n"
                program.send_signal(signal.SIGINT)
                await asyncio.sleep(0.2)
                assert program.poll() is None, "it finishes its work first"
                program.send_signal(signal.SIGINT)
                assert await loop.run_in_executor(None, program.wait, 5) == 130
            finally:
                program.kill()
                program.wait(10)
                program.stdout.close()
                program.stderr.close()

    run(story())
