"""What a step returns: the next state, the effects in their order, and one trace event.

A step function mirrors one TLA+ action and has its name in snake case. One that returns a `Step` performs nothing: the
shell does, in the order of the tuple, and a crash can fall between any two effects. (The steps of the store are another
matter: they write through a `Disk` as they go. docs/explanation/layers.md says why.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias, TypeVar

S = TypeVar("S")
E = TypeVar("E")


class Event(NamedTuple):
    """One line of a trace: which action was taken, and enough to know the state after it.

    A tuple and no dataclass, because every step makes one and a frozen dataclass takes four times as long to make.

    The meaning of `a`, `b`, `c` and `d` depends on the action and is written down once, in
    `refmq.model.vocabulary`. All of them fit the 64-byte trace record: `a`, `b` and `c` are
    signed 64-bit numbers, `d` is an unsigned 32-bit number.
    """

    action: str
    actor: str = ""
    """Who: a client id, a group, a peer's address; `group@client` for a member of a group, whose name has no `@`.
    Empty when it is the node itself."""
    subject: str = ""
    """On what: nearly always a topic."""
    queue_id: int = -1
    a: int = 0
    b: int = 0
    c: int = 0
    d: int = 0


EventFields: TypeAlias = tuple[str, str, str, int, int, int, int, int]
"""The fields of an event in their order. Every `Event` is such a tuple; steps that every message takes make the plain
tuple, which costs a third, and whoever wants names for the fields calls `Event._make`."""


@dataclass(frozen=True, slots=True)
class Step(Generic[S, E]):
    """The outcome of one action. A step that was not enabled leaves the state and has no event."""

    state: S
    effects: tuple[E, ...] = ()
    event: Event | None = None
