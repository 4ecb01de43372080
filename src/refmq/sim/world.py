"""A whole cluster in one thread: nodes that start, crash and restart, and a seed that decides the rest.

    world = World(seed=7)
    server = world.node("server", serve)         # async def serve(node: Node) -> None
    async def story() -> None:
        server.start()
        await asyncio.sleep(1)
        server.crash()
        ...
    world.run(story())

The story runs outside every node: it is the hand that starts and breaks things. It sees virtual
time through `asyncio.sleep` and reaches nodes by their methods and by the network's faults.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from refmq.model.disk import Disk
from refmq.model.step import Event
from refmq.sim.disk import SimulatedCrash, SimulatedDisk
from refmq.sim.escape import Guard
from refmq.sim.loop import WALL_START_MS, Problem, SimulatedLoop, Stuck
from refmq.sim.network import Delay, Network
from refmq.sim.process import CURRENT, Process
from refmq.sim.timeline import Timeline
from refmq.trace.memory import MemoryRecorder, encode_trace
from refmq.trace.record import Recorded

T = TypeVar("T")

VIRTUAL_TIME_MAX_S: Final = 24 * 3600.0
"""A story that has not ended after a day of its own time is stuck."""

FLUSH_DELAY_S: Final = (0.000_05, 0.005)
"""What a flush of a simulated disk takes: shortest and longest."""


class RunFailed(AssertionError):
    """Something went wrong in a run that is not a finding of an oracle: an unhandled exception or an escape."""


class Node:
    """One machine of the world. It keeps its name, its address and its disk; its process comes and goes."""

    def __init__(
        self, world: World, name: str, address: str, main: Callable[[Node], Coroutine[Any, Any, None]]
    ) -> None:
        self.world = world
        self.name = name
        self.address = address
        self.wall_skew_ms = 0
        self.life = 0
        self.failure: BaseException | None = None
        """What ended the last life, when it was an exception of `main`."""
        self._main = main
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._power_lost = False
        self._exiting = False
        self._next_crash: tuple[str, int, bool] | None = None
        """For the next life: a step, how many more of them, and whether the power goes."""
        self.recorders: list[MemoryRecorder] = []
        """What the node has recorded, one trace per life."""
        self._disk = world.new_disk()
        self._disks: dict[int, SimulatedDisk] = {}

    def __repr__(self) -> str:
        return f"<node {self.name} life {self.life}{'' if self.is_up else ' down'}>"

    @property
    def is_up(self) -> bool:
        return self._process is not None and self._process.alive

    @property
    def disk(self) -> Disk:
        """The files of this node. Code of a dead process still gets the dead disk of its own life."""
        process = CURRENT.get(None)
        return self._disks[process.life] if process is not None and process.name == self.name else self._disk

    @property
    def recorder(self) -> MemoryRecorder:
        """Where the steps of the present life go: the simulated node's `--trace`."""
        process = CURRENT.get(None)
        life = process.life if process is not None and process.name == self.name else self.life
        return self.recorders[life - 1]

    def trace_bytes(self) -> bytes:
        """The trace files of every life, one after the other."""
        return b"".join(recorder.to_bytes() for recorder in self.recorders)

    @property
    def simulated_disk(self) -> SimulatedDisk:
        """The same with its faults, for stories and oracles."""
        return self._disk

    @property
    def process(self) -> Process:
        assert self._process is not None, f"{self.name} was never started"
        return self._process

    def start(self) -> None:
        """Begins a life: runs `main` in a process of its own."""
        assert not self.is_up, f"{self.name} is up"
        world = self.world
        self.life += 1
        self.failure = None
        step, times, self._power_lost = self._next_crash or ("", 0, False)
        self._next_crash = None
        self._exiting = False
        world.network.host_up(self.name)
        entropy = world.stream(f"entropy of {self.name} in life {self.life}")
        process = Process(self.name, self.address, self.life, entropy, wall_skew_ms=self.wall_skew_ms)
        process.crash_at_step = (step, times) if step else None
        self._process = process
        self._disks[self.life] = self._disk
        process.on_death.append(lambda: self._died(process))
        self.recorders.append(process.context.run(world.new_recorder, process))
        world.note(process.label, "start")
        self._task = world.loop.create_task(self._run(process), name=f"{process.label}/main", context=process.context)

    async def _run(self, process: Process) -> None:
        try:
            await self._main(self)
        except asyncio.CancelledError:
            pass
        except Exception as error:
            if not process.alive:
                raise
            self.failure = error
            self.world.note(process.label, "exit", type(error).__name__)
            if self.world.fail_on_exit:
                self.world.loop.problems.append(
                    Problem(process.label, self.world.loop.elapsed_s, "the node's main ended", error)
                )
        self.world.loop.report_unseen(process)
        self._exiting = True
        process.die()

    def _died(self, process: Process) -> None:
        world = self.world
        if not self._exiting:
            world.record_fault(self.name, "PowerLoss" if self._power_lost else "ProcessCrash")
        world.note(process.label, "exit" if self._exiting else "power loss" if self._power_lost else "crash")
        power_lost = self._power_lost and not self._exiting
        world.network.process_died(process, power=power_lost)
        if power_lost:
            world.network.host_down(self.name)
            self._disk = self._disk.after_power_loss(world.disk_choice)
        else:
            self._disk = self._disk.after_process_crash()
        world.loop.bury(process)

    def crash(self, *, power: bool = False) -> None:
        """Ends the life now, between two callbacks. With `power` the disk forgets and the peers get no notice."""
        if self.is_up:
            self._power_lost = power
            self.process.die()

    def crash_after(self, effects: int, *, power: bool = False) -> None:
        """Ends the life before the effect that follows the next `effects` ones, wherever that is."""
        assert effects >= 0
        self._power_lost = power
        self.process.crash_at_effect = self.process.effects + effects

    def crash_at_step(self, step: str, times: int = 0, *, power: bool = False) -> None:
        """Ends the life right behind a step of that name, after so many more of them; what would come before the next
        effect on the world is nothing that anybody could see. Of a node that is down the next life ends so."""
        assert times >= 0
        if self.is_up:
            self._power_lost = power
            self.process.crash_at_step = (step, times)
        else:
            self._next_crash = (step, times, power)

    def cancel_crash(self) -> None:
        """A planned crash that has not come does not come any more."""
        self._next_crash = None
        if self.is_up:
            self.process.cancel_crash()

    def end(self) -> None:
        """Ends the life without a fault: the run is over."""
        self._exiting = True
        self.process.die()

    def signal(self, number: int) -> None:
        """Delivers a signal: the handler that the node has for it, or its end."""
        handler = self.process.signal_handlers.get(number)
        if handler is None:
            self.crash()
        else:
            callback, args = handler
            self.world.loop.call_soon(callback, *args, context=self.process.context.copy())

    async def stop(self) -> None:
        """A clean end: cancels `main` and waits until it has finished."""
        if self.is_up and self._task is not None:
            self._task.cancel()
            await self.ended()

    async def ended(self) -> None:
        """Waits for the end of the present life."""
        if self.is_up:
            future = self.world.loop.create_future()
            self.process.on_death.append(lambda: None if future.done() else future.set_result(None))
            await future

    def pause(self) -> None:
        """The process stops running, as under a long garbage collection; the world goes on."""
        self.world.note(self.process.label, "pause")
        self.world.loop.pause(self.process)

    def resume(self) -> None:
        if self.is_up:
            self.world.note(self.process.label, "resume")
            self.world.loop.resume(self.process)

    def jump_clock(self, ms: int) -> None:
        """Moves the wall clock of this node, now and for its later lives."""
        self.wall_skew_ms += ms
        if self.is_up:
            self.process.wall_skew_ms += ms
        self.world.note(self.name, "clock", ms)

    async def call(self, awaitable: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Runs a coroutine inside the node's process and gives its result, unless the node dies first."""
        task = self.world.loop.create_task(awaitable(), context=self.process.context.copy())
        result: asyncio.Future[T] = self.world.loop.create_future()

        def finished(done: asyncio.Task[T]) -> None:
            if result.done():
                return
            if done.cancelled():
                result.cancel()
            elif (error := done.exception()) is not None:
                result.set_exception(error)
            else:
                result.set_result(done.result())

        def died() -> None:
            if not result.done():
                result.set_exception(NodeDown(self.name))

        task.add_done_callback(finished)
        self.process.on_death.append(died)
        return await result


class NodeDown(Exception):
    """The node died while something was to be done inside it."""


class World:
    """Everything of one run. Equal seeds and equal stories give equal runs, on every machine."""

    def __init__(
        self,
        seed: int,
        *,
        strict: bool = False,
        delay: Delay | None = None,
        fail_on_exit: bool = True,
        ipv6: bool = False,
    ) -> None:
        """`strict` looks at every C call for escapes, at several times the cost. With `ipv6` nodes have addresses of 16
        bytes."""
        self.seed = seed
        self._ipv6 = ipv6
        self.fail_on_exit = fail_on_exit
        self.timeline = Timeline()
        self.nodes: dict[str, Node] = {}
        self.events: list[tuple[str, Recorded]] = []
        """What all nodes have recorded and what struck them, in the order of the world: what oracles read."""
        self.faults: list[Recorded] = []
        self._guard = Guard(strict=strict)
        self._outside = Process("outside", "10.0.0.1", 1, self.stream("entropy outside"))
        self.loop = SimulatedLoop(self.stream("schedule"), self._outside, self._guard)
        self.network = Network(self.loop, self.stream("network"), self.timeline, delay)
        self.network.add_host("outside", "10.0.0.1")
        self.loop.transports = self.network
        self._disk_random = self.stream("disk").random
        self.slow_flushes_s: dict[str, float] = {}
        """Node -> what each flush of its disk takes beyond the usual."""

    def stream(self, purpose: str) -> random.Random:
        """Random numbers for one purpose. Purposes do not disturb each other."""
        return random.Random(f"{self.seed}: {purpose}")

    def disk_choice(self, options: int, /) -> int:
        return int(self._disk_random() * options)

    def new_disk(self) -> SimulatedDisk:
        shortest, longest = FLUSH_DELAY_S

        async def flush_takes_time() -> None:
            node = CURRENT.get(self._outside).label.partition("#")[0]
            slow_s = self.slow_flushes_s.get(node, 0.0)
            await asyncio.sleep(slow_s + shortest + (longest - shortest) * self._disk_random())

        def effect(what: str) -> None:
            process = CURRENT.get(self._outside)
            if process is not self._outside:
                process.effect(what)

        return SimulatedDisk(
            clock=self.loop.wall_ms, choose=self.disk_choice, on_flush=flush_takes_time, on_effect=effect
        )

    def new_recorder(self, process: Process) -> MemoryRecorder:
        def seen(recorded: Recorded) -> None:
            if process.alive:
                self.events.append((process.label, recorded))
                self.timeline.note(self.loop.elapsed_s, process.label, recorded.event.action, recorded)
                process.took(recorded.event.action)

        return MemoryRecorder(process.label, self.wall_ns, seen)

    def record_fault(self, node: str, action: str, message: int = 0) -> None:
        """What the world does to a node is part of the trace: it stands there as an event of the node."""
        recorded = Recorded(Event(action, node, c=message), self.wall_ns(), len(self.faults))
        self.faults.append(recorded)
        self.events.append((node, recorded))

    def trace_bytes(self) -> bytes:
        """All trace files of the run, in a fixed order: equal runs have equal bytes."""
        world = encode_trace("world", WALL_START_MS * 1_000_000, self.faults)
        return b"".join([*[node.trace_bytes() for node in self.nodes.values()], world])

    def wall_ns(self) -> int:
        """The wall clock of the process that asks, in nanoseconds."""
        return WALL_START_MS * 1_000_000 + int(self.loop.elapsed_s * 1e9) + self._skew_ms() * 1_000_000

    def _skew_ms(self) -> int:
        return CURRENT.get(self._outside).wall_skew_ms

    def node(self, name: str, main: Callable[[Node], Coroutine[Any, Any, None]]) -> Node:
        """A new machine. It is down until `start`."""
        assert name not in {"outside", *self.nodes}, f"{name} exists"
        number = len(self.nodes) + 2
        address = f"fd00::{number:x}" if self._ipv6 else f"10.0.{number // 256}.{number % 256}"
        self.network.add_host(name, address)
        node = Node(self, name, address, main)
        self.nodes[name] = node
        return node

    def note(self, node: str, what: str, *details: object) -> None:
        """Adds a line to the time line of a node."""
        self.timeline.note(self.loop.elapsed_s, node, what, *details)

    def run(self, story: Awaitable[T], *, limit_s: float = VIRTUAL_TIME_MAX_S) -> T:
        """Runs until the story is over, ends every node, and reports unhandled errors."""

        def out_of_time() -> None:
            raise Stuck(f"the story has not ended after {limit_s:g} s of virtual time; {self.loop.waiting()}")

        self.loop.call_world_at(self.loop.time() + limit_s, out_of_time)
        try:
            result = self._outside.context.run(self.loop.run_until_complete, story)
        except BaseException as error:
            self._end()
            self._explain(error)
            raise
        self._end()
        self._explain(None)
        return result

    def _end(self) -> None:
        for node in self.nodes.values():
            if node.is_up:
                self.loop.report_unseen(node.process)
                node.end()
        self.loop.report_unseen(self._outside)
        for node in self.nodes.values():
            if node.life:
                node.process.reap()
        self.network.process_died(self._outside, power=True)
        self._outside.die()
        self._outside.reap()
        self.loop.close()

    def _explain(self, error: BaseException | None) -> None:
        """An escape or an unhandled exception fails the run, even if the story did not notice."""
        found = [str(escape) for escape in self._guard.escapes] + [str(problem) for problem in self.loop.problems]
        if found and not isinstance(error, SimulatedCrash):
            raise RunFailed("\n".join(found)) from (
                error or (self.loop.problems[0].exception if self.loop.problems else None)
            )
