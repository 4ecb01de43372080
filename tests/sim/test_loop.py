"""The simulated loop: time, the order of callbacks, and stories that cannot end."""

from __future__ import annotations

import asyncio

import pytest

from refmq.sim.loop import Stuck
from refmq.sim.world import Node, RunFailed, World


def test_a_minute_of_sleep_takes_no_time_and_moves_both_clocks() -> None:
    world = World(seed=1)

    async def story() -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        assert loop is world.loop
        before_s, before_ms = loop.time(), world.loop.wall_ms()
        await asyncio.sleep(60)
        return loop.time() - before_s, world.loop.wall_ms() - before_ms

    assert world.run(story()) == (60.0, 60_000)


def test_an_exception_that_nobody_handles_fails_the_run() -> None:
    world = World(seed=1)

    async def main(node: Node) -> None:
        async def lost() -> None:
            raise ValueError("nobody looks")

        task = asyncio.ensure_future(lost())
        await asyncio.sleep(1)
        assert task.done()

    world.node("node", main).start()
    with pytest.raises(RunFailed, match="nobody looks"):
        world.run(asyncio.sleep(5))


def test_a_story_that_waits_for_nothing_is_a_deadlock() -> None:
    with pytest.raises(Stuck, match="has not ended after 3600 s"):
        World(seed=1).run(asyncio.Event().wait(), limit_s=3600)


def test_a_loop_that_never_waits_is_found() -> None:
    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Stuck, match="without waiting"):
        World(seed=1).run(spin())


def test_callbacks_of_one_node_keep_their_order_and_nodes_interleave() -> None:
    orders = set()
    for seed in range(8):
        world = World(seed)
        ran: list[str] = []

        async def main(node: Node, ran: list[str] = ran) -> None:
            loop = asyncio.get_running_loop()
            for number in range(5):
                loop.call_soon(ran.append, f"{node.name}{number}")
            await asyncio.Event().wait()

        for name in "ab":
            world.node(name, main).start()
        world.run(asyncio.sleep(1))
        assert [step for step in ran if step[0] == "a"] == [f"a{number}" for number in range(5)]
        assert [step for step in ran if step[0] == "b"] == [f"b{number}" for number in range(5)]
        orders.add(tuple(ran))
    assert len(orders) > 4
