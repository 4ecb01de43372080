"""refmq's own processes, started like the real ones."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from interop.processes import Child, accepts, free_port

SOURCES = Path(__file__).parent.parent / "src"


class OurNameserver:
    """``refmq namesrv`` as a process of its own."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._child: Child | None = None

    def start(self) -> OurNameserver:
        command = [sys.executable, "-m", "refmq", "namesrv", "--port", str(self.port), "--dir", str(self.folder)]
        path = os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")])
        self._child = Child([*command, "--listen", "127.0.0.1"], self.folder / "namesrv.out", {"PYTHONPATH": path})
        self._child.wait_for(lambda: accepts(self.port), "port")
        return self

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop()

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()

    def __enter__(self) -> OurNameserver:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
