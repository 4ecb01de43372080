"""The hot path of a broker: what happens to a message between its request and its answer.

One machine without input or output. An input and a state give the next state, the effects in their order and the trace
events (`step`). The reference engine (`refmq.net.engine`) runs it on an event loop. A second engine is the same
machine, file by file, with the same names.
"""

from __future__ import annotations

from refmq.plane.serve import step
from refmq.plane.snapshot import Snapshot
from refmq.plane.state import PlaneState, PlaneStep

__all__ = ["PlaneState", "PlaneStep", "Snapshot", "step"]
