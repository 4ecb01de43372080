from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from refmq.model.step import Event
from refmq.sim.world import Node, NodeDown, RunFailed, World
from tests.sim.echo import PORT, ask, echo, idle


def test_a_node_serves_and_a_crash_takes_its_connections() -> None:
    world = World(seed=1)
    server = world.node("server", echo)
    client = world.node("client", idle)

    async def story() -> list[str]:
        server.start()
        client.start()
        await asyncio.sleep(0.1)
        seen = [(await client.call(lambda: ask("server", b"hello"))).decode()]

        async def hold() -> str:
            reader, writer = await asyncio.open_connection("server", PORT)
            writer.write(b"held")
            assert await reader.readexactly(4) == b"held"
            try:
                return "eof" if not await reader.read() else "data"
            except ConnectionResetError:
                return "reset"

        holding = asyncio.ensure_future(client.call(hold))
        await asyncio.sleep(1)
        server.crash()
        seen.append(await holding)
        try:
            await client.call(lambda: ask("server", b"x"))
        except ConnectionRefusedError:
            seen.append("refused")
        server.start()
        await asyncio.sleep(0.1)
        seen.append((await client.call(lambda: ask("server", b"again"))).decode())
        return seen

    seen = world.run(story())
    assert seen[0] == "hello"
    assert seen[1] in ("eof", "reset")
    assert seen[2:] == ["refused", "again"]


def test_both_ends_of_a_process_crash_are_seen_over_the_seeds() -> None:
    outcomes = set()
    for seed in range(12):
        world = World(seed)
        server = world.node("server", echo)

        async def story(server: Node = server) -> str:
            server.start()
            await asyncio.sleep(0.1)
            reader, writer = await asyncio.open_connection("server", PORT)
            await asyncio.sleep(0.1)
            server.crash()
            try:
                return "eof" if await reader.read() == b"" else "data"
            except ConnectionResetError:
                return "reset"
            finally:
                writer.close()

        outcomes.add(world.run(story()))
    assert outcomes == {"eof", "reset"}


def test_power_loss_forgets_what_was_not_flushed_for_some_seed_and_never_what_was() -> None:
    kept = set()
    for seed in range(20):
        world = World(seed)

        async def main(node: Node) -> None:
            if node.life > 1:
                return
            for name in ("flushed", "not-flushed"):
                file = node.disk.create(name, 4)
                file.write(0, b"data")
                if name == "flushed":
                    await file.flush()
                    await node.disk.flush_directory("")
            await asyncio.Event().wait()

        node = world.node("node", main)

        async def story(node: Node = node) -> tuple[bytes, bool]:
            node.start()
            await asyncio.sleep(1)
            node.crash(power=True)
            disk = node.disk
            written = disk.exists("not-flushed") and disk.info("not-flushed").size_bytes == 4
            survived = written and disk.open("not-flushed").read(0, 4) == b"data"
            return disk.open("flushed").read(0, 4), survived

        flushed, survived = world.run(story())
        assert flushed == b"data"
        kept.add(survived)
    assert kept == {True, False}


def test_a_paused_node_does_nothing_until_it_is_resumed() -> None:
    world = World(seed=1)
    ticks: list[float] = []

    async def main(node: Node) -> None:
        while True:
            await asyncio.sleep(1)
            ticks.append(round(world.loop.elapsed_s, 3))

    node = world.node("node", main)

    async def story() -> None:
        node.start()
        await asyncio.sleep(2.5)
        node.pause()
        await asyncio.sleep(10)
        node.resume()
        await asyncio.sleep(2)

    world.run(story())
    assert ticks == [1.0, 2.0, 12.5, 13.5]


def test_each_node_has_its_own_wall_clock_and_random_numbers() -> None:
    world = World(seed=1)
    seen: dict[str, list[int]] = {"a": [], "b": []}

    async def main(node: Node) -> None:
        seen[node.name] += [world.loop.wall_ms(), world.loop.entropy().getrandbits(32)]
        await asyncio.sleep(1)
        seen[node.name].append(world.loop.wall_ms())
        await asyncio.Event().wait()

    a, b = world.node("a", main), world.node("b", main)

    async def story() -> None:
        a.start()
        b.start()
        await asyncio.sleep(0.5)
        b.jump_clock(-5_000)
        await asyncio.sleep(1)

    world.run(story())
    assert seen["a"][0] == seen["b"][0]
    assert seen["a"][1] != seen["b"][1]
    assert seen["a"][2] - seen["a"][0] == 1_000
    assert seen["b"][2] - seen["b"][0] == -4_000


def test_a_main_that_ends_by_an_exception_fails_the_run_and_names_the_node() -> None:
    world = World(seed=1)

    async def main(node: Node) -> None:
        raise OSError("no such luck")

    world.node("broken", main).start()
    with pytest.raises(RunFailed, match=r"broken .*no such luck"):
        world.run(asyncio.sleep(5))


def test_a_call_into_a_node_that_dies_is_told() -> None:
    world = World(seed=1)
    node = world.node("node", idle)

    async def story() -> None:
        node.start()
        call = asyncio.ensure_future(node.call(lambda: asyncio.sleep(100)))
        await asyncio.sleep(1)
        node.crash()
        with pytest.raises(NodeDown):
            await call

    world.run(story())


def test_a_clean_stop_lets_main_finish() -> None:
    world = World(seed=1)
    left: list[str] = []

    async def main(node: Node) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            node.disk.create("closed", 1)
            left.append("closed")

    node = world.node("node", main)

    async def story() -> bool:
        node.start()
        await asyncio.sleep(1)
        await node.stop()
        return node.disk.exists("closed")

    assert world.run(story())


SCENARIO = """
import asyncio
import hashlib
from refmq.model.step import Event
from refmq.sim.world import World
from tests.sim.echo import ask, echo, idle

async def noise(node):
    # Sets of strings and of tasks are ordered by hashes; only the second are made harmless.
    async def one(number):
        try:
            await asyncio.sleep(world.loop.entropy().random())
            await ask("server", b"n%d" % number)
            node.recorder.record(Event("Pull", node.name, "topic", number, world.loop.entropy().getrandbits(40)))
        except (ConnectionError, asyncio.CancelledError):
            world.note(node.name, "failed", number)
            raise
    while True:
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(5):
                    group.create_task(one(number))
        except* ConnectionError:
            await asyncio.sleep(0.2)

world = World(seed=11)
server = world.node("server", echo)
nodes = [world.node(f"client-{number}", noise) for number in range(4)]

async def story():
    server.start()
    for node in nodes:
        node.start()
    for _ in range(10):
        await asyncio.sleep(1)
        server.crash(power=world.loop.entropy().random() < 0.5)
        nodes[0].crash()
        await asyncio.sleep(0.5)
        server.start()
        nodes[0].start()
        await asyncio.sleep(0.5)
        world.network.reset_between("server", "client-2")

world.run(story())
trace = b"".join(node.trace_bytes() for node in world.nodes.values())
print(world.timeline.count, world.timeline.digest, len(trace), hashlib.sha256(trace).hexdigest())
"""


def test_a_seed_replays_in_another_process_with_another_hash_seed() -> None:
    root = Path(__file__).parent.parent.parent
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCENARIO],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": f"{root / 'src'}:{root}", "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2", "77")
    }
    assert len(outputs) == 1
    entries, _, trace_bytes, _ = outputs.pop().split()
    assert int(entries) > 500
    assert int(trace_bytes) > 64 * 50


@pytest.mark.parametrize("in_next_life", [False, True])
def test_a_life_ends_right_behind_a_step_that_was_chosen(in_next_life: bool) -> None:
    world = World(seed=3, fail_on_exit=False)
    lived: list[int] = []

    async def counts(node: Node) -> None:
        await asyncio.sleep(1)
        for number in range(5):
            node.recorder.record(Event("Count", a=number))
            node.disk.create(f"after {number} in life {node.life}", 1)
            lived.append(number)

    node = world.node("n", counts)

    async def story() -> None:
        if not in_next_life:
            node.start()
        node.crash_at_step("Count", 2, power=True)
        node.cancel_crash()
        node.crash_at_step("Count", 2)
        if in_next_life:
            node.start()
        await asyncio.sleep(2)
        node.start()  # nothing is planned for this one
        await asyncio.sleep(2)

    world.run(story())
    assert lived == [0, 1, *range(5)]
    told = [recorded.event.action for _, recorded in world.events]
    assert told == [*["Count"] * 3, "ProcessCrash", *["Count"] * 5]


def test_a_slow_disk_is_slow_for_its_node_only() -> None:
    world = World(seed=1)
    took: dict[str, float] = {}

    async def main(node: Node) -> None:
        file = node.disk.create("a", 10)
        begin = asyncio.get_running_loop().time()
        await file.flush()
        took[node.name] = asyncio.get_running_loop().time() - begin

    slow, usual = world.node("slow", main), world.node("usual", main)
    world.slow_flushes_s["slow"] = 3.0

    async def story() -> None:
        slow.start()
        usual.start()
        await asyncio.sleep(10)

    world.run(story(), limit_s=20)
    assert took["slow"] >= 3.0 > took["usual"]


def test_who_listens_hears_what_arrives() -> None:
    world = World(seed=1)
    server, client = world.node("server", echo), world.node("client", idle)
    heard: list[tuple[str, str, bytes]] = []
    world.network.heard = lambda sender, target, data: heard.append((sender.process.label, target.process.label, data))

    async def story() -> None:
        server.start()
        client.start()
        await asyncio.sleep(0.1)
        await client.call(lambda: ask("server", b"hello"))

    world.run(story(), limit_s=20)
    there = b"".join(data for sender, _, data in heard if sender == "client")
    back = b"".join(data for sender, _, data in heard if sender == "server")
    assert there == back == b"hello"
