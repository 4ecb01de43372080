"""One life of one node: what a crash takes away.

A node of the simulated world has a name, an address and a disk for as long as the world exists. A
`Process` is one life of it, from a start to a crash or an exit: its tasks, its callbacks that are
ready to run, its connections, its listening sockets. Which process code runs in is a context
variable, so every callback and task that it creates belongs to the same process automatically.

A process dies in two parts. `die` takes effect immediately, in the middle of whatever the process was
doing: nothing that it does afterwards reaches the world. `reap` unwinds its suspended coroutines
and runs when the interrupted callback has returned to the loop.
"""

from __future__ import annotations

import asyncio
import random
import warnings
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any, Final

from refmq.sim.disk import SimulatedCrash

UNWIND_LIMIT: Final = 1_000
"""How often a coroutine may answer its own end with another `await` before it is left to the collector."""


class NodeCrashed(SimulatedCrash):
    """The process died here, and an operation on its disk that was under way is torn."""


class Process:
    """One life of one node. Created by `World`; code under test never sees it."""

    def __init__(self, name: str, address: str, life: int, entropy: random.Random, *, wall_skew_ms: int = 0) -> None:
        self.name = name
        self.address = address
        self.life = life
        self.entropy = entropy
        """The random numbers of this process, from the seed of the run."""
        self.wall_skew_ms = wall_skew_ms
        self.alive = True
        self.paused = False
        self.ready: deque[asyncio.Handle] = deque()
        self.is_runnable = False
        """Whether the loop has it in its list of processes with something to run."""
        self.tasks: list[asyncio.Task[Any]] = []
        self._suspected: list[asyncio.Task[Any]] = []
        self.signal_handlers: dict[int, tuple[Callable[..., object], tuple[Any, ...]]] = {}
        self.exception_handler: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None = None
        self.effects = 0
        """How many effects this process has had on the world: writes, flushes, sends, connects."""
        self.crash_at_effect: int | None = None
        self.crash_at_step: tuple[str, int] | None = None
        """A step, and how many more of them it lives through."""
        self.on_death: list[Callable[[], None]] = []
        """Called once, by `die`, in the order of registration: connections break, the disk forgets."""
        self.context = copy_context()
        self.context.run(CURRENT.set, self)

    def __repr__(self) -> str:
        return f"<{self.label}{'' if self.alive else ' (dead)'}>"

    @property
    def label(self) -> str:
        """The node's name, with the number of the life after the first."""
        return self.name if self.life <= 1 else f"{self.name}#{self.life}"

    def effect(self, what: str) -> None:
        """Every effect on the world passes here before it happens; a planned crash falls here."""
        if not self.alive:
            raise NodeCrashed(self.effects, f"{self.label}: {what}")
        if self.crash_at_effect is not None and self.effects >= self.crash_at_effect:
            self.die()
            raise NodeCrashed(self.effects, f"{self.label}: {what}")
        self.effects += 1

    def took(self, step: str) -> None:
        """Every step that is recorded passes here after it; a planned crash falls right behind it."""
        if self.crash_at_step is None or self.crash_at_step[0] != step:
            return
        left = self.crash_at_step[1]
        self.crash_at_step = (step, left - 1)
        if not left:
            self.die()

    def cancel_crash(self) -> None:
        """A planned crash that has not come does not come any more."""
        self.crash_at_effect = self.crash_at_step = None

    def die(self) -> None:
        """Ends this life immediately. The loop reaps what is left."""
        if not self.alive:
            return
        self.alive = False
        self.ready.clear()
        self.signal_handlers.clear()
        hooks, self.on_death = self.on_death, []
        for hook in hooks:
            hook()

    def reap(self) -> None:
        """Unwinds every suspended coroutine. Their `finally` blocks run, and reach nothing."""
        assert not self.alive
        tasks, self.tasks = self.tasks, []
        for task in tasks:
            if task.done():
                # An error in a dead process no longer matters, so asyncio need not report it.
                task._log_traceback = False
                continue
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio's own switch, not in typeshed
            with warnings.catch_warnings():
                # A `finally` may make a coroutine that can no longer be awaited; Python would warn as if it were a bug.
                warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
                self.context.run(_unwind, task)

    def forget_finished_tasks(self, *, at_end: bool = False) -> list[asyncio.Task[Any]]:
        """Drops the finished tasks and returns those whose exception was never retrieved.

        Before the end, who retrieves it may still have to be called: such a task is kept until the next time.
        """
        unseen = [task for task in self.tasks if task.done() and task._log_traceback]
        fresh = [] if at_end else [task for task in unseen if task not in self._suspected]
        self._suspected = fresh
        self.tasks = [*fresh, *(task for task in self.tasks if not task.done())]
        return [task for task in unseen if task not in fresh]


def _unwind(task: asyncio.Task[Any]) -> None:
    coroutine = task.get_coro()
    for _ in range(UNWIND_LIMIT):
        try:
            coroutine.close()
        except RuntimeError:
            continue  # It awaited once more in a `finally`; the next close ends that as well.
        except BaseException:
            return  # An error on the way out of a dead process has no one to reach.
        return


CURRENT: Final[ContextVar[Process]] = ContextVar("refmq_simulated_process")
"""The process that the running code belongs to."""
