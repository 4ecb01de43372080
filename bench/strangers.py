"""What a well-behaved neighbour notices while a broker is attacked.

    python -m bench.strangers [--seconds 8] [--engines reference,fast] [--json FILE]

Every attack of `conformance.hostile` is run on a broker of each engine. Meanwhile somebody else sends 100 messages a
second over a connection of his own, from a process of his own (`bench/native`).

| measured | what it is                                                            |
|----------|-----------------------------------------------------------------------|
| p50, p99 | of the neighbour's sends, from half a second before the attack on     |
| max      | the slowest of them                                                   |
| memory   | how much larger the broker's resident memory is behind the attack     |
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bench.engine import create, send_frames
from bench.native_load import Answered, load, resident_bytes
from conformance.hostile.attacks import EVERY, Attack
from conformance.hostile.target import Target
from interop.ours import OurBroker, OurNameserver

RATE: Final = 100.0
HEAD_START_S: Final = 0.5
ASKED_P99_MS: Final = 50.0


@dataclass(frozen=True, slots=True)
class Noticed:
    """What one attack cost the neighbour and the memory."""

    engine: str
    attack: str
    p50_ms: float
    p99_ms: float
    max_ms: float
    memory_mb: float


def measure(given: Attack, engine: str, seconds: float) -> Noticed:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name, ExitStack() as stack:
        folder = Path(name)
        nameserver = stack.enter_context(OurNameserver(folder / "namesrv"))
        broker = OurBroker(folder / "broker", nameserver.address, settings=dict(given.settings), engine=engine)
        stack.enter_context(broker)
        create(broker.address, "Calm")
        before = resident_bytes(broker.pid)
        found: list[Answered] = []
        frames = send_frames("Calm", 128)

        def neighbour() -> None:
            found.append(load(broker.port, broker.pid, frames, connections=1, window=1, seconds=seconds, rate=RATE))

        calm = threading.Thread(target=neighbour)
        calm.start()
        time.sleep(HEAD_START_S)
        given.run(Target(broker, nameserver))
        grown = resident_bytes(broker.pid) - before
        calm.join()
        (noticed,) = found
        return Noticed(
            engine,
            given.name,
            noticed.p50_us / 1000,
            noticed.p99_us / 1000,
            noticed.max_us / 1000,
            grown / 1e6,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="What a neighbour notices while a broker is attacked.")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--engines", default="reference,fast")
    parser.add_argument("--only", default="", help="a part of the names of the attacks to run")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: list[Noticed] = []
    print(f"{'':70} p50 ms  p99 ms  max ms  memory MB")
    for engine in options.engines.split(","):
        for given in EVERY:
            if given.restarts or options.only not in given.name:
                continue
            one = measure(given, engine, options.seconds)
            found.append(one)
            mark = "" if one.p99_ms <= ASKED_P99_MS else "  (asked: 50)"
            what = f"{engine}: {given.name}"[:70]
            print(
                f"{what:70} {one.p50_ms:6.1f}  {one.p99_ms:6.1f}  {one.max_ms:6.1f}  {one.memory_mb:9.0f}{mark}",
                flush=True,
            )
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(one) for one in found], indent=1))


if __name__ == "__main__":
    main()
