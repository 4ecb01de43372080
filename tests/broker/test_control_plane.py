"""The control plane: what several handlers share."""

from __future__ import annotations

from collections.abc import Callable

from refmq.model.ids import QueueOffset
from tests.broker.harness import Harness, run


def test_a_trace_says_that_offsets_are_durable_only_when_all_of_them_are() -> None:
    world = Harness()
    world.broker.commit_offset("g", "T", 0, QueueOffset(1))
    run(world.broker.save_offsets())
    run(world.broker.save_offsets())
    assert [event.action for event in world.events] == ["CommitOffset", "PersistOffsets"]
    honest = world.save

    async def slow(file: str, encode: Callable[[], bytes]) -> None:
        await honest(file, encode)
        world.broker.commit_offset("g", "T", 0, QueueOffset(3))

    world.save = slow  # type: ignore[method-assign]
    world.broker.commit_offset("g", "T", 0, QueueOffset(2))
    run(world.broker.save_offsets())
    assert [event.action for event in world.events][2:] == ["CommitOffset", "CommitOffset"]
