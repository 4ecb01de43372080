"""``refmq serve`` as a process: everything in one, and still there after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from interop.jvm import Jvm
from interop.ours import OurServe
from interop.scene import Cluster, message, numbered, scene
from interop.tests.conftest import VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("in_memory", [False, True], ids=["kept", "in-memory"])
def test_serve(tmp_path: Path, jvms: dict[str, Jvm], version: str, in_memory: bool) -> None:
    number = version.replace(".", "-")
    served = OurServe(tmp_path, in_memory).start()
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
        served.kill()
