"""The wall clock of the shells."""

from __future__ import annotations

import asyncio
import time

from refmq.net.clock import wall_ms
from refmq.sim.loop import WALL_START_MS
from refmq.sim.world import World


def test_outside_a_simulation_it_is_the_systems_clock() -> None:
    async def read() -> int:
        return wall_ms()

    before = time.time_ns() // 1_000_000
    assert before <= asyncio.run(read()) <= time.time_ns() // 1_000_000


def test_inside_a_simulation_it_is_the_simulated_clock() -> None:
    seen: list[int] = []

    async def story() -> None:
        seen.append(wall_ms())

    World(seed=1).run(story())
    assert seen == [WALL_START_MS]
