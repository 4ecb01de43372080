"""What a crash takes away, and when it falls."""

from __future__ import annotations

import asyncio
import contextlib
import warnings

import pytest

from refmq.sim.world import Node, World


def test_a_crash_takes_tasks_and_memory_but_runs_no_effect_of_their_cleanup() -> None:
    world = World(seed=3)
    left: list[str] = []

    async def main(node: Node) -> None:
        async def worker() -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                left.append("unwound")
                with contextlib.suppress(BaseException):
                    node.disk.create("after-death", 1)
                    left.append("wrote")
                await asyncio.sleep(1)
                left.append("went on")

        async with asyncio.TaskGroup() as group:
            group.create_task(worker())
            group.create_task(worker())

    node = world.node("node", main)

    async def story() -> tuple[str, ...]:
        node.start()
        await asyncio.sleep(1)
        node.crash()
        await asyncio.sleep(1)
        return node.disk.list("")

    assert world.run(story()) == ()
    assert left == ["unwound", "unwound"]


def test_a_crash_is_silent_about_coroutines_that_a_cleanup_made_and_nobody_can_await() -> None:
    """The suite takes warnings for errors: without care such a crash fails whatever test is running."""
    world = World(seed=3)

    async def tell() -> None:
        raise AssertionError("nothing of a dead process runs")

    async def main(node: Node) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            last_word = tell()
            await asyncio.sleep(1)
            await last_word

    node = world.node("node", main)

    async def story() -> None:
        node.start()
        await asyncio.sleep(1)
        node.crash()
        await asyncio.sleep(1)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        world.run(story())
    assert [str(warning.message) for warning in seen] == []


@pytest.mark.parametrize("effects", range(7))
def test_a_crash_falls_between_any_two_effects(effects: int) -> None:
    """`main` has six effects in one callback; a crash after n of them leaves exactly n."""
    world = World(seed=5)

    async def main(node: Node) -> None:
        for number in range(3):
            node.disk.create(f"file-{number}", 8).write(0, b"complete")
        await asyncio.Event().wait()

    node = world.node("node", main)

    async def story() -> tuple[bool, list[bytes]]:
        node.start()
        node.crash_after(effects)
        await asyncio.sleep(1)
        return node.is_up, [
            node.disk.open(name).read(0, node.disk.info(name).size_bytes) for name in node.disk.list("")
        ]

    is_up, contents = world.run(story())
    assert is_up == (effects == 6)
    whole = effects // 2
    assert contents[:whole] == [b"complete"] * whole
    # The effect that the crash interrupted may be there in part: nothing, a prefix, an empty or a zeroed file.
    assert len(contents) <= whole + 1
    for torn in contents[whole:]:
        assert torn in (b"", bytes(8)) or b"complete".startswith(torn.rstrip(b"\0"))
