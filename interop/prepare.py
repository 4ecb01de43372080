"""Fetch and build everything that the interop tests run, with a line for each that takes a while.

On a machine that has seen none of it this takes minutes, which pytest would spend in silence inside a fixture.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from interop.artifacts import CLIENTS, SERVERS, class_path, programs, upstream_tests
from interop.drivers import cpp_driver, go_driver, node_driver
from refmq.errors import MissingTool

WORTH_A_LINE_S = 2.0

Builds = dict[str, Callable[[], object]]

JAVA: Builds = {
    **{f"RocketMQ {version}, servers": partial(class_path, profile) for version, profile in SERVERS.items()},
    **{f"RocketMQ {version}, clients": partial(programs, version) for version in CLIENTS},
    "RocketMQ 4.9.7, upstream's own tests": upstream_tests,
}
OTHERS: Builds = {"the Go client": go_driver, "the Node client": node_driver, "the C++ client": cpp_driver}


def prepare(say: Callable[[str], None], *, others: bool = True) -> None:
    """Make everything ready. A client of another language that cannot be had is told of, and its tests are skipped."""
    for what, build in {**JAVA, **(OTHERS if others else {})}.items():
        began = time.monotonic()
        try:
            build()
        except MissingTool as missing:
            if what in JAVA:
                raise
            say(f"interop: {what} is not tried: {missing}")
            continue
        took = time.monotonic() - began
        if took > WORTH_A_LINE_S:
            say(f"interop: {what}: fetched and built in {took:.0f} s")
