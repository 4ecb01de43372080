"""Everything that a plane knows, and what a step of it returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from refmq.model.step import EventFields
from refmq.plane.ack import WaitingPuts
from refmq.plane.effects import Effect
from refmq.plane.flow import Flow
from refmq.plane.hold import HeldPull, Hold
from refmq.plane.offsets import OffsetTable
from refmq.plane.replicate import Replicas
from refmq.plane.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class PlaneState:
    """The hot path's own memory. All of it is lost in a crash but the offsets, which the control plane writes down."""

    snapshot: Snapshot
    offsets: OffsetTable = field(default_factory=OffsetTable)
    hold: Hold = field(default_factory=Hold)
    woken: tuple[HeldPull, ...] = ()
    """Pulls that wait no more and are answered next."""
    puts: WaitingPuts = field(default_factory=WaitingPuts)
    replicas: Replicas = field(default_factory=Replicas)
    flow: Flow = field(default_factory=Flow)
    looked_ms: int = 0
    """When the waiting pulls were last looked through, in uptime."""


class PlaneStep(NamedTuple):
    """The outcome of one input. Events are recorded behind an `Append` and before anybody is told."""

    state: PlaneState
    effects: tuple[Effect, ...] = ()
    events: tuple[EventFields, ...] = ()
