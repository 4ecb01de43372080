"""`refmq serve --trace` as a process, under load, while something happens to its trace: every send is answered."""

from __future__ import annotations

import asyncio
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from refmq.net.client import Client
from refmq.protocol.codes import ResponseCode
from refmq.trace.reader import TraceFile, read_file, trace_files
from tests.net.broker_requests import send_request

WAIT_S = 60.0
WINDOW = 8


@dataclass(frozen=True)
class Served:
    """A running process, and where its messages and its trace go."""

    process: subprocess.Popen[bytes]
    broker: str
    log: Path
    trace: Path

    def send_until(self, condition: Callable[[], bool], least: int = 1) -> int:
        """Sends, a few at once, until something is so. Every send succeeds; how many there were."""
        return asyncio.run(asyncio.wait_for(self._send_until(condition, least), WAIT_S))

    async def _send_until(self, condition: Callable[[], bool], least: int) -> int:
        client, count = Client(), 0
        try:
            while count < least or not condition():
                sends = [client.invoke(self.broker, send_request("topic", b"body"), WAIT_S) for _ in range(WINDOW)]
                answers = await asyncio.gather(*sends)
                assert [answer.code for answer in answers] == [ResponseCode.SUCCESS] * WINDOW
                count += WINDOW
        finally:
            await client.close()
        return count

    def has_said(self, text: str) -> bool:
        return text in self.log.read_text()

    def acks(self) -> int:
        """How many acknowledgements are in the files by now."""
        return sum(recorded.event.action == "AckPut" for file in self.files() for recorded in file.events)

    def files(self) -> list[TraceFile]:
        """Those of the broker; one that was begun and has nothing yet is left out."""
        paths = [path for path in trace_files(self.trace) if path.stat().st_size]
        return [file for file in map(read_file, paths) if file.node == "broker-a"]

    def end(self) -> list[TraceFile]:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(WAIT_S) == 0
        return self.files()


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    """Without files of its own: all that it writes is the trace."""
    log, trace = folder / "log", folder / "trace"
    command = [sys.executable, "-m", "refmq", "serve", "--port=0", "--broker-port=0", "--in-memory", f"--trace={trace}"]
    with log.open("ab") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().decode()
            found = re.search(r"broker (\S+)\. Ctrl-C", line)
            assert found is not None, line + log.read_text()
            yield Served(process, found[1], log, trace)
        finally:
            process.kill()


def sequence_numbers(files: list[TraceFile]) -> list[int]:
    """Of all events and drops, in the order of the files."""
    found = []
    for file in files:
        missing = [drop.sequence + number for drop in file.drops for number in range(drop.count)]
        found += sorted([recorded.sequence for recorded in file.events] + missing)
    return found


def test_both_nodes_and_all_lives_share_a_directory(tmp_path: Path) -> None:
    for _ in range(2):
        with serving(tmp_path) as served:
            served.send_until(lambda: True)
            served.end()
    lives = defaultdict(set)
    for path in trace_files(served.trace):
        file = read_file(path)
        assert file.damage == []
        lives[file.node].add(file.head.life_ns)
    assert {node: len(found) for node, found in lives.items()} == {"broker-a": 2, "namesrv-0": 2}
    assert served.log.read_text() == ""


def test_a_trace_that_finds_no_room_on_its_disk_goes_on_when_there_is_some(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        _, most = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE)
        sent = served.send_until(lambda: served.acks() > 0)
        longest = max(path.stat().st_size for path in trace_files(served.trace))
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (longest + 1_000, most))
        sent += served.send_until(lambda: served.has_said("cannot be written, events are waiting: [Errno 27]"))
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (most, most))
        sent += served.send_until(lambda: served.has_said("can be written again"))
        files = served.end()
    assert len(files) > 1
    assert [file.damage for file in files] == [[]] * len(files)
    assert sequence_numbers(files) == list(range(len(sequence_numbers(files))))
    dropped = sum(file.dropped_count for file in files)  # on a quick machine more than can wait may come in between
    assert served.acks() <= sent <= served.acks() + dropped


def test_a_trace_whose_directory_is_removed_goes_on_in_another(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        served.send_until(lambda: served.acks() > 0)
        shutil.rmtree(served.trace)
        served.send_until(lambda: served.has_said("was removed, starting another"))
        files = served.end()
    numbers = sequence_numbers(files)
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert numbers[0] > 0
    assert [file.damage for file in files] == [[]] * len(files)


def test_a_node_that_is_killed_leaves_a_trace_that_can_be_read(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        sent = served.send_until(lambda: served.acks() > 0, least=500)
        served.process.kill()
        served.process.wait(WAIT_S)
        files = served.files()
    assert sequence_numbers(files) == list(range(len(sequence_numbers(files))))
    assert 0 < served.acks() <= sent
    assert all(damage.is_tail for file in files for damage in file.damage)


def test_a_trace_that_cannot_be_made_is_one_line_and_no_node(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "file/below"):
        command = [sys.executable, "-m", "refmq", "serve", "--port=0", "--broker-port=0", "--in-memory"]
        result = subprocess.run(
            [*command, f"--trace={tmp_path / name}"], capture_output=True, text=True, timeout=WAIT_S, check=False
        )
        assert result.returncode == 2
        assert len(result.stderr.splitlines()) == 1
        assert name in result.stderr
