"""The choice of engine."""

from __future__ import annotations

import asyncio

import pytest

from refmq.errors import UsageError
from refmq.model.ids import TimestampMs
from refmq.net.engine import LoopEngine
from refmq.net.engines import EngineChoice, EngineSurroundings, open_engine
from refmq.sim.disk import SimulatedDisk
from refmq.store import StoreConfig


def opened(choice: EngineChoice) -> tuple[SimulatedDisk, object]:
    disk = SimulatedDisk(clock=lambda: TimestampMs(0))

    async def inside() -> object:
        return open_engine(choice, disk, StoreConfig(), EngineSurroundings())

    return disk, asyncio.run(inside())


@pytest.mark.parametrize("choice", [EngineChoice.AUTO, EngineChoice.REFERENCE])
def test_the_reference_serves_and_touches_nothing_before_it_is_started(choice: EngineChoice) -> None:
    disk, engine = opened(choice)
    assert isinstance(engine, LoopEngine)
    assert disk.operations == 0


def test_an_engine_that_is_not_available_is_refused_with_the_one_that_is() -> None:
    with pytest.raises(UsageError, match="use --engine reference"):
        opened(EngineChoice.FAST)
