"""A broker on the fast engine whose Python can be kept busy: each line on standard input keeps the interpreter running
for so many seconds, as a large administrative request would.

    python -m bench.busy_broker FOLDER        prints the port
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from refmq.model.broker_config import BrokerConfig
from refmq.net.broker_node import BrokerNode
from refmq.net.engines import EngineChoice, EngineSurroundings, open_engine
from refmq.net.files import RealDisk
from refmq.store import StoreConfig


async def serve(folder: Path) -> None:
    disk, store = RealDisk(folder), StoreConfig(log_file_bytes=256 << 20)
    engine = open_engine(EngineChoice.FAST, disk, store, EngineSurroundings())
    node = BrokerNode(BrokerConfig(listen_port=0), store, disk, engine)
    _, port = await node.start("127.0.0.1")
    print(port, flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        until = time.monotonic() + float(line)
        while time.monotonic() < until:
            pass
    await node.stop(5.0)
    disk.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
