"""What `refmq serve --trace` records is judged clean, whichever engine served."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import refmq
import refmq_fast
from refmq.verify.local import judge_here
from refmq.verify.oracles import Promises
from refmq.verify.recordings import find_recordings
from refmq.verify.verdicts import Status
from tests.verify.spark.engines import by_digests

MESSAGES = 60
WAIT_S = 60.0


async def used(nameserver: str) -> None:
    """A producer sends, a consumer gets everything."""
    async with refmq.Producer(nameserver, group="shop") as producer:
        for number in range(MESSAGES):
            await producer.send("orders", b"%d" % number, tag="paid")
    count = 0
    async with refmq.Consumer(nameserver, group="billing", topics="orders", start="first") as consumer:
        async for message in consumer:
            async with message.processing():
                count += 1
            if count == MESSAGES:
                break


def served(engine: str, trace: Path) -> None:
    command = [sys.executable, "-m", "refmq", "serve", "--port=0", "--broker-port=0", "--in-memory", f"--trace={trace}"]
    with subprocess.Popen([*command, f"--engine={engine}"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"nameserver (\S+), broker", process.stdout.readline())
            assert found is not None
            asyncio.run(asyncio.wait_for(used(found[1]), WAIT_S))
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_S) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("engine", ["reference", pytest.param("fast", marks=pytest.mark.extension)])
def test_a_served_trace_is_clean(engine: str, tmp_path: Path) -> None:
    if engine == "fast" and not refmq_fast.AVAILABLE:
        pytest.skip("the extension is not built")
    served(engine, tmp_path)
    recordings = find_recordings([tmp_path])
    promises = Promises(flush_sync=False, settled=True, clock_slack_ms=1000)
    for judgement in (judge_here(recordings, promises), by_digests(recordings, promises)):
        assert judgement.census.count("AckPut") == MESSAGES
        statuses = {verdict.invariant: verdict.status for verdict in judgement.verdicts}
        assert statuses["QueueMatchesLog"] is Status.KEPT
        assert statuses["SidesAgree"] is Status.NOT_JUDGED, "no client recorded anything"
        found = [shown.sentence for verdict in (*judgement.broken, *judgement.doubtful) for shown in verdict.shown]
        assert found == []
