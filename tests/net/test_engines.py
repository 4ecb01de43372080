"""The choice of engine."""

from __future__ import annotations

import asyncio

import pytest

import refmq_fast
from refmq.errors import UsageError
from refmq.model.ids import TimestampMs
from refmq.net.engine import LoopEngine
from refmq.net.engines import EngineChoice, EngineSurroundings, open_engine
from refmq.net.fast_store import FastStore
from refmq.plane.engine import Engine
from refmq.sim.disk import SimulatedDisk
from refmq.store import StoreConfig

needs_extension = pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}")


def opened(choice: EngineChoice, config: StoreConfig | None = None) -> tuple[SimulatedDisk, Engine]:
    disk = SimulatedDisk(clock=lambda: TimestampMs(0))

    async def inside() -> Engine:
        return open_engine(choice, disk, config or StoreConfig(), EngineSurroundings())

    return disk, asyncio.run(inside())


@pytest.mark.parametrize("choice", [EngineChoice.AUTO, EngineChoice.REFERENCE])
def test_the_reference_serves_and_touches_nothing_before_it_is_started(choice: EngineChoice) -> None:
    disk, engine = opened(choice)
    assert isinstance(engine, LoopEngine)
    assert engine.name == "reference"
    assert disk.operations == 0


@needs_extension
@pytest.mark.extension
def test_fast_is_the_engine_with_the_store_in_c() -> None:
    disk, engine = opened(EngineChoice.FAST)
    assert isinstance(engine.store, FastStore)
    assert engine.name == "fast"
    assert disk.operations == 0


@needs_extension
@pytest.mark.extension
@pytest.mark.parametrize("config", [StoreConfig(ext_enabled=True), StoreConfig(transient_pool=True)])
def test_what_the_store_in_c_does_not_have_is_refused_with_the_engine_that_has_it(config: StoreConfig) -> None:
    with pytest.raises(UsageError, match=r"the C store has no .*; use --engine reference"):
        opened(EngineChoice.FAST, config)


def test_an_engine_that_is_not_available_is_refused_with_the_one_that_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refmq_fast, "AVAILABLE", False)
    with pytest.raises(UsageError, match=r"the C extension is missing: .*; use --engine reference"):
        opened(EngineChoice.FAST)
