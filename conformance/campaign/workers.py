"""Processes that live through stretches of seeds.

Each has a pipe of its own, and tells of every seed. So of a process that dies (an engine in C may take it down) it is
known which seed it was at: that is a finding, another process takes its place, and the stretch goes on behind it.
"""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any, Final

from conformance.campaign.kinds import Lived, live, make
from refmq.verify.oracles.base import Finding

DIED: Final = "ProcessDied"
COUNTED_ONE_IN: Final = {"store": 8}
"""Of so many histories one is counted for the coverage. Counting costs a history of a store a third more; the others
count from what they record anyway, and all of them are."""
SILENT_S: Final = 300.0
"""A process that tells of no seed for so long hangs where no alarm of its own wakes it."""


@dataclass(frozen=True, slots=True)
class Job:
    """What all histories of a campaign have in common."""

    kind: str
    engine: str
    steps: int


@dataclass(frozen=True, slots=True)
class Told:
    """What a process tells of one seed."""

    seed: int
    lived: Lived
    seconds: float


@dataclass(slots=True)
class _Worker:
    job: Job
    process: Any = None
    pipe: Connection | None = None
    begin: int = 0
    end: int = 0
    told: list[Told] = field(default_factory=list)
    last_s: float = 0.0

    @property
    def next_seed(self) -> int:
        return self.begin + len(self.told)

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would share open files and half of a generator
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, self.job), daemon=True)
        self.process.start()
        theirs.close()
        self.last_s = time.monotonic()

    def give(self, begin: int, end: int) -> None:
        assert self.pipe is not None and begin < end
        self.begin, self.end, self.told, self.last_s = begin, end, [], time.monotonic()
        self.pipe.send((begin, end))

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        assert self.pipe is not None
        self.pipe.close()


def _work(pipe: Connection, job: Job) -> None:
    """The life of a process: a stretch comes in, a word on each of its seeds goes out."""
    logging.disable(logging.CRITICAL)  # brokers and clients complain of the faults that they are given
    while True:
        try:
            begin, end = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        for seed in range(begin, end):
            started = time.process_time()
            is_counted = seed % COUNTED_ONE_IN.get(job.kind, 1) == 0
            lived = live(job.kind, make(job.kind, seed, job.steps), job.engine, counted=is_counted)
            pipe.send(Told(seed, lived, time.process_time() - started))


class Workers:
    """All of them. `outcomes` gives stretches out until the time is over, and what comes back."""

    def __init__(self, job: Job, count: int) -> None:
        assert count > 0
        self._job = job
        self._workers = [_Worker(job) for _ in range(count)]

    def outcomes(self, stretches: Iterator[tuple[int, int]], until_s: float) -> Iterator[list[Told]]:
        """What came of each stretch. Nothing is given out after `until_s`; what is under way then comes to its end."""
        busy = []
        try:
            for worker in self._workers:
                worker.start()
                worker.give(*next(stretches))
                busy.append(worker)
            while busy:
                for worker in _heard(busy):
                    if worker.next_seed < worker.end:
                        continue
                    yield worker.told
                    if time.monotonic() < until_s:
                        worker.give(*next(stretches))
                    else:
                        busy.remove(worker)
        finally:
            for worker in self._workers:
                if worker.process is not None:
                    worker.stop()


def _heard(busy: list[_Worker]) -> list[_Worker]:
    """The processes that told of a seed, or that died."""
    by_pipe = {worker.pipe: worker for worker in busy if worker.pipe is not None}
    ready = [by_pipe[pipe] for pipe in wait(list(by_pipe), timeout=1.0) if isinstance(pipe, Connection)]
    for worker in ready:
        assert worker.pipe is not None
        try:
            worker.told.append(worker.pipe.recv())
            worker.last_s = time.monotonic()
        except (EOFError, ConnectionResetError):
            _replace(worker, "the process died")
    for worker in busy:
        if time.monotonic() - worker.last_s > SILENT_S:
            _replace(worker, f"nothing was heard for {SILENT_S:g} s")
            ready.append(worker)
    return ready


def _replace(worker: _Worker, what: str) -> None:
    """Another process goes on behind the seed that took this one down."""
    seed, told, begin, end = worker.next_seed, worker.told, worker.begin, worker.end
    worker.stop()
    code = worker.process.exitcode
    worker.start()
    told.append(Told(seed, Lived((Finding(DIED, f"{what} (exit code {code})"),)), 0.0))
    if seed + 1 < end:
        worker.give(seed + 1, end)
    worker.begin, worker.end, worker.told = begin, end, told
