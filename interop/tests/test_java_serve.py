"""``refmq serve`` as a process: everything in one, and still there after a restart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from interop.jvm import Jvm
from interop.ours import refmq
from interop.processes import Child
from interop.scene import Cluster, message, numbered, scene
from interop.tests.conftest import VERSIONS

UP = re.compile(r"nameserver (\S+), broker (\S+)\. ")


@dataclass
class Serve:
    """One process, and the address of its nameserver."""

    folder: Path
    in_memory: bool = False
    child: Child | None = None
    address: str = ""

    def start(self) -> Serve:
        keep = ["--in-memory"] if self.in_memory else ["--dir", str(self.folder / "kept")]
        command, environment = refmq("serve", "--port", "0", "--broker-port", "0", *keep)
        log = self.folder / "serve.out"
        log.unlink(missing_ok=True)
        self.child = child = Child(command, log, environment)
        child.wait_for(lambda: "RocketMQ is up" in child.output(), "line that says so")
        found = UP.search(child.output())
        assert found is not None
        self.address = found[1]
        return self

    def stop(self) -> int:
        assert self.child is not None
        return self.child.stop(30)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("in_memory", [False, True], ids=["kept", "in-memory"])
def test_serve(tmp_path: Path, jvms: dict[str, Jvm], version: str, in_memory: bool) -> None:
    number = version.replace(".", "-")
    served = Serve(tmp_path, in_memory).start()
    try:
        with scene(Cluster(tmp_path, (), address=served.address), jvms[version], f"serve-{number}") as on:
            producer = on.producer()
            for each in numbered("Served", 10):
                assert producer.call("send", {**each, "properties": {"n": each["body"]}})["status"] == "SEND_OK"
            assert len(on.push("Served").wait(10)) == 10
            assert len(on.push("Served", {"sql": "n < 5"}, group="some").wait(5)) == 5
        assert served.stop() == 0
        if in_memory:
            return
        served.start()
        with scene(Cluster(tmp_path, (), address=served.address), jvms[version], f"again-{number}") as on:
            on.producer().call("send", message("Served", "after"))
            old = on.push("Served", group=f"group-serve-{number}")
            assert [each["body"] for each in old.wait(1)] == ["after"]
            assert len(on.push("Served", group="new").wait(11)) == 11
        assert served.stop() == 0
    finally:
        assert served.child is not None
        served.child.kill()
