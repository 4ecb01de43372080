"""Clients of other languages as processes: small programs that run one command for each line of JSON on stdin.

| client                                 | program        | comes from                               |
|----------------------------------------|----------------|------------------------------------------|
| Go `rocketmq-client-go/v2` v2.1.2      | go/*.go        | the Go module proxy, pinned by go/go.mod |
| Node `ali-ons` 3.12.0                  | node/driver.js | npm, pinned by node/package.json         |
| C++, inside the wheel `rocketmq` 0.4.4 | cpp/driver.py  | PyPI, in an environment of its own       |

A driver answers each command with a line that carries the command's number, and says at any time what its consumers
got. Everything is built once for each content of its sources below interop/target: a second run needs no network.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import queue
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interop.artifacts import HERE, TARGET, run_tool
from interop.processes import Child
from refmq.errors import MissingTool, RefmqError

BUILD_TIMEOUT_S = 600
ANSWER_TIMEOUT_S = 60.0
MESSAGE_TIMEOUT_S = 90.0
"""Clients look at routes and groups every half minute at worst, and a busy machine makes everything late."""

CPP_WHEEL = "rocketmq==0.4.4"

Line = dict[str, Any]


class Driver:
    """A client of another language, at our command."""

    def __init__(self, command: list[str], folder: Path, nameserver: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.nameserver = nameserver
        self.folder = folder
        self._numbers = itertools.count(1)
        self._answers: dict[int, queue.Queue[Line]] = {}
        self._events: list[Line] = []
        self._changed = threading.Condition()
        environment = {"HOME": str(folder), "NODE_PATH": str(TARGET / "node" / "node_modules")}
        self._child = Child(command, folder / "driver.out", environment, talks=True)
        threading.Thread(target=self._listen, daemon=True).start()

    def call(self, do: str, **arguments: Any) -> Line:
        """What a command gives; ``RefmqError`` with the client's own words when it fails."""
        timeout_s = ANSWER_TIMEOUT_S + arguments.get("timeout_s", 0)
        number = next(self._numbers)
        answers: queue.Queue[Line] = queue.Queue()
        self._answers[number] = answers
        self._child.say(json.dumps({"id": number, "do": do, "nameserver": self.nameserver, **arguments}))
        try:
            answer = answers.get(timeout=timeout_s)
        except queue.Empty:
            raise RefmqError(f"{self.folder.name}: no answer to {do} within {timeout_s:g} s") from None
        if "error" in answer:
            raise RefmqError(f"{do}: {answer['error']}")
        result: Line = answer["result"]
        return result

    def messages(self, consumer: str) -> list[Line]:
        """What a consumer has been given so far."""
        with self._changed:
            return [event for event in self._events if event["event"] == "message" and event["consumer"] == consumer]

    def events(self, kind: str) -> list[Line]:
        with self._changed:
            return [event for event in self._events if event["event"] == kind]

    def wait(self, condition: Callable[[], bool], what: str, timeout_s: float = MESSAGE_TIMEOUT_S) -> None:
        """Wait until ``condition`` holds; it is looked at whenever the driver says something."""
        until = time.monotonic() + timeout_s
        with self._changed:
            while not condition():
                left = until - time.monotonic()
                if left <= 0 or not self._child.alive:
                    said = [event for event in self._events if event["event"] == "error"]
                    raise RefmqError(f"{self.folder.name}: {what} did not come true; it said {said[-3:]}")
                self._changed.wait(min(left, 0.5))

    def bodies(self, consumer: str, count: int, timeout_s: float = MESSAGE_TIMEOUT_S) -> list[str]:
        """The bodies of a consumer's messages in order of arrival, once there are ``count`` different ones."""

        def enough() -> bool:
            return len({event["body"] for event in self.messages(consumer)}) >= count

        try:
            self.wait(enough, f"{count} messages", timeout_s)
        except RefmqError as error:
            got = sorted({event["body"] for event in self.messages(consumer)})
            raise RefmqError(f"{error}; {consumer} got {len(got)}: {got[:20]}") from None
        return [event["body"] for event in self.messages(consumer)]

    def stop(self) -> None:
        self._child.stop()

    def kill(self) -> None:
        self._child.kill()

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _listen(self) -> None:
        for text in self._child.lines():
            line: Line = json.loads(text)
            if "event" in line:
                with self._changed:
                    self._events.append(line)
                    self._changed.notify_all()
            else:
                self._answers.pop(line["id"]).put(line)
        with self._changed:
            self._changed.notify_all()


def go_driver() -> list[str]:
    """The command of the Go driver, built if need be."""
    require("go", "Install Go 1.20 or later.")
    binary = TARGET / "go" / "driver"

    def build() -> None:
        fresh = binary.with_suffix(".new")  # the old one may be running
        run_tool(
            ["go", "build", "-C", str(HERE / "go"), "-o", str(fresh), "."], BUILD_TIMEOUT_S, "Go could not build it"
        )
        fresh.replace(binary)

    build_once(binary.parent, [*(HERE / "go").glob("*.go"), HERE / "go" / "go.mod"], build)
    return [str(binary)]


def node_driver() -> list[str]:
    """The command of the Node driver, its client installed if need be."""
    require("node", "Install Node 16 or later.")
    require("npm", "Install npm.")
    folder = TARGET / "node"

    def build() -> None:
        shutil.copy(HERE / "node" / "package.json", folder)
        quiet = ("--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts")
        run_tool(["npm", "install", "--prefix", str(folder), *quiet], BUILD_TIMEOUT_S, "npm could not install ali-ons")

    build_once(folder, [HERE / "node" / "package.json"], build)
    return ["node", str(HERE / "node" / "driver.js")]


def cpp_driver() -> list[str]:
    """The command of the C++ client's driver, in an environment with the wheel that carries the client."""
    if sys.platform != "linux":
        raise MissingTool("the wheel rocketmq 0.4.4", "It holds a library for Linux on x86-64 only.")
    folder = TARGET / "cpp"
    python = folder / "bin" / "python"

    def build() -> None:
        run_tool(
            [sys.executable, "-m", "venv", "--clear", str(folder)], BUILD_TIMEOUT_S, "no environment could be made"
        )
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", CPP_WHEEL]
        run_tool(install, BUILD_TIMEOUT_S, f"pip could not install {CPP_WHEEL}")

    build_once(folder, [Path(__file__)], build)
    return [str(python), str(HERE / "cpp" / "driver.py")]


def require(tool: str, remedy: str) -> None:
    if shutil.which(tool) is None:
        raise MissingTool(tool, remedy)


def build_once(folder: Path, inputs: list[Path], build: Callable[[], None]) -> None:
    """Run ``build`` unless ``folder`` was already made from the same inputs."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(inputs))).hexdigest()
    stamp = folder / ".built"
    if stamp.exists() and stamp.read_text() == digest:
        return
    folder.mkdir(parents=True, exist_ok=True)
    build()
    stamp.write_text(digest)
